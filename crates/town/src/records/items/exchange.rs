//! Import and export of work items: one JSON object per line, like the `issues.jsonl` of beads.

use super::read::each;
use super::store::problem;
use super::{ItemQuery, Work, dependencies};
use crate::Result;
use gt_core::beads::Bead;
use gt_core::work::{Item, ItemStatus, WorkId, check_priority, check_title};
use gt_core::{Problem, mail};
use rusqlite::{Connection, params};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub new: usize,
    pub updated: usize,
    /// Items that existed already and are not older.
    pub unchanged: usize,
    /// Lines that could not be imported, by number, with the reason.
    pub skipped: Vec<(usize, String)>,
    /// Dependencies that were dropped because they would close a cycle.
    pub cyclic_dependencies: Vec<(WorkId, WorkId)>,
    /// Parents that were dropped because they would close a cycle.
    pub cyclic_parents: Vec<(WorkId, WorkId)>,
}

/// A line that could be parsed.
struct ImportedLine {
    item: Item,
    /// It has a time of its last change; without one it replaces nothing.
    is_dated: bool,
    /// It lists all dependencies of the item.
    is_whole: bool,
}

impl Work {
    /// Imports all readable items in one transaction. An existing item is replaced only by a newer
    /// one, and never if it is on a hook or is the record of an agent.
    pub fn import(&self, text: &[u8]) -> Result<Imported> {
        let now = self.clock.text();
        let mut imported = Imported::default();
        let mut lines = Vec::new();
        // Some editors write a byte order mark.
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        for (number, line) in text
            .split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.trim_ascii().is_empty())
        {
            match read(line, &now) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => {}
                Err(problem) => imported
                    .skipped
                    .push((number + 1, problem.message_with_causes())),
            }
        }
        self.refresh(None)?;
        self.change(|db| {
            // Parents and blockers may come after the items that name them.
            db.pragma_update(None, "defer_foreign_keys", "ON")
                .map_err(problem)?;
            let mut taken = BTreeMap::new();
            for line in &lines {
                let known = super::read::by_id(db, &line.item.id)?;
                match &known {
                    Some(known) if !replaces(db, line, known)? => {
                        imported.unchanged += 1;
                        continue;
                    }
                    Some(_) => imported.updated += 1,
                    None => imported.new += 1,
                }
                write(db, &line.item)?;
                taken.insert(&line.item.id, line);
            }
            imported.cyclic_dependencies = write_dependencies(db, taken.values())?;
            // A parent that is not in the database is dropped.
            db.execute(
                "UPDATE items SET parent = NULL WHERE parent IS NOT NULL
                 AND parent NOT IN (SELECT id FROM items)",
                [],
            )
            .map_err(problem)?;
            imported.cyclic_parents = break_parent_cycles(db, taken.values())?;
            Ok(())
        })?;
        Ok(imported)
    }

    /// Exports every item in a form that others can use: an item on a hook or in the merge queue is
    /// exported as open, because that state is local.
    pub fn export(&self, mut give: impl FnMut(&Item) -> Result<()>) -> Result<()> {
        self.refresh(None)?;
        let hooked = self.hooks()?.into_iter().map(|(_, item)| item);
        let handed_in = self.merges(None, false)?.into_iter();
        let held: HashSet<WorkId> = hooked.chain(handed_in.map(|merge| merge.item)).collect();
        let Some(db) = self.open_if_there()? else {
            return Ok(());
        };
        let all = ItemQuery {
            all: true,
            ..ItemQuery::default()
        };
        each(&db, &all, None, |mut item| {
            let is_begun = matches!(item.status, ItemStatus::Hooked | ItemStatus::InProgress);
            if is_begun && held.contains(&item.id) {
                item.status = ItemStatus::Open;
                item.assignee = None;
            }
            give(&item)
        })
    }
}

/// Removes the parents that would make an item part of itself, and returns them.
fn break_parent_cycles<'l>(
    db: &Connection,
    taken: impl Iterator<Item = &'l &'l ImportedLine>,
) -> Result<Vec<(WorkId, WorkId)>> {
    let mut dropped = Vec::new();
    for item in taken.map(|line| &line.item) {
        let Some(parent) = &item.parent else {
            continue;
        };
        let is_part_of_itself: bool = db
            .prepare_cached(
                "WITH RECURSIVE above (id) AS (
                     SELECT parent FROM items WHERE id = ?1
                     UNION SELECT parent FROM items JOIN above USING (id))
                 SELECT EXISTS (SELECT 1 FROM above WHERE id = ?1)",
            )
            .and_then(|mut query| query.query_row([item.id.as_str()], |row| row.get(0)))
            .map_err(problem)?;
        if is_part_of_itself {
            db.execute(
                "UPDATE items SET parent = NULL WHERE id = ?1",
                [item.id.as_str()],
            )
            .map_err(problem)?;
            dropped.push((item.id.clone(), parent.clone()));
        }
    }
    Ok(dropped)
}

/// Returns whether a line replaces the known item.
fn replaces(db: &Connection, line: &ImportedLine, known: &Item) -> Result<bool> {
    let is_newer = line.is_dated && line.item.updated_at > known.updated_at;
    let is_free = !super::molecules::is_handoff(known);
    Ok(is_newer && is_free && super::hook::holder(db, &known.id)?.is_none())
}

/// Writes the dependencies of each line; they replace the old ones if the line lists all of them.
/// Returns the dependencies that were dropped because they would close a cycle.
fn write_dependencies<'l>(
    db: &Connection,
    taken: impl Iterator<Item = &'l &'l ImportedLine> + Clone,
) -> Result<Vec<(WorkId, WorkId)>> {
    // All old ones are removed first, because they could close cycles with new ones.
    for line in taken.clone().filter(|line| line.is_whole) {
        db.execute(
            "DELETE FROM dependencies WHERE item = ?1",
            [line.item.id.as_str()],
        )
        .map_err(problem)?;
    }
    let mut dropped = Vec::new();
    for line in taken {
        let id = &line.item.id;
        for blocker in &line.item.deps {
            if super::read::by_id(db, blocker)?.is_none() {
                continue;
            }
            match dependencies::closes_cycle(db, id, blocker)? {
                true => dropped.push((id.clone(), blocker.clone())),
                false => dependencies::insert(db, id, blocker)?,
            }
        }
    }
    Ok(dropped)
}

/// Parses a line; returns `None` for a deleted item.
fn read(line: &[u8], now: &str) -> Result<Option<ImportedLine>> {
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| Problem::usage("not a work item").caused_by(error))?;
    let is_dated = value["updated_at"]
        .as_str()
        .and_then(normalise_time)
        .is_some();
    let Some(bead) = Bead::read(value, now, normalise_time)? else {
        return Ok(None);
    };
    let is_whole = !bead.is_short;
    // A hook of another town has no meaning here; unknown values are converted.
    let item = bead.imported();
    check_title(&item.title)?;
    check_priority(item.priority)?;
    if item.kind == mail::KIND {
        return Err(Problem::usage("a message is not a work item"));
    }
    Ok(Some(ImportedLine {
        item,
        is_dated,
        is_whole,
    }))
}

/// Returns a time in our format, so that times can be compared as text.
pub(super) fn normalise_time(text: &str) -> Option<String> {
    let time = text.parse::<jiff::Timestamp>().ok()?;
    Some(format!("{time:.3}"))
}

/// Writes an item, except for its dependencies.
pub(super) fn write(db: &Connection, item: &Item) -> Result<()> {
    db.execute(
        "INSERT INTO items (id, title, description, type, priority, status, assignee, parent,
         notes, ephemeral, created_at, updated_at, closed_at, close_reason,
         design, acceptance_criteria)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (id) DO UPDATE SET title = ?2, description = ?3, type = ?4, priority = ?5,
         status = ?6, assignee = ?7, parent = ?8, notes = ?9, ephemeral = ?10, created_at = ?11,
         updated_at = ?12, closed_at = ?13, close_reason = ?14, design = ?15,
         acceptance_criteria = ?16",
        params![
            item.id.as_str(),
            item.title,
            item.description,
            item.kind,
            item.priority,
            item.status.as_str(),
            item.assignee,
            item.parent.as_ref().map(WorkId::as_str),
            item.notes,
            item.ephemeral,
            item.created_at,
            item.updated_at,
            item.closed_at,
            item.close_reason,
            item.design,
            item.acceptance_criteria,
        ],
    )
    .map_err(problem)?;
    db.execute("DELETE FROM labels WHERE item = ?1", [item.id.as_str()])
        .map_err(problem)?;
    for label in &item.labels {
        db.execute(
            "INSERT OR IGNORE INTO labels (item, label) VALUES (?1, ?2)",
            params![item.id.as_str(), label],
        )
        .map_err(problem)?;
    }
    Ok(())
}
