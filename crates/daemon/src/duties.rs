//! The table of duties.

use gt_town::supervision::upkeep::{self, Saving};
use gt_town::supervision::{budgets, patrol, scheduler};
use gt_town::{Result, Town};
use std::time::Duration;

/// An event that causes duties to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// A minute has passed, or the daemon has just started.
    Sweep,
    /// An agent came, went or changed its state.
    Agents,
    /// A work item, mail or entry of the merge queue changed.
    Work,
}

/// A function of the engine that the daemon calls.
#[derive(Debug)]
pub(crate) struct Duty {
    pub(crate) name: &'static str,
    pub(crate) triggers: &'static [Trigger],
    /// Minimum time from the beginning of one run to the next. Triggers in between are combined.
    pub(crate) spacing: Duration,
    pub(crate) run: fn(&Town) -> Result<()>,
}

pub(crate) const DUTIES: &[Duty] = &[
    Duty {
        name: "upkeep",
        triggers: &[Trigger::Sweep],
        spacing: Duration::ZERO,
        run: |town| upkeep::run(town, Saving::IfDue),
    },
    Duty {
        name: "budgets",
        triggers: &[Trigger::Sweep],
        spacing: Duration::ZERO,
        run: |town| budgets::check(town).map(drop),
    },
    Duty {
        // `upkeep` patrols with every sweep.
        name: "patrol",
        triggers: &[Trigger::Agents, Trigger::Work],
        spacing: Duration::from_secs(10),
        run: patrol::unattended,
    },
    Duty {
        name: "schedule",
        triggers: &[Trigger::Sweep, Trigger::Agents, Trigger::Work],
        spacing: Duration::from_secs(1),
        run: |town| scheduler::run(town).map(drop),
    },
];
