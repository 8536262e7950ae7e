//! A client that stays connected: tmux's control mode.
//!
//! One client (`tmux -C attach-session`, without a process where that is possible) takes commands and
//! answers them. A command costs a few hundredths of the time of a separate process, and less if many
//! are in flight. The server also sends notifications when sessions and windows are created or closed. The
//! client attaches with `no-output,ignore-size`: it does not receive the output of panes (unread
//! output would block them) and does not resize windows of other clients.
//!
//! It does not reconnect. When the server ends, every pending command fails and so does every later
//! one; [`Reconnecting`] is the wrapper that connects again. It does not return the output of
//! `run-shell` either, which tmux prints outside of any answer or into a pane.
//!
//! `control/parser.rs` parses the stream and knows no processes. `control/link.rs` is the client, a
//! process (`control/spawn.rs`) or a socket; `control/reader.rs` is the thread that owns it,
//! `control/queue.rs` matches answers to pending commands, `control/hub.rs` distributes
//! notifications.

mod block;
mod hub;
mod input;
mod link;
mod notification;
mod parser;
mod pending;
mod queue;
mod reader;
mod reconnect;
mod spawn;

pub use block::{Block, Guard};
pub use notification::Notification;
pub use parser::{ControlMessage, ControlParser};
pub use pending::Pending;
pub use reconnect::Reconnecting;

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::row::Listing;
use crate::{Batch, Command, Error, Row, Server, Target};
use hub::Hub;
use reader::ControlConnection;

/// Maximum time for the client to end after its pipe for commands was closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connected control client. All methods take `&self` and may be called from any thread.
#[derive(Debug)]
pub struct Control {
    connection: ControlConnection,
    hub: Arc<Hub>,
    timeout: Duration,
}

impl Control {
    /// Connects to `target`, or to the session that tmux prefers. Never starts a server.
    pub(crate) fn connect(server: &Server, target: Option<&Target>) -> Result<Self, Error> {
        Self::connect_with(server, target, Arc::new(Hub::default()))
    }

    fn connect_with(
        server: &Server,
        target: Option<&Target>,
        hub: Arc<Hub>,
    ) -> Result<Self, Error> {
        let timeout = server.settings().timeout();
        let connection = ControlConnection::open(server, target, Arc::clone(&hub), timeout)?;
        Ok(Self {
            connection,
            hub,
            timeout,
        })
    }

    /// Runs the commands and waits for their output, with the server's timeout.
    ///
    /// The result is that of [`Server::run`]: the commands of one line run without interruption,
    /// the first one that fails ends its line, and the call returns its error.
    pub fn run(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        self.send(commands).wait(self.timeout)
    }

    /// Sends the commands and returns immediately. Answers arrive in the order of sending.
    pub fn send(&self, commands: impl Into<Batch>) -> Pending {
        let mut pending = self.connection.send(&[commands.into()], self.timeout);
        pending.pop().unwrap_or_else(Pending::empty)
    }

    /// Runs the commands independently of each other, all in flight at once.
    pub fn run_all(&self, commands: impl Into<Batch>) -> Vec<Result<String, Error>> {
        let batches: Vec<Batch> = commands.into().commands().map(Batch::from).collect();
        let pending = self.connection.send(&batches, self.timeout);
        pending
            .into_iter()
            .map(|pending| pending.wait(self.timeout))
            .collect()
    }

    /// Runs a listing and parses each line into a struct, like [`Server::rows`].
    ///
    /// A value that contains a newline followed by the exact end of this answer's block, with the
    /// same time and number, would truncate the answer. That returns an error, never a wrong row.
    pub fn rows<R: Row>(&self, list: Command) -> Result<Vec<R>, Error> {
        let listing = Listing::new();
        let output = self
            .send(listing.command::<R>(list.clone()))
            .wait_bytes(self.timeout)?;
        listing.parse(&output, &list)
    }

    /// Subscribes to tmux's notifications from now on. Each call returns a separate receiver.
    ///
    /// A receiver that is not read keeps about the last thousand notifications; a
    /// [`Notification::Lagged`] counts the lost ones.
    #[must_use]
    pub fn notifications(&self) -> Receiver<Notification> {
        self.hub.subscribe()
    }

    /// Returns whether the connection is open, as far as the reader has noticed.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection.is_open()
    }
}

#[cfg(test)]
mod on_a_server;
