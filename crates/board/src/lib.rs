//! The board as a pure program: what is known and what was pressed come in, a frame and
//! wishes come out.
//!
//! Nothing here reads a file, a clock, tmux or the terminal. The binary gathers the
//! [`Facts`], hands events to the [`Board`], draws what it says and fulfils its
//! [`Wish`]es: nearly all of them are `gt` commands, and the words of the command are
//! what the board asks for. So there is nothing that only the board can do.
//!
//! Whoever runs it has a loop: wait for an event, but no longer than until
//! [`Board::wake_at`], and if that comes first, the event is [`Event::Tick`]; hand it to
//! [`Board::handle`] and see to the wishes; when no other event waits and the board
//! [`is_dirty`](Board::is_dirty), [`draw`](Board::draw).

mod action;
mod age;
mod ansi;
mod board;
mod command;
mod event;
mod facts;
mod filter;
mod input;
pub mod keys;
mod lists;
mod moment;
mod overlay;
#[cfg(any(test, feature = "testing"))]
mod sample;
mod search;
mod sort;
#[cfg(test)]
mod tests;
mod text;
mod theme;
mod toast;
mod update;
mod view;
mod wish;

pub use action::{Action, Deed, ServerDeed};
pub use board::Board;
pub use event::{Event, Failure};
pub use facts::{Detail, Facts, Happening, Life, Question, Screen, Tab, Window};
pub use moment::Moment;
#[cfg(any(test, feature = "testing"))]
pub use sample::sample;
pub use sort::Sort;
pub use theme::Theme;
pub use wish::{Order, Wish};
