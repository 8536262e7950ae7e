//! The events that the board processes.

use crate::{AgentScreen, BehindFacts, BoardFacts, Detail, ItemFields, Question, Tab};
use crossterm::event::{KeyEvent, MouseEvent};
use gt_core::work::WorkId;

/// The failure of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFailure {
    /// The way on that the board offers; `None` if it only shows the failure.
    pub remedy: Option<FailureRemedy>,
    pub text: String,
    /// The causes, one by one; for a command that needs a confirmation, its steps.
    pub causes: Vec<String>,
}

/// The way on after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureRemedy {
    /// Run the command again, confirmed by the person.
    Confirm,
    /// An init command failed: start without it, or try again.
    RetryInit,
}

impl<T: Into<String>> From<T> for CommandFailure {
    fn from(text: T) -> Self {
        CommandFailure {
            remedy: None,
            text: text.into(),
            causes: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub enum BoardEvent {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Pasted text, in one piece.
    Paste(String),
    Resize {
        width: u16,
        height: u16,
    },
    Facts(BoardFacts),
    Screen(AgentScreen),
    Detail {
        id: WorkId,
        tab: Tab,
        detail: Detail,
    },
    /// A command that the board requested has ended.
    Outcome {
        order: u64,
        result: Result<String, CommandFailure>,
    },
    /// The result of a dry run: the planned steps, line by line.
    Foreseen {
        order: u64,
        result: Result<Vec<String>, String>,
    },
    /// The question of an agent, or the reason why it cannot be read.
    Asked {
        order: u64,
        result: Result<Question, String>,
    },
    /// An item as it is now, or the reason why it cannot be read.
    ItemRead {
        order: u64,
        result: Result<ItemFields, String>,
    },
    /// How far a branch is behind, or the reason why it is unknown.
    BehindRead {
        order: u64,
        result: Result<BehindFacts, CommandFailure>,
    },
    /// Time has passed; sent only at the moment that [`crate::Board::wake_at`] returned.
    Tick,
}
