//! The table of duties.

use gt_town::supervision::upkeep::{self, Saving};
use gt_town::supervision::{budgets, digest, limits, patrol, recurring, scheduler};
use gt_town::{Result, Town};
use jiff::Timestamp;
use std::time::Duration;

/// An event that causes duties to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// A minute has passed, or the daemon has just started.
    Sweep,
    /// An agent came, went or changed its state.
    Agents,
    /// An agent reached a usage limit.
    Limit,
    /// A work item, mail or entry of the merge queue changed.
    Work,
}

/// A function that returns the next time of a duty, if it has one.
pub(crate) type DueTime = fn(&Town) -> Result<Option<Timestamp>>;

/// A function of the engine that the daemon calls.
#[derive(Debug)]
pub(crate) struct Duty {
    pub(crate) name: &'static str,
    pub(crate) triggers: &'static [Trigger],
    /// Minimum time from the beginning of one run to the next. Triggers in between are combined.
    pub(crate) spacing: Duration,
    pub(crate) run: fn(&Town) -> Result<()>,
    /// Returns the time at which it runs without a trigger. Asked for after every run.
    pub(crate) due: Option<DueTime>,
}

pub(crate) const DUTIES: &[Duty] = &[
    Duty {
        name: "upkeep",
        triggers: &[Trigger::Sweep],
        spacing: Duration::ZERO,
        run: |town| upkeep::run(town, Saving::IfDue),
        due: None,
    },
    Duty {
        name: "budgets",
        triggers: &[Trigger::Sweep],
        spacing: Duration::ZERO,
        run: |town| budgets::check(town).map(drop),
        due: None,
    },
    Duty {
        // `upkeep` patrols with every sweep.
        name: "patrol",
        triggers: &[Trigger::Agents, Trigger::Work],
        spacing: Duration::from_secs(10),
        run: patrol::unattended,
        due: None,
    },
    Duty {
        // Escalations and merges are work items. `upkeep` does it with every sweep.
        name: "digests",
        triggers: &[Trigger::Agents, Trigger::Work],
        spacing: Duration::from_secs(5),
        run: digest::unattended,
        due: None,
    },
    Duty {
        // A hook sets this timer too, but some programs show a limit only on their screen. `upkeep`
        // resumes agents with every sweep.
        name: "limits",
        triggers: &[Trigger::Limit],
        spacing: Duration::from_secs(5),
        run: |town| {
            limits::resume_soon(town);
            Ok(())
        },
        due: None,
    },
    Duty {
        name: "schedule",
        triggers: &[Trigger::Sweep, Trigger::Agents, Trigger::Work],
        spacing: Duration::from_secs(1),
        run: |town| scheduler::run(town).map(drop),
        due: None,
    },
    Duty {
        // The sweep corrects the planned time after a suspension of the machine. The items that it
        // queues are a trigger of `schedule`.
        name: "recurring",
        triggers: &[Trigger::Sweep, Trigger::Work],
        spacing: Duration::from_secs(1),
        run: |town| recurring::run_due(town).map(drop),
        due: Some(recurring::next_due),
    },
];
