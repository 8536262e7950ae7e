//! The data that the board shows. The caller provides it; the board never reads it.

use gt_core::card::{Card, CardServer};
use gt_core::escalation::Severity;
use gt_core::merge::MergeStatus;
use gt_core::work::WorkId;
use std::collections::BTreeMap;

/// A complete snapshot of the town. A newer one replaces it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoardFacts {
    pub town: String,
    /// The user of the board, as written in assignees; for the filter "mine".
    pub me: Option<String>,
    /// The names of all projects. The cards of all projects are present, whichever is shown.
    pub projects: Vec<String>,
    pub cards: Vec<Card>,
    /// The escalations that are not closed, the most urgent first.
    pub escalations: Vec<EscalationFacts>,
    /// The emergency stops in force, that of the town first.
    pub stops: Vec<StopFacts>,
    /// The cost of today's sessions, if known.
    pub spent_today: Option<SpentToday>,
    /// The entries of the merge queue, in the order of merging.
    pub merges: Vec<MergeFacts>,
    /// The addresses of the crew, running or not.
    pub crew: Vec<String>,
    /// The addresses of agents that went down with their tmux server and can be restored.
    pub lost: Vec<String>,
    /// Errors while the data was collected, for a line at the bottom.
    pub warnings: Vec<String>,
}

/// The cost of a day in US dollars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpentToday {
    pub all: f64,
    pub by_project: BTreeMap<String, f64>,
}

/// An escalation that is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscalationFacts {
    pub id: WorkId,
    pub severity: Severity,
    /// The agent that it is about, or else the actor that raised it.
    pub who: String,
    /// The item that it is about.
    pub item: Option<WorkId>,
    pub message: String,
    /// Seconds since the epoch.
    pub since: i64,
    /// How often its cause occurred.
    pub count: u32,
    pub is_acknowledged: bool,
}

/// An entry of the merge queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeFacts {
    pub id: WorkId,
    pub item: WorkId,
    pub rig: String,
    pub branch: String,
    pub worker: String,
    pub status: MergeStatus,
    /// Why it is in conflict or has failed.
    pub reason: Option<String>,
    pub files: Vec<String>,
    pub attempts: u32,
    /// The item that repairs it.
    pub repair: Option<WorkId>,
    /// Its last change, in seconds since the epoch.
    pub since: i64,
}

/// The fields of an item that the form changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemFields {
    pub title: String,
    pub description: String,
    pub priority: u8,
    pub kind: String,
    pub labels: Vec<String>,
    /// The ids of the items that it depends on.
    pub blockers: Vec<String>,
}

/// How far the branch of a task is behind its base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BehindFacts {
    pub base: String,
    pub behind: u32,
    /// A merge is in progress in the worktree.
    pub merging: bool,
}

/// An emergency stop in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopFacts {
    /// The rig that is stopped; `None` for the whole town.
    pub rig: Option<String>,
    pub by: String,
    pub reason: Option<String>,
    /// Seconds since the epoch, if known.
    pub since: Option<i64>,
}

impl BoardFacts {
    /// Returns the escalations that are not acknowledged.
    pub(crate) fn open_escalations(&self) -> impl Iterator<Item = &EscalationFacts> {
        self.escalations.iter().filter(|it| !it.is_acknowledged)
    }

    /// Returns the stop of the town, or of a rig.
    pub(crate) fn stop_of(&self, rig: Option<&str>) -> Option<&StopFacts> {
        self.stops.iter().find(|stop| stop.rig.as_deref() == rig)
    }
}

/// The question of an agent, as read from its screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    /// The label and the text of each option.
    pub options: Vec<(String, String)>,
    /// Identifies the question that an answer is for.
    pub fingerprint: String,
}

/// The screen of the agent in view: lines with the terminal's colour sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentScreen {
    pub id: Option<WorkId>,
    pub lines: Vec<String>,
}

/// The tabs of the detail view, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tab {
    Task,
    Terminal,
    Diff,
    Events,
    Windows,
    Chain,
}

impl Tab {
    pub const ALL: [Tab; 6] = [
        Tab::Task,
        Tab::Terminal,
        Tab::Diff,
        Tab::Events,
        Tab::Windows,
        Tab::Chain,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Tab::Task => "Task",
            Tab::Terminal => "Terminal",
            Tab::Diff => "Diff",
            Tab::Events => "Events",
            Tab::Windows => "Windows",
            Tab::Chain => "Chain",
        }
    }
}

/// The content of one tab for one item. [`Tab::Terminal`] shows the [`AgentScreen`].
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    Task {
        description: String,
        notes: String,
    },
    /// The diff as git prints it, without colours.
    Diff {
        text: String,
    },
    Events(Vec<Happening>),
    Windows {
        windows: Vec<WindowFacts>,
        servers: Vec<CardServer>,
    },
    /// The sessions that worked on the item, the latest first.
    Chain(Vec<ChainSession>),
    /// The content could not be read.
    Failed(String),
}

/// One event, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Seconds since the epoch.
    pub at: i64,
    /// The local time as text.
    pub clock: String,
    /// The type of the event, in words.
    pub kind: String,
    /// The source of the event.
    pub source: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFacts {
    pub name: String,
    pub running: bool,
    pub exit_code: Option<i32>,
}

/// One session of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainSession {
    pub id: String,
    pub agent: String,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub status: String,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
}
