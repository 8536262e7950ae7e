//! A control client that reconnects.
//!
//! A server may end and be started again, and the session that a client is attached to may close.
//! [`Reconnecting`] never retries a command: a command in flight when the connection breaks fails,
//! and the *next* command connects again. Listeners get [`Notification::Exit`] when a connection
//! ends and [`Notification::Reconnected`] when there is a new one. A listener that sends no
//! commands calls [`Reconnecting::connect`] after the first to get the second.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use super::Control;
use super::hub::Hub;
use super::notification::Notification;
use crate::{Batch, Command, Error, ErrorKind, Row, Server, SessionName, Target};

/// A [`Control`] client that connects on demand.
#[derive(Debug)]
pub struct Reconnecting {
    server: Server,
    session: Option<SessionName>,
    hub: Arc<Hub>,
    state: Mutex<ConnectionState>,
}

#[derive(Debug, Default)]
struct ConnectionState {
    current: Option<Arc<Control>>,
    was_connected: bool,
}

impl Reconnecting {
    /// Creates a client that connects with the first command, to `session` or, if that does not
    /// exist, to any session.
    #[must_use]
    pub fn new(server: Server, session: Option<SessionName>) -> Self {
        Self {
            server,
            session,
            hub: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// Returns the open connection, or a new one.
    pub fn connect(&self) -> Result<Arc<Control>, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(control) = state
            .current
            .as_ref()
            .filter(|control| control.is_connected())
        {
            return Ok(Arc::clone(control));
        }
        // Dropping the old client reaps its child before a new one is started.
        state.current = None;
        let control = Arc::new(self.open()?);
        if std::mem::replace(&mut state.was_connected, true) {
            self.hub.publish(&Notification::Reconnected);
        }
        state.current = Some(Arc::clone(&control));
        Ok(control)
    }

    fn open(&self) -> Result<Control, Error> {
        let open = |target: Option<&Target>| {
            Control::connect_with(&self.server, target, Arc::clone(&self.hub))
        };
        let Some(session) = &self.session else {
            return open(None);
        };
        match open(Some(&Target::from(session))) {
            Err(error) if error.kind() == ErrorKind::NoSuchSession => open(None),
            result => result,
        }
    }

    /// Runs commands as [`Control::run`] does, and connects first if necessary.
    pub fn run(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        self.connect()?.run(commands)
    }

    /// Runs commands as [`Control::run_all`] does, and connects first if necessary.
    pub fn run_all(&self, commands: impl Into<Batch>) -> Result<Vec<Result<String, Error>>, Error> {
        Ok(self.connect()?.run_all(commands))
    }

    /// Runs a listing as [`Control::rows`] does, and connects first if necessary.
    pub fn rows<R: Row>(&self, list: Command) -> Result<Vec<R>, Error> {
        self.connect()?.rows(list)
    }

    /// Subscribes to the notifications of all connections, present and future.
    #[must_use]
    pub fn notifications(&self) -> Receiver<Notification> {
        self.hub.subscribe()
    }

    /// Returns the server that this client connects to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }
}
