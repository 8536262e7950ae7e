//! The schedule: assignments that wait for a slot, the facts that decide when they start, and the
//! switch that pauses them.
//!
//! [`gt_core::schedule`] decides. This module queues and collects the facts;
//! [`crate::supervision::scheduler`] starts.

mod facts;
mod pause;

pub(crate) use facts::ScheduleSnapshot;
pub(crate) use pause::note_start;
pub use pause::{PauseNote, pause, paused, resume};

use crate::base::lock::FileLock;
use crate::lifecycle::start;
use crate::records::events::Events;
use crate::records::items::{QueuedAssignment, Work};
use crate::repo::rig;
use crate::workflow::sling::{self, SlingError, SlingOptions, SlingTarget, Slung};
use crate::{Result, Town};
use gt_core::mail::PERSON;
use gt_core::schedule::{AssignmentOptions, WaitReason};
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Identity, Problem, Role};
use std::path::PathBuf;

/// An item that waits in the schedule.
#[derive(Clone, Debug)]
pub struct QueuedSling {
    pub id: WorkId,
    pub rig: String,
    /// Its place in the queue, from 1.
    pub place: usize,
    /// Number of assignments that wait.
    pub waiting: usize,
    pub reason: String,
}

/// Result of [`sling_or_queue`].
#[derive(Clone, Debug)]
pub enum Assigned {
    Slung(Box<Slung>),
    Queued(QueuedSling),
}

/// Decision about the orders of one command.
#[derive(Debug)]
pub struct StartDecision {
    /// For each order the reason to queue it; `None` starts it.
    pub reasons: Vec<Option<String>>,
    /// Held until the orders have started if settings count agents that are not polecats of a rig:
    /// otherwise concurrent commands would exceed those limits.
    _turn: Option<FileLock>,
}

/// Lock of the process that starts queued assignments.
pub(crate) fn lock_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("locks/schedule.lock")
}

/// Decides which orders of a command start now. Assignments that wait already come first if they
/// could start. The spacing of starts applies only to the queue.
pub fn decide(
    town: &Town,
    orders: &[Option<(&Item, &SlingTarget)>],
    options: &SlingOptions,
) -> Result<StartDecision> {
    let mut decision = StartDecision {
        reasons: vec![None; orders.len()],
        _turn: None,
    };
    let settings = &town.settings().schedule;
    let has_limits = settings.has_limits();
    let may_wait = options.queue_blocked && !options.force;
    if !has_limits && !may_wait && !Work::of(town).has_queued_assignments()? {
        return Ok(decision);
    }
    if has_limits {
        decision._turn = FileLock::try_take(&lock_path(town))?;
    }
    let is_busy = has_limits && decision._turn.is_none();
    let mut snapshot = ScheduleSnapshot::read(town)?;
    if paused(town)?.is_some() {
        snapshot.queue.clear();
    }
    snapshot.limits.start_spacing = 0;
    for (order, reason) in orders.iter().zip(&mut decision.reasons) {
        let Some((item, to)) = order else { continue };
        let Some((rig, agent)) = polecat_target(to) else {
            continue;
        };
        *reason = blocked(town, item, options)?;
        if reason.is_none() {
            snapshot.add(town, item, rig, &stored(town, options, agent))?;
        }
    }
    let plan = snapshot.plan(town);
    for (order, reason) in orders.iter().zip(&mut decision.reasons) {
        let Some((item, to)) = order else { continue };
        if polecat_target(to).is_none() || reason.is_some() {
            continue;
        }
        *reason = match plan.reason(&item.id) {
            // A direct order fails if its item is blocked or its rig is parked.
            None | Some(WaitReason::Blocked(_) | WaitReason::RigClosed { .. }) => None,
            Some(reason) => Some(reason.to_string()),
        };
        if is_busy && reason.is_none() {
            *reason = Some("the scheduler is starting others".to_owned());
        }
    }
    Ok(decision)
}

/// Assigns an item to an agent, or queues it: if `reason` says so, or if the maximum number of
/// polecats is at work. An item that an agent already has is never queued.
pub fn sling_or_queue(
    town: &Town,
    item: &Item,
    to: &SlingTarget,
    options: &SlingOptions,
    reason: Option<&str>,
) -> Result<Assigned, SlingError> {
    let queue = |rig: &str, agent: Option<&Identity>, reason: &str| {
        match blocked(town, item, options)? {
            Some(_) => sling::check_unfinished(town, item)?,
            None => sling::check(town, item, options.force)?,
        }
        sling::refuse_exhausted(town, item, to)?;
        enqueue(town, item, rig, &stored(town, options, agent), reason).map(Assigned::Queued)
    };
    let is_free = || -> Result<bool> { Ok(Work::of(town).holder(&item.id)?.is_none()) };
    if let (Some(reason), Some((rig, agent))) = (reason, polecat_target(to))
        && is_free()?
    {
        return Ok(queue(rig, agent, reason)?);
    }
    match (sling_now(town, item, to, options), polecat_target(to)) {
        (Err(SlingError::Full(problem)), Some((rig, agent))) if is_free()? => {
            Ok(queue(rig, agent, problem.message())?)
        }
        (result, _) => result.map(|slung| Assigned::Slung(Box::new(slung))),
    }
}

/// Returns why an item waits for others, if that queues it.
fn blocked(town: &Town, item: &Item, options: &SlingOptions) -> Result<Option<String>> {
    if !options.queue_blocked || options.force || item.status == ItemStatus::Blocked {
        return Ok(None);
    }
    let blockers = Work::of(town).open_blockers(&item.id)?;
    let is_blocked = !blockers.is_empty();
    Ok(is_blocked.then(|| WaitReason::Blocked(blockers).to_string()))
}

/// Assigns an item to an agent without regard to the queue, which it leaves.
pub fn sling_now(
    town: &Town,
    item: &Item,
    to: &SlingTarget,
    options: &SlingOptions,
) -> Result<Slung, SlingError> {
    let slung = sling::sling_item(town, item, to, options)?;
    // The next run of the scheduler finds the agent running and removes the entry.
    if let Err(problem) = Work::of(town).dequeue_assignment(&item.id) {
        tracing::warn!("{} stays in the schedule: {}", item.id, problem.line());
    }
    Ok(slung)
}

/// Puts an item into the queue after the checks of a sling.
fn enqueue(
    town: &Town,
    item: &Item,
    rig: &str,
    options: &AssignmentOptions,
    reason: &str,
) -> Result<QueuedSling> {
    rig::check_not_parked(town, rig)?;
    let wanted = options.agent.as_deref();
    let wanted = wanted.and_then(|agent| Identity::from_address(agent, town.registry()));
    let agent = match wanted {
        Some(agent) => agent,
        // Any name will do: the checks are about the role, the harness and the account.
        None => Identity::polecat(rig, "Toast"),
    };
    start::check(town, &agent, &sling::start_options(&sling_options(options)))?;
    let work = Work::of(town);
    let by = town.caller().as_str().to_owned();
    let is_new = work.enqueue_assignment(&item.id, rig, options, &by)?;
    if is_new {
        let event = town
            .event("schedule_queued")
            .with("bead", item.id.to_string())
            .with("rig", rig.to_owned())
            .with("reason", reason.to_owned());
        Events::of(town).note(vec![event]);
    }
    let queue = work.queued_assignments()?;
    let place = queue.iter().position(|entry| entry.item.id == item.id);
    Ok(QueuedSling {
        id: item.id.clone(),
        rig: rig.to_owned(),
        place: place.map_or(queue.len(), |place| place + 1),
        waiting: queue.len(),
        reason: reason.to_owned(),
    })
}

/// Returns the rig and the wanted polecat of a target; `None` if the target is not a polecat.
fn polecat_target(to: &SlingTarget) -> Option<(&str, Option<&Identity>)> {
    match to {
        SlingTarget::Rig(rig) => Some((rig, None)),
        SlingTarget::Agent(agent) if agent.role() == Role::Polecat => {
            Some((agent.rig()?, Some(agent)))
        }
        SlingTarget::Agent(_) => None,
    }
}

fn stored(town: &Town, options: &SlingOptions, agent: Option<&Identity>) -> AssignmentOptions {
    let sender = options.sender.as_deref();
    let sender = sender.or_else(|| town.around().var("GT_ROLE"));
    AssignmentOptions {
        agent: agent.map(Identity::address),
        harness: options.harness.clone(),
        model: options.model.clone(),
        account: options.account.clone(),
        args: options.args.clone(),
        force: options.force,
        ask_permissions: options.ask_permissions,
        sender: Some(sender.unwrap_or(PERSON).to_owned()),
        formula: options.formula.clone(),
    }
}

fn sling_options(options: &AssignmentOptions) -> SlingOptions {
    SlingOptions {
        harness: options.harness.clone(),
        model: options.model.clone(),
        account: options.account.clone(),
        args: options.args.clone(),
        no_start: false,
        force: options.force,
        queue_blocked: false,
        ask_permissions: options.ask_permissions,
        sender: options.sender.clone(),
        formula: options.formula.clone(),
        avoid: None,
    }
}

/// Returns the target and the options with which a queued assignment starts.
pub(crate) fn order_of(
    town: &Town,
    entry: &QueuedAssignment,
) -> Result<(SlingTarget, SlingOptions)> {
    let target = match &entry.options.agent {
        None => SlingTarget::Rig(entry.rig.clone()),
        Some(address) => {
            let agent = Identity::from_address(address, town.registry());
            SlingTarget::Agent(agent.ok_or_else(|| {
                Problem::not_found(format!("{address} is no longer an agent of this town"))
            })?)
        }
    };
    Ok((target, sling_options(&entry.options)))
}

/// Takes an item out of the queue. Returns whether it was there.
pub fn remove(town: &Town, id: &WorkId) -> Result<bool> {
    let was_there = Work::of(town).dequeue_assignment(id)?;
    if was_there {
        let event = town.event("schedule_removed").with("bead", id.to_string());
        Events::of(town).note(vec![event]);
    }
    Ok(was_there)
}

/// Returns the queue with the reason why each assignment waits; `None` starts with the next run.
pub fn waiting(town: &Town) -> Result<Vec<(QueuedAssignment, Option<String>)>> {
    let queue = Work::of(town).queued_assignments()?;
    if queue.is_empty() {
        return Ok(Vec::new());
    }
    let plan = ScheduleSnapshot::read(town)?.plan(town);
    let pause = paused(town)?.map(|_| "the schedule is paused".to_owned());
    let reason = |entry: &QueuedAssignment| match &entry.holder {
        Some(holder) => Some(format!("{holder} has it and is being started")),
        None => {
            let reason = plan.reason(&entry.item.id).map(ToString::to_string);
            reason.or_else(|| pause.clone())
        }
    };
    Ok(queue
        .into_iter()
        .map(|entry| {
            let reason = reason(&entry);
            (entry, reason)
        })
        .collect())
}
