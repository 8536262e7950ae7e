//! The handoff bead of an agent: a permanent pinned item, to which molecules are attached.

use super::{set_notes, set_status};
use crate::Result;
use crate::records::items::create::{ItemDraft, insert};
use crate::records::items::read::{must_have, select};
use crate::records::items::store::now;
use crate::records::items::store::problem;
use gt_core::work::{Item, ItemStatus, WorkId, appended};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

const HANDOFF: &str = "handoff";
const LABEL: &str = "gt:handoff";
/// Maximum number of history lines; older lines are dropped.
const MAX_LINES: usize = 1000;

/// Returns the handoff bead of an agent.
pub(super) fn handoff(db: &Connection, agent: &str) -> Result<Option<Item>> {
    let found = select(
        db,
        "WHERE assignee = ?1 AND status = 'pinned' AND EXISTS
         (SELECT 1 FROM labels WHERE item = items.id AND label = ?2) ORDER BY id LIMIT 1",
        [agent, LABEL].map(|text| Value::from(text.to_owned())),
    )?;
    Ok(found.into_iter().next())
}

/// Returns whether an item is a handoff bead.
pub(in crate::records::items) fn is_handoff(item: &Item) -> bool {
    item.status == ItemStatus::Pinned && item.labels.iter().any(|label| label == LABEL)
}

/// Returns the handoff bead of an agent; creates it on first use.
pub(super) fn get_or_create(db: &Connection, agent: &str, prefix: &str) -> Result<Item> {
    if let Some(present) = handoff(db, agent)? {
        return Ok(present);
    }
    let draft = ItemDraft {
        prefix: prefix.to_owned(),
        title: format!("{agent} Handoff"),
        description: "The record of an agent: which molecules it was given.".to_owned(),
        kind: Some(HANDOFF.to_owned()),
        assignee: Some(agent.to_owned()),
        labels: vec![LABEL.to_owned()],
        ..ItemDraft::default()
    };
    let item = insert(db, &draft)?;
    set_status(db, &item.id, ItemStatus::Pinned)?;
    must_have(db, &item.id)
}

/// Returns whether a molecule is attached to a handoff bead.
pub(super) fn is_attached(db: &Connection, molecule: &WorkId) -> Result<bool> {
    db.query_row(
        "SELECT EXISTS (SELECT 1 FROM dependencies JOIN items ON id = dependencies.item
         JOIN labels ON labels.item = id
         WHERE blocker = ?1 AND status = 'pinned' AND label = ?2)",
        params![molecule.as_str(), LABEL],
        |row| row.get(0),
    )
    .map_err(problem)
}

/// Detaches a molecule from a handoff bead.
pub(super) fn unlink(db: &Connection, handoff: &WorkId, molecule: &WorkId) -> Result<()> {
    db.execute(
        "DELETE FROM dependencies WHERE item = ?1 AND blocker = ?2",
        params![handoff.as_str(), molecule.as_str()],
    )
    .map(drop)
    .map_err(problem)
}

/// Adds a line to the history of a handoff bead, and drops the oldest beyond the limit.
pub(super) fn add_history(db: &Connection, handoff: &Item, line: &str) -> Result<()> {
    let line = format!("{} {line}", now(db)?);
    let notes = appended(&handoff.notes, &line);
    let too_many = notes.lines().count().saturating_sub(MAX_LINES);
    let kept: Vec<&str> = notes.lines().skip(too_many).collect();
    set_notes(db, &handoff.id, &kept.join("\n"))
}
