//! The listener of the event stream: reads from the server's socket, or without a server from the
//! log itself.

use super::tail::Tail;
use super::wake::Wake;
use super::{Cursor, socket_in};
use crate::base::clock::Clock;
use crate::base::lines::Lines;
use crate::records::events::{self, EventQuery, Events, each_before, find_before};
use crate::{Result, Town};
use gt_core::event::Event;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for the greeting of a server, in case the server process is suspended.
const GREETING: Duration = Duration::from_secs(1);

/// The events that match a query, as they are written.
#[derive(Debug)]
pub struct Follow {
    root: PathBuf,
    query: EventQuery,
    source: Source,
    /// The position in the log up to which all events were delivered, from either source.
    tail: Tail,
}

#[derive(Debug)]
enum Source {
    Socket(StreamConnection),
    File(Wake),
}

impl Follow {
    /// Starts to listen. Passes the events that already exist to `give`, and returns the listener
    /// for later ones. With a limit, the newest ones within the query's reach.
    pub fn begin(
        town: &Town,
        query: EventQuery,
        give: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<Self> {
        Self::begin_in(town.root(), query, give)
    }

    pub(super) fn begin_in(
        root: &Path,
        query: EventQuery,
        give: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<Self> {
        let log = Events::in_folder(root).log().clone();
        let connection = StreamConnection::open(root);
        let served = match &connection {
            Some(connection) => Tail::at(log.clone(), connection.cursor, None)?,
            None => Tail::at_end(log.clone())?,
        };
        let (source, tail) = match connection {
            Some(connection) if served.cursor() == connection.cursor => {
                (Source::Socket(connection), served)
            }
            // There is no server, or its position is invalid because the log was just pruned.
            _ => (Source::File(Wake::on(&[root])), Tail::at_end(log.clone())?),
        };
        history(&log, &tail, &query, give)?;
        Ok(Follow {
            root: root.to_owned(),
            query,
            source,
            tail,
        })
    }

    /// Returns whether events come from a server.
    pub fn is_from_server(&self) -> bool {
        matches!(self.source, Source::Socket(_))
    }

    /// Returns new events; waits for one at most this long.
    pub fn next(&mut self, timeout: Duration) -> Result<Vec<Event>> {
        let deadline = Instant::now() + timeout;
        loop {
            let found = self.read_new()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if !found.is_empty() || left.is_zero() {
                return Ok(found);
            }
            if !self.wait(left) {
                return Ok(Vec::new()); // A signal: the caller decides whether to stop.
            }
        }
    }

    fn read_new(&mut self) -> Result<Vec<Event>> {
        let mut found = Vec::new();
        let query = &self.query;
        let mut take = |event: Event| {
            if query.matches(&event) {
                found.push(event);
            }
        };
        match &mut self.source {
            Source::Socket(connection) => {
                let before = connection.cursor;
                let goes_on = connection.read(&mut take);
                if let Some(cursor) = connection.cursor.filter(|_| connection.cursor != before) {
                    self.tail.advance(cursor, connection.last)?;
                }
                if !goes_on {
                    // The connection is closed: continues with the file, at the last position
                    // received.
                    self.source = Source::File(Wake::on(&[&self.root]));
                    found.extend(self.read_new()?);
                }
            }
            Source::File(wake) => {
                wake.drain();
                let tail = &mut self.tail;
                tail.read(|line, _| events::read(line).into_iter().for_each(&mut take))?;
            }
        }
        Ok(found)
    }

    /// Waits for new data; returns false after a signal.
    fn wait(&self, timeout: Duration) -> bool {
        let mut fds = Vec::new();
        let timeout = match &self.source {
            Source::Socket(connection) => {
                fds.push(PollFd::new(&connection.stream, PollFlags::IN));
                timeout
            }
            Source::File(wake) => {
                fds.extend(wake.poll_fd());
                timeout.min(wake.pause())
            }
        };
        let timeout = Timespec::try_from(timeout).ok();
        poll(&mut fds, timeout.as_ref()).is_ok()
    }
}

/// Passes the events before the position of `tail` to `give`.
fn history(
    log: &Lines,
    tail: &Tail,
    query: &EventQuery,
    give: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let (Some(file), Some(cursor)) = (tail.file(), tail.cursor()) else {
        return Ok(());
    };
    if query.limit.is_none() {
        return each_before(log.path(), file, cursor.offset, query, give);
    }
    let found = find_before(log.path(), file, cursor.offset, query)?;
    found.events.into_iter().try_for_each(give)
}

/// A connection to the server.
#[derive(Debug)]
struct StreamConnection {
    stream: UnixStream,
    /// An incomplete line.
    held: Vec<u8>,
    /// The position after the last event received.
    cursor: Option<Cursor>,
    last: Option<Timestamp>,
}

/// The fields of a message that are used.
#[derive(Deserialize)]
struct StreamMessage {
    event: Option<Event>,
    cursor: Option<String>,
}

impl StreamConnection {
    /// Connects to a server. Returns `None` if none answers: the caller then reads the log itself.
    fn open(root: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket_in(root)).ok()?;
        stream.set_read_timeout(Some(GREETING)).ok()?;
        let mut connection = StreamConnection {
            stream,
            held: Vec::new(),
            cursor: None,
            last: Some(Clock::default().now()),
        };
        let mut byte = [0];
        while connection.held.last() != Some(&b'\n') {
            if connection.stream.read(&mut byte).ok()? == 0 {
                return None;
            }
            connection.held.extend(byte);
        }
        connection.take_lines(&mut |_| ());
        connection.stream.set_nonblocking(true).ok()?;
        Some(connection)
    }

    /// Reads the available messages; returns false if the connection is closed.
    fn read(&mut self, take: &mut impl FnMut(Event)) -> bool {
        let mut piece = [0; 1 << 16];
        let is_open = loop {
            match self.stream.read(&mut piece) {
                Ok(0) => break false,
                Ok(length) => self.held.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error.kind() == ErrorKind::WouldBlock,
            }
        };
        self.take_lines(take);
        is_open
    }

    fn take_lines(&mut self, take: &mut impl FnMut(Event)) {
        let Some(end) = self.held.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let rest = self.held.split_off(end + 1);
        let lines = std::mem::replace(&mut self.held, rest);
        for line in lines.split(|byte| *byte == b'\n') {
            // A later version may send other messages.
            let Ok(message) = serde_json::from_slice::<StreamMessage>(line) else {
                continue;
            };
            let cursor = message.cursor.and_then(|cursor| cursor.parse().ok());
            self.cursor = cursor.or(self.cursor);
            if let Some(event) = message.event {
                self.last = events::time_of(&event).or(self.last);
                take(event);
            }
        }
    }
}
