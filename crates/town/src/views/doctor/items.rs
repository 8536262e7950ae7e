//! Checks the stores of work items.

use super::DoctorFinding;
use crate::Town;
use crate::base::or_log::OrLog;
use crate::records::events::{self, Events};
use crate::records::items::{Recovered, Work, beads_of};
use crate::records::sessions::{self, Sessions};
use gt_core::event::Event;
use gt_core::plural::counted;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum age of work items without a backup.
const UNSAVED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Checks that the database of work items is intact. A fix replaces a damaged database with its
/// newest backup.
pub(super) fn check_work(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let work = Work::of(town);
    let path = work.path().display();
    let problem = match work.check() {
        Ok(Some(items)) => {
            let message = format!("{} in {path}", counted(items, "item"));
            return vec![DoctorFinding::ok("work", message)];
        }
        Ok(None) => return vec![DoctorFinding::ok("work", "nothing is written yet")],
        Err(problem) => problem,
    };
    let found = DoctorFinding::of("work", &problem);
    let backup = work.damage().and_then(|_| work.newest_whole_backup());
    let Some((backup, items)) = backup else {
        return vec![found];
    };
    if !fix {
        let (at, items) = (backup.at, counted(items, "item"));
        let hint = format!("`gt doctor --fix` restores the backup of {at:.0} ({items})");
        return vec![found.hint(hint).fixable()];
    }
    match work.recover() {
        Ok(recovered) => told(town, &work, &recovered),
        Err(problem) => vec![DoctorFinding::of("work", &problem)],
    }
}

/// Returns findings about the restored data and the known losses.
fn told(town: &Town, work: &Work, recovered: &Recovered) -> Vec<DoctorFinding> {
    let aside = recovered.aside.as_ref().map_or_else(String::new, |aside| {
        format!("; the damaged files are in {}", aside.display())
    });
    let restored = DoctorFinding::ok(
        "work",
        format!(
            "restored {} from the backup of {:.0}{aside}",
            counted(recovered.items, "item"),
            recovered.at
        ),
    );
    let since = events_since(town, recovered.at);
    let there = work.item_ids();
    let named = since.iter().filter_map(|event| event.payload.get("bead"));
    let named = named.filter_map(|id| id.as_str().map(str::to_owned));
    let sessions = Sessions::of(town).find(&sessions::SessionQuery {
        since: Some(recovered.at.to_string()),
        ..sessions::SessionQuery::default()
    });
    let sessions = sessions.or_warn("the list of missing items may be incomplete");
    let held = sessions.unwrap_or_default().into_iter();
    let held = held.flat_map(|session| {
        let items = session.work_units().map(str::to_owned);
        items.collect::<Vec<String>>()
    });
    let all = recovered.missing.iter().cloned().chain(named).chain(held);
    let missing: BTreeSet<String> = all.filter(|id| !there.contains(id)).collect();
    let mut findings = vec![restored];
    if !missing.is_empty() {
        let ids: Vec<&str> = missing.iter().map(String::as_str).collect();
        let message = match ids.as_slice() {
            [one] => format!("1 item is not in the backup: {one}"),
            ids => format!(
                "{} items are not in the backup: {}",
                ids.len(),
                ids.join(" ")
            ),
        };
        findings.push(DoctorFinding::warning("work", message).hint("create them again"));
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &since {
        *kinds.entry(&event.kind).or_default() += 1;
    }
    if !kinds.is_empty() {
        let counts: Vec<String> = kinds
            .iter()
            .map(|(kind, n)| format!("{n} {kind}"))
            .collect();
        let message = format!("since the backup, and lost with it: {}", counts.join(", "));
        let hint = format!("`gt events --since {:.0}` shows them", recovered.at);
        findings.push(DoctorFinding::warning("work", message).hint(hint));
    }
    findings
}

/// Returns the events that imply a change of the database.
fn events_since(town: &Town, at: Timestamp) -> Vec<Event> {
    const KINDS: &[&str] = &[
        "hook",
        "unhook",
        "sling",
        "done",
        "task_start",
        "handoff",
        "mail",
        "merge_*",
        "molecule_*",
        "cleanup",
    ];
    let query = events::EventQuery {
        kinds: KINDS.iter().map(|&kind| kind.to_owned()).collect(),
        since: Some(at),
        ..events::EventQuery::default()
    };
    let found = Events::of(town).find(&query);
    let found = found.or_warn("the list of missing items may be incomplete");
    found.unwrap_or_default()
}

/// Checks that a backup of the work items exists and the newest is intact.
pub(super) fn check_backups(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let work = Work::of(town);
    if !matches!(work.check(), Ok(Some(_))) {
        return Vec::new();
    }
    let backups = work.backups();
    let Some(newest) = backups.first() else {
        let hint = "`gt save` makes one; a town in which agents run makes them by itself";
        let message = "the work items were not backed up yet";
        return vec![match work.is_older_than(UNSAVED_FOR) {
            true => DoctorFinding::warning("backups", message).hint(hint),
            false => DoctorFinding::ok("backups", message),
        }];
    };
    match work.newest_whole_backup() {
        Some((whole, items)) if whole == *newest => {
            let message = format!(
                "{} there, the newest of {:.0} ({})",
                backups.len(),
                whole.at,
                counted(items, "item")
            );
            vec![DoctorFinding::ok("backups", message)]
        }
        _ => vec![
            DoctorFinding::error("backups", format!("{} is damaged", newest.path.display()))
                .hint("remove it; `gt save` makes another"),
        ],
    }
}

/// Finds beads of rigs that cannot be shown.
pub(super) fn check_unread(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    // An unreadable database is reported by [`check_work`].
    let unread = Work::of(town).unread_beads().unwrap_or_default();
    let told = unread.iter().map(|(rig, bead, why)| {
        DoctorFinding::warning("beads", format!("{bead} of {rig} is not shown: {why}"))
            .hint(format!("correct it in the beads of {rig}"))
    });
    told.collect()
}

/// Checks whether the items of rigs with a `.beads` folder are kept there.
pub(super) fn check_beads(town: &Town, _fix: bool) -> Vec<DoctorFinding> {
    let rigs = beads_of(town).into_iter();
    rigs.map(|rig| {
        let folder = rig.folder.display().to_string();
        match rig.missing() {
            None => DoctorFinding::ok("beads", format!("{} has its items in {folder}", rig.rig)),
            Some(problem) if rig.is_wanted => DoctorFinding::of("beads", problem),
            Some(problem) => DoctorFinding::warning(
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
