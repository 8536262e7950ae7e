//! Patrol: observes the town, applies the rules of [`gt_core::patrol`] and carries out the actions.
//!
//! [`patrol_once`] is one patrol. `patrol/observe.rs` collects the snapshot and changes nothing,
//! `patrol/act.rs` carries out one action, `patrol/memory.rs` stores attempts and back-off. The
//! memory is written before the actions: a process that is killed in between repeats none of them
//! before its back-off has passed. Only one patrol runs at a time.

mod act;
mod memory;
mod observe;

#[cfg(test)]
mod tests;

use crate::base::fault;
use crate::base::lock::FileLock;
use crate::records::events::{self, Events};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::event::Event;
use gt_core::patrol::{self, PatrolAction};
use std::path::PathBuf;

/// Type of the event of an action.
pub const EVENT: &str = "patrol_action";

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["patrol.remembered", "patrol.taken_off"];

/// An action, and its result.
#[derive(Debug)]
pub struct Performed {
    pub action: PatrolAction,
    pub result: Result<()>,
}

/// Runs one patrol. Returns `None` if another patrol is running. The failure of an action is part
/// of its result, and the next round after the back-off repeats the action.
pub fn patrol_once(town: &Town) -> Result<Option<Vec<Performed>>> {
    let Some(_lock) = FileLock::try_take(&lock_path(town))? else {
        return Ok(None);
    };
    let before = memory::read(town)?;
    let seen = observe::observe(town, &before)?;
    let mut memory = before.clone();
    let now = town.clock().seconds();
    let settings = town.settings().patrol.rules(&town.settings().limits);
    let actions = patrol::decide_round(&seen.snapshot, &mut memory, &settings, now);
    if memory != before {
        memory::write(town, &memory)?;
    }
    fault::point(town, "patrol.remembered");
    let mut done = Vec::new();
    for action in actions {
        town.around().cancel.check()?;
        let result = act::act(town, &seen, &action);
        if let Err(problem) = &result {
            tracing::warn!("patrol, {}: {}", action.rule, problem.line());
        }
        Events::of(town).note(vec![event(&action, &result)]);
        done.push(Performed { action, result });
    }
    Ok(Some(done))
}

/// Returns the actions that a patrol would carry out now, and changes nothing.
pub fn plan(town: &Town) -> Result<Vec<PatrolAction>> {
    let mut memory = memory::read(town)?;
    let seen = observe::observe(town, &memory)?;
    let settings = town.settings().patrol.rules(&town.settings().limits);
    let now = town.clock().seconds();
    Ok(patrol::decide_round(
        &seen.snapshot,
        &mut memory,
        &settings,
        now,
    ))
}

/// Runs one patrol for a timer or the daemon, if `automatic` is set in `[patrol]`. Failures of
/// single actions are in the log.
pub fn unattended(town: &Town) -> Result<()> {
    match town.settings().patrol.automatic {
        true => patrol_once(town).map(drop),
        false => Ok(()),
    }
}

/// Returns past actions, the oldest first.
pub fn log(town: &Town, limit: usize) -> Result<Vec<Event>> {
    Events::of(town).find(&events::EventQuery {
        kinds: vec![EVENT.to_owned()],
        limit: Some(limit),
        ..events::EventQuery::default()
    })
}

fn lock_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("locks/patrol.lock")
}

/// Returns the event of an action. The caller of the patrol is its actor.
fn event(action: &PatrolAction, result: &Result<()>) -> Event {
    let failure = result.as_ref().err().map(Problem::to_string);
    Event::new(EVENT, gt_core::Caller::Gt)
        .with("rule", action.rule)
        .with("action", action.kind.as_str())
        .with("subject", action.subject.clone())
        .with("target", action.agent.clone())
        .with("bead", action.item.clone())
        .with("rig", action.rig.clone())
        .with("reason", action.reason.clone())
        .with("evidence", action.evidence.clone())
        .with("attempt", action.attempt)
        .with("error", failure)
}

/// Returns the path of a file of the patrol.
fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("patrol.json")
}
