//! What may be changed of items that are a part of something else: letters, handoff beads,
//! molecules and their steps.
//!
//! They are items, and `gt work` shows them. What would take them out of what they are a
//! part of is refused here for all of its commands, with the command that is meant for it.

use super::Patch;
use super::molecules::{self, Membership};
use super::read::must_have;
use crate::Result;
use gt_core::work::{Item, Status, WorkId};
use gt_core::{Problem, mail};
use rusqlite::Connection;

/// What somebody wants of an item.
#[derive(Clone, Copy)]
pub(super) enum Wish<'a> {
    Update(&'a Patch),
    Close,
    Reopen,
    /// Others are to wait for it.
    Await,
    /// It is to wait for others, or to wait no more.
    Wait,
    /// Others are to be its parts.
    Part,
}

/// What an item is a part of.
enum Bound {
    Nothing,
    /// A mailbox.
    Letter,
    /// An agent's record, to which molecules are attached.
    Handoff,
    /// An agent's way through its steps, and whether it goes on.
    Molecule(Membership),
    Step(Membership),
}

/// Refuses what would take an item out of what it is a part of.
pub(super) fn check(db: &Connection, id: &WorkId, wish: Wish<'_>) -> Result<()> {
    check_item(db, &must_have(db, id)?, wish)
}

/// The same for an item that was read already.
pub(super) fn check_item(db: &Connection, item: &Item, wish: Wish<'_>) -> Result<()> {
    let bound = bound(db, item)?;
    if is_allowed(&bound, item, wish) {
        return Ok(());
    }
    let (id, agent) = (&item.id, item.assignee.as_deref().unwrap_or_default());
    let detach = format!("`gt mol detach --agent {agent}` gives up");
    let (what, hint) = match bound {
        Bound::Nothing => return Ok(()),
        Bound::Letter => (
            match wish {
                Wish::Update(_) => format!("{id} is a letter, and stays as it was sent"),
                _ => format!("{id} is a letter, and no work"),
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

/// Whether a step or a molecule keeps its assignee when it is opened again: it is that
/// agent's still.
pub(super) fn keeps_assignee(db: &Connection, item: &Item) -> Result<bool> {
    Ok(matches!(
        bound(db, item)?,
        Bound::Molecule(_) | Bound::Step(_)
    ))
}

/// The table.
fn is_allowed(bound: &Bound, item: &Item, wish: Wish<'_>) -> bool {
    match (bound, wish) {
        (Bound::Nothing, _) => true,
        (Bound::Letter, Wish::Update(patch)) => {
            let change = Change::of(patch, item);
            !(change.is_moved || change.is_renamed || change.is_said_otherwise)
        }
        // That is to put it away, and to get it back.
        (Bound::Letter, Wish::Close | Wish::Reopen) => true,
        (Bound::Letter, Wish::Await | Wish::Wait | Wish::Part) => false,
        (Bound::Handoff, Wish::Update(patch)) => {
            let change = Change::of(patch, item);
            !(change.is_moved || change.is_renamed)
        }
        (Bound::Handoff, Wish::Part) => true,
        (Bound::Handoff, _) => false,
        (Bound::Molecule(_) | Bound::Step(_), Wish::Update(patch)) => {
            !Change::of(patch, item).is_moved
        }
        (Bound::Molecule(_) | Bound::Step(Membership::GoesOn), Wish::Close) => false,
        (Bound::Molecule(_) | Bound::Step(Membership::Over), Wish::Reopen) => false,
        (Bound::Molecule(_) | Bound::Step(_), _) => true,
    }
}

/// What a patch changes.
struct Change {
    /// Whose it is, how far it is, or what it is known by.
    is_moved: bool,
    is_renamed: bool,
    is_said_otherwise: bool,
}

impl Change {
    fn of(patch: &Patch, item: &Item) -> Self {
        let is_other = |wanted: &Option<String>, now: &str| {
            wanted.as_deref().is_some_and(|wanted| wanted != now)
        };
        let assignee = item.assignee.as_deref().unwrap_or_default();
        let marks = |label: &String| {
            let marks = ["gt:", "step:", "formula:", "handoff:"];
            marks.iter().any(|mark| label.starts_with(mark))
        };
        Change {
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
        return Ok(Bound::Letter);
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

/// A closed one is over, and nobody closes it again.
pub(super) fn check_closing(db: &Connection, id: &WorkId) -> Result<()> {
    let item = must_have(db, id)?;
    match item.status {
        Status::Closed => Ok(()),
        _ => check_item(db, &item, Wish::Close),
    }
}
