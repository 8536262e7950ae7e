//! Snapshot of the running agents and of their hooks.

use super::claim;
use crate::records::items::Work;
use crate::records::sessions::{Query, Sessions};
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::collections::{BTreeMap, BTreeSet};

/// All containers and hooks of a town, read at one moment.
pub(crate) struct House {
    containers: Vec<Container>,
    hooks: BTreeMap<String, WorkId>,
}

impl House {
    pub(crate) fn look(town: &Town) -> Result<Self> {
        Ok(House {
            containers: containers::list_everywhere(town)?,
            hooks: Work::of(town).hooks()?.into_iter().collect(),
        })
    }

    /// Returns the item on an agent's hook.
    pub(crate) fn bead(&self, identity: &Identity) -> Option<WorkId> {
        self.hooks.get(&identity.address()).cloned()
    }

    pub(crate) fn container(&self, identity: &Identity) -> Option<&Container> {
        let is_its = |container: &&Container| container.identity() == Some(identity);
        self.containers.iter().find(is_its)
    }

    /// Returns all agents with an item on their hook or with a container. An agent with both
    /// appears twice.
    pub(crate) fn agents(&self, town: &Town) -> impl Iterator<Item = Identity> {
        let hooked = self.hooks.keys();
        let hooked = hooked.filter_map(|address| Identity::from_address(address, town.registry()));
        let contained = self.containers.iter().filter_map(Container::identity);
        hooked.chain(contained.cloned())
    }

    /// Returns whether an agent's container exists and its process has not ended.
    pub(crate) fn sessions(&self, identity: &Identity) -> bool {
        self.container(identity).is_some_and(is_alive)
    }

    /// Refuses a polecat beyond the town's limits. A polecat counts if it has an item on its hook
    /// or runs. A dead polecat keeps the item on its hook, but does not count.
    pub(crate) fn admit(&self, town: &Town, candidate: &Identity) -> Result<()> {
        let hooked = self.hooks.keys();
        let mut busy: BTreeSet<Identity> = hooked
            .filter_map(|address| Identity::from_address(address, town.registry()))
            .collect();
        let alive = self
            .containers
            .iter()
            .filter(|container| is_alive(container));
        busy.extend(alive.filter_map(Container::identity).cloned());
        busy.retain(|agent| agent.role() == Role::Polecat && agent != candidate);
        let limits = &town.settings().limits;
        let rig = candidate.rig().unwrap_or_default();
        let count = |busy: &BTreeSet<Identity>| {
            let of_rig = busy.iter().filter(|agent| agent.rig() == Some(rig));
            (of_rig.count(), busy.len())
        };
        let is_full = |(of_rig, all): (usize, usize)| {
            of_rig >= limits.polecats_per_rig || all >= limits.polecats
        };
        // Dead polecats are looked for only at the limit, because that reads the index of sessions.
        if is_full(count(&busy)) {
            let mut alive = BTreeSet::new();
            for agent in busy {
                if !self.is_dead(town, &agent)? {
                    alive.insert(agent);
                }
            }
            busy = alive;
        }
        let (of_rig, all) = count(&busy);
        let refuse = |whose: &str, count: usize, setting: &str| {
            let message = format!("{whose} has {count} polecats at work, and no more are allowed");
            Err(Problem::conflict(message)
                .hint("`gt polecat list` shows them; wait until one is done")
                .hint("`gt polecat nuke NAME` removes one, and its item is open again")
                .hint(format!("or set `{setting}` under [limits] in town.toml")))
        };
        if of_rig >= limits.polecats_per_rig {
            return refuse(&format!("the rig {rig}"), of_rig, "polecats_per_rig");
        }
        if all >= limits.polecats {
            return refuse("the town", all, "polecats");
        }
        Ok(())
    }

    /// Returns whether a polecat was started on the item on its hook, no longer runs, and is not
    /// being started or respawned.
    fn is_dead(&self, town: &Town, agent: &Identity) -> Result<bool> {
        let Some(item) = self.bead(agent) else {
            return Ok(false);
        };
        if self.sessions(agent) || claim::is_held(town, agent) {
            return Ok(false);
        }
        if let Some(container) = self.container(agent) {
            return Ok(!container.pane().tag_auto_respawn);
        }
        let sessions = Sessions::of(town).find(&Query {
            agent: Some(agent.address()),
            work: Some(item.to_string()),
            limit: Some(1),
            ..Query::default()
        })?;
        Ok(!sessions.is_empty())
    }
}

fn is_alive(container: &Container) -> bool {
    !container.pane().dead && !container.lost_agent_pane()
}
