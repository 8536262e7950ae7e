//! The table of patrol rules. Each row names one function, in the file of its topic.

mod deaths;
mod leftovers;
mod on_demand;
mod queues;
mod stuck;
mod unfinished;

#[cfg(test)]
mod tests;

use super::{Action, ActionKind, AgentFacts, Memory, Settings, Snapshot};
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
pub struct Rule {
    pub name: &'static str,
    /// Condition, evidence and action, in words.
    pub condition: &'static str,
    pub evidence: &'static str,
    pub action: &'static str,
    /// Seconds after the first action on a subject, and the longest wait. Waits double.
    pub backoff: (i64, i64),
    /// Maximum number of actions on a subject; 0 means no maximum.
    pub limit: fn(&Settings) -> u32,
    /// Severity of the escalation at the limit, or of the rule's own; absent if it raises none.
    pub severity: Option<Severity>,
    /// Seconds after the last action after which attempts are forgotten.
    pub forget: i64,
    pub(super) find: fn(&Scene<'_>) -> Vec<Finding>,
}

impl Rule {
    /// Returns the back-off after this many actions.
    pub(super) fn wait(&self, attempts: u32, settings: &Settings) -> i64 {
        let (first, longest) = self.backoff;
        let wait = first
            .checked_shl(attempts.saturating_sub(1).min(20))
            .map_or(longest, |wait| wait.min(longest));
        settings.at_speed(wait)
    }
}

/// Input of a rule.
pub(super) struct Scene<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) memory: &'a Memory,
    pub(super) settings: &'a Settings,
    pub(super) now: i64,
}

impl Scene<'_> {
    /// Returns the seconds since a time, at least 0.
    fn age(&self, at: i64) -> i64 {
        (self.now - at).max(0)
    }

    /// Returns a fixed time at the speed of the settings.
    fn at_speed(&self, seconds: i64) -> i64 {
        self.settings.at_speed(seconds)
    }

    /// Returns whether the back-off of a rule for this subject has passed, so that a rule builds no
    /// texts in vain. [`super::decide`] checks it again.
    fn is_due(&self, rule: &str, subject: &str) -> bool {
        let entry = self.memory.get(rule, subject);
        entry.is_none_or(|entry| !entry.is_escalated && self.now >= entry.not_before)
    }

    /// Returns whether the last action on a subject had its effect, because the present trouble
    /// began that many seconds later. Attempts are then counted from the first again.
    fn is_new_trouble(&self, rule: &str, subject: &str, began: i64, margin: i64) -> bool {
        let entry = self.memory.get(rule, subject);
        let margin = self.at_speed(margin);
        entry.is_some_and(|entry| began > entry.last_at.saturating_add(margin))
    }
}

/// A condition that holds, and the action that it asks for.
pub(super) struct Finding {
    pub(super) subject: String,
    pub(super) kind: ActionKind,
    pub(super) agent: Option<String>,
    pub(super) item: Option<String>,
    pub(super) rig: Option<String>,
    pub(super) text: Option<String>,
    pub(super) reason: String,
    pub(super) evidence: Vec<String>,
    /// The evidence of earlier attempts is gone: count from the first step again.
    pub(super) begins_anew: bool,
    /// Leave the subject alone afterwards.
    pub(super) is_last: bool,
    /// Account that stays untouched until this time.
    pub(super) account: Option<(String, i64)>,
}

impl Finding {
    fn new(kind: ActionKind, subject: impl Into<String>, reason: impl Into<String>) -> Self {
        Finding {
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
        Finding {
            agent: Some(agent.address.clone()),
            item: agent.item.clone(),
            rig: agent.rig.clone(),
            ..Finding::new(kind, agent.address.clone(), reason)
        }
    }

    fn evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Counts attempts from the first again, if the last ones had their effect.
    fn anew(mut self, is_new: bool) -> Self {
        self.begins_anew = is_new;
        self
    }

    fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    pub(super) fn into_action(self, rule: &'static Rule) -> Action {
        let raises = matches!(
            self.kind,
            ActionKind::Escalate | ActionKind::MassDeathAlarm | ActionKind::End
        );
        Action {
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
    pub(super) fn into_escalation(self, rule: &'static Rule) -> Option<Action> {
        rule.severity?;
        let tried = format!("tried before without success: {}", self.kind.as_str());
        let finding = Finding {
            kind: ActionKind::Escalate,
            text: None,
            ..self
        };
        Some(finding.evidence(tried).into_action(rule))
    }
}

/// Returns the row of a rule.
pub(super) fn find(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

fn unlimited(_: &Settings) -> u32 {
    0
}

/// The rules, in the order in which they apply.
pub const RULES: &[Rule] = &[
    Rule {
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
    Rule {
        name: "mass-death",
        condition: "several agents died within 30 seconds, and the server lives",
        evidence: "the agents and the times of their deaths",
        action: "raise one alarm and hold back starts for two minutes",
        backoff: (10 * MINUTE, 10 * MINUTE),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: DAY,
        find: deaths::mass_death,
    },
    Rule {
        name: "unrecorded-death",
        condition: "an agent has ended, and the journal lacks its end",
        evidence: "its pane is dead or gone for half a minute",
        action: "record the end",
        backoff: (2 * MINUTE, 10 * MINUTE),
        limit: unlimited,
        severity: None,
        forget: HOUR,
        find: deaths::unrecorded,
    },
    Rule {
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
    Rule {
        name: "crash-loop",
        condition: "an agent died too often and is not respawned any more",
        evidence: "its last exit and the number of deaths",
        action: "escalate",
        backoff: (DAY, DAY),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: 2 * DAY,
        find: deaths::crash_loop,
    },
    Rule {
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
    Rule {
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
    Rule {
        name: "unfinished-reassign",
        condition: "an item was taken from a dead polecat and reached no other",
        evidence: "the item is open and on no hook",
        action: "reassign it",
        backoff: (30, 10 * MINUTE),
        limit: |_| 5,
        severity: Some(Severity::High),
        forget: DAY,
        find: deaths::unfinished_reassign,
    },
    Rule {
        name: "absent-holder",
        condition: "an item is on the hook of an agent that is no polecat and does not exist or has crashed",
        evidence: "the holder has no folder, or its last session crashed an hour ago",
        action: "escalate",
        backoff: (DAY, DAY),
        limit: unlimited,
        severity: Some(Severity::Medium),
        forget: 2 * DAY,
        find: deaths::absent_holder,
    },
    Rule {
        name: "overdue-boot",
        condition: "boot, which gt started to look after the deacon, does not come to an end",
        evidence: "the time since its start",
        action: "end its session and escalate",
        backoff: (5 * MINUTE, HOUR),
        limit: unlimited,
        severity: Some(Severity::High),
        forget: DAY,
        find: on_demand::overdue_boot,
    },
    Rule {
        name: "hung-start",
        condition: "an agent is starting for too long",
        evidence: "no process of gt waits for it, and its screen has not changed for a minute",
        action: "restart it",
        backoff: (5 * MINUTE, 20 * MINUTE),
        limit: |_| 2,
        severity: Some(Severity::Medium),
        forget: 6 * HOUR,
        find: stuck::hung_start,
    },
    Rule {
        name: "hung-agent",
        condition: "an agent works and gives no sign of life",
        evidence: "no output, keepalive or transcript; and none since the step before",
        action: "nudge, then interrupt, then restart; for the deacon, boot is asked before the restart",
        backoff: (5 * MINUTE, 5 * MINUTE),
        limit: |_| 3,
        severity: Some(Severity::High),
        forget: DAY,
        find: stuck::hung_agent,
    },
    Rule {
        name: "limit-ended",
        condition: "the usage limit of an agent has ended",
        evidence: "five minutes after the time that its program named, or half an hour without one",
        action: "continue it; agents of one account one after another",
        backoff: (10 * MINUTE, 2 * HOUR),
        limit: unlimited,
        severity: None,
        forget: 12 * HOUR,
        find: stuck::limit_ended,
    },
    Rule {
        name: "failed-turn",
        condition: "the turn of an unattended agent failed",
        evidence: "its state and the reason",
        action: "ask it to go on",
        backoff: (2 * MINUTE, 30 * MINUTE),
        limit: |_| 5,
        severity: Some(Severity::Medium),
        forget: 6 * HOUR,
        find: unfinished::failed_turn,
    },
    Rule {
        name: "unanswered-question",
        condition: "an unattended agent asks a question",
        evidence: "the time since which it waits",
        action: "escalate",
        backoff: (4 * HOUR, 4 * HOUR),
        limit: unlimited,
        severity: Some(Severity::Medium),
        forget: DAY,
        find: unfinished::unanswered_question,
    },
    Rule {
        name: "not-handed-in",
        condition: "an idle agent has completed its work and not handed it in",
        evidence: "its steps are done, and the item is on its hook",
        action: "nudge it to run `gt done`",
        backoff: (5 * MINUTE, HOUR),
        limit: |_| 4,
        severity: Some(Severity::Medium),
        forget: 12 * HOUR,
        find: unfinished::not_handed_in,
    },
    Rule {
        name: "finished-round",
        condition: "an agent that was started on demand has finished and not ended its session",
        evidence: "the time since which it is idle; no work and no message waits for it",
        action: "end its session",
        backoff: (5 * MINUTE, HOUR),
        limit: unlimited,
        severity: None,
        forget: HOUR,
        find: on_demand::finished_round,
    },
    Rule {
        name: "idle-with-work",
        condition: "an agent is idle with work on its hook",
        evidence: "the time since which it is idle; no message waits for it",
        action: "nudge it",
        backoff: (5 * MINUTE, HOUR),
        limit: |_| 4,
        severity: Some(Severity::Medium),
        forget: 12 * HOUR,
        find: unfinished::idle_with_work,
    },
    Rule {
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
    Rule {
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
    Rule {
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
    Rule {
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
    Rule {
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
    Rule {
        name: "leftover",
        condition: "a killed process left a process, a lock, a claim or a worktree",
        evidence: "its age; its owner has ended",
        action: "remove it without loss of work",
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
