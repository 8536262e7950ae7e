//! Refreshes the mirror of a rig's beads: the copies of its issues in our database.
//!
//! The beads program is run before the transaction begins, so that a program that hangs blocks no
//! writer. A listing must not be older than the rows that it is compared with: if the rows or the
//! files of beads have changed since the listing, the program is run again inside the transaction,
//! which excludes other writers.

use super::program::BeadsSession;
use super::write::{read_seen, remember, without_foreign_relations};
use super::{Beads, BeadsRig, trace};
use crate::Result;
use crate::records::items::Work;
use crate::records::items::exchange::{normalise_time, write as write_item};
use crate::records::items::read::{by_id, must_have};
use crate::records::items::store::problem;
use gt_core::beads::{self, Bead};
use gt_core::work::{Item, ItemStatus, WorkId, check_priority};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use std::collections::BTreeMap;

/// Close reason of an item that is no longer in beads.
const GONE: &str = "not in beads any more";

/// Refreshes the mirror, unless nothing has changed since the last refresh.
pub(super) fn refresh(work: &Work, beads: &Beads, rig: &BeadsRig) -> Result<()> {
    rig.program()?;
    let before = trace::of(&rig.folder);
    let known = {
        let db = work.open()?;
        if is_current(&db, rig, &before)? {
            return Ok(());
        }
        mirrored(&db, rig)?
    };
    let listed = listing(&BeadsSession::new(beads, rig))?;
    work.change(|db| {
        // This trace is compared with the one from before the first listing. It is taken before a
        // second listing, so that the next refresh notices changes made during that listing.
        let trace = trace::of(&rig.folder);
        if is_current(db, rig, &trace)? {
            return Ok(());
        }
        let is_as_listed = trace == before && mirrored(db, rig)? == known;
        let listed = match is_as_listed {
            true => listed,
            false => listing(&BeadsSession::within_change(beads, rig))?,
        };
        apply(db, rig, listed.found, &listed.unread)?;
        note_unread(db, rig, &listed.unread)?;
        db.execute(
            "INSERT OR REPLACE INTO beads_looks (rig, folder, trace) VALUES (?1, ?2, ?3)",
            params![rig.rig, rig.folder.to_string_lossy(), trace],
        )
        .map(drop)
        .map_err(problem)
    })
}

/// Items listed by beads.
#[derive(Default)]
struct BeadsListing {
    found: BTreeMap<WorkId, Bead>,
    /// Beads that cannot be converted to items, by id, with the reason. They stay in beads only.
    unread: BTreeMap<String, String>,
}

impl BeadsListing {
    fn take(&mut self, object: Value, now: &str) {
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        let read = Bead::read(object, now, normalise_time).and_then(|bead| {
            let priority = bead.as_ref().map(|bead| bead.item.priority);
            priority.map_or(Ok(()), check_priority).map(|()| bead)
        });
        match read {
            Ok(Some(bead)) => {
                self.found.insert(bead.item.id.clone(), bead);
            }
            Ok(None) => {}
            Err(problem) => {
                self.unread.insert(id, problem.message_with_causes());
            }
        }
    }
}

fn is_current(db: &Connection, rig: &BeadsRig, trace: &str) -> Result<bool> {
    db.query_row(
        "SELECT EXISTS (SELECT 1 FROM beads_looks WHERE rig = ?1 AND folder = ?2 AND trace = ?3)
         AND NOT EXISTS (SELECT 1 FROM beads WHERE touched <> 0 AND rig = ?1)",
        params![rig.rig, rig.folder.to_string_lossy(), trace],
        |row| row.get(0),
    )
    .map_err(problem)
}

/// Lists all beads of the rig, with their dependencies.
fn listing(session: &BeadsSession<'_>) -> Result<BeadsListing> {
    let now = session.clock().text();
    let mut listed = BeadsListing::default();
    for object in session.ask(&beads::list())? {
        listed.take(object, &now);
    }
    let short: Vec<WorkId> = listed
        .found
        .values()
        .filter(|bead| bead.is_short)
        .map(|bead| bead.item.id.clone())
        .collect();
    const AT_ONCE: usize = 200;
    for ids in short.chunks(AT_ONCE) {
        for object in session.ask(&beads::show(ids))? {
            listed.take(object, &now);
        }
    }
    Ok(listed)
}

fn apply(
    db: &Connection,
    rig: &BeadsRig,
    found: BTreeMap<WorkId, Bead>,
    unread: &BTreeMap<String, String>,
) -> Result<()> {
    // Parents and blockers may be written after the items that refer to them.
    db.pragma_update(None, "defer_foreign_keys", "ON")
        .map_err(problem)?;
    let hooks = hooks(db)?;
    let mut known = mirrored(db, rig)?;
    let mut changed = Vec::new();
    for (id, mut bead) in found {
        let before = match known.remove(&id) {
            // An item that had disappeared from beads may have come back.
            None => returned(db, rig, &id)?,
            known => known,
        };
        let agent = hooks.get(&id);
        if agent.is_none() {
            bead.unhook();
        }
        let bead = bead.item;
        let (seen, touched) = match before {
            Some((seen, touched)) => (Some(read_seen(&seen)?), touched),
            None => (None, false),
        };
        let is_as_seen = seen.as_ref().is_some_and(|seen| same(seen, &bead));
        if is_as_seen && !touched && agent.is_none() {
            continue;
        }
        if is_mail(db, &id)? {
            continue;
        }
        let row = by_id(db, &id)?;
        let mut now = match (&seen, &row) {
            (Some(seen), Some(row)) => {
                let told = without_foreign_relations(db, rig, row.clone())?;
                beads::merged(seen, &bead, &told)
            }
            _ => bead.clone(),
        };
        if let (Some(agent), Some(row)) = (agent, &row) {
            stay_on_hook(&mut now, row, agent);
        }
        changed.push((bead, now, row));
    }
    for (bead, now, _) in &changed {
        write_item(db, now)?;
        remember(db, rig, bead)?;
    }
    for (_, now, row) in &changed {
        write_dependencies(db, rig, now, row.as_ref())?;
    }
    // A parent that is not in the database is dropped.
    db.execute(
        "UPDATE items SET parent = NULL WHERE parent IS NOT NULL
         AND parent NOT IN (SELECT id FROM items)",
        [],
    )
    .map_err(problem)?;
    for (bead, _, _) in changed {
        let now = without_foreign_relations(db, rig, must_have(db, &bead.id)?)?;
        let bead = without_foreign_relations(db, rig, bead)?;
        remember(db, rig, &bead)?;
        // Differences are written to beads at the end of the transaction.
        db.execute(
            "UPDATE beads SET touched = ?2 WHERE item = ?1",
            params![bead.id.as_str(), !same(&bead, &now)],
        )
        .map_err(problem)?;
    }
    // Beads that were listed but could not be read still exist.
    known.retain(|id, _| !unread.contains_key(id.as_str()));
    known
        .iter()
        .try_for_each(|(id, (seen, _))| forget(db, rig, id, seen, hooks.contains_key(id)))
}

/// Returns the last known state of an item that had disappeared from beads. Reopens it if it was
/// closed only for that reason.
fn returned(db: &Connection, rig: &BeadsRig, id: &WorkId) -> Result<Option<(String, bool)>> {
    let found: Option<String> = db
        .query_row(
            "DELETE FROM beads_gone WHERE item = ?1 AND rig = ?2 RETURNING seen",
            params![id.as_str(), rig.rig],
            |row| row.get(0),
        )
        .optional()
        .map_err(problem)?;
    let Some(seen) = found else {
        return Ok(None);
    };
    let before = read_seen(&seen)?;
    db.execute(
        "UPDATE items SET status = ?2, assignee = ?3, closed_at = ?4, close_reason = ?5
         WHERE id = ?1 AND status = 'closed' AND close_reason = ?6",
        params![
            id.as_str(),
            before.status.as_str(),
            before.assignee,
            before.closed_at,
            before.close_reason,
            GONE,
        ],
    )
    .map_err(problem)?;
    Ok(Some((seen, true)))
}

/// Stores the beads that could not be read, so that their absence can be explained.
fn note_unread(db: &Connection, rig: &BeadsRig, unread: &BTreeMap<String, String>) -> Result<()> {
    db.execute("DELETE FROM beads_unread WHERE rig = ?1", [&rig.rig])
        .map_err(problem)?;
    for (bead, why) in unread {
        db.execute(
            "INSERT OR REPLACE INTO beads_unread (rig, bead, why) VALUES (?1, ?2, ?3)",
            params![rig.rig, bead, why],
        )
        .map_err(problem)?;
    }
    Ok(())
}

/// Returns whether two states are equal, apart from their times.
fn same(one: &Item, other: &Item) -> bool {
    Item {
        updated_at: other.updated_at.clone(),
        created_at: other.created_at.clone(),
        closed_at: other.closed_at.clone(),
        ..one.clone()
    } == *other
}

/// Sets the status and the assignee of an item that is on the hook of an agent, whatever beads
/// says. Only a closed status in beads takes precedence.
fn stay_on_hook(now: &mut Item, row: &Item, agent: &str) {
    if now.status == ItemStatus::Closed {
        return;
    }
    now.status = match row.status {
        ItemStatus::InProgress => ItemStatus::InProgress,
        _ if now.status == ItemStatus::InProgress => ItemStatus::InProgress,
        _ => ItemStatus::Hooked,
    };
    now.assignee = Some(agent.to_owned());
}

fn write_dependencies(
    db: &Connection,
    rig: &BeadsRig,
    now: &Item,
    row: Option<&Item>,
) -> Result<()> {
    // Dependencies on items outside of beads stay: only our database has them.
    db.execute(
        "DELETE FROM dependencies WHERE item = ?1
         AND blocker IN (SELECT item FROM beads WHERE rig = ?2)",
        params![now.id.as_str(), rig.rig],
    )
    .map_err(problem)?;
    let own_parent = row.and_then(|row| row.parent.as_ref());
    if let (None, Some(parent)) = (&now.parent, own_parent)
        && super::rig_of(db, parent)?.is_none()
    {
        db.execute(
            "UPDATE items SET parent = ?2 WHERE id = ?1",
            params![now.id.as_str(), parent.as_str()],
        )
        .map_err(problem)?;
    }
    for blocker in &now.deps {
        db.execute(
            "INSERT OR IGNORE INTO dependencies (item, blocker)
             SELECT ?1, id FROM items WHERE id = ?2 AND id <> ?1",
            params![now.id.as_str(), blocker.as_str()],
        )
        .map_err(problem)?;
    }
    Ok(())
}

/// Turns an item that beads no longer lists into an item of the town, and closes it unless it is on
/// a hook. An open ephemeral item stays as it is, because some versions of beads do not list those.
/// The last state is stored: the item may come back from another branch or another machine.
fn forget(
    db: &Connection,
    rig: &BeadsRig,
    id: &WorkId,
    seen: &str,
    is_on_hook: bool,
) -> Result<()> {
    let item = must_have(db, id)?;
    if item.ephemeral && item.status != ItemStatus::Closed {
        return Ok(());
    }
    db.execute("DELETE FROM beads WHERE item = ?1", [id.as_str()])
        .map_err(problem)?;
    db.execute(
        "INSERT OR REPLACE INTO beads_gone (item, rig, seen) VALUES (?1, ?2, ?3)",
        params![id.as_str(), rig.rig, seen],
    )
    .map_err(problem)?;
    if is_on_hook {
        return Ok(());
    }
    crate::records::items::change::close(db, id, Some(GONE)).map(drop)
}

fn mirrored(db: &Connection, rig: &BeadsRig) -> Result<BTreeMap<WorkId, (String, bool)>> {
    let mut query = db
        .prepare("SELECT item, seen, touched <> 0 FROM beads WHERE rig = ?1")
        .map_err(problem)?;
    let rows = query
        .query_map([&rig.rig], |row| {
            Ok((row.get::<_, String>(0)?, (row.get(1)?, row.get(2)?)))
        })
        .map_err(problem)?;
    rows.map(|row| {
        let (id, rest) = row.map_err(problem)?;
        Ok((id.parse()?, rest))
    })
    .collect()
}

fn hooks(db: &Connection) -> Result<BTreeMap<WorkId, String>> {
    let mut query = db
        .prepare("SELECT item, agent FROM hooks")
        .map_err(problem)?;
    let rows = query
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .map_err(problem)?;
    rows.map(|row| {
        let (id, agent) = row.map_err(problem)?;
        Ok((id.parse()?, agent))
    })
    .collect()
}

fn is_mail(db: &Connection, id: &WorkId) -> Result<bool> {
    db.query_row(
        "SELECT 1 FROM letters WHERE item = ?1",
        [id.as_str()],
        |_| Ok(true),
    )
    .optional()
    .map(|found| found.unwrap_or(false))
    .map_err(problem)
}
