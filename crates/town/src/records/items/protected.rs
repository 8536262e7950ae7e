//! Protects items that are part of a structure: mail, handoff beads, molecules and their steps.
//!
//! `gt work` shows these items too. Each of its commands refuses a change that would break the
//! structure, with a hint that names the right command.

use super::Patch;
use super::molecules::{self, Membership};
use super::read::must_have;
use crate::Result;
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Problem, mail};
use rusqlite::Connection;

/// Requested change of an item.
#[derive(Clone, Copy)]
pub(super) enum ItemChange<'a> {
    Update(&'a Patch),
    Close,
    Reopen,
    /// Other items are to wait for it.
    Await,
    /// It is to wait for other items, or to stop waiting.
    Wait,
    /// Other items are to become its parts.
    Part,
}

/// Structure that an item is part of.
enum Structure {
    Nothing,
    /// A mailbox.
    Mail,
    /// The record of an agent, to which molecules are attached.
    Handoff,
    /// A molecule of an agent, and whether it is still active.
    Molecule(Membership),
    Step(Membership),
}

/// Refuses a change that would break the structure that an item is part of.
pub(super) fn check(db: &Connection, id: &WorkId, wanted: ItemChange<'_>) -> Result<()> {
    check_item(db, &must_have(db, id)?, wanted)
}

/// Refuses such a change of an item that was already read.
pub(super) fn check_item(db: &Connection, item: &Item, wanted: ItemChange<'_>) -> Result<()> {
    let structure = structure_of(db, item)?;
    if is_allowed(&structure, item, wanted) {
        return Ok(());
    }
    let (id, agent) = (&item.id, item.assignee.as_deref().unwrap_or_default());
    let detach = format!("`gt mol detach --agent {agent}` gives up");
    let (what, hint) = match structure {
        Structure::Nothing => return Ok(()),
        Structure::Mail => (
            match wanted {
                ItemChange::Update(_) => format!("{id} is a message and cannot be changed"),
                _ => format!("{id} is a message, not a work item"),
            },
            format!("`gt mail archive {id}` puts it away, `gt mail reply {id}` answers it"),
        ),
        Structure::Handoff => (
            format!("{id} is the handoff bead of {agent}, and stays"),
            format!("{detach} the molecule that hangs on it"),
        ),
        Structure::Molecule(Membership::Active) => (
            format!("{id} is the molecule of {agent}"),
            format!("{detach} it, `gt mol step` moves its steps"),
        ),
        Structure::Step(Membership::Active) => (
            format!("{id} is a step of a molecule of {agent}"),
            format!("`gt mol step start {id}` and `gt mol step done {id}` move it"),
        ),
        Structure::Molecule(Membership::Ended) | Structure::Step(Membership::Ended) => (
            format!("{id} belongs to a molecule that is over"),
            "`gt mol attach FORMULA` pours another".to_owned(),
        ),
    };
    Err(Problem::conflict(what).hint(hint))
}

/// Returns whether a reopened step or molecule keeps its assignee, because it still belongs to that
/// agent.
pub(super) fn keeps_assignee(db: &Connection, item: &Item) -> Result<bool> {
    Ok(matches!(
        structure_of(db, item)?,
        Structure::Molecule(_) | Structure::Step(_)
    ))
}

/// Table of the allowed changes.
fn is_allowed(structure: &Structure, item: &Item, wanted: ItemChange<'_>) -> bool {
    match (structure, wanted) {
        (Structure::Nothing, _) => true,
        (Structure::Mail, ItemChange::Update(patch)) => {
            let change = ChangedFields::of(patch, item);
            !(change.is_moved || change.is_renamed || change.is_said_otherwise)
        }
        // Closing archives a message, and reopening restores it.
        (Structure::Mail, ItemChange::Close | ItemChange::Reopen) => true,
        (Structure::Mail, ItemChange::Await | ItemChange::Wait | ItemChange::Part) => false,
        (Structure::Handoff, ItemChange::Update(patch)) => {
            let change = ChangedFields::of(patch, item);
            !(change.is_moved || change.is_renamed)
        }
        (Structure::Handoff, ItemChange::Part) => true,
        (Structure::Handoff, _) => false,
        (Structure::Molecule(_) | Structure::Step(_), ItemChange::Update(patch)) => {
            !ChangedFields::of(patch, item).is_moved
        }
        (Structure::Molecule(_) | Structure::Step(Membership::Active), ItemChange::Close) => false,
        (Structure::Molecule(_) | Structure::Step(Membership::Ended), ItemChange::Reopen) => false,
        (Structure::Molecule(_) | Structure::Step(_), _) => true,
    }
}

/// Fields that a patch changes.
struct ChangedFields {
    /// Owner, status, type or identifying label.
    is_moved: bool,
    is_renamed: bool,
    is_said_otherwise: bool,
}

impl ChangedFields {
    fn of(patch: &Patch, item: &Item) -> Self {
        let is_other = |wanted: &Option<String>, now: &str| {
            wanted.as_deref().is_some_and(|wanted| wanted != now)
        };
        let assignee = item.assignee.as_deref().unwrap_or_default();
        let marks = |label: &String| {
            let marks = ["gt:", "step:", "formula:", "handoff:"];
            marks.iter().any(|mark| label.starts_with(mark))
        };
        ChangedFields {
            is_moved: patch.status.is_some_and(|status| status != item.status)
                || is_other(&patch.assignee, assignee)
                || is_other(&patch.kind, &item.kind)
                || patch.remove_labels.iter().any(marks),
            is_renamed: is_other(&patch.title, &item.title),
            is_said_otherwise: is_other(&patch.description, &item.description)
                || patch
                    .priority
                    .is_some_and(|priority| priority != item.priority),
        }
    }
}

fn structure_of(db: &Connection, item: &Item) -> Result<Structure> {
    if item.kind == mail::KIND {
        return Ok(Structure::Mail);
    }
    if molecules::is_handoff(item) {
        return Ok(Structure::Handoff);
    }
    if molecules::is_molecule(item) {
        let membership = molecules::membership(db, item)?;
        return Ok(membership.map_or(Structure::Nothing, Structure::Molecule));
    }
    let parent = match &item.parent {
        Some(parent) if item.kind == molecules::STEP => must_have(db, parent)?,
        _ => return Ok(Structure::Nothing),
    };
    if !molecules::is_molecule(&parent) {
        return Ok(Structure::Nothing);
    }
    let membership = molecules::membership(db, &parent)?;
    Ok(membership.map_or(Structure::Nothing, Structure::Step))
}

/// Refuses to close an item that is part of a structure. Closing a closed item is a no-op and passes.
pub(super) fn check_closing(db: &Connection, id: &WorkId) -> Result<()> {
    let item = must_have(db, id)?;
    match item.status {
        ItemStatus::Closed => Ok(()),
        _ => check_item(db, &item, ItemChange::Close),
    }
}
