//! Where the work items of rigs are kept.

use super::Finding;
use crate::Town;
use crate::work::{Work, beads_of};

/// The database of work items: whether it is there, and whole.
pub(super) fn check_work(town: &Town, _fix: bool) -> Vec<Finding> {
    let work = Work::of(town);
    let path = work.path().display();
    vec![match work.check() {
        Ok(Some(1)) => Finding::ok("work", format!("1 item in {path}")),
        Ok(Some(items)) => Finding::ok("work", format!("{items} items in {path}")),
        Ok(None) => Finding::ok("work", "nothing is written yet"),
        Err(problem) => Finding::of("work", &problem),
    }]
}

/// What the beads of rigs have and cannot be shown here.
pub(super) fn check_unread(town: &Town, _fix: bool) -> Vec<Finding> {
    // A database that cannot be read is told above.
    let unread = Work::of(town).unread_beads().unwrap_or_default();
    let told = unread.iter().map(|(rig, bead, why)| {
        Finding::warning("beads", format!("{bead} of {rig} is not shown: {why}"))
            .hint(format!("mend it in the beads of {rig}"))
    });
    told.collect()
}

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
