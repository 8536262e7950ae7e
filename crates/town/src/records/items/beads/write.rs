//! Writes changes to beads before they are committed.
//!
//! Triggers record which mirrored items a transaction touched; each is compared with the last known
//! state of beads. If beads refuses, the transaction fails. If the process is killed in between,
//! beads has the change, and the next refresh of the mirror reads it.

use super::program::BeadsSession;
use super::{Beads, BeadsRig, rig_of};
use crate::Result;
use crate::base::fault;
use crate::records::items::exchange::{normalise_time, write as write_item};
use crate::records::items::read::must_have;
use crate::records::items::store::problem;
use gt_core::Problem;
use gt_core::beads::{self, Bead};
use gt_core::work::{Item, WorkId};
use rusqlite::{Connection, params};

/// Writes all touched items.
pub(super) fn write_touched(beads: &Beads, db: &Connection) -> Result<()> {
    for rig in &beads.rigs {
        let touched = touched(db, rig)?;
        if touched.is_empty() {
            continue;
        }
        let program = rig.program()?;
        let session = BeadsSession::within_change(beads, rig);
        for (id, seen) in touched {
            let now = without_foreign_relations(db, rig, must_have(db, &id)?)?;
            let commands = beads::changes(program.dialect, &seen, &now);
            for command in commands {
                say(&session, command)?;
            }
            remember(db, rig, &now)?;
        }
        fault::point_in(&beads.around, "beads.written");
    }
    Ok(())
}

/// Runs a command, and retries a change of the assignee with `--force`: some versions of bd require
/// it, others do not know the option. Hooks decide who has an item.
fn say(session: &BeadsSession<'_>, mut command: Vec<String>) -> Result<()> {
    let said = session.say(&command);
    let Err(problem) = said else {
        return Ok(());
    };
    let is_forced = command.iter().any(|word| word == "--force");
    let is_about_whose = command.iter().any(|word| word.starts_with("--assignee="));
    if is_forced || !is_about_whose {
        return Err(problem);
    }
    command.push("--force".to_owned());
    session.say(&command).map(drop).map_err(|_| problem)
}

/// Creates an item in beads, and its mirror.
pub(in crate::records::items) fn create(
    beads: &Beads,
    rig: &BeadsRig,
    db: &Connection,
    draft: &Item,
) -> Result<Item> {
    rig.program()?;
    let session = BeadsSession::within_change(beads, rig);
    let answer = session.ask(&beads::create(draft))?;
    let made = answer.into_iter().next();
    let made = made.map(|made| Bead::read(made, &beads.around.clock.text(), normalise_time));
    let Some(made) = made.transpose()?.flatten() else {
        return Err(Problem::failed("beads made an item but did not say which"));
    };
    fault::point_in(&beads.around, "beads.created");
    // Some answers omit fields that were just set.
    let made = Item {
        labels: draft.labels.clone(),
        parent: draft.parent.clone(),
        assignee: draft.assignee.clone(),
        ephemeral: draft.ephemeral,
        deps: Vec::new(),
        ..made.item
    };
    write_item(db, &made)?;
    remember(db, rig, &made)?;
    for blocker in &draft.deps {
        crate::records::items::dependencies::add(db, &made.id, blocker)?;
    }
    must_have(db, &made.id)
}

/// Stores the state of an item in beads.
pub(super) fn remember(db: &Connection, rig: &BeadsRig, item: &Item) -> Result<()> {
    // Cannot fail: all fields are plain values.
    let seen = serde_json::to_string(item).unwrap_or_default();
    db.execute(
        "INSERT INTO beads (item, rig, seen) VALUES (?1, ?2, ?3)
         ON CONFLICT (item) DO UPDATE SET rig = ?2, seen = ?3, touched = 0",
        params![item.id.as_str(), rig.rig, seen],
    )
    .map(drop)
    .map_err(problem)
}

/// Returns an item without the relations that only the town knows: blockers and parents that are
/// not in the same beads.
pub(super) fn without_foreign_relations(
    db: &Connection,
    rig: &BeadsRig,
    mut item: Item,
) -> Result<Item> {
    let is_there = |id: &WorkId| -> Result<bool> {
        let there = rig_of(db, id)?;
        Ok(there.as_deref() == Some(rig.rig.as_str()))
    };
    let mut deps = Vec::new();
    for id in item.deps {
        if is_there(&id)? {
            deps.push(id);
        }
    }
    item.deps = deps;
    item.parent = match item.parent {
        Some(parent) if is_there(&parent)? => Some(parent),
        _ => None,
    };
    Ok(item)
}

fn touched(db: &Connection, rig: &BeadsRig) -> Result<Vec<(WorkId, Item)>> {
    let mut query = db
        .prepare("SELECT item, seen FROM beads WHERE touched = 1 AND rig = ?1 ORDER BY item")
        .map_err(problem)?;
    let rows = query
        .query_map([&rig.rig], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })
        .map_err(problem)?;
    rows.map(|row| {
        let (id, seen) = row.map_err(problem)?;
        Ok((id.parse()?, read_seen(&seen)?))
    })
    .collect()
}

pub(super) fn read_seen(text: &str) -> Result<Item> {
    serde_json::from_str(text)
        .map_err(|error| Problem::failed("a mirrored item cannot be read").caused_by(error))
}
