//! The scheduler: which waiting assignments may start now, in which order, and why the others wait.
//!
//! Pure: the queue, the running agents, the limits, the load and the time come in, a [`StartPlan`]
//! goes out. `town::workflow::schedule` collects the facts, `town::supervision::scheduler` starts.

pub mod cron;
pub mod recurring;

use crate::plural::counted;
use crate::work::WorkId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Options of a queued assignment, as stored. Unknown fields of newer versions are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssignmentOptions {
    /// Address of the wanted polecat; any of the rig without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Instructions for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Start even if the item waits for others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ask_permissions: bool,
    /// Address of the agent that assigned the item, or `human`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The formula that is poured for the polecat, about the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<FormulaChoice>,
}

/// A formula with the values of its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormulaChoice {
    pub name: String,
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
}

/// An assignment that waits for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingAssignment {
    pub item: WorkId,
    pub rig: String,
    /// 0 is the most urgent.
    pub priority: u8,
    /// Position of entries with the same priority: the lower one starts first.
    pub number: i64,
    pub harness: String,
    pub account: Option<String>,
    /// Items that must be closed first.
    pub blockers: Vec<WorkId>,
    /// The item itself has the status `blocked`.
    pub is_blocked: bool,
    /// Another reason against a start, such as an exhausted budget.
    pub refused: Option<String>,
    /// Earliest time of the next attempt after a failed start, in seconds since the epoch.
    pub not_before: Option<i64>,
}

/// An agent that occupies slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningAgent {
    /// The rig of a polecat; `None` for agents of other roles, which occupy no slot of a rig.
    pub polecat_of: Option<String>,
    pub harness: String,
    pub account: Option<String>,
}

/// Maximum numbers of agents, and other conditions of a start.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleLimits {
    /// Polecats in the town, and in each rig.
    pub polecats: usize,
    pub polecats_per_rig: usize,
    /// Agents of a harness, by its name.
    pub harnesses: BTreeMap<String, usize>,
    /// Agents of an account, by its name.
    pub accounts: BTreeMap<String, usize>,
    /// Load average per processor at which nothing more starts.
    pub max_load: Option<f64>,
    /// Minimum time between two starts, in seconds.
    pub start_spacing: i64,
}

/// Everything that decides which assignments start.
#[derive(Clone, Debug)]
pub struct ScheduleFacts<'a> {
    pub queue: &'a [WaitingAssignment],
    pub running: &'a [RunningAgent],
    pub limits: &'a ScheduleLimits,
    /// Load average per processor, if it is known.
    pub load: Option<f64>,
    /// Rigs that accept no work, with the word for it.
    pub closed_rigs: &'a BTreeMap<String, String>,
    /// The time of the last start, in seconds since the epoch.
    pub last_start: Option<i64>,
    pub now: i64,
}

/// Why an assignment waits.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitReason {
    Blocked(Vec<WorkId>),
    RigClosed { rig: String, word: String },
    Refused(String),
    RetryAt(i64),
    TownFull(usize),
    RigFull { rig: String, count: usize },
    HarnessFull { harness: String, count: usize },
    AccountFull { account: String, count: usize },
    Load { load: f64, max: f64 },
    Spacing(i64),
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitReason::Blocked(blockers) => {
                let names: Vec<&str> = blockers.iter().map(WorkId::as_str).collect();
                match names.as_slice() {
                    [] => f.write_str("it is blocked"),
                    names => write!(f, "it waits for {}", names.join(", ")),
                }
            }
            WaitReason::RigClosed { rig, word } => write!(f, "the rig {rig} is {word}"),
            WaitReason::Refused(reason) => f.write_str(reason),
            WaitReason::RetryAt(_) => f.write_str("its last start failed; it is retried later"),
            WaitReason::TownFull(count) => {
                let polecats = counted(*count, "polecat");
                write!(f, "the town has {polecats} at work, the maximum")
            }
            WaitReason::RigFull { rig, count } => {
                let polecats = counted(*count, "polecat");
                write!(f, "the rig {rig} has {polecats} at work, the maximum")
            }
            WaitReason::HarnessFull { harness, count } => match count {
                1 => write!(f, "1 agent runs {harness}, the maximum"),
                count => write!(f, "{count} agents run {harness}, the maximum"),
            },
            WaitReason::AccountFull { account, count } => match count {
                1 => write!(f, "1 agent uses the account {account}, the maximum"),
                count => write!(f, "{count} agents use the account {account}, the maximum"),
            },
            WaitReason::Load { load, max } => {
                write!(
                    f,
                    "the load per processor is {load:.1}, the maximum {max:.1}"
                )
            }
            WaitReason::Spacing(_) => f.write_str("another agent has just started"),
        }
    }
}

/// The assignments that start now, and the others with their reasons. Both are in the order of the
/// queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartPlan {
    pub starts: Vec<WorkId>,
    pub waits: Vec<(WorkId, WaitReason)>,
}

impl StartPlan {
    pub fn reason(&self, item: &WorkId) -> Option<&WaitReason> {
        let found = self.waits.iter().find(|(waiting, _)| waiting == item);
        found.map(|(_, reason)| reason)
    }

    /// Returns the end of the spacing for which an assignment waits.
    pub fn spacing_ends(&self) -> Option<i64> {
        let at = |reason: &WaitReason| match reason {
            WaitReason::Spacing(at) => Some(*at),
            _ => None,
        };
        self.waits.iter().filter_map(|(_, reason)| at(reason)).min()
    }
}

/// Returns the entries in the order in which they start: by priority, then by position.
pub fn ordered(queue: &[WaitingAssignment]) -> Vec<&WaitingAssignment> {
    let mut order: Vec<&WaitingAssignment> = queue.iter().collect();
    order.sort_by_key(|entry| (entry.priority, entry.number, entry.item.as_str()));
    order
}

/// Decides which assignments start. An assignment that waits does not hold up those behind it that
/// need other slots.
pub fn plan(facts: &ScheduleFacts<'_>) -> StartPlan {
    let mut slots = Slots::of(facts);
    let mut plan = StartPlan::default();
    for entry in ordered(facts.queue) {
        match slots.refuse(facts, entry) {
            Some(reason) => plan.waits.push((entry.item.clone(), reason)),
            None => {
                slots.take(facts, entry);
                plan.starts.push(entry.item.clone());
            }
        }
    }
    plan
}

/// Occupied slots.
struct Slots<'a> {
    polecats: usize,
    rigs: BTreeMap<&'a str, usize>,
    harnesses: BTreeMap<&'a str, usize>,
    accounts: BTreeMap<&'a str, usize>,
    last_start: Option<i64>,
}

impl<'a> Slots<'a> {
    fn of(facts: &ScheduleFacts<'a>) -> Self {
        let mut slots = Slots {
            polecats: 0,
            rigs: BTreeMap::new(),
            harnesses: BTreeMap::new(),
            accounts: BTreeMap::new(),
            last_start: facts.last_start,
        };
        for agent in facts.running {
            slots.count(
                agent.polecat_of.as_deref(),
                &agent.harness,
                agent.account.as_deref(),
            );
        }
        slots
    }

    fn count(&mut self, rig: Option<&'a str>, harness: &'a str, account: Option<&'a str>) {
        if let Some(rig) = rig {
            self.polecats += 1;
            *self.rigs.entry(rig).or_default() += 1;
        }
        *self.harnesses.entry(harness).or_default() += 1;
        if let Some(account) = account {
            *self.accounts.entry(account).or_default() += 1;
        }
    }

    fn take(&mut self, facts: &ScheduleFacts<'a>, entry: &'a WaitingAssignment) {
        self.count(Some(&entry.rig), &entry.harness, entry.account.as_deref());
        self.last_start = Some(facts.now);
    }

    /// Returns the reason why an entry cannot start. Reasons that only a person or other work can
    /// remove come first.
    fn refuse(&self, facts: &ScheduleFacts<'_>, entry: &WaitingAssignment) -> Option<WaitReason> {
        let limits = facts.limits;
        let used = |counts: &BTreeMap<&str, usize>, name: &str| {
            counts.get(name).copied().unwrap_or_default()
        };
        if entry.is_blocked || !entry.blockers.is_empty() {
            return Some(WaitReason::Blocked(entry.blockers.clone()));
        }
        let rig = entry.rig.clone();
        if let Some(word) = facts.closed_rigs.get(&rig) {
            let word = word.clone();
            return Some(WaitReason::RigClosed { rig, word });
        }
        if let Some(reason) = &entry.refused {
            return Some(WaitReason::Refused(reason.clone()));
        }
        if let Some(at) = entry.not_before.filter(|at| *at > facts.now) {
            return Some(WaitReason::RetryAt(at));
        }
        if self.polecats >= limits.polecats {
            return Some(WaitReason::TownFull(self.polecats));
        }
        let count = used(&self.rigs, &rig);
        if count >= limits.polecats_per_rig {
            return Some(WaitReason::RigFull { rig, count });
        }
        let harness = entry.harness.clone();
        let count = used(&self.harnesses, &harness);
        if limits
            .harnesses
            .get(&harness)
            .is_some_and(|most| count >= *most)
        {
            return Some(WaitReason::HarnessFull { harness, count });
        }
        if let Some(account) = entry.account.clone() {
            let count = used(&self.accounts, &account);
            if limits
                .accounts
                .get(&account)
                .is_some_and(|most| count >= *most)
            {
                return Some(WaitReason::AccountFull { account, count });
            }
        }
        if let (Some(load), Some(max)) = (facts.load, limits.max_load)
            && load >= max
        {
            return Some(WaitReason::Load { load, max });
        }
        let spaced = |last: i64| last.saturating_add(limits.start_spacing);
        let next = self.last_start.map(spaced);
        // A clock that was set back must not hold up the queue.
        let is_recent = self.last_start.is_some_and(|last| last <= facts.now);
        next.filter(|at| is_recent && *at > facts.now)
            .map(WaitReason::Spacing)
    }
}

/// Returns the number of seconds until a start that has failed this many times is retried.
pub fn retry_after(failures: u32) -> i64 {
    const FIRST: i64 = 30;
    const LONGEST: i64 = 30 * 60;
    let doubled = FIRST.checked_shl(failures.saturating_sub(1).min(16));
    doubled.unwrap_or(LONGEST).min(LONGEST)
}

/// Number of failed starts after which an escalation is raised.
pub const FAILURES_TO_ESCALATE: u32 = 3;

#[cfg(test)]
mod tests;
