//! Snapshot of a town, as a patrol sees it. Times are seconds since the epoch.

use super::{Leftover, RuleSettings};
use crate::Role;
use crate::record::Outcome;
use crate::state::{State, StateSource};

/// Facts about a town at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// An emergency stop of the whole town is in force. An emergency stop of a rig removes that
    /// rig's facts from the snapshot instead.
    pub is_stopped: bool,
    pub server: ServerFacts,
    pub agents: Vec<AgentFacts>,
    /// Items on hooks, and open items that a patrol took from an agent.
    pub items: Vec<ItemFacts>,
    pub merge_queues: Vec<MergeQueueFacts>,
    pub schedule: Option<WaitingFacts>,
    /// Deaths of the last minutes.
    pub deaths: Vec<AgentDeath>,
    /// Escalations that are due to be raised again, by id.
    pub escalations_due: Vec<String>,
    pub leftovers: Vec<LeftoverFacts>,
    /// Free disk space in bytes.
    pub free_bytes: Option<u64>,
}

impl Snapshot {
    pub(super) fn is_disk_low(&self, settings: &RuleSettings) -> bool {
        self.free_bytes.is_some_and(|free| free < settings.min_free)
    }
}

/// The town's tmux server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    pub is_alive: bool,
    /// Agents that were lost with a server and should be restored.
    pub lost: Vec<String>,
}

/// An agent with a container, or with an item on its hook.
#[derive(Clone, Debug)]
pub struct AgentFacts {
    pub address: String,
    pub role: Role,
    pub rig: Option<String>,
    pub presence: Presence,
    pub state: State,
    pub source: StateSource,
    pub since: Option<i64>,
    /// Tasks that still run after the agent's turn.
    pub background: u32,
    /// Start of the present session.
    pub started_at: Option<i64>,
    /// End of the last session, if the agent does not run.
    pub ended: Option<EndFacts>,
    pub signs: Signs,
    /// A person is attached, or has typed within the last minutes.
    pub is_attended: bool,
    /// A person started the program.
    pub is_adopted: bool,
    /// A process of `gt` is starting or stopping the agent, or assigning work to it.
    pub is_locked: bool,
    /// `gt` started it for a digest or an errand. It ends its session afterwards.
    pub is_on_demand: bool,
    pub respawn: RespawnFacts,
    /// Item on its hook.
    pub item: Option<String>,
    /// Its work is complete, and the item is still on its hook.
    pub is_finished: bool,
    pub queue: Option<QueueFacts>,
    pub limit: Option<LimitFacts>,
}

impl AgentFacts {
    /// Creates the facts of an agent that is alive and idle since `now`.
    pub fn idle(address: &str, role: Role, now: i64) -> Self {
        AgentFacts {
            address: address.to_owned(),
            role,
            rig: None,
            presence: Presence::Alive,
            state: State::Idle,
            source: StateSource::Hook,
            since: Some(now),
            background: 0,
            started_at: Some(now),
            ended: None,
            signs: Signs::default(),
            is_attended: false,
            is_adopted: false,
            is_locked: false,
            is_on_demand: false,
            respawn: RespawnFacts::default(),
            item: None,
            is_finished: false,
            queue: None,
            limit: None,
        }
    }

    /// Returns whether the agent works without a person: it may be nudged, and no person sees its
    /// questions. Tasks and free agents belong to a person.
    pub fn is_unattended(&self) -> bool {
        !matches!(self.role, Role::Task | Role::Agent | Role::Overseer)
            && !self.is_adopted
            && !self.is_attended
    }

    /// Returns whether no rule acts on the agent, regardless of its locks and its activity: it is
    /// alive and idle, and neither work nor a message waits for it.
    pub fn is_at_rest(&self) -> bool {
        self.presence == Presence::Alive
            && matches!(self.state, State::Idle | State::Done)
            && self.item.is_none()
            && self.queue.is_none()
            && !self.is_on_demand
    }

    /// Returns the time of the last observed activity.
    pub fn last_activity(&self) -> i64 {
        self.signs
            .printed_at
            .unwrap_or_default()
            .max(self.last_own_activity())
    }

    /// Returns the time of the last activity that only the agent itself can cause. Output may also
    /// be the echo of a message.
    pub(super) fn last_own_activity(&self) -> i64 {
        let signs = [self.signs.keepalive_at, self.signs.transcript_at];
        let times = signs.into_iter().chain([self.since, self.started_at]);
        times.flatten().max().unwrap_or_default()
    }
}

/// Whether an agent's process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Alive,
    /// Its container exists, and its process has ended.
    Dead,
    /// It has no container.
    Gone,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndFacts {
    pub at: i64,
    pub outcome: Outcome,
    /// Exit status or signal, in words.
    pub how: String,
    /// The journal has this end.
    pub is_recorded: bool,
    /// It went down with its tmux server.
    pub is_lost: bool,
}

/// Times of the last observed activity, by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Last output of its pane.
    pub printed_at: Option<i64>,
    /// Last `gt` command that the agent ran.
    pub keepalive_at: Option<i64>,
    /// Last change of its transcript.
    pub transcript_at: Option<i64>,
}

/// The respawn of an agent by the tmux hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RespawnFacts {
    /// The role asks for it.
    pub is_wanted: bool,
    /// The container will be respawned.
    pub is_armed: bool,
    /// Recent deaths.
    pub deaths: usize,
}

/// Messages that wait for an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    pub waiting: usize,
    pub oldest_at: i64,
    /// A process delivers them.
    pub has_deliverer: bool,
}

/// A usage limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitFacts {
    /// End of the limit, if the program named it.
    pub until: Option<i64>,
    /// The account, or another name that agents with a common limit share.
    pub account: String,
    /// The program continues by itself.
    pub continues: bool,
}

/// An item on a hook, or without a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFacts {
    pub id: String,
    pub rig: Option<String>,
    pub holder: Option<String>,
    /// Time since which it is on this hook.
    pub since: Option<i64>,
    /// The holder has a folder or a container.
    pub holder_exists: bool,
}

/// The merge queue of a rig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeQueueFacts {
    pub rig: String,
    pub waiting: usize,
    pub oldest_at: i64,
    /// A process merges.
    pub is_running: bool,
    /// Finished work is merged without a command.
    pub is_automatic: bool,
}

/// The assignments of the schedule that could start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingFacts {
    pub waiting: usize,
    pub oldest_at: i64,
    pub is_running: bool,
    pub is_paused: bool,
}

/// The death of an agent that had come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDeath {
    pub agent: String,
    pub at: i64,
}

/// A leftover of a killed process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftoverFacts {
    pub kind: Leftover,
    /// Path, container or agent.
    pub name: String,
    pub since: i64,
}
