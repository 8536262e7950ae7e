//! Molecules as work items: a formula that was poured for one agent.
//!
//! A molecule is an item whose children are its steps. It is attached to the agent's handoff bead,
//! a permanent pinned item: the bead depends on it, and records the history in its notes. Each
//! function is one transaction that reads before it writes, so that of two concurrent calls for one
//! agent, the second finds the molecule of the first.

mod bead;
mod found;

pub(super) use bead::is_handoff;
pub use found::Molecule;
pub(crate) use found::step_id;

use super::change::close;
use super::create::{ItemDraft, insert};
use super::read::must_have;
use super::store::problem;
use super::{Work, dependencies};
use crate::Result;
use crate::records::items::store::now;
use found::{attached, is_open, last_done, must_be_attached};
use gt_core::Problem;
use gt_core::formula::FormulaStep;
use gt_core::work::{Item, ItemStatus, WorkId, appended};
use rusqlite::{Connection, params};

const MOLECULE: &str = "molecule";
pub(super) const STEP: &str = "step";
const LABEL: &str = "gt:molecule";
/// SQL condition for items that are work. A molecule, its steps and the handoff bead are not: they
/// belong to one agent and only organize its work.
pub(super) const IS_WORK: &str = "NOT (type IN ('molecule', 'step') AND ephemeral)
    AND NOT (type = 'handoff' AND status = 'pinned')";

/// A formula to be poured.
#[derive(Clone, Debug)]
pub struct Pour {
    pub agent: String,
    /// The prefix of the agent's rig.
    pub prefix: String,
    pub formula: String,
    pub title: String,
    pub description: String,
    /// The item that it is about, which becomes its parent.
    pub on: Option<WorkId>,
    /// In order, with their variables filled in.
    pub steps: Vec<FormulaStep>,
}

/// Result of starting or finishing a step.
#[derive(Clone, Debug)]
pub struct StepChange {
    /// The present state; closed if this was its last step.
    pub molecule: Molecule,
    pub step: Item,
    /// False if the step already had this state.
    pub changed: bool,
}

impl Work {
    /// Returns the molecule that is attached to an agent.
    pub fn molecule(&self, agent: &str) -> Result<Option<Molecule>> {
        match self.open_if_there()? {
            Some(db) => attached(&db, agent),
            None => Ok(None),
        }
    }

    /// Returns the handoff bead of an agent; creates it on first use.
    pub fn handoff_bead(&self, agent: &str, prefix: &str) -> Result<Item> {
        self.change(|db| bead::get_or_create(db, agent, prefix))
    }

    /// Pours a formula for an agent that has no molecule.
    pub fn pour(&self, pour: &Pour) -> Result<Molecule> {
        self.change(|db| {
            let agent = &pour.agent;
            if let Some(present) = attached(db, agent)? {
                return Err(Problem::conflict(format!(
                    "{agent} works on the molecule {} ({})",
                    present.item.id, present.formula
                ))
                .hint(format!(
                    "`gt mol detach --agent {agent}` gives it up, `gt mol status` shows it"
                )));
            }
            if let Some(on) = &pour.on
                && must_have(db, on)?.status == ItemStatus::Closed
            {
                return Err(Problem::conflict(format!("{on} is closed"))
                    .hint(format!("`gt work reopen {on}`")));
            }
            let handoff = bead::get_or_create(db, agent, &pour.prefix)?;
            // A molecule that was closed by hand may still be attached.
            for old in &handoff.deps {
                bead::unlink(db, &handoff.id, old)?;
            }
            let molecule = insert(db, &molecule_draft(pour))?;
            set_status(db, &molecule.id, ItemStatus::InProgress)?;
            let mut made: Vec<Item> = Vec::new();
            for step in &pour.steps {
                let needs = made.iter().filter(|item| {
                    let id = step_id(item);
                    step.needs.iter().any(|need| need == id)
                });
                let deps = needs.map(|item| item.id.clone()).collect();
                made.push(insert(db, &step_draft(pour, &molecule.id, step, deps))?);
            }
            dependencies::add(db, &handoff.id, &molecule.id)?;
            let on = pour.on.as_ref().map(|on| format!(" on {on}"));
            let line = format!(
                "attached {} ({}){}",
                molecule.id,
                pour.formula,
                on.unwrap_or_default()
            );
            bead::add_history(db, &handoff, &line)?;
            must_be_attached(db, agent)
        })
    }

    /// Records that an agent has begun a step.
    pub fn start_step(&self, agent: &str, wanted: &str) -> Result<StepChange> {
        self.change(|db| {
            let molecule = must_be_attached(db, agent)?;
            let step = molecule.step(wanted)?;
            let id = step.id.clone();
            let changed = match step.status {
                ItemStatus::InProgress => false,
                ItemStatus::Closed => {
                    return Err(Problem::conflict(format!(
                        "the step {} is done already",
                        step_id(step)
                    ))
                    .hint(format!("`gt work reopen {id}` opens it again")));
                }
                _ => {
                    check_needs(&molecule, step)?;
                    set_status(db, &id, ItemStatus::InProgress)?;
                    true
                }
            };
            moved(db, must_be_attached(db, agent)?, &id, changed)
        })
    }

    /// Records that an agent has finished a step. The last step completes the molecule.
    pub fn finish_step(&self, agent: &str, wanted: &str, note: Option<&str>) -> Result<StepChange> {
        self.change(|db| {
            let Some(molecule) = attached(db, agent)? else {
                // Retry of a call that was killed after the last step.
                let last = last_done(db, agent)?;
                let known = last.filter(|last| last.step(wanted).is_ok());
                let last = known.ok_or_else(|| no_molecule(agent))?;
                let id = last.step(wanted)?.id.clone();
                return moved(db, last, &id, false);
            };
            let step = molecule.step(wanted)?;
            let id = step.id.clone();
            let changed = is_open(step);
            if changed {
                check_needs(&molecule, step)?;
                if let Some(note) = note {
                    add_note(db, step, note)?;
                }
                close(db, &id, Some("done"))?;
            }
            let mut molecule = Molecule::read(db, agent, &molecule.handoff, molecule.item)?;
            if molecule.is_done() {
                molecule = end(db, molecule, "done")?;
            }
            moved(db, molecule, &id, changed)
        })
    }

    /// Detaches an agent's molecule and closes its open steps.
    pub fn detach(&self, agent: &str) -> Result<Option<Molecule>> {
        if !self.is_there()? {
            return Ok(None);
        }
        self.change(|db| give_up(db, agent, |_| true))
    }
}

/// Returns whether an item is a molecule created by `gt`, not just an item of that type.
pub(super) fn is_molecule(item: &Item) -> bool {
    item.kind == MOLECULE && item.labels.iter().any(|label| label == LABEL)
}

/// Whether a molecule is active.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Membership {
    Active,
    Ended,
}

/// Returns the state of a molecule. Returns `None` if it is open and attached to no agent, for
/// example after an import.
pub(super) fn membership(db: &Connection, molecule: &Item) -> Result<Option<Membership>> {
    Ok(match is_open(molecule) {
        false => Some(Membership::Ended),
        true => bead::is_attached(db, &molecule.id)?.then_some(Membership::Active),
    })
}

/// Prepares a molecule for the end of a session, as a part of its handoff: reopens the steps that
/// were begun, for the next session, and ends a molecule that is done. Returns a molecule that
/// continues.
pub(super) fn hand_over(db: &Connection, agent: &str) -> Result<Option<WorkId>> {
    let Some(molecule) = attached(db, agent)? else {
        return Ok(None);
    };
    if molecule.is_done() {
        end(db, molecule, "done")?;
        return Ok(None);
    }
    let begun = |step: &&Item| step.status == ItemStatus::InProgress;
    for step in molecule.steps.iter().filter(begun) {
        set_status(db, &step.id, ItemStatus::Open)?;
        add_note(db, step, "handed off before it was done")?;
    }
    Ok(Some(molecule.item.id))
}

/// Result for a molecule when its work was left.
#[derive(Clone, Debug)]
pub struct LeftMolecule {
    /// Done, or the state before it was detached.
    pub molecule: Molecule,
    /// Its last step, which was in progress and was completed with the work.
    pub last: Option<Item>,
}

/// Ends an agent's molecule with its work. The last step of many formulas is to submit the work,
/// and the session ends with it, so that step is completed here.
pub(super) fn leave(
    db: &Connection,
    agent: &str,
    is_completed: impl FnOnce(&Molecule) -> bool,
    is_meant: impl FnOnce(&Molecule) -> bool,
) -> Result<Option<LeftMolecule>> {
    let Some(molecule) = attached(db, agent)? else {
        return Ok(None);
    };
    let mut open = molecule.steps.iter().filter(|step| is_open(step));
    if let (Some(last), None) = (open.next(), open.next())
        && last.status == ItemStatus::InProgress
        && is_completed(&molecule)
    {
        let id = last.id.clone();
        close(db, &id, Some("done"))?;
        let molecule = Molecule::read(db, agent, &molecule.handoff, molecule.item)?;
        let molecule = end(db, molecule, "done")?;
        let last = Some(must_have(db, &id)?);
        return Ok(Some(LeftMolecule { molecule, last }));
    }
    let before = give_up(db, agent, is_meant)?;
    Ok(before.map(|molecule| LeftMolecule {
        molecule,
        last: None,
    }))
}

/// Detaches an agent's molecule if `is_meant` accepts it, within a transaction.
pub(super) fn give_up(
    db: &Connection,
    agent: &str,
    is_meant: impl FnOnce(&Molecule) -> bool,
) -> Result<Option<Molecule>> {
    let Some(molecule) = attached(db, agent)?.filter(is_meant) else {
        return Ok(None);
    };
    // Returned in its former state: the steps that are closed now were not done.
    let before = molecule.clone();
    for step in molecule.steps.iter().filter(|step| is_open(step)) {
        close(db, &step.id, Some("detached"))?;
    }
    end(db, molecule, "detached")?;
    Ok(Some(before))
}

fn molecule_draft(pour: &Pour) -> ItemDraft {
    ItemDraft {
        prefix: pour.prefix.clone(),
        parent: pour.on.clone(),
        title: pour.title.clone(),
        description: pour.description.clone(),
        kind: Some(MOLECULE.to_owned()),
        assignee: Some(pour.agent.clone()),
        labels: vec![LABEL.to_owned(), format!("formula:{}", pour.formula)],
        ephemeral: true,
        ..ItemDraft::default()
    }
}

fn step_draft(pour: &Pour, molecule: &WorkId, step: &FormulaStep, deps: Vec<WorkId>) -> ItemDraft {
    ItemDraft {
        parent: Some(molecule.clone()),
        title: step.title.clone(),
        description: step.description.clone(),
        kind: Some(STEP.to_owned()),
        assignee: Some(pour.agent.clone()),
        labels: vec![format!("step:{}", step.id)],
        deps,
        ephemeral: true,
        ..ItemDraft::default()
    }
}

/// Closes a molecule, detaches it from the handoff bead and records it there.
fn end(db: &Connection, molecule: Molecule, how: &str) -> Result<Molecule> {
    close(db, &molecule.item.id, Some(how))?;
    bead::unlink(db, &molecule.handoff, &molecule.item.id)?;
    let (done, total) = (molecule.done(), molecule.steps.len());
    let line = format!("{how} {} ({done} of {total} steps)", molecule.item.id);
    bead::add_history(db, &must_have(db, &molecule.handoff)?, &line)?;
    let item = must_have(db, &molecule.item.id)?;
    Ok(Molecule { item, ..molecule })
}

fn moved(db: &Connection, molecule: Molecule, step: &WorkId, changed: bool) -> Result<StepChange> {
    Ok(StepChange {
        step: must_have(db, step)?,
        molecule,
        changed,
    })
}

fn no_molecule(agent: &str) -> Problem {
    Problem::not_found(format!("{agent} has no molecule"))
        .hint("`gt mol attach FORMULA` pours one, `gt formula list` shows the available ones")
}

fn check_needs(molecule: &Molecule, step: &Item) -> Result<()> {
    match molecule.waits_for(step).as_slice() {
        [] => Ok(()),
        needs => Err(Problem::conflict(format!(
            "the step {} needs {} first",
            step_id(step),
            needs.join(", ")
        ))
        .hint(format!("`gt mol step done {}`", needs[0]))),
    }
}

fn set_status(db: &Connection, id: &WorkId, status: ItemStatus) -> Result<()> {
    db.execute(
        "UPDATE items SET status = ?2, updated_at = ?3 WHERE id = ?1",
        params![id.as_str(), status.as_str(), now(db)?],
    )
    .map(drop)
    .map_err(problem)
}

fn add_note(db: &Connection, item: &Item, note: &str) -> Result<()> {
    let line = format!("{} {note}", now(db)?);
    set_notes(db, &item.id, &appended(&item.notes, &line))
}

fn set_notes(db: &Connection, id: &WorkId, notes: &str) -> Result<()> {
    db.execute(
        "UPDATE items SET notes = ?2, updated_at = ?3 WHERE id = ?1",
        params![id.as_str(), notes, now(db)?],
    )
    .map(drop)
    .map_err(problem)
}

#[cfg(test)]
mod tests;
