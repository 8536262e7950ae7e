//! The input and the result of [`judge`](super::judge()).

use super::{Reason, State, StateSource};
use crate::limit::Limit;
use crate::screen::CapturedScreen;

/// Observed facts about an agent's pane.
#[derive(Clone, Debug, Default)]
pub struct ObservedPane<'a> {
    pub dead: bool,
    pub exit_status: Option<i32>,
    pub exit_signal: Option<i32>,
    pub died_at: Option<i64>,
    pub title: &'a str,
    /// The tags `@gt_state`, `@gt_state_source`, `@gt_state_since`, `@gt_state_reason`.
    pub tag: Option<State>,
    pub tag_source: Option<StateSource>,
    pub tag_since: Option<i64>,
    pub tag_reason: Option<&'a str>,
    /// The tag `@gt_background_tasks`.
    pub tag_background: u32,
    /// The tag `@gt_hold`.
    pub tag_hold: Option<&'a str>,
    /// Time of the pane's last output.
    pub printed_at: Option<i64>,
    /// Time of the last input, typed by hand or through `gt`.
    pub typed_at: Option<i64>,
    /// Captured screen, if the caller has read it; see [`wants_screen`].
    pub screen: Option<CapturedScreen<'a>>,
}

/// A state with its source. Times are seconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReport {
    pub state: State,
    pub source: StateSource,
    pub since: Option<i64>,
    pub reason: Option<Reason>,
    /// Number of tasks that still run in the background after the agent's turn.
    pub background: u32,
    /// Usage limit of an agent that is [`State::Limited`].
    pub limit: Option<Limit>,
}

impl StateReport {
    /// Returns a report with only the state and its source.
    pub fn new(state: State, source: StateSource) -> Self {
        StateReport {
            state,
            source,
            since: None,
            reason: None,
            background: 0,
            limit: None,
        }
    }

    /// Returns the state for people: `idle (1 background task)`.
    pub fn label(&self) -> String {
        label(self.state, self.background)
    }
}

/// Returns a state for people, with the number of background tasks.
pub fn label(state: State, background: u32) -> String {
    let word = state.as_str();
    match background {
        0 => word.to_owned(),
        1 => format!("{word} (1 background task)"),
        count => format!("{word} ({count} background tasks)"),
    }
}
