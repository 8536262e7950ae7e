//! Snapshot of the running agents and of their hooks.

use super::claim;
use crate::records::items::Work;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::terminal::containers::{self, Container};
use crate::{Result, Town};
use gt_core::plural::counted;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::collections::{BTreeMap, BTreeSet};

/// All containers and hooks of a town, read at one moment.
pub(crate) struct TownSnapshot {
    containers: Vec<Container>,
    hooks: BTreeMap<String, WorkId>,
}

impl TownSnapshot {
    pub(crate) fn read(town: &Town) -> Result<Self> {
        Ok(TownSnapshot {
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
    pub(crate) fn is_running(&self, identity: &Identity) -> bool {
        self.container(identity).is_some_and(is_alive)
    }

    /// Returns the error for a polecat beyond the town's limits; `None` if there is a slot for it.
    /// A polecat counts if it has an item on its hook or runs. A dead polecat keeps the item on its
    /// hook, but does not count.
    pub(crate) fn refusal(&self, town: &Town, candidate: &Identity) -> Result<Option<Problem>> {
        let mut busy = self.busy(town);
        busy.remove(candidate);
        // Dead polecats are searched only at the limit, because the search reads the index of
        // sessions.
        if is_full(town, candidate, &busy) {
            busy = self.without_dead(town, busy)?;
        }
        let limits = &town.settings().limits;
        let rig = candidate.rig().unwrap_or_default();
        let (of_rig, all) = count(candidate, &busy);
        let refuse = |whose: &str, count: usize, setting: &str| {
            let polecats = counted(count, "polecat");
            let message = format!("{whose} has {polecats} at work, the maximum");
            Problem::conflict(message)
                .hint("`gt polecat list` shows them; wait until one is done")
                .hint("`gt polecat nuke NAME` removes one, and its item is open again")
                .hint(format!("or set `{setting}` under [limits] in town.toml"))
        };
        if of_rig >= limits.polecats_per_rig {
            let whose = format!("the rig {rig}");
            return Ok(Some(refuse(&whose, of_rig, "polecats_per_rig")));
        }
        if all >= limits.polecats {
            return Ok(Some(refuse("the town", all, "polecats")));
        }
        Ok(None)
    }

    /// Returns the polecats that occupy a slot: those that run, and those with an item on their
    /// hook that have not died.
    pub(crate) fn busy_polecats(&self, town: &Town) -> Result<BTreeSet<Identity>> {
        self.without_dead(town, self.busy(town))
    }

    /// Returns all containers whose agents run.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &Container> {
        let containers = self.containers.iter();
        containers.filter(|container| is_alive(container))
    }

    /// Returns the polecats that have an item on their hook or run.
    fn busy(&self, town: &Town) -> BTreeSet<Identity> {
        let hooked = self.hooks.keys();
        let hooked = hooked.filter_map(|address| Identity::from_address(address, town.registry()));
        let alive = self.alive().filter_map(Container::identity).cloned();
        let is_polecat = |agent: &Identity| agent.role() == Role::Polecat;
        hooked.chain(alive).filter(is_polecat).collect()
    }

    /// Removes dead polecats.
    fn without_dead(&self, town: &Town, busy: BTreeSet<Identity>) -> Result<BTreeSet<Identity>> {
        let mut alive = BTreeSet::new();
        for agent in busy {
            if !self.is_dead(town, &agent)? {
                alive.insert(agent);
            }
        }
        Ok(alive)
    }

    /// Returns whether a polecat was started on the item on its hook, no longer runs, and is not
    /// being started or respawned.
    fn is_dead(&self, town: &Town, agent: &Identity) -> Result<bool> {
        let Some(item) = self.bead(agent) else {
            return Ok(false);
        };
        if self.is_running(agent) || claim::is_held(town, agent) {
            return Ok(false);
        }
        if let Some(container) = self.container(agent) {
            return Ok(!container.pane().tag_auto_respawn);
        }
        let sessions = Sessions::of(town).find(&SessionQuery {
            agent: Some(agent.address()),
            work: Some(item.to_string()),
            limit: Some(1),
            ..SessionQuery::default()
        })?;
        Ok(!sessions.is_empty())
    }
}

/// Returns how many polecats there are in the candidate's rig, and in all rigs.
fn count(candidate: &Identity, busy: &BTreeSet<Identity>) -> (usize, usize) {
    let of_rig = busy.iter().filter(|agent| agent.rig() == candidate.rig());
    (of_rig.count(), busy.len())
}

fn is_full(town: &Town, candidate: &Identity, busy: &BTreeSet<Identity>) -> bool {
    let limits = &town.settings().limits;
    let (of_rig, all) = count(candidate, busy);
    of_rig >= limits.polecats_per_rig || all >= limits.polecats
}

fn is_alive(container: &Container) -> bool {
    !container.pane().dead && !container.lost_agent_pane()
}
