//! A control client that comes back.
//!
//! A server may end and be started again, and the session that a client is attached to may
//! close. [`Reconnecting`] holds no promise over that: a command that was under way when the
//! connection broke fails, and is never run a second time. The *next* command connects anew.
//! Listeners get [`Notification::Exit`] when a connection ends and
//! [`Notification::Reconnected`] when there is another; one who waits for notifications and
//! sends nothing calls [`Reconnecting::connect`] on the first to get to the second.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use super::Control;
use super::hub::Hub;
use super::notification::Notification;
use crate::{Batch, Command, Error, ErrorKind, Row, Server, SessionName, Target};

/// A [`Control`] client that is connected when it is needed.
#[derive(Debug)]
pub struct Reconnecting {
    server: Server,
    session: Option<SessionName>,
    hub: Arc<Hub>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Control>>,
    was_connected: bool,
}

impl Reconnecting {
    /// Connects with the first command, to this session or, where there is none of that name,
    /// to any.
    #[must_use]
    pub fn new(server: Server, session: Option<SessionName>) -> Self {
        Self {
            server,
            session,
            hub: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// The present connection, or a new one.
    pub fn connect(&self) -> Result<Arc<Control>, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(control) = state
            .current
            .as_ref()
            .filter(|control| control.is_connected())
        {
            return Ok(Arc::clone(control));
        }
        // The old child is reaped before there is a new one.
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

    /// See [`Control::run`].
    pub fn run(&self, commands: impl Into<Batch>) -> Result<String, Error> {
        self.connect()?.run(commands)
    }

    /// See [`Control::run_all`].
    pub fn run_all(&self, commands: impl Into<Batch>) -> Result<Vec<Result<String, Error>>, Error> {
        Ok(self.connect()?.run_all(commands))
    }

    /// See [`Control::rows`].
    pub fn rows<R: Row>(&self, list: Command) -> Result<Vec<R>, Error> {
        self.connect()?.rows(list)
    }

    /// What tmux says unasked, over all connections.
    #[must_use]
    pub fn notifications(&self) -> Receiver<Notification> {
        self.hub.subscribe()
    }

    /// The server that it connects to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }
}
