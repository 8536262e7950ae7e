//! Memory of the digests: the matters that each agent got, and the digest that is being delivered.

use super::{Digest, LONGEST_WAIT, Matter, row_of};
use crate::role::Role;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Memory of the digests. Times are seconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DigestMemory {
    /// Number of the last digest.
    pub(super) number: u64,
    /// Agents by address.
    pub(super) agents: BTreeMap<String, AgentMemory>,
}

/// Memory of one agent's digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentMemory {
    /// Matters that were delivered, with their revisions. Settled ones are forgotten.
    pub told: BTreeMap<String, u32>,
    /// The digest that is being delivered, or whose delivery was interrupted.
    pub pending: Option<Digest>,
    /// Earliest time of the next delivery.
    pub not_before: i64,
    /// Deliveries that failed in a row.
    pub failures: u32,
}

impl DigestMemory {
    pub fn of(&self, agent: &str) -> Option<&AgentMemory> {
        self.agents.get(agent)
    }

    /// Records that a digest has reached its agent.
    pub fn delivered(&mut self, digest: &Digest, role: Role, now: i64) {
        let known = self.agents.entry(digest.agent.clone()).or_default();
        let spacing = row_of(role).map_or(0, |row| row.spacing);
        *known = AgentMemory {
            told: std::mem::take(&mut known.told),
            not_before: now + spacing,
            ..AgentMemory::default()
        };
        let matters = digest.matters.iter();
        known.told.extend(matters.map(|(id, at)| (id.clone(), *at)));
    }

    /// Returns the agents that have got a digest.
    pub fn agents(&self) -> Vec<String> {
        self.agents.keys().cloned().collect()
    }

    /// Records that an agent ended before it read a digest: its open matters are delivered again.
    pub fn unread(&mut self, agent: &str) {
        if let Some(known) = self.agents.get_mut(agent) {
            known.told.clear();
        }
    }

    /// Records that a digest has not reached its agent. Returns the number of failures in a row.
    pub fn failed(&mut self, digest: &Digest, now: i64) -> u32 {
        let known = self.agents.entry(digest.agent.clone()).or_default();
        known.failures = known.failures.saturating_add(1);
        let wait = 60_i64 << known.failures.min(10);
        known.not_before = now + wait.min(LONGEST_WAIT);
        known.failures
    }

    /// Forgets settled matters. A clock that was set back does not silence an agent for longer than
    /// the longest wait.
    pub(super) fn retain(&mut self, matters: &[Matter], now: i64) {
        let open: BTreeSet<&str> = matters.iter().map(|matter| matter.id.as_str()).collect();
        for known in self.agents.values_mut() {
            known.told.retain(|id, _| open.contains(id.as_str()));
            known.not_before = known.not_before.min(now + LONGEST_WAIT);
            let is_open =
                |digest: &Digest| digest.matters.keys().any(|id| open.contains(id.as_str()));
            if !known.pending.as_ref().is_some_and(is_open) {
                known.pending = None;
            }
        }
        self.agents.retain(|_, known| {
            !known.told.is_empty() || known.pending.is_some() || known.not_before > now
        });
    }
}
