//! Capabilities: what an agent may do with `gt`, by its role.
//!
//! One table ([`TABLE`]) has a row for each capability: the agents whose affairs each role may
//! change. A town and a rig may override single cells. People and `gt` itself may do everything.
//! This limits the commands of `gt`, not the processes of an agent.

mod table;

pub use table::TABLE;

use crate::identity::Identity;
use crate::problem::Problem;
use crate::role::Role;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Something that a command of `gt` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Reports of hooks, steps, checkpoints, and events.
    Report,
    /// Hooks, molecules, handoffs and submitted work.
    Hook,
    /// Reading and archiving of mail.
    Mail,
    /// Messages, mail and escalations to others.
    Message,
    /// Answers to the questions of others.
    Answer,
    /// Keys in the panes of others.
    Keys,
    /// New work items.
    CreateWork,
    /// Changes of work items.
    Work,
    /// Starts of agents, assignments and schedules.
    Sling,
    /// The merge queue.
    Merge,
    /// Stops, restarts and interrupts.
    Stop,
    /// Creation and removal of agents and worktrees.
    Remove,
    /// Settings, rigs, accounts, budgets, the daemon, and the town as a whole.
    Config,
}

/// The agents, or the owners of items, that a capability extends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    None,
    /// The agent itself.
    Own,
    /// The agents of its rig.
    Rig,
    Town,
}

impl Reach {
    pub fn as_str(self) -> &'static str {
        match self {
            Reach::None => "none",
            Reach::Own => "own",
            Reach::Rig => "rig",
            Reach::Town => "town",
        }
    }
}

impl Capability {
    /// Returns the word for settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::Report => "report",
            Capability::Hook => "hook",
            Capability::Mail => "mail",
            Capability::Message => "message",
            Capability::Answer => "answer",
            Capability::Keys => "keys",
            Capability::CreateWork => "create_work",
            Capability::Work => "work",
            Capability::Sling => "sling",
            Capability::Merge => "merge",
            Capability::Stop => "stop",
            Capability::Remove => "remove",
            Capability::Config => "config",
        }
    }

    /// Returns whether an agent never has it for itself: it could approve its own requests.
    fn is_for_others(self) -> bool {
        matches!(self, Capability::Answer | Capability::Keys)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Overrides of single cells: by role, then by capability.
pub type CapabilityOverrides = BTreeMap<Role, BTreeMap<Capability, Reach>>;

/// The table with the overrides of a town and of an agent's rig; those of the rig count more.
#[derive(Clone, Debug, Default)]
pub struct Capabilities<'a> {
    pub town: Option<&'a CapabilityOverrides>,
    pub rig: Option<&'a CapabilityOverrides>,
}

impl Capabilities<'_> {
    /// Returns how far a role has a capability.
    pub fn reach(&self, role: Role, capability: Capability) -> Reach {
        let cell = |overrides: Option<&CapabilityOverrides>| {
            overrides?.get(&role)?.get(&capability).copied()
        };
        cell(self.rig)
            .or_else(|| cell(self.town))
            .unwrap_or_else(|| default_reach(role, capability))
    }

    /// Fails if the agent does not have the capability at all.
    pub fn check(&self, agent: &Identity, capability: Capability) -> Result<(), Problem> {
        match self.reach(agent.role(), capability) {
            Reach::None => Err(denied(agent, capability, "")),
            _ => Ok(()),
        }
    }

    /// Fails if the agent does not have the capability for the whole town.
    pub fn check_for_town(&self, agent: &Identity, capability: Capability) -> Result<(), Problem> {
        match self.reach(agent.role(), capability) {
            Reach::Town => Ok(()),
            _ => Err(denied(agent, capability, " for the town")),
        }
    }

    /// Fails if the agent does not have the capability for this target.
    pub fn check_for(
        &self,
        agent: &Identity,
        capability: Capability,
        target: &Identity,
    ) -> Result<(), Problem> {
        if agent == target {
            return match capability.is_for_others() {
                true => Err(denied(agent, capability, " for itself")),
                false => self.check(agent, capability),
            };
        }
        let is_in_rig = || agent.rig().is_some() && agent.rig() == target.rig();
        match self.reach(agent.role(), capability) {
            Reach::Town => Ok(()),
            Reach::Rig if is_in_rig() => Ok(()),
            _ => Err(denied(agent, capability, &format!(" for {target}"))),
        }
    }

    /// Fails if the agent does not have the capability for an item of this rig and assignee.
    pub fn check_for_item(
        &self,
        agent: &Identity,
        capability: Capability,
        rig: Option<&str>,
        assignee: Option<&str>,
    ) -> Result<(), Problem> {
        let is_own = assignee == Some(agent.address().as_str());
        let is_in_rig = || rig.is_some() && agent.rig() == rig;
        match self.reach(agent.role(), capability) {
            Reach::Town => Ok(()),
            Reach::Rig if is_own || is_in_rig() => Ok(()),
            Reach::Own if is_own => Ok(()),
            _ => Err(denied(agent, capability, " for an item of others")),
        }
    }
}

fn default_reach(role: Role, capability: Capability) -> Reach {
    let Some(column) = table::column(role) else {
        return Reach::Town;
    };
    let row = TABLE.iter().find(|(of, _)| *of == capability);
    row.and_then(|(_, cells)| cells.get(column).copied())
        .unwrap_or(Reach::None)
}

fn denied(agent: &Identity, capability: Capability, whom: &str) -> Problem {
    Problem::denied(format!(
        "{agent} does not have the capability `{capability}`{whom}"
    ))
    .hint("`gt role capabilities` prints the table; `gt escalate` asks a person")
}

#[cfg(test)]
mod tests {
    use super::Capability as C;
    use super::*;

    #[test]
    fn reach_limits_the_target() {
        let table = Capabilities::default();
        let (max, joe) = (Identity::crew("lab", "max"), Identity::crew("lab", "joe"));
        let far = Identity::polecat("other", "Toast");
        let mayor = Identity::town(Role::Mayor);
        let witness = Identity::of_rig(Role::Witness, "lab");
        let check = |agent: &Identity, capability, target: &Identity, expected: bool| {
            let answer = table.check_for(agent, capability, target);
            assert_eq!(answer.is_ok(), expected, "{agent} {capability} {target}");
        };
        check(&max, C::Stop, &max, true);
        check(&max, C::Stop, &joe, false);
        check(&max, C::Hook, &joe, false);
        check(&max, C::Answer, &joe, false);
        check(&witness, C::Answer, &joe, true);
        check(&witness, C::Answer, &far, false);
        check(&mayor, C::Answer, &far, true);
        for capability in [C::Answer, C::Keys] {
            check(&mayor, capability, &mayor, false);
            check(&witness, capability, &witness, false);
        }
        check(&mayor, C::Config, &mayor, false);
    }

    #[test]
    fn items_belong_to_their_rig_and_assignee() {
        let table = Capabilities::default();
        let toast = Identity::polecat("lab", "Toast");
        let check = |agent: &Identity, rig: &str, assignee: Option<&str>| {
            table
                .check_for_item(agent, C::Work, Some(rig), assignee)
                .is_ok()
        };
        assert!(check(&toast, "lab", Some("lab/polecats/Toast")));
        assert!(!check(&toast, "lab", None));
        let max = Identity::crew("lab", "max");
        assert!(check(&max, "lab", None) && !check(&max, "other", None));
    }

    #[test]
    fn overrides_of_a_rig_count_more_than_those_of_the_town() {
        let cell =
            |reach| -> CapabilityOverrides { [(Role::Crew, [(C::Stop, reach)].into())].into() };
        let (town, rig) = (cell(Reach::Town), cell(Reach::None));
        let mut table = Capabilities {
            town: Some(&town),
            rig: None,
        };
        assert_eq!(table.reach(Role::Crew, C::Stop), Reach::Town);
        assert_eq!(table.reach(Role::Polecat, C::Stop), Reach::Own);
        table.rig = Some(&rig);
        assert_eq!(table.reach(Role::Crew, C::Stop), Reach::None);
    }

    #[test]
    fn every_capability_has_one_row() {
        for (at, (capability, _)) in TABLE.iter().enumerate() {
            assert!(
                TABLE
                    .iter()
                    .skip(at + 1)
                    .all(|(other, _)| other != capability)
            );
            let word = serde_json::to_value(capability).unwrap();
            assert_eq!(word, capability.as_str());
        }
    }
}
