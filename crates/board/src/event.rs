//! What can happen to the board.

use crate::{Detail, Facts, Question, Screen, Tab};
use crossterm::event::{KeyEvent, MouseEvent};
use gt_core::work::WorkId;

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
        result: Result<String, String>,
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
