//! The marker of a handoff: `.runtime/handoffs/<address>.json`.
//!
//! It is not in the agent's folder, where git would show it as a change.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::handoff::Marker;
use gt_core::{Identity, Problem};
use std::path::PathBuf;

fn path(town: &Town, agent: &Identity) -> PathBuf {
    town.agent_file_path(agent, "handoffs")
}

pub(super) fn write(town: &Town, agent: &Identity, marker: &Marker) -> Result<()> {
    let line = serde_json::to_string(marker)
        .map_err(|error| Problem::failed("cannot write the marker").caused_by(error))?;
    // Written without fsync: the message on disk has the same content.
    files::overwrite_line(&path(town, agent), &line)
}

/// Returns the marker of an agent. An unreadable marker is logged and counts as missing: the message
/// has the same content and more.
pub fn read(town: &Town, agent: &Identity) -> Result<Option<Marker>> {
    let text = files::read_if_there(&path(town, agent))?;
    Ok(text.and_then(|text| {
        let marker = serde_json::from_str(text.lines().next().unwrap_or_default());
        marker.or_warn(format_args!("the handoff marker of {agent} cannot be read"))
    }))
}

/// Removes the marker after the next session has read it.
pub fn remove(town: &Town, agent: &Identity) -> Result<()> {
    files::remove_if_there(&path(town, agent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn marker_that_cannot_be_read_is_logged() {
        let (_folder, town) = town();
        let mayor = Identity::town(gt_core::Role::Mayor);
        let (found, warnings) = warnings_of(|| read(&town, &mayor).unwrap());
        assert!(found.is_none() && warnings.is_empty(), "{warnings:?}");
        let path = path(&town, &mayor);
        files::make_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        let (found, warnings) = warnings_of(|| read(&town, &mayor).unwrap());
        assert!(found.is_none());
        assert!(
            warnings[0].starts_with("the handoff marker of mayor"),
            "{warnings:?}"
        );
    }
}
