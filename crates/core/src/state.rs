//! State of an agent, and the source that it is derived from.
//!
//! The sources, most trusted first: the process (tmux knows when it is dead), the title of the
//! terminal where the program shows its state there, the agent's hooks (kept as a tag), and the
//! screen. A state always carries its source.
//!
//! [`judge`] derives a [`StateReport`] from one [`ObservedPane`]: `state/reported.rs` has the sources
//! that cost nothing, `state/judge.rs` adds the screen, and `state/refine.rs` the details that only
//! the screen shows. A [`Tracker`] derives changes from a series of reports.

mod judge;
mod reason;
mod refine;
mod report;
mod reported;
mod tracker;

pub use judge::{judge, wants_screen};
pub use reason::Reason;
pub(crate) use refine::mentions_question;
pub use report::{ObservedPane, StateReport, label};
pub(crate) use reported::{death, describe_mark, shown_since};
pub use tracker::{StateChange, Tracker};

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its worktree is being prepared; the agent has not started.
    Initializing,
    /// Started; not yet seen ready.
    Starting,
    /// Alive; no source reports more.
    Running,
    Idle,
    Busy,
    /// It asks a question.
    Waiting,
    Error,
    /// Its last turn ended at a usage limit.
    Limited,
    /// Stopped in the middle of a turn, to be resumed later.
    Paused,
    /// It reports that its work is complete.
    Done,
    /// Its process ended by itself, with status 0.
    Exited,
    /// Its process ended with another status or by a signal.
    Crashed,
    /// There is no container.
    Stopped,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Initializing => "initializing",
            State::Starting => "starting",
            State::Running => "running",
            State::Idle => "idle",
            State::Busy => "busy",
            State::Waiting => "waiting",
            State::Error => "error",
            State::Limited => "limited",
            State::Paused => "paused",
            State::Done => "done",
            State::Exited => "exited",
            State::Crashed => "crashed",
            State::Stopped => "stopped",
        }
    }

    pub fn from_word(word: &str) -> Option<State> {
        [
            State::Initializing,
            State::Starting,
            State::Running,
            State::Idle,
            State::Busy,
            State::Waiting,
            State::Error,
            State::Limited,
            State::Paused,
            State::Done,
            State::Exited,
            State::Crashed,
            State::Stopped,
        ]
        .into_iter()
        .find(|state| state.as_str() == word)
    }

    /// Returns whether the agent's process has ended.
    pub fn is_dead(self) -> bool {
        matches!(self, State::Exited | State::Crashed | State::Stopped)
    }
}

/// Source of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StateSource {
    Process,
    Hook,
    Title,
    Screen,
    /// `gt` itself, which started the agent.
    Start,
    /// `gt` itself, on a person's behalf.
    Gt,
}

impl StateSource {
    pub fn as_str(self) -> &'static str {
        match self {
            StateSource::Process => "process",
            StateSource::Hook => "hook",
            StateSource::Title => "title",
            StateSource::Screen => "screen",
            StateSource::Start => "start",
            StateSource::Gt => "gt",
        }
    }

    pub fn from_word(word: &str) -> Option<StateSource> {
        [
            StateSource::Process,
            StateSource::Hook,
            StateSource::Title,
            StateSource::Screen,
            StateSource::Start,
            StateSource::Gt,
        ]
        .into_iter()
        .find(|source| source.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for state in [
            State::Initializing,
            State::Starting,
            State::Waiting,
            State::Paused,
            State::Done,
            State::Crashed,
        ] {
            assert_eq!(State::from_word(state.as_str()), Some(state));
        }
    }
}
