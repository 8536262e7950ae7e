//! The board as a pure program: data and input events come in, frames and requests go out.
//!
//! Nothing here reads a file, a clock, tmux or the terminal. The binary collects the [`BoardFacts`],
//! passes events to the [`Board`], draws its frames and carries out its requests ([`BoardRequest`]).
//! Nearly all requests are `gt` commands, given as their arguments, so the board can do nothing
//! that the command line cannot.
//!
//! The caller runs an event loop: wait for an event, but no longer than until [`Board::wake_at`],
//! and send [`BoardEvent::Tick`] at that moment; pass the event to [`Board::handle`] and carry out
//! the requests; if no other event is pending and the board [`is_dirty`](Board::is_dirty),
//! [`draw`](Board::draw) a frame.

mod action;
mod age;
mod ansi;
mod board;
mod command;
mod diff;
mod event;
mod facts;
mod filter;
mod form;
mod input;
pub mod keys;
mod lists;
mod moment;
mod overlay;
mod request;
#[cfg(any(test, feature = "testing"))]
mod sample;
mod saved_view;
mod search;
mod sort;
#[cfg(test)]
mod tests;
mod text;
mod theme;
mod toast;
mod update;
mod view;

pub use action::{
    BoardAction, CardOperation, EscalationOperation, MergeOperation, ServerOperation,
};
pub use board::Board;
pub use event::{BoardEvent, CommandFailure, FailureRemedy};
pub use facts::{
    AgentScreen, BehindFacts, BoardFacts, ChainSession, Detail, EscalationFacts, Happening,
    ItemFields, MergeFacts, Question, SpentToday, StopFacts, Tab, WindowFacts,
};
pub use moment::Moment;
pub use request::{BoardRequest, Invocation};
#[cfg(any(test, feature = "testing"))]
pub use sample::sample;
pub use saved_view::SavedView;
pub use sort::Sort;
pub use theme::BoardTheme;
