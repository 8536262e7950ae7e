//! A client that stays connected: tmux's control mode.
//!
//! One child process (`tmux -C attach-session`) takes commands on stdin and answers on stdout.
//! A command costs a few hundredths of what a process of its own costs, less when many are
//! under way at once, and the server says unasked when sessions and windows come and go. The
//! client attaches with `no-output,ignore-size`: it neither receives what panes print (unread,
//! that would block them) nor changes the size of anybody's window.
//!
//! What it does not do: reconnect. When the server goes, every pending command fails and so
//! does every later one; [`Reconnecting`] is the wrapper that tries again. It also does not
//! give the output of `run-shell`, which tmux prints outside of any answer or into a pane.
//!
//! `control/parser.rs` reads the stream and knows no processes. `control/spawn.rs` starts the
//! child, `control/reader.rs` is the thread that owns it, `control/queue.rs` matches answers
//! with those who wait, `control/hub.rs` hands out notifications.

mod block;
mod hub;
mod input;
mod notification;
mod parser;
mod pending;
mod queue;
mod reader;
mod reconnect;
mod spawn;

pub use block::{Block, Guard};
pub use notification::Notification;
pub use parser::{Message, Parser};
pub use pending::Pending;
pub use reconnect::Reconnecting;

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::row::Listing;
use crate::{Batch, Command, Error, Row, Server, Target};
use hub::Hub;
use reader::Connection;

/// How long a child may take to leave after its stdin was closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connected control client. All methods take `&self` and may be called from any thread.
#[derive(Debug)]
pub struct Control {
    connection: Connection,
    hub: Arc<Hub>,
    timeout: Duration,
}

impl Control {
    /// Connects to this session, or to the one that tmux thinks best. Never starts a server.
    pub(crate) fn connect(server: &Server, target: Option<&Target>) -> Result<Self, Error> {
        Self::connect_with(server, target, Arc::new(Hub::default()))
    }

    fn connect_with(
        server: &Server,
        target: Option<&Target>,
        hub: Arc<Hub>,
    ) -> Result<Self, Error> {
        let timeout = server.settings().timeout();
        let connection = Connection::open(server, target, Arc::clone(&hub), timeout)?;
        Ok(Self {
            connection,
            hub,
            timeout,
        })
    }

    /// Runs the commands and waits for their output, with the server's timeout.
    ///
    /// The result is that of [`Server::run`]: commands of one line run without a pause, the
    /// first that fails ends its line and makes the whole an error.
    pub fn run(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        self.send(commands).wait(self.timeout)
    }

    /// Sends the commands and returns at once. Answers come in the order of sending.
    pub fn send(&self, commands: impl Into<Batch>) -> Pending {
        let mut pending = self.connection.send(&[commands.into()], self.timeout);
        pending.pop().unwrap_or_else(Pending::nothing)
    }

    /// Runs the commands independently of each other, all under way at once.
    pub fn run_all(&self, commands: impl Into<Batch>) -> Vec<Result<String, Error>> {
        let batches: Vec<Batch> = commands.into().commands().map(Batch::from).collect();
        let pending = self.connection.send(&batches, self.timeout);
        pending
            .into_iter()
            .map(|pending| pending.wait(self.timeout))
            .collect()
    }

    /// Runs a listing and reads each line into a struct, like [`Server::rows`].
    ///
    /// A value that holds a newline followed by the exact end of this answer's block, time and
    /// number included, would cut the answer short. That is an error here, never a wrong row.
    pub fn rows<R: Row>(&self, list: Command) -> Result<Vec<R>, Error> {
        let listing = Listing::new();
        let output = self
            .send(listing.command::<R>(list.clone()))
            .wait_bytes(self.timeout)?;
        listing.parse(&output, &list)
    }

    /// What tmux says unasked, from now on. Each call gives a receiver of its own.
    ///
    /// A receiver that is not read keeps the last thousand or so; what is lost is counted in a
    /// [`Notification::Lagged`].
    #[must_use]
    pub fn notifications(&self) -> Receiver<Notification> {
        self.hub.subscribe()
    }

    /// Whether the server was still there when it was last heard of.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection.is_open()
    }
}

#[cfg(test)]
mod on_a_server;
