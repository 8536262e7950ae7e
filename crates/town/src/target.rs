//! From what a person typed to an agent.

use crate::containers::{self, Container};
use crate::sessions::{Query, Sessions};
use crate::work::Work;
use crate::{Result, Town, directory};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role, target};

/// Resolves a target, looking at what exists only where its text leaves a choice.
pub fn resolve(town: &Town, text: &str) -> Result<Identity> {
    match target::read_exact(text, town.registry()) {
        Some(identity) if !is_ambiguous(text, &identity) => Ok(identity),
        _ => resolve_among(town, text, &containers::list(town)?),
    }
}

/// The same for whoever asks about an agent: one of which nobody knows anything is taken for
/// a slip, and not for one that has no work. One that is gone may have left something.
pub fn known(town: &Town, text: &str) -> Result<Identity> {
    let agent = resolve(town, text)?;
    check_known(town, &agent)?;
    Ok(agent)
}

/// Refuses an agent of which nobody knows anything.
pub fn check_known(town: &Town, agent: &Identity) -> Result<()> {
    let query = Query {
        agent: Some(agent.address()),
        limit: Some(1),
        ..Query::default()
    };
    let is_known = directory::has(town, agent)
        || Work::of(town).hooked(&agent.address())?.is_some()
        || Work::of(town).molecule(&agent.address())?.is_some()
        || !Sessions::of(town).find(&query)?.is_empty()
        || containers::of_agent(town, agent)?.is_some();
    match is_known {
        true => Ok(()),
        false => Err(Problem::not_found(format!("there is no agent {agent}"))
            .hint("`gt agents --all --stopped` shows who there is")),
    }
}

/// Whether only what exists can tell who is meant.
fn is_ambiguous(text: &str, identity: &Identity) -> bool {
    match identity.role() {
        // A task's container cannot carry the dots of its id; its tag does.
        Role::Task => true,
        // The id of a work item reads like a polecat's container, and may mean its agent.
        Role::Polecat => text.parse::<WorkId>().is_ok(),
        _ => false,
    }
}

/// Resolves a target against containers that were already read.
pub fn resolve_among(town: &Town, text: &str, containers: &[Container]) -> Result<Identity> {
    let known = directory::everybody(town, containers)?;
    let identity = target::resolve(text, town.registry(), &known)?;
    let is_known = known.iter().any(|agent| agent.identity == identity);
    // An item that nobody works on is still no polecat that nobody has made.
    match text.parse::<WorkId>() {
        Ok(id) if identity.role() == Role::Polecat && !is_known => {
            match Work::of(town).get(&id).is_ok() {
                true => Ok(Identity::task(id.as_str(), town.registry())),
                false => Ok(identity),
            }
        }
        _ => Ok(identity),
    }
}
