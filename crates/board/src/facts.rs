//! What the board knows. It is given, never asked for.

use gt_core::card::{Card, Server};
use gt_core::work::WorkId;

/// The whole picture. A newer one takes its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub town: String,
    /// Who looks at the board, as assignees are written; for the filter "mine".
    pub me: Option<String>,
    /// The projects that there are; all cards are here, whatever project is shown.
    pub projects: Vec<String>,
    pub cards: Vec<Card>,
    /// What could not be found out, for a line at the bottom.
    pub warnings: Vec<String>,
}

/// What an agent asks, as it was read off its screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    /// What each option is called by, and what it says.
    pub options: Vec<(String, String)>,
    /// By this an answer says which question it is for.
    pub fingerprint: String,
}

/// The screen of the agent in view: lines with the terminal's own colour sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
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

/// What one tab shows of one item. [`Tab::Terminal`] shows the [`Screen`].
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    Task {
        description: String,
        notes: String,
    },
    /// As git prints it, without colours.
    Diff {
        text: String,
    },
    Events(Vec<Happening>),
    Windows {
        windows: Vec<Window>,
        servers: Vec<Server>,
    },
    /// The lives that worked on it, the latest first.
    Chain(Vec<Life>),
    /// It could not be had.
    Failed(String),
}

/// One event, with where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Seconds since the epoch.
    pub at: i64,
    /// The same as the clock here says.
    pub clock: String,
    /// Its type, in words.
    pub kind: String,
    /// How it is known.
    pub source: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub name: String,
    pub running: bool,
    pub exit_code: Option<i32>,
}

/// One life of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    pub id: String,
    pub agent: String,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub status: String,
    pub tokens: u64,
    pub cost_usd: Option<f64>,
}
