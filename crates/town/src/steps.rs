//! The steps of an agent's work, as it tells them.
//!
//! They are part of the life's record, and each beginning and end is an event.

use crate::events::Events;
use crate::lock::FileLock;
use crate::sessions::{Sessions, timestamp};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::event::Event;
use gt_core::record::{Record, Step};
use std::time::Duration;

/// How long another may write steps before we.
const PATIENCE: Duration = Duration::from_secs(30);

/// Notes that a life has begun with a step.
pub fn start(town: &Town, life: &str, name: &str, reference: Option<&str>) -> Result<Step> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::usage(format!("{name:?} is no name of a step")));
    }
    change(town, life, "session_step_started", |steps| {
        if steps.iter().any(|step| is_open(step, name)) {
            return Err(
                Problem::conflict(format!("the step {name:?} has begun already"))
                    .hint(format!("`gt step done {name}` ends it")),
            );
        }
        let step = Step {
            name: name.to_owned(),
            reference: reference.map(str::to_owned),
            started_at: timestamp(None),
            completed_at: None,
        };
        steps.push(step.clone());
        Ok(step)
    })
}

/// Notes that a life is done with a step.
pub fn done(town: &Town, life: &str, name: &str) -> Result<Step> {
    change(town, life, "session_step_completed", |steps| {
        let found = steps.iter_mut().rev().find(|step| is_open(step, name));
        let step = found.ok_or_else(|| {
            Problem::not_found(format!("there is no step {name:?} to be done with"))
                .hint("`gt step list` shows those that were begun")
        })?;
        step.completed_at = Some(timestamp(None));
        Ok(step.clone())
    })
}

fn is_open(step: &Step, name: &str) -> bool {
    step.name == name && step.completed_at.is_none()
}

/// Changes the steps of a life, from what its record says now.
fn change(
    town: &Town,
    life: &str,
    kind: &str,
    change: impl FnOnce(&mut Vec<Step>) -> Result<Step>,
) -> Result<Step> {
    let sessions = Sessions::of(town);
    // The record holds them as one list: two who add at once must not lose one.
    let lock = town.runtime_dir().join("locks/steps.lock");
    let _lock = FileLock::take(&lock, PATIENCE)?;
    let life = sessions.get(life)?;
    let mut steps = life.steps.unwrap_or_default();
    let step = change(&mut steps)?;
    // The one that is being worked on; after the last, the last.
    let current = steps.iter().rev().find(|step| step.completed_at.is_none());
    let current = current.unwrap_or(&step);
    let reference = current.reference.as_ref().unwrap_or(&current.name);
    sessions.record(&[Record {
        step_ref: Some(reference.clone()),
        steps: Some(steps.clone()),
        ..Record::about(life.id.clone())
    }])?;
    let actor = life.agent.unwrap_or_else(|| "unknown".to_owned());
    let event = Event::new(kind, actor)
        .with("session_id", life.id)
        .with("step", step.name.clone())
        .with("ref", step.reference.clone())
        .with("seconds", seconds(&step));
    Events::of(town).note(vec![event]);
    Ok(step)
}

/// How long a step took, once it is done.
pub fn seconds(step: &Step) -> Option<i64> {
    let began: jiff::Timestamp = step.started_at.parse().ok()?;
    let ended: jiff::Timestamp = step.completed_at.as_ref()?.parse().ok()?;
    Some((ended.as_second() - began.as_second()).max(0))
}
