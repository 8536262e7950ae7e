//! Restricts changes of items that are part of something else: mail, handoff beads, molecules and
//! their steps.
//!
//! They are items, and `gt work` shows them. A change that would break the structure they are part
//! of is refused for all commands of `gt work`, with a hint at the right command.

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
enum Bound {
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
    let bound = bound(db, item)?;
    if is_allowed(&bound, item, wanted) {
        return Ok(());
    }
    let (id, agent) = (&item.id, item.assignee.as_deref().unwrap_or_default());
    let detach = format!("`gt mol detach --agent {agent}` gives up");
    let (what, hint) = match bound {
        Bound::Nothing => return Ok(()),
        Bound::Mail => (
            match wanted {
                ItemChange::Update(_) => format!("{id} is a message and cannot be changed"),
                _ => format!("{id} is a message, not a work item"),
            },
            format!("`gt mail archive {id}` puts it away, `gt mail reply {id}` answers it"),
        ),
        Bound::Handoff => (
            format!("{id} is the handoff bead of {agent}, and stays"),
            format!("{detach} the molecule that hangs on it"),
        ),
        Bound::Molecule(Membership::GoesOn) => (
            format!("{id} is the molecule of {agent}"),
            format!("{detach} it, `gt mol step` moves its steps"),
        ),
        Bound::Step(Membership::GoesOn) => (
            format!("{id} is a step of a molecule of {agent}"),
            format!("`gt mol step start {id}` and `gt mol step done {id}` move it"),
        ),
        Bound::Molecule(Membership::Over) | Bound::Step(Membership::Over) => (
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
        bound(db, item)?,
        Bound::Molecule(_) | Bound::Step(_)
    ))
}

/// Table of the allowed changes.
fn is_allowed(bound: &Bound, item: &Item, wanted: ItemChange<'_>) -> bool {
    match (bound, wanted) {
        (Bound::Nothing, _) => true,
        (Bound::Mail, ItemChange::Update(patch)) => {
            let change = ChangedFields::of(patch, item);
            !(change.is_moved || change.is_renamed || change.is_said_otherwise)
        }
        // Closing archives a message, and reopening restores it.
        (Bound::Mail, ItemChange::Close | ItemChange::Reopen) => true,
        (Bound::Mail, ItemChange::Await | ItemChange::Wait | ItemChange::Part) => false,
        (Bound::Handoff, ItemChange::Update(patch)) => {
            let change = ChangedFields::of(patch, item);
            !(change.is_moved || change.is_renamed)
        }
        (Bound::Handoff, ItemChange::Part) => true,
        (Bound::Handoff, _) => false,
        (Bound::Molecule(_) | Bound::Step(_), ItemChange::Update(patch)) => {
            !ChangedFields::of(patch, item).is_moved
        }
        (Bound::Molecule(_) | Bound::Step(Membership::GoesOn), ItemChange::Close) => false,
        (Bound::Molecule(_) | Bound::Step(Membership::Over), ItemChange::Reopen) => false,
        (Bound::Molecule(_) | Bound::Step(_), _) => true,
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

fn bound(db: &Connection, item: &Item) -> Result<Bound> {
    if item.kind == mail::KIND {
        return Ok(Bound::Mail);
    }
    if molecules::is_handoff(item) {
        return Ok(Bound::Handoff);
    }
    if molecules::is_molecule(item) {
        let membership = molecules::membership(db, item)?;
        return Ok(membership.map_or(Bound::Nothing, Bound::Molecule));
    }
    let parent = match &item.parent {
        Some(parent) if item.kind == molecules::STEP => must_have(db, parent)?,
        _ => return Ok(Bound::Nothing),
    };
    if !molecules::is_molecule(&parent) {
        return Ok(Bound::Nothing);
    }
    let membership = molecules::membership(db, &parent)?;
    Ok(membership.map_or(Bound::Nothing, Bound::Step))
}

/// Refuses to close a bound item. Closing a closed item is a no-op and passes.
pub(super) fn check_closing(db: &Connection, id: &WorkId) -> Result<()> {
    let item = must_have(db, id)?;
    match item.status {
        ItemStatus::Closed => Ok(()),
        _ => check_item(db, &item, ItemChange::Close),
    }
}
