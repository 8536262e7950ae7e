//! A typed tmux client: one-shot commands, listings as structs, exact targets, and a persistent
//! control-mode client.
//!
//! A [`Server`] is a handle on one tmux socket. It runs [`Command`]s, or a whole [`Batch`] in one
//! round trip, and parses listings into structs (see [`query!`] and [`Server::rows`]). [`Control`]
//! keeps one client connected, which is far cheaper per command and delivers notifications.
//!
//! The crate does not know what the sessions are for, keeps no state, and never matches a session
//! by prefix: a [`Target`] is exact.
//!
//! Start with `server.rs` for the handle, `command.rs` for commands, `target.rs` for targets,
//! `quote.rs` and `format.rs` for text that must arrive unchanged, `row.rs` for listings,
//! `control.rs` for the persistent client, `socket.rs` for the fast one-shot transport, and
//! `testing.rs` for a private server in tests.
//!
//! ```no_run
//! use gt_tmux::{Command, Server, Socket, PaneId, query};
//!
//! query! {
//!     /// One pane, with the fields that this program needs.
//!     pub struct Pane {
//!         pub id: PaneId = "#{pane_id}",
//!         pub session: String = "#{session_name}",
//!         pub pid: Option<u32> = "#{pane_pid}",
//!     }
//! }
//!
//! # fn main() -> Result<(), gt_tmux::Error> {
//! let server = Server::new(Socket::Default);
//! let panes: Vec<Pane> = server.rows(Command::new("list-panes").flag("-a"))?;
//! # Ok(())
//! # }
//! ```

mod address;
mod batch;
mod command;
mod control;
mod error;
pub mod format;
mod nonce;
mod quote;
mod row;
mod server;
mod socket;
mod target;
mod version;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use address::Socket;
pub use batch::Batch;
pub use command::Command;
pub use control::{
    Block, Control, ControlMessage, ControlParser, Guard, Notification, Pending, Reconnecting,
};
pub use error::{Error, ErrorKind};
pub use quote::{argv_word, quote};
pub use row::{Field, FieldError, Packed, Row, pack};
pub use server::Server;
pub use target::{IdError, PaneId, SessionId, SessionName, SessionNameError, Target, WindowId};
pub use version::{Feature, MINIMUM, Version, VersionError, version_cache};
