//! Where the work items of rigs are kept.

use super::Finding;
use crate::Town;
use crate::work::beads_of;

/// Rigs with a `.beads` folder: whether their items are in there.
pub(super) fn check_beads(town: &Town, _fix: bool) -> Vec<Finding> {
    let rigs = beads_of(town).into_iter();
    rigs.map(|rig| {
        let folder = rig.folder.display().to_string();
        match rig.missing() {
            None => Finding::ok("beads", format!("{} has its items in {folder}", rig.rig)),
            Some(problem) if rig.is_wanted => Finding::of("beads", problem),
            Some(problem) => Finding::warning(
                "beads",
                format!(
                    "{} has its items in the town, although there is {folder}: {problem}",
                    rig.rig
                ),
            )
            .hint("install it, or set `beads = \"off\"` for the rig in town.toml"),
        }
    })
    .collect()
}
