//! Checks whether the caller may run a command: by the capabilities of its role.
//!
//! The binary names the capability of its command ([`gt_core::capability`]). Opening the town
//! checks that the caller has it at all; resolving a target, and starting or stopping an agent,
//! check that it extends to that agent.

use crate::{Result, Town};
use gt_core::caller::{Caller, VARIABLE};
use gt_core::capability::{Capabilities, Capability};
use gt_core::work::Item;
use gt_core::{Identity, Problem};

impl Town {
    /// Returns the agent whose capabilities limit this command; `None` for people and for `gt`. A
    /// person who acts as an agent is not limited.
    pub(crate) fn limited_agent(&self) -> Option<Identity> {
        let tree = self.process_tree();
        let told = self
            .around()
            .var(VARIABLE)
            .filter(|_| tree.agent.is_none() || tree.by_gt);
        match told.and_then(|text| Caller::parse(text, self.registry())) {
            Some(Caller::Agent(address)) => Identity::from_address(&address, self.registry()),
            Some(Caller::Person(_) | Caller::Gt) => None,
            None => tree.agent.clone().or_else(|| self.session_agent()),
        }
    }

    /// Returns the capabilities of an agent's role, with the overrides of the town and its rig.
    pub fn capabilities(&self, rig: Option<&str>) -> Capabilities<'_> {
        let rig = rig.and_then(|rig| self.settings().rigs.get(rig));
        Capabilities {
            town: Some(&self.settings().capabilities),
            rig: rig.map(|rig| &rig.capabilities),
        }
    }

    /// Fails if the caller does not have a capability at all.
    pub fn check_capability(&self, capability: Capability) -> Result<()> {
        match self.limited_agent() {
            Some(agent) => self.capabilities(agent.rig()).check(&agent, capability),
            None => Ok(()),
        }
    }

    /// Fails if the caller does not have a capability for the whole town.
    pub fn check_town_capability(&self, capability: Capability) -> Result<()> {
        match self.limited_agent() {
            Some(agent) => self
                .capabilities(agent.rig())
                .check_for_town(&agent, capability),
            None => Ok(()),
        }
    }

    /// Fails if the capability of the running command does not extend to this agent.
    pub(crate) fn authorize(&self, target: &Identity) -> Result<()> {
        match (self.around().capability, self.limited_agent()) {
            (Some(capability), Some(agent)) => {
                let table = self.capabilities(agent.rig());
                table.check_for(&agent, capability, target)
            }
            _ => Ok(()),
        }
    }

    /// Fails if the capability of the running command does not extend to this work item.
    pub fn authorize_item(&self, item: &Item) -> Result<()> {
        let (Some(capability), Some(agent)) = (self.around().capability, self.limited_agent())
        else {
            return Ok(());
        };
        let rig = self.registry().split(item.id.as_str()).map(|(rig, _)| rig);
        let table = self.capabilities(agent.rig());
        table.check_for_item(&agent, capability, rig, item.assignee.as_deref())
    }

    /// Fails if an agent wants the mailbox of the person.
    pub fn authorize_mailbox_of_person(&self) -> Result<()> {
        match (self.around().capability, self.limited_agent()) {
            (Some(Capability::Mail), Some(agent)) => Err(Problem::denied(format!(
                "{agent} does not have the capability `mail` for the mailbox of the person"
            ))
            .hint("`gt mail inbox` without an address shows its own")),
            _ => Ok(()),
        }
    }
}
