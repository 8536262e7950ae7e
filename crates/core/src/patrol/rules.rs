//! The table of patrol rules. Each row names one function, in the file of its topic.

mod deaths;
mod leftovers;
mod on_demand;
mod queues;
mod stuck;
mod unfinished;

#[cfg(test)]
mod tests;

use super::{ActionKind, AgentFacts, PatrolAction, PatrolMemory, RuleSettings, Snapshot};
use crate::escalation::Severity;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Maximum time for which starts are held back.
pub(super) const LONGEST_HOLD: i64 = HOUR;

/// Subject of rules about the town as a whole.
const TOWN: &str = "town";

/// One rule of the patrol.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "a row of a constant table, known by its name"
)]
pub struct PatrolRule {
    pub name: &'static str,
    /// Condition, evidence and action, in words.
    pub condition: &'static str,
    pub evidence: &'static str,
    pub action: &'static str,
    /// Seconds after the first action on a subject, and the longest wait. Waits double.
    pub backoff: (i64, i64),
    /// Maximum number of actions on a subject; 0 means no maximum.
    pub limit: fn(&RuleSettings) -> u32,
    /// Severity of the escalation at the limit, or of the rule's own; absent if it raises none.
    pub severity: Option<Severity>,
    /// Seconds after the last action after which attempts are forgotten.
    pub forget: i64,
    pub(super) find: fn(&RuleInput<'_>) -> Vec<RuleFinding>,
}

impl PatrolRule {
    /// Returns the back-off after this many actions.
    pub(super) fn wait(&self, attempts: u32, settings: &RuleSettings) -> i64 {
        let (first, longest) = self.backoff;
        let wait = first
            .checked_shl(attempts.saturating_sub(1).min(20))
            .map_or(longest, |wait| wait.min(longest));
        settings.at_speed(wait)
    }
}

/// Input of a rule.
pub(super) struct RuleInput<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) memory: &'a PatrolMemory,
    pub(super) settings: &'a RuleSettings,
    pub(super) now: i64,
}

impl RuleInput<'_> {
    /// Returns the seconds since a time, at least 0.
    fn age(&self, at: i64) -> i64 {
        (self.now - at).max(0)
    }

    /// Returns a fixed time at the speed of the settings.
    fn at_speed(&self, seconds: i64) -> i64 {
        self.settings.at_speed(seconds)
    }

    /// Returns whether the back-off of a rule for this subject has passed, so that a rule formats
    /// no texts that are then discarded. [`super::decide`] checks it again.
    fn is_due(&self, rule: &str, subject: &str) -> bool {
        let entry = self.memory.get(rule, subject);
        entry.is_none_or(|entry| !entry.is_escalated && self.now >= entry.not_before)
    }

    /// Returns whether the last action on a subject succeeded: the current problem began at least
    /// that many seconds after it. Attempts are then counted from 1 again.
    fn is_new_problem(&self, rule: &str, subject: &str, began: i64, margin: i64) -> bool {
        let entry = self.memory.get(rule, subject);
        let margin = self.at_speed(margin);
        entry.is_some_and(|entry| began > entry.last_at.saturating_add(margin))
    }
}

/// A condition that holds, and the action that it asks for.
pub(super) struct RuleFinding {
    pub(super) subject: String,
    pub(super) kind: ActionKind,
    pub(super) agent: Option<String>,
    pub(super) item: Option<String>,
    pub(super) rig: Option<String>,
    pub(super) text: Option<String>,
    pub(super) reason: String,
    pub(super) evidence: Vec<String>,
    /// Earlier attempts no longer count: start with the first step again.
    pub(super) begins_anew: bool,
    /// Take no further action on the subject.
    pub(super) is_last: bool,
    /// Account on which no other agent is told to continue until this time.
    pub(super) account: Option<(String, i64)>,
}

impl RuleFinding {
    fn new(kind: ActionKind, subject: impl Into<String>, reason: impl Into<String>) -> Self {
        RuleFinding {
            subject: subject.into(),
            kind,
            agent: None,
            item: None,
            rig: None,
            text: None,
            reason: reason.into(),
            evidence: Vec::new(),
            begins_anew: false,
            is_last: false,
            account: None,
        }
    }

    /// Creates a finding about an agent, which is also its subject.
    fn about(kind: ActionKind, agent: &AgentFacts, reason: impl Into<String>) -> Self {
        RuleFinding {
            agent: Some(agent.address.clone()),
            item: agent.item.clone(),
            rig: agent.rig.clone(),
            ..RuleFinding::new(kind, agent.address.clone(), reason)
        }
    }

    fn evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Counts attempts from 1 again if the last ones succeeded.
    fn anew(mut self, is_new: bool) -> Self {
        self.begins_anew = is_new;
        self
    }

    fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    pub(super) fn into_action(self, rule: &'static PatrolRule) -> PatrolAction {
        let raises = matches!(
            self.kind,
            ActionKind::Escalate | ActionKind::MassDeathAlarm | ActionKind::End
        );
        PatrolAction {
            rule: rule.name,
            kind: self.kind,
            subject: self.subject,
            agent: self.agent,
            item: self.item,
            rig: self.rig,
            text: self.text,
            severity: rule.severity.filter(|_| raises),
            reason: self.reason,
            evidence: self.evidence,
            attempt: 0,
            limit: 0,
            is_last: self.is_last,
        }
    }

    /// Returns the escalation after the last attempt, if the rule raises one.
    pub(super) fn into_escalation(self, rule: &'static PatrolRule) -> Option<PatrolAction> {
        rule.severity?;
        let tried = format!("earlier attempts failed: {}", self.kind.as_str());
        let finding = RuleFinding {
            kind: ActionKind::Escalate,
            text: None,
            ..self
        };
        Some(finding.evidence(tried).into_action(rule))
    }
}

/// Returns the row of a rule.
pub(super) fn find(name: &str) -> Option<&'static PatrolRule> {
    RULES.iter().find(|rule| rule.name == name)
}

fn unlimited(_: &RuleSettings) -> u32 {
    0
}

/// The rules, in the order in which they apply.
pub const RULES: &[PatrolRule] = &[
    PatrolRule {
        name: "server-died",
        condition: "agents went down with their tmux server",
        evidence: "the journal lists them as lost, or the server does not answer",
        action: "restore them from the last save (`restore = false` disables it)",
        backoff: (MINUTE, 10 * MINUTE),
        limit: |_| 3,
        severity: Some(Severity::Critical),
        forget: 6 * HOUR,
        find: deaths::server_died,
    },
    PatrolRule {
        name: "mass-death",
        condition: "several agents died within 30 seconds, while the tmux server kept running",
        evidence: "the agents and the times of their deaths",
        action: "raise one alarm and hold back starts for two minutes",
        backoff: (10 * MINUTE, 10 * MINUTE),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: DAY,
        find: deaths::mass_death,
    },
    PatrolRule {
        name: "unrecorded-death",
        condition: "an agent has ended, and the journal does not record it",
        evidence: "its pane has been dead or gone for half a minute",
        action: "record the end",
        backoff: (2 * MINUTE, 10 * MINUTE),
        limit: unlimited,
        severity: None,
        forget: HOUR,
        find: deaths::unrecorded,
    },
    PatrolRule {
        name: "low-disk",
        condition: "the disk of the town is nearly full",
        evidence: "the free space",
        action: "escalate, and start no agents",
        backoff: (4 * HOUR, 4 * HOUR),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: DAY,
        find: leftovers::low_disk,
    },
    PatrolRule {
        name: "crash-loop",
        condition: "an agent died too often and is no longer respawned",
        evidence: "its last exit and the number of deaths",
        action: "escalate",
        backoff: (DAY, DAY),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: 2 * DAY,
        find: deaths::crash_loop,
    },
    PatrolRule {
        name: "dead-agent",
        condition: "an agent that its role respawns is dead, and the tmux hook did not respawn it",
        evidence: "the delay of the respawn has passed",
        action: "respawn it into its conversation",
        backoff: (MINUTE, 10 * MINUTE),
        limit: |_| 5,
        severity: Some(Severity::High),
        forget: 2 * HOUR,
        find: deaths::dead_agent,
    },
    PatrolRule {
        name: "dead-polecat",
        condition: "a polecat with an item on its hook does not run",
        evidence: "the end of its session; it was not stopped on purpose",
        action: "resume its session, then reassign its item",
        backoff: (30, 10 * MINUTE),
        limit: |settings| settings.resumes + settings.reassigns,
        severity: Some(Severity::High),
        forget: DAY,
        find: deaths::dead_polecat,
    },
    PatrolRule {
        name: "unfinished-reassign",
        condition: "an item was taken from a dead polecat and not given to another one",
        evidence: "the item is open and on no hook",
        action: "reassign it",
        backoff: (30, 10 * MINUTE),
        limit: |_| 5,
        severity: Some(Severity::High),
        forget: DAY,
        find: deaths::unfinished_reassign,
    },
    PatrolRule {
        name: "absent-holder",
        condition: "an item is on the hook of an agent other than a polecat, and that agent does not exist or has crashed",
        evidence: "the holder has no folder, or its last session crashed an hour ago",
        action: "escalate",
        backoff: (DAY, DAY),
        limit: unlimited,
        severity: Some(Severity::Medium),
        forget: 2 * DAY,
        find: deaths::absent_holder,
    },
    PatrolRule {
        name: "overdue-boot",
        condition: "a session of boot, which gt started because of the deacon, exceeds its time limit",
        evidence: "the time since its start",
        action: "end its session and escalate",
        backoff: (5 * MINUTE, HOUR),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: DAY,
        find: on_demand::overdue_boot,
    },
    PatrolRule {
        name: "hung-start",
        condition: "an agent has been starting for too long",
        evidence: "no process of gt waits for it, and its screen has not changed for a minute",
        action: "restart it",
        backoff: (5 * MINUTE, 20 * MINUTE),
        limit: |_| 2,
        severity: Some(Severity::Medium),
        forget: 6 * HOUR,
        find: stuck::hung_start,
    },
    PatrolRule {
        name: "hung-agent",
        condition: "an agent is busy and shows no activity",
        evidence: "no output, keepalive or transcript entry, and none since the previous step",
        action: "nudge, then interrupt, then restart; for the deacon, boot is started before the restart",
        backoff: (5 * MINUTE, 5 * MINUTE),
        limit: |_| 3,
        severity: Some(Severity::High),
        forget: DAY,
        find: stuck::hung_agent,
    },
    PatrolRule {
        name: "limit-ended",
        condition: "the usage limit of an agent has ended",
        evidence: "five minutes after the time that its program named, or half an hour without one",
        action: "tell it to continue; agents of one account one after another",
        backoff: (10 * MINUTE, 2 * HOUR),
        limit: unlimited,
        severity: None,
        forget: 12 * HOUR,
        find: stuck::limit_ended,
    },
    PatrolRule {
        name: "failed-turn",
        condition: "the turn of an unattended agent failed",
        evidence: "its state and the reason",
        action: "tell it to continue",
        backoff: (2 * MINUTE, 30 * MINUTE),
        limit: |_| 5,
        severity: Some(Severity::Medium),
        forget: 6 * HOUR,
        find: unfinished::failed_turn,
    },
    PatrolRule {
        name: "unanswered-question",
        condition: "an unattended agent asks a question",
        evidence: "how long it has been waiting",
        action: "escalate",
        backoff: (4 * HOUR, 4 * HOUR),
        limit: unlimited,
        severity: Some(Severity::Medium),
        forget: DAY,
        find: unfinished::unanswered_question,
    },
    PatrolRule {
        name: "not-handed-in",
        condition: "an idle agent has completed its work and not submitted it",
        evidence: "its steps are done, and the item is on its hook",
        action: "nudge it to run `gt done`",
        backoff: (5 * MINUTE, HOUR),
        limit: |_| 4,
        severity: Some(Severity::Medium),
        forget: 12 * HOUR,
        find: unfinished::not_handed_in,
    },
    PatrolRule {
        name: "finished-round",
        condition: "an agent that was started on demand has finished and has not ended its session",
        evidence: "how long it has been idle; no work and no message waits for it",
        action: "end its session",
        backoff: (5 * MINUTE, HOUR),
        limit: unlimited,
        severity: None,
        forget: HOUR,
        find: on_demand::finished_round,
    },
    PatrolRule {
        name: "idle-with-work",
        condition: "an agent is idle with work on its hook",
        evidence: "how long it has been idle; no message waits for it",
        action: "nudge it",
        backoff: (5 * MINUTE, HOUR),
        limit: |_| 4,
        severity: Some(Severity::Medium),
        forget: 12 * HOUR,
        find: unfinished::idle_with_work,
    },
    PatrolRule {
        name: "old-message",
        condition: "a message waits too long for a running agent",
        evidence: "its age; no process delivers it",
        action: "deliver it",
        backoff: (5 * MINUTE, HOUR),
        limit: |_| 6,
        severity: Some(Severity::Low),
        forget: 12 * HOUR,
        find: queues::old_message,
    },
    PatrolRule {
        name: "old-merge",
        condition: "a merge waits too long",
        evidence: "its age; no process merges",
        action: "run the merge queue",
        backoff: (5 * MINUTE, HOUR),
        limit: |_| 4,
        severity: Some(Severity::High),
        forget: 6 * HOUR,
        find: queues::old_merge,
    },
    PatrolRule {
        name: "old-schedule",
        condition: "an assignment that could start waits in the schedule",
        evidence: "its age; no process starts assignments",
        action: "run the scheduler",
        backoff: (MINUTE, 5 * MINUTE),
        limit: unlimited,
        severity: None,
        forget: 10 * MINUTE,
        find: queues::old_schedule,
    },
    PatrolRule {
        name: "escalation-due",
        condition: "an escalation is open and not acknowledged",
        evidence: "its interval has passed",
        action: "raise it again",
        backoff: (5 * MINUTE, 5 * MINUTE),
        limit: unlimited,
        severity: None,
        forget: HOUR,
        find: queues::escalation_due,
    },
    PatrolRule {
        name: "zombie-container",
        condition: "a polecat, a dog or an agent started on demand is dead and has no work",
        evidence: "the time since its death",
        action: "remove the container",
        backoff: (HOUR, DAY),
        limit: |_| 3,
        severity: None,
        forget: 2 * DAY,
        find: leftovers::zombie_container,
    },
    PatrolRule {
        name: "leftover",
        condition: "a killed process left a process, a lock, a claim or a worktree",
        evidence: "its age; its owner has ended",
        action: "remove it, without losing work",
        backoff: (HOUR, DAY),
        limit: |_| 3,
        severity: Some(Severity::Low),
        forget: 2 * DAY,
        find: leftovers::leftover,
    },
];

/// Returns a duration in words: `45 s`, `12 min`, `3 h`.
fn span(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / MINUTE),
        _ => format!("{} h", seconds / HOUR),
    }
}
