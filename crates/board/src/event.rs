//! The events that the board processes.

use crate::{AgentScreen, BehindFacts, BoardFacts, Detail, ItemFields, Question, Tab};
use crossterm::event::{KeyEvent, MouseEvent};
use gt_core::ProblemKind;
use gt_core::work::WorkId;

/// The failure of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFailure {
    /// The kind of the error, if the command reported one.
    pub kind: Option<ProblemKind>,
    pub text: String,
    /// The causes, one by one; for a command that needs a confirmation, its steps.
    pub causes: Vec<String>,
}

impl<T: Into<String>> From<T> for CommandFailure {
    fn from(text: T) -> Self {
        CommandFailure {
            kind: None,
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
