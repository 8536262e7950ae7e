//! Memory of a patrol: attempts and back-off per rule and subject.
//!
//! The engine keeps it in a file, written before the actions of a round are carried out. A process
//! that is killed in between loses actions, which a later round repeats after the back-off, and
//! never runs one twice.

use super::rules;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds for which an entry of an unknown rule, as of another version, is kept.
const UNKNOWN_KEPT: i64 = 48 * 60 * 60;

/// Memory of a patrol. Times are seconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PatrolMemory {
    /// Entries by rule and subject.
    entries: BTreeMap<String, BTreeMap<String, RuleHistory>>,
    /// Starts of the last minute.
    pub(super) starts: Vec<i64>,
    /// End of the pause after a mass death.
    pub(super) held_until: i64,
    /// Items that were taken from one agent to be given to another.
    pub(super) reassigned: BTreeSet<String>,
    /// For each account, the time before which no other agent of it is told to continue.
    pub(super) accounts: BTreeMap<String, i64>,
}

/// The actions of one rule on one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleHistory {
    pub attempts: u32,
    pub last_at: i64,
    /// End of the back-off.
    pub not_before: i64,
    /// Number of restarts, which a sign of life does not reset.
    pub restarts: u32,
    /// The rule has escalated and leaves the subject alone.
    pub is_escalated: bool,
}

impl PatrolMemory {
    pub fn get(&self, rule: &str, subject: &str) -> Option<&RuleHistory> {
        self.entries.get(rule)?.get(subject)
    }

    pub(super) fn set_history(&mut self, rule: &str, subject: &str, entry: RuleHistory) {
        let of_rule = self.entries.entry(rule.to_owned()).or_default();
        of_rule.insert(subject.to_owned(), entry);
    }

    /// Returns whether an agent of the account may be told to continue now.
    pub(super) fn account_is_free(&self, account: &str, now: i64) -> bool {
        self.accounts.get(account).is_none_or(|until| now >= *until)
    }

    /// Returns the items that were taken from one agent and may not have reached another. The next
    /// snapshot must have facts about those that are open.
    pub fn reassigned(&self) -> impl Iterator<Item = &str> {
        self.reassigned.iter().map(String::as_str)
    }

    /// Keeps only these reassigned items. The others have reached an agent, or are finished.
    pub(super) fn retain_reassigned(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.reassigned.retain(|item| is_kept(item));
    }

    /// Drops entries whose last action is long ago. A clock that was set back must not silence a
    /// rule for longer than its longest back-off.
    pub(super) fn forget(&mut self, now: i64) {
        self.held_until = self.held_until.min(now + rules::LONGEST_HOLD);
        let is_held = |until: &i64| (now..=now + rules::LONGEST_HOLD).contains(until);
        self.accounts.retain(|_, until| is_held(until));
        for (name, entries) in &mut self.entries {
            let rule = rules::find(name);
            let keep = rule.map_or(UNKNOWN_KEPT, |rule| rule.forget);
            let longest = rule.map_or(0, |rule| rule.backoff.1);
            entries.retain(|_, entry| {
                if entry.last_at > now {
                    entry.last_at = now;
                    entry.not_before = entry.not_before.min(now + longest);
                }
                now - entry.last_at <= keep
            });
        }
        self.entries.retain(|_, entries| !entries.is_empty());
    }
}
