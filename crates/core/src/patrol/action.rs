//! Actions of a patrol.

use crate::escalation::Severity;
use serde::Serialize;

/// One action, with the rule that requests it and the observed facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PatrolAction {
    pub rule: &'static str,
    pub kind: ActionKind,
    /// Key of the back-off: an agent, an item, a rig, or `town`.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    /// Message for the agent, or of the escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Severity of an escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The reason, for people.
    pub reason: String,
    /// The observed facts.
    pub evidence: Vec<String>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Maximum number of attempts; 0 means no maximum.
    pub limit: u32,
    /// The rule takes no further action on the subject after this one.
    #[serde(skip)]
    pub(super) is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    /// Write ended sessions to the journal.
    Record,
    /// Respawn a dead agent, because its role says so.
    Respawn,
    /// Start the holder of an item again, in its conversation if it has one.
    Resume,
    /// Give the item of a dead polecat to another.
    Reassign,
    /// Send the agent a message.
    Nudge,
    /// Stop the agent's turn.
    Interrupt,
    /// Stop the agent and start it again in its conversation.
    Restart,
    /// End the session of an agent that was started on demand.
    End,
    /// Deliver waiting messages.
    Redeliver,
    RunMergeQueue,
    RunScheduler,
    Clean(Leftover),
    Escalate,
    /// Report a mass death and hold back starts.
    MassDeathAlarm,
    /// Bring back the agents that went down with the tmux server.
    RestoreServer,
    ResumeAfterLimit,
    /// Raise an open escalation again.
    RaiseAgain,
}

/// Kind of a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leftover {
    /// Container of a dead agent without work.
    Container,
    /// Process that outlived its container.
    Process,
    /// Lock file of a git process that was killed.
    Lock,
    /// Claim of a process that has ended.
    Claim,
    /// Worktree of a polecat that is not used.
    Worktree,
}

impl Leftover {
    pub const ALL: [Leftover; 5] = [
        Leftover::Container,
        Leftover::Process,
        Leftover::Lock,
        Leftover::Claim,
        Leftover::Worktree,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Leftover::Container => "container",
            Leftover::Process => "process",
            Leftover::Lock => "lock",
            Leftover::Claim => "claim",
            Leftover::Worktree => "worktree",
        }
    }
}

impl ActionKind {
    /// Returns the word in events, JSON and the log.
    pub fn as_str(self) -> &'static str {
        match self {
            ActionKind::Record => "record",
            ActionKind::Respawn => "respawn",
            ActionKind::Resume => "resume",
            ActionKind::Reassign => "reassign",
            ActionKind::Nudge => "nudge",
            ActionKind::Interrupt => "interrupt",
            ActionKind::Restart => "restart",
            ActionKind::End => "end",
            ActionKind::Redeliver => "redeliver",
            ActionKind::RunMergeQueue => "run-merge-queue",
            ActionKind::RunScheduler => "run-scheduler",
            ActionKind::Clean(Leftover::Container) => "clean-container",
            ActionKind::Clean(Leftover::Process) => "clean-process",
            ActionKind::Clean(Leftover::Lock) => "clean-lock",
            ActionKind::Clean(Leftover::Claim) => "clean-claim",
            ActionKind::Clean(Leftover::Worktree) => "clean-worktree",
            ActionKind::Escalate => "escalate",
            ActionKind::MassDeathAlarm => "mass-death-alarm",
            ActionKind::RestoreServer => "restore-server",
            ActionKind::ResumeAfterLimit => "resume-after-limit",
            ActionKind::RaiseAgain => "raise-again",
        }
    }

    /// Returns whether the action starts one agent program. A restored server counts as one action
    /// and has its own limit.
    pub fn starts_agents(self) -> bool {
        matches!(
            self,
            ActionKind::Respawn | ActionKind::Resume | ActionKind::Reassign | ActionKind::Restart
        )
    }
}
