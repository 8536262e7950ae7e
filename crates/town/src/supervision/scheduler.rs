//! Starts the assignments of the schedule while the limits allow.
//!
//! At most one process of a town does so. It reads the queue again after every start, so it also
//! sees entries that are queued meanwhile. An entry leaves the queue only when its agent runs:
//! after a kill, the next run continues with the same polecat.

use crate::base::callback::{self, Call};
use crate::base::estop;
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::messaging::escalate::{self, NewEscalation};
use crate::records::events::Events;
use crate::records::items::{QueuedAssignment, Work};
use crate::supervision::batches;
use crate::workflow::schedule::{self, ScheduleSnapshot};
use crate::workflow::sling::{SlingError, Slung};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::escalation::Severity;
use gt_core::schedule::{FAILURES_TO_ESCALATE, retry_after};
use gt_core::work::WorkId;
use jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Fault points of a run.
pub const FAULT_POINTS: &[&str] = &["schedule.planned", "schedule.started"];

/// Maximum wait for another run, which sees later entries itself unless it is about to end.
const TURN_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of attempts of one run for an item whose slot another command took.
const MAX_LOST_SLOTS: usize = 3;
/// Longest spacing for which a run waits instead of leaving the rest to the next one.
const LONGEST_SPACING: i64 = 60;

/// Result of a run.
#[derive(Debug, Default)]
pub struct ScheduleRun {
    pub started: Vec<Slung>,
    /// Items whose start failed; they stay in the queue and are retried.
    pub failed: Vec<(WorkId, Problem)>,
    /// Items that no longer need an agent.
    pub removed: Vec<(WorkId, String)>,
    /// The reason, if nothing was started.
    pub held: Option<String>,
}

/// Starts queued items while the limits allow. Without a queue and batches it costs two reads.
pub fn run(town: &Town) -> Result<ScheduleRun> {
    let mut report = ScheduleRun::default();
    batches::settle_or_warn(town);
    if !Work::of(town).has_queued_assignments()? {
        return Ok(report);
    }
    let Some(_turn) = FileLock::take_within(&schedule::lock_path(town), TURN_TIMEOUT)? else {
        report.held = Some("another process is starting queued items".to_owned());
        return Ok(report);
    };
    Run {
        town,
        report: &mut report,
        starting: BTreeSet::new(),
        skipped: BTreeSet::new(),
        lost_slots: BTreeMap::new(),
    }
    .serve()?;
    Ok(report)
}

/// Lands complete batches, and starts a run in the background if an assignment waits and starts are
/// allowed. Commands that close an item or free a slot call it.
pub fn wake(town: &Town) {
    batches::settle_or_warn(town);
    if !matches!(held(town), Ok(None)) {
        return;
    }
    let has_work = Work::of(town).has_queued_assignments();
    if !has_work
        .or_warn("the schedule cannot be read")
        .unwrap_or(false)
    {
        return;
    }
    let mut call = callback::unattached(town, &Call::Schedule.words());
    call.process_group(0);
    callback::begin(call).or_warn("the scheduler cannot be started in the background");
}

/// Returns whether a process starts assignments at the moment.
pub fn is_running(town: &Town) -> bool {
    FileLock::is_held(&schedule::lock_path(town))
}

/// Returns the reason why nothing may start.
fn held(town: &Town) -> Result<Option<String>> {
    if let Some(stop) = estop::read(town, None) {
        return Ok(Some(stop.line()));
    }
    Ok(schedule::paused(town)?.map(|_| "the schedule is paused".to_owned()))
}

struct Run<'a> {
    town: &'a Town,
    report: &'a mut ScheduleRun,
    /// Items that threads of this run are starting.
    starting: BTreeSet<WorkId>,
    /// Items that this run does not try again.
    skipped: BTreeSet<WorkId>,
    /// How often another command took the slot of an item.
    lost_slots: BTreeMap<WorkId, usize>,
}

type SlingOutcome = (QueuedAssignment, Result<Slung, SlingError>);

impl Run<'_> {
    fn serve(&mut self) -> Result<()> {
        let town = self.town;
        let (report, outcomes) = mpsc::channel::<SlingOutcome>();
        std::thread::scope(|scope| {
            loop {
                let mut pause = None;
                let is_cancelled = town.around().cancel.is_set();
                self.report.held = held(town)?;
                if !is_cancelled && self.report.held.is_none() {
                    let (starts, spacing_ends) = self.next()?;
                    for entry in starts {
                        fault::point(town, "schedule.planned");
                        self.starting.insert(entry.item.id.clone());
                        schedule::note_start(town);
                        let report = report.clone();
                        scope.spawn(move || {
                            let result = start(town, &entry);
                            // The receiver is gone only if this run failed.
                            let _ = report.send((entry, result));
                        });
                    }
                    pause = spacing_ends.map(|at| at - town.clock().seconds());
                }
                let pause = pause.filter(|pause| *pause <= LONGEST_SPACING);
                if self.starting.is_empty() && pause.is_none() {
                    return Ok(());
                }
                let pause = pause.and_then(|pause| u64::try_from(pause).ok());
                // Wakes up at least every five seconds, so that Ctrl-C is noticed.
                let pause = Duration::from_secs(pause.unwrap_or(1).clamp(1, 5));
                match outcomes.recv_timeout(pause) {
                    Ok(outcome) => self.settle(outcome)?,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
            }
        })
    }

    /// Removes settled entries, and returns those that start now with the end of the spacing.
    fn next(&mut self) -> Result<(Vec<QueuedAssignment>, Option<i64>)> {
        let town = self.town;
        let mut snapshot = ScheduleSnapshot::read(town)?;
        for entry in &snapshot.entries {
            let id = &entry.item.id;
            if self.starting.contains(id) {
                continue;
            }
            let holder = entry.holder.as_deref();
            let why = match holder.filter(|holder| snapshot.is_running(holder)) {
                Some(holder) => format!("{holder} works on it"),
                None if entry.is_settled() => "it no longer needs an agent".to_owned(),
                None => continue,
            };
            self.remove(id, &why)?;
            self.skipped.insert(id.clone());
        }
        for id in &self.starting {
            snapshot.occupy(id);
        }
        snapshot
            .queue
            .retain(|entry| !self.skipped.contains(&entry.item));
        let plan = snapshot.plan(town);
        let most = town.settings().limits.parallel_starts;
        let free = most.saturating_sub(self.starting.len());
        let starts = plan.starts.iter().take(free).filter_map(|id| {
            let mut entries = snapshot.entries.iter();
            entries.find(|entry| entry.item.id == *id).cloned()
        });
        Ok((starts.collect(), plan.spacing_ends()))
    }

    fn remove(&mut self, id: &WorkId, why: &str) -> Result<()> {
        if Work::of(self.town).dequeue_assignment(id)? {
            self.report.removed.push((id.clone(), why.to_owned()));
        }
        Ok(())
    }

    fn settle(&mut self, (entry, result): SlingOutcome) -> Result<()> {
        let town = self.town;
        let id = entry.item.id.clone();
        self.starting.remove(&id);
        self.skipped.insert(id.clone());
        match result {
            Ok(slung) => {
                fault::point(town, "schedule.started");
                Work::of(town).dequeue_assignment(&id)?;
                Work::of(town)
                    .close_escalation_of(&key(&id), "gt", "it was started")
                    .or_warn(format_args!("the escalation about {id} stays open"));
                self.report.started.push(slung);
            }
            // Another command was faster; the entry waits for the next slot.
            Err(SlingError::Full(_)) => {
                let lost = self.lost_slots.entry(id.clone()).or_default();
                *lost += 1;
                if *lost < MAX_LOST_SLOTS {
                    self.skipped.remove(&id);
                }
            }
            Err(SlingError::Taken(problem)) => {
                if Work::of(town).holder(&id)?.is_some() {
                    self.remove(&id, problem.message())?;
                }
            }
            // A cancelled start says nothing about the item.
            Err(SlingError::Other(_)) if town.around().cancel.is_set() => {}
            Err(SlingError::Other(problem)) => self.note_failure(&entry, problem)?,
        }
        Ok(())
    }

    fn note_failure(&mut self, entry: &QueuedAssignment, problem: Problem) -> Result<()> {
        let town = self.town;
        let id = &entry.item.id;
        let line = problem.line();
        let at = |failures| {
            let delay = SignedDuration::from_secs(retry_after(failures));
            town.clock().now().checked_add(delay).unwrap_or_default()
        };
        let failures = Work::of(town).note_failed_assignment(id, &line, at)?;
        let event = town
            .event("schedule_failed")
            .with("bead", id.to_string())
            .with("rig", entry.rig.clone())
            .with("reason", line.clone());
        Events::of(town).note(vec![event]);
        if failures >= FAILURES_TO_ESCALATE {
            let raised = escalate::raise(
                town,
                &NewEscalation {
                    severity: Severity::Medium,
                    message: format!("{id} could not be started {failures} times: {line}"),
                    source: "schedule",
                    item: Some(id.clone()),
                    agent: None,
                    key: Some(key(id)),
                },
            );
            raised.or_warn(format_args!("{id} is not escalated"));
        }
        self.report.failed.push((id.clone(), problem));
        Ok(())
    }
}

fn key(id: &WorkId) -> String {
    format!("schedule:{id}")
}

fn start(town: &Town, entry: &QueuedAssignment) -> Result<Slung, SlingError> {
    let (target, options) = schedule::order_of(town, entry)?;
    // The item as it is now: it may have changed since it was queued.
    let item = Work::of(town).get(&entry.item.id)?;
    crate::workflow::sling::sling_item(town, &item, &target, &options)
}

#[cfg(test)]
mod tests;
