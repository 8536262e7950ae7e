//! What can happen to the board.

use crate::{Detail, Facts, Question, Screen, Tab};
use crossterm::event::{KeyEvent, MouseEvent};
use gt_core::work::WorkId;

/// How a command has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The word for its kind, where it has told one.
    pub kind: String,
    pub text: String,
    /// Its causes one by one; of what has to be confirmed, its steps.
    pub causes: Vec<String>,
}

impl<T: Into<String>> From<T> for Failure {
    fn from(text: T) -> Self {
        Failure {
            kind: String::new(),
            text: text.into(),
            causes: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Text that was pasted, in one piece.
    Paste(String),
    Resize {
        width: u16,
        height: u16,
    },
    Facts(Facts),
    Screen(Screen),
    Detail {
        id: WorkId,
        tab: Tab,
        detail: Detail,
    },
    /// A command that the board had asked for has ended.
    Outcome {
        order: u64,
        result: Result<String, Failure>,
    },
    /// A command asks before it goes on: what it will do, line by line.
    Foreseen {
        order: u64,
        result: Result<Vec<String>, String>,
    },
    /// What an agent asks, or why that cannot be read.
    Asked {
        order: u64,
        result: Result<Question, String>,
    },
    /// Time has passed; sent only at the moment that [`crate::Board::wake_at`] named.
    Tick,
}
