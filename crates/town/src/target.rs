//! From what a person typed to an agent.

use crate::containers::{self, Container};
use crate::{Result, Town, directory};
use gt_core::{Identity, target};

/// Resolves a target, looking at what exists only where its text leaves a choice.
pub fn resolve(town: &Town, text: &str) -> Result<Identity> {
    match target::read_exact(text, town.registry()) {
        // A task's container cannot carry the dots of its id; its tag does.
        Some(identity) if identity.role() != gt_core::Role::Task => Ok(identity),
        _ => resolve_among(town, text, &containers::list(town)?),
    }
}

/// Resolves a target against containers that were already read.
pub fn resolve_among(town: &Town, text: &str, containers: &[Container]) -> Result<Identity> {
    let known = directory::everybody(town, containers)?;
    target::resolve(text, town.registry(), &known)
}
