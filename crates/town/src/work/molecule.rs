//! Molecules: a formula poured for one agent, and the progress through its steps.
//!
//! The work items hold the progress ([`crate::records::items`] changes them in one transaction each). The
//! agent's step reports are also recorded with its session ([`crate::records::steps`]), if it has one. All
//! operations are idempotent.

mod status;

pub use status::{MoleculeStatus, StepState, StepStatus};

use crate::base::fault;
use crate::catalog::formulas;
use crate::records::events::Events;
use crate::records::items::{LeftMolecule, Molecule, Pour, StepChange, Work, step_id};
use crate::records::sessions::Sessions;
use crate::records::steps;
use crate::repo::rig;
use crate::work::checkpoint::running_session;
use crate::{Result, Town};
use gt_core::mail::KIND;
use gt_core::record::Record;
use gt_core::work::{Item, LONGEST_TITLE, WorkId};
use gt_core::{Identity, Problem};
use std::collections::BTreeMap;

/// Fault points at which a test can kill the process. Data written before that point stays, and the
/// command can be repeated.
pub const FAULT_POINTS: &[&str] = &["mol.poured", "mol.begun", "mol.finished", "mol.detached"];

/// A formula to pour for an agent.
#[derive(Clone, Debug)]
pub struct FormulaRequest<'a> {
    pub formula: &'a str,
    /// Values for the formula's variables.
    pub vars: BTreeMap<String, String>,
    /// The work item that it is about.
    pub on: Option<WorkId>,
}

/// Pours a formula for an agent, which must not have a molecule yet.
pub fn attach(
    town: &Town,
    agent: &Identity,
    request: FormulaRequest<'_>,
) -> Result<MoleculeStatus> {
    let formula = formulas::resolve(town, request.formula, agent.rig())?.formula;
    let work = Work::of(town);
    let mut vars = request.vars;
    let mut title = formula.name.clone();
    // The default subject is the item on the agent's hook.
    let hooked = || -> Result<Option<WorkId>> {
        let hooked = work.hooked(&agent.address())?;
        let item = hooked.map(|hooked| hooked.item);
        Ok(item.filter(|item| item.kind != KIND).map(|item| item.id))
    };
    let on = request.on.map_or_else(hooked, |on| Ok(Some(on)))?;
    if let Some(on) = &on {
        let item = work.get(on)?;
        title = format!("{title}: {}", item.title);
        // Fills the variables for the subject if the formula has them.
        for (name, value) in [("bead", on.to_string()), ("title", item.title)] {
            if formula.vars.contains_key(name) {
                vars.entry(name.to_owned()).or_insert(value);
            }
        }
    }
    let filled = formula.fill(&vars)?;
    let molecule = work.pour(&Pour {
        agent: agent.address(),
        prefix: prefix(town, agent)?,
        // The formula's name and the item's title together may exceed the maximum length.
        title: title.chars().take(LONGEST_TITLE).collect(),
        description: filled.description,
        steps: filled.steps,
        formula: filled.name,
        on: on.clone(),
    })?;
    fault::point(town, "mol.poured");
    note_on_session(town, agent, &molecule.item.id)?;
    let event = town
        .event_at("molecule_attached", &agent.address())
        .with("molecule", molecule.item.id.to_string())
        .with("formula", molecule.formula.clone())
        .with("bead", on.map(|on| on.to_string()));
    Events::of(town).note(vec![event]);
    Ok(MoleculeStatus::of(&molecule))
}

/// Returns the molecule of an agent, if it has one.
pub fn status(town: &Town, agent: &Identity) -> Result<Option<MoleculeStatus>> {
    let molecule = Work::of(town).molecule(&agent.address())?;
    Ok(molecule.as_ref().map(MoleculeStatus::of))
}

/// Returns the id of an agent's molecule, for the record of its sessions.
pub(crate) fn id(town: &Town, agent: &Identity) -> Result<Option<WorkId>> {
    let molecule = Work::of(town).molecule(&agent.address())?;
    Ok(molecule.map(|molecule| molecule.item.id))
}

/// Returns the pinned handoff bead of an agent, and creates it if needed.
pub fn handoff_bead(town: &Town, agent: &Identity) -> Result<Item> {
    Work::of(town).handoff_bead(&agent.address(), &prefix(town, agent)?)
}

/// Starts a step of an agent's molecule.
pub fn start_step(town: &Town, agent: &Identity, step: &str) -> Result<(MoleculeStatus, Item)> {
    let moved = Work::of(town).start_step(&agent.address(), step)?;
    fault::point(town, "mol.begun");
    record_step(town, agent, &moved, StepTransition::Begins)?;
    Ok((MoleculeStatus::of(&moved.molecule), moved.step))
}

/// Completes a step of an agent's molecule.
pub fn finish_step(
    town: &Town,
    agent: &Identity,
    step: &str,
    note: Option<&str>,
) -> Result<(MoleculeStatus, Item)> {
    let moved = Work::of(town).finish_step(&agent.address(), step, note)?;
    fault::point(town, "mol.finished");
    record_step(town, agent, &moved, StepTransition::Ends)?;
    if moved.changed && moved.molecule.is_done() {
        record_end(town, "molecule_done", &moved.molecule);
    }
    Ok((MoleculeStatus::of(&moved.molecule), moved.step))
}

/// Detaches an agent's molecule. Returns its status before.
pub fn detach(town: &Town, agent: &Identity) -> Result<Option<MoleculeStatus>> {
    let before = Work::of(town).detach(&agent.address())?;
    fault::point(town, "mol.detached");
    if let Some(before) = &before {
        record_end(town, "molecule_detached", before);
    }
    Ok(before.as_ref().map(MoleculeStatus::of))
}

fn prefix(town: &Town, agent: &Identity) -> Result<String> {
    rig::work_prefix(town, agent.rig().unwrap_or("hq"))
}

#[derive(Clone, Copy, PartialEq)]
enum StepTransition {
    Begins,
    Ends,
}

/// Records a step with the running session; without one, in the event log.
fn record_step(
    town: &Town,
    agent: &Identity,
    moved: &StepChange,
    what: StepTransition,
) -> Result<()> {
    let (name, item) = (step_id(&moved.step), moved.step.id.as_str());
    let Some(session) = running_session(town, agent)? else {
        let kind = match what {
            StepTransition::Begins => "session_step_started",
            StepTransition::Ends => "session_step_completed",
        };
        if moved.changed {
            let event = town
                .event_at(kind, &agent.address())
                .with("step", name)
                .with("ref", item);
            Events::of(town).note(vec![event]);
        }
        return Ok(());
    };
    note_on_session(town, agent, &moved.molecule.item.id)?;
    let told = Sessions::of(town).steps(&session.id)?;
    let same = |step: &&gt_core::record::SessionStep| step.reference.as_deref() == Some(item);
    let is_ended = told
        .iter()
        .filter(same)
        .any(|step| step.completed_at.is_some());
    let is_begun = told
        .iter()
        .filter(same)
        .any(|step| step.completed_at.is_none());
    let of_another = told
        .iter()
        .any(|step| step.name == name && step.completed_at.is_none() && !same(&step));
    if of_another {
        // A step of an abandoned molecule ends when a step with the same name begins in the next
        // molecule.
        steps::done(town, &session.id, name)?;
    }
    if what == StepTransition::Begins && !is_begun {
        steps::start(town, &session.id, name, Some(item))?;
    }
    if what == StepTransition::Ends && (is_begun || !is_ended) {
        if !is_begun {
            steps::start(town, &session.id, name, Some(item))?;
        }
        steps::done(town, &session.id, name)?;
    }
    Ok(())
}

/// Records the molecule with the running session.
fn note_on_session(town: &Town, agent: &Identity, molecule: &WorkId) -> Result<()> {
    match running_session(town, agent)? {
        Some(session) if session.molecule_id.as_deref() != Some(molecule.as_str()) => {
            Sessions::of(town).record(&[Record {
                molecule_id: Some(molecule.to_string()),
                ..Record::about(session.id)
            }])
        }
        _ => Ok(()),
    }
}

/// Writes the events of a molecule that ended with its agent's work: its last step was completed,
/// or it was detached.
pub(crate) fn emit_left(town: &Town, agent: &Identity, left: LeftMolecule) -> Result<()> {
    let Some(step) = left.last else {
        record_end(town, "molecule_detached", &left.molecule);
        return Ok(());
    };
    let moved = StepChange {
        molecule: left.molecule,
        step,
        changed: true,
    };
    record_step(town, agent, &moved, StepTransition::Ends)?;
    record_end(town, "molecule_done", &moved.molecule);
    Ok(())
}

fn record_end(town: &Town, kind: &str, molecule: &Molecule) {
    let event = town
        .event_at(kind, &molecule.agent)
        .with("molecule", molecule.item.id.to_string())
        .with("formula", molecule.formula.clone())
        .with("done", molecule.done())
        .with("total", molecule.steps.len());
    Events::of(town).note(vec![event]);
}

/// Parses pairs such as `name=value`; each name may occur once.
pub fn variables(texts: &[String]) -> Result<BTreeMap<String, String>> {
    let mut vars = BTreeMap::new();
    for text in texts {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| Problem::usage(format!("{text:?} is not NAME=VALUE")))?;
        let name = name.trim();
        if vars.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(Problem::usage(format!("{name:?} is given twice")));
        }
    }
    Ok(vars)
}
