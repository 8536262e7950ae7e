//! The board as a pure program: what is known and what was pressed come in, a frame and
//! wishes come out.
//!
//! Nothing here reads a file, a clock, tmux or the terminal. The binary gathers the
//! [`Facts`], hands events to the [`Board`], draws what it says and fulfils its
//! [`Wish`]es: nearly all of them are `gt` commands, and the words of the command are
//! what the board asks for. So there is nothing that only the board can do.

mod event;
mod facts;
mod wish;

pub use event::Event;
pub use facts::{Detail, Facts, Happening, Life, Screen, Tab, Window};
pub use wish::{Order, Wish};
