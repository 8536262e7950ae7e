//! The status of a molecule, for commands and for an agent's prompt.

use crate::records::items::{Molecule, step_id};
use gt_core::work::{Item, ItemStatus, WorkId};
use serde::Serialize;
use std::fmt::Write;

/// Maximum length of a step's description in the text; `gt work show` has the rest.
const LONGEST_DESCRIPTION: usize = 2000;

/// A molecule and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MoleculeStatus {
    pub agent: String,
    pub molecule: WorkId,
    pub formula: String,
    pub title: String,
    /// `in_progress`, or `closed` when it is complete or was detached.
    pub status: ItemStatus,
    /// The work item that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<WorkId>,
    /// The agent's pinned handoff bead, to which the molecule is attached.
    pub handoff_bead: WorkId,
    pub steps: Vec<StepStatus>,
    pub done: usize,
    pub total: usize,
    /// The steps in progress, by their ids in the formula.
    pub current: Vec<String>,
    /// The steps that can be started now.
    pub ready: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepStatus {
    /// Its id in the formula.
    pub step: String,
    /// Its work item.
    pub id: WorkId,
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub state: StepState,
    /// The unfinished steps that it depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Done,
    InProgress,
    /// It can be started.
    Ready,
    /// It waits for other steps.
    Waiting,
}

impl StepState {
    pub fn as_str(self) -> &'static str {
        match self {
            StepState::Done => "done",
            StepState::InProgress => "in_progress",
            StepState::Ready => "ready",
            StepState::Waiting => "waiting",
        }
    }

    fn mark(self) -> &'static str {
        match self {
            StepState::Done => "[x]",
            StepState::InProgress => "[>]",
            StepState::Ready | StepState::Waiting => "[ ]",
        }
    }
}

impl MoleculeStatus {
    pub(super) fn of(molecule: &Molecule) -> Self {
        let steps: Vec<StepStatus> = molecule
            .steps
            .iter()
            .map(|step| StepStatus::of(molecule, step))
            .collect();
        let with = |state: StepState| -> Vec<String> {
            let fitting = steps.iter().filter(|step| step.state == state);
            fitting.map(|step| step.step.clone()).collect()
        };
        MoleculeStatus {
            agent: molecule.agent.clone(),
            molecule: molecule.item.id.clone(),
            formula: molecule.formula.clone(),
            title: molecule.item.title.clone(),
            status: molecule.item.status,
            on: molecule.item.parent.clone(),
            handoff_bead: molecule.handoff.clone(),
            done: molecule.done(),
            total: steps.len(),
            current: with(StepState::InProgress),
            ready: with(StepState::Ready),
            steps,
        }
    }

    /// Returns the progress in one line.
    pub fn line(&self) -> String {
        let about = self.on.as_ref().map(|on| format!(" on {on}"));
        format!(
            "Molecule {} ({}){}: {} of {} steps done",
            self.molecule,
            self.formula,
            about.unwrap_or_default(),
            self.done,
            self.total
        )
    }

    /// Returns the text for the agent: the progress, the next steps and the commands to type.
    pub fn text(&self) -> String {
        let mut text = format!("{}.\n", self.line());
        let width = self.steps.iter().map(|step| step.step.len()).max();
        let width = width.unwrap_or(0);
        for step in &self.steps {
            let waits = match step.waits_for.as_slice() {
                [] => String::new(),
                needs => format!("  (after {})", needs.join(", ")),
            };
            let (mark, name, title) = (step.state.mark(), &step.step, &step.title);
            let _ = writeln!(text, "{mark} {name:width$}  {title}{waits}");
        }
        let now = |step: &&StepStatus| step.state == StepState::InProgress;
        let next = |step: &&StepStatus| step.state == StepState::Ready;
        for step in self.steps.iter().filter(now) {
            let _ = writeln!(text, "\nNow: {} — {}", step.step, step.title);
            describe(step, &mut text);
            let _ = writeln!(text, "When it is done: `gt mol step done {}`", step.step);
        }
        for (number, step) in self.steps.iter().filter(next).enumerate() {
            let _ = writeln!(text, "\nNext: {} — {}", step.step, step.title);
            // A step in progress is described already; of the next steps only the first is
            // described.
            if self.current.is_empty() && number == 0 {
                describe(step, &mut text);
            }
            let _ = writeln!(text, "Begin it: `gt mol step start {}`", step.step);
        }
        text
    }
}

impl StepStatus {
    fn of(molecule: &Molecule, step: &Item) -> Self {
        let waits_for: Vec<String> = match step.status {
            ItemStatus::Closed => Vec::new(),
            _ => molecule
                .waits_for(step)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        };
        let state = match (step.status, waits_for.is_empty()) {
            (ItemStatus::Closed, _) => StepState::Done,
            (ItemStatus::InProgress, _) => StepState::InProgress,
            (_, true) => StepState::Ready,
            (_, false) => StepState::Waiting,
        };
        StepStatus {
            step: step_id(step).to_owned(),
            id: step.id.clone(),
            title: step.title.clone(),
            description: step.description.clone(),
            state,
            waits_for,
            notes: step.notes.clone(),
        }
    }
}

fn describe(step: &StepStatus, text: &mut String) {
    let description = step.description.trim();
    if !description.is_empty() {
        text.extend(description.chars().take(LONGEST_DESCRIPTION));
        if description.chars().count() > LONGEST_DESCRIPTION {
            let _ = write!(text, "… (all of it: `gt work show {}`)", step.id);
        }
        text.push('\n');
    }
    for line in step.notes.lines() {
        let _ = writeln!(text, "Note: {line}");
    }
}
