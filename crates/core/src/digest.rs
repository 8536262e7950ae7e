//! Digests: the matters that a role agent has to decide, in one message.
//!
//! A [`Matter`] is an open escalation, or a merge that waits for a decision. [`RECIPIENTS`] is the
//! table of roles: the matters that each takes, the time between two digests and their size. The
//! mayor has no row, because it gets every escalation as mail. [`plan`] decides which agents get a
//! digest now. A matter is in one digest of one agent; it comes again only if it is raised again.
//!
//! The engine collects matters and delivers digests (`town::supervision::digest`). [`DigestMemory`] is
//! written before a delivery and after it, so a killed process repeats a digest under its id and
//! loses none.

mod memory;

#[cfg(test)]
mod tests;

pub use memory::{AgentMemory, DigestMemory};

use crate::caller::Caller;
use crate::escalation::Severity;
use crate::identity::Identity;
use crate::role::{Role, RoleScope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const MINUTE: i64 = 60;
/// Longest wait after failed deliveries.
const LONGEST_WAIT: i64 = 60 * MINUTE;
/// Number of failed deliveries after which an escalation is raised.
pub const MAX_FAILURES: u32 = 3;
/// Source of the escalation about a role agent that cannot be started. No role agent takes it.
pub const SOURCE: &str = "wake";

/// The kind of a matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatterKind {
    Escalation,
    /// An entry of the merge queue that is in conflict or has failed, and that no agent repairs.
    Merge,
}

/// Something that needs judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matter {
    pub kind: MatterKind,
    /// Id of the escalation or of the merge.
    pub id: String,
    /// Number of raises or attempts. A higher number puts the matter into another digest.
    pub revision: u32,
    pub severity: Severity,
    /// The component that reports it: `patrol`, `merge`, `done`.
    pub source: String,
    /// Deduplication key of the escalation.
    pub key: Option<String>,
    /// The actor that raised it.
    pub raised_by: String,
    /// The agent that it is about, or else the one that raised it.
    pub agent: Option<Identity>,
    pub item: Option<String>,
    /// Rig of the agent or of the item.
    pub rig: Option<String>,
    /// The matter in one line.
    pub line: String,
}

impl Matter {
    fn is_by_gt(&self) -> bool {
        self.raised_by == Caller::Gt.as_str()
    }

    fn is_about(&self, roles: &[Role]) -> bool {
        self.agent
            .as_ref()
            .is_some_and(|agent| roles.contains(&agent.role()))
    }

    /// Returns the role agent that decides it. Matters without one go to the mayor and to people.
    pub fn recipient(&self) -> Option<Identity> {
        // A role agent decides neither about money nor about itself.
        if ["budget", SOURCE].contains(&self.source.as_str()) {
            return None;
        }
        let row = RECIPIENTS.iter().find(|row| (row.takes)(self))?;
        let recipient = match row.role.scope() {
            RoleScope::Rig => Identity::of_rig(row.role, self.rig.clone()?),
            _ => Identity::town(row.role),
        };
        let is_own = self.raised_by == recipient.address();
        (!is_own && self.agent.as_ref() != Some(&recipient)).then_some(recipient)
    }

    /// Returns the line of a digest.
    fn text(&self) -> String {
        let mut facts = vec![self.severity.as_str().to_owned()];
        if self.revision > 1 && self.kind == MatterKind::Escalation {
            facts.push(format!("raised {} times", self.revision));
        }
        facts.extend(self.agent.as_ref().map(|agent| format!("agent {agent}")));
        facts.extend(self.item.as_ref().map(|item| format!("item {item}")));
        format!("- {} ({}): {}", self.id, facts.join(", "), self.line)
    }
}

/// A row of the table: the matters of a role, and the limits of its digests.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "a row of a constant table, known by its role"
)]
pub struct Recipient {
    pub role: Role,
    /// The matters that it takes, in words.
    pub matters: &'static str,
    /// Minimum severity for which an agent that does not run is started. Others wait until it runs.
    pub starts_at: Severity,
    /// Minimum number of seconds between two digests.
    pub spacing: i64,
    /// Maximum number of matters in a digest; the others are in the next one.
    pub most: usize,
    takes: fn(&Matter) -> bool,
}

/// The roles that get digests. A matter goes to the first row that takes it.
pub const RECIPIENTS: &[Recipient] = &[
    Recipient {
        role: Role::Boot,
        matters: "escalations by gt about the deacon: it hangs, or keeps crashing",
        starts_at: Severity::Medium,
        spacing: 10 * MINUTE,
        most: 5,
        takes: |matter| matter.is_by_gt() && matter.is_about(&[Role::Deacon]),
    },
    Recipient {
        role: Role::Refinery,
        matters: "merges of its rig whose repairs failed, conflicts that no agent repairs, and a stalled merge queue",
        starts_at: Severity::Medium,
        spacing: 5 * MINUTE,
        most: 20,
        takes: |matter| {
            let is_queue = |key: &String| key.starts_with("patrol:old-merge:");
            let is_merge = matter.kind == MatterKind::Merge || matter.source == "merge";
            matter.rig.is_some() && (is_merge || matter.key.as_ref().is_some_and(is_queue))
        },
    },
    Recipient {
        role: Role::Deacon,
        matters: "escalations by gt about the town, the mayor, witnesses, refineries and dogs",
        starts_at: Severity::Medium,
        spacing: 10 * MINUTE,
        most: 20,
        takes: |matter| {
            const OWN: [Role; 4] = [Role::Mayor, Role::Witness, Role::Refinery, Role::Dog];
            let is_of_town = matter.rig.is_none() && matter.agent.is_none();
            matter.is_by_gt() && (is_of_town || matter.is_about(&OWN))
        },
    },
    Recipient {
        role: Role::Witness,
        matters: "escalations about polecats and items of its rig: help that a polecat asked for, deaths and hangs that the patrol could not resolve, unanswered questions",
        starts_at: Severity::Medium,
        spacing: 5 * MINUTE,
        most: 20,
        takes: |matter| {
            let is_polecat = matter.agent.is_none() || matter.is_about(&[Role::Polecat]);
            let is_of_work = matter.agent.is_some() || matter.item.is_some();
            matter.rig.is_some() && is_polecat && is_of_work
        },
    },
];

/// Returns the row of a role.
pub fn row_of(role: Role) -> Option<&'static Recipient> {
    RECIPIENTS.iter().find(|row| row.role == role)
}

/// Whether a role agent can get a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It runs: a message reaches it.
    Running,
    /// It does not run, and its role is started on demand.
    Startable,
    /// It is being started or stopped, was given up after crashes, is not started on demand, or an
    /// emergency stop or a parked rig forbids its start.
    Unavailable,
}

/// A digest for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// `dg-12`: the same for every delivery of this digest.
    pub id: String,
    pub agent: String,
    /// The matters, with their revisions.
    pub matters: BTreeMap<String, u32>,
    pub text: String,
}

/// Returns the digests that are due, in the order of their agents, and records them as pending. A
/// digest that was pending before is returned again unchanged, unless its matters are settled.
pub fn plan(
    matters: &[Matter],
    readiness: impl Fn(&Identity) -> Readiness,
    memory: &mut DigestMemory,
    now: i64,
) -> Vec<Digest> {
    memory.retain(matters, now);
    let mut by_agent: BTreeMap<String, (Identity, Vec<&Matter>)> = BTreeMap::new();
    for matter in matters {
        if let Some(agent) = matter.recipient() {
            let entry = by_agent.entry(agent.address());
            entry.or_insert_with(|| (agent, Vec::new())).1.push(matter);
        }
    }
    let mut due = Vec::new();
    for (address, (agent, matters)) in by_agent {
        let Some(row) = row_of(agent.role()) else {
            continue;
        };
        // An agent without a digest is not remembered.
        let known = memory.agents.get(&address).cloned().unwrap_or_default();
        let readiness = readiness(&agent);
        if readiness == Readiness::Unavailable || now < known.not_before {
            continue;
        }
        if let Some(pending) = known.pending {
            due.push(pending);
            continue;
        }
        let is_new = |matter: &&&Matter| known.told.get(&matter.id) != Some(&matter.revision);
        let mut new: Vec<&Matter> = matters.iter().filter(is_new).copied().collect();
        let is_worth = |matter: &&Matter| matter.severity >= row.starts_at;
        if new.is_empty() || (readiness == Readiness::Startable && !new.iter().any(is_worth)) {
            continue;
        }
        new.sort_by_key(|matter| (std::cmp::Reverse(matter.severity), &matter.id));
        let left = new.len().saturating_sub(row.most);
        new.truncate(row.most);
        memory.number += 1;
        let id = format!("dg-{}", memory.number);
        let digest = Digest {
            text: text(&id, &new, left),
            id,
            agent: address.clone(),
            matters: new.iter().map(|it| (it.id.clone(), it.revision)).collect(),
        };
        memory.agents.entry(address).or_default().pending = Some(digest.clone());
        due.push(digest);
    }
    due
}

/// Returns the matters of an agent, the most severe first, as a section of its priming text.
pub fn overview(agent: &Identity, matters: &[Matter]) -> Option<String> {
    let row = row_of(agent.role())?;
    let is_its = |matter: &&Matter| matter.recipient().as_ref() == Some(agent);
    let mut its: Vec<&Matter> = matters.iter().filter(is_its).collect();
    its.sort_by_key(|matter| (std::cmp::Reverse(matter.severity), &matter.id));
    let left = its.len().saturating_sub(row.most);
    its.truncate(row.most);
    (!its.is_empty()).then(|| lines(&its, left))
}

fn text(id: &str, matters: &[&Matter], left: usize) -> String {
    let count = match matters.len() + left {
        1 => "1 matter needs your decision".to_owned(),
        count => format!("{count} matters need your decision"),
    };
    format!(
        "Digest {id}: {count}.\n{}\nIf you have seen {id} before, it was repeated after a crash of gt: ignore it. When \
         nothing is left to decide, run `gt done --exit`.",
        lines(matters, left)
    )
}

fn lines(matters: &[&Matter], left: usize) -> String {
    let mut lines: Vec<String> = matters.iter().map(|matter| matter.text()).collect();
    if left > 0 {
        lines.push(format!("- and {left} more, which follow later"));
    }
    let has = |kind| matters.iter().any(|matter| matter.kind == kind);
    if has(MatterKind::Escalation) {
        lines.push(
            "`gt escalate show ID` shows an escalation. `gt escalate ack ID` says that you deal with it, \
             `gt escalate close ID --reason TEXT` that it is settled."
                .to_owned(),
        );
    }
    if has(MatterKind::Merge) {
        lines.push("`gt mq status ID` shows a merge and why it failed.".to_owned());
    }
    lines.join("\n")
}
