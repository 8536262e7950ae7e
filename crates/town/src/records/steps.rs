//! The steps of an agent's work, as the agent reports them.
//!
//! Each start and end of a step is a line in a file of the session, and an event. When the session
//! has ended they become part of its record.

use crate::base::lines::{Durability, Lines};
use crate::base::lock::FileLock;
use crate::records::events::Events;
use crate::records::sessions::Sessions;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::record::{Record, SessionStep};
use std::time::Duration;

/// Maximum wait for the lock of the steps.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Records that a session has started a step.
pub fn start(
    town: &Town,
    session: &str,
    name: &str,
    reference: Option<&str>,
) -> Result<SessionStep> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::usage(format!("{name:?} is not a valid step name")));
    }
    if reference.is_some_and(|text| text.chars().any(char::is_control)) {
        return Err(Problem::usage(format!(
            "{reference:?} is not a valid reference"
        )));
    }
    change(town, session, "session_step_started", |steps| {
        if steps.iter().any(|step| is_open(step, name)) {
            return Err(
                Problem::conflict(format!("the step {name:?} was started already"))
                    .hint(format!("`gt step done {name}` ends it")),
            );
        }
        let step = SessionStep {
            name: name.to_owned(),
            reference: reference.map(str::to_owned),
            started_at: town.clock().text(),
            completed_at: None,
        };
        steps.push(step.clone());
        Ok(step)
    })
}

/// Records that a session has completed a step.
pub fn done(town: &Town, session: &str, name: &str) -> Result<SessionStep> {
    change(town, session, "session_step_completed", |steps| {
        let found = steps.iter_mut().rev().find(|step| is_open(step, name));
        let step = found.ok_or_else(|| {
            Problem::not_found(format!("no step {name:?} was started"))
                .hint("`gt step list` shows the started steps")
        })?;
        step.completed_at = Some(town.clock().text());
        Ok(step.clone())
    })
}

fn is_open(step: &SessionStep, name: &str) -> bool {
    step.name == name && step.completed_at.is_none()
}

/// Changes the steps of a session, based on the steps recorded so far.
fn change(
    town: &Town,
    session: &str,
    kind: &str,
    change: impl FnOnce(&mut Vec<SessionStep>) -> Result<SessionStep>,
) -> Result<SessionStep> {
    let sessions = Sessions::of(town);
    let session = sessions.get(session)?;
    if session.outcome.is_some() {
        return Err(Problem::conflict(format!(
            "the session {} has ended",
            session.id
        )));
    }
    let lines = sessions.step_lines(&session.id);
    // Concurrent writers must see each other's steps.
    let lock = town.runtime_dir().join("locks/steps.lock");
    let _lock = FileLock::take(&lock, TIMEOUT)?;
    let mut steps = sessions.steps(&session.id)?;
    let step = change(&mut steps)?;
    let mut line = serde_json::to_vec(&step)
        .map_err(|error| Problem::failed("cannot write a step").caused_by(error))?;
    line.push(b'\n');
    lines.append(&line, Durability::OnDisk)?;
    // The current step; an empty reference means that there is none.
    let current = steps.iter().rev().find(|step| step.completed_at.is_none());
    let reference = current.map(|step| step.reference.as_ref().unwrap_or(&step.name));
    sessions.record(&[Record {
        step_ref: Some(reference.cloned().unwrap_or_default()),
        ..Record::about(session.id.clone())
    }])?;
    let event = town
        .event_at(kind, session.agent.as_deref().unwrap_or("unknown"))
        .with("session_id", session.id)
        .with("step", step.name.clone())
        .with("ref", step.reference.clone())
        .with("seconds", seconds(&step));
    Events::of(town).note(vec![event]);
    Ok(step)
}

impl Sessions {
    /// Returns the steps of a running session, oldest first, from `.sessions/<id>.steps`, which has
    /// a line for each start and end.
    pub fn steps(&self, id: &str) -> Result<Vec<SessionStep>> {
        let mut steps: Vec<SessionStep> = Vec::new();
        self.step_lines(id).read_from(0, |line| {
            // Unreadable lines are skipped.
            if let Ok(step) = serde_json::from_slice::<SessionStep>(line) {
                let same = |other: &&mut SessionStep| {
                    other.name == step.name && other.started_at == step.started_at
                };
                match steps.iter_mut().find(same) {
                    Some(known) => *known = step,
                    None => steps.push(step),
                }
            }
            Ok(())
        })?;
        Ok(steps)
    }

    pub(crate) fn step_lines(&self, id: &str) -> Lines {
        Lines::at(self.detail_path(id).with_extension("steps"))
    }
}

/// Returns the duration of a completed step in seconds.
pub fn seconds(step: &SessionStep) -> Option<i64> {
    let began: jiff::Timestamp = step.started_at.parse().ok()?;
    let ended: jiff::Timestamp = step.completed_at.as_ref()?.parse().ok()?;
    Some((ended.as_second() - began.as_second()).max(0))
}
