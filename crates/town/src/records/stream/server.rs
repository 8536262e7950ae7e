//! The server: follows two files and sends their lines to all clients.

use super::clients::Clients;
use super::tail::Tail;
use super::wake::Wake;
use super::{Cursor, socket_in};
use crate::base::files;
use crate::base::lines::Lines;
use crate::base::lock::{self, FileLock};
use crate::records::events::Events;
use crate::{Cancel, Result, Town};
use gt_core::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Streams events and changes of sessions. There is at most one per town.
#[derive(Debug)]
pub struct StreamServer {
    path: PathBuf,
    listener: UnixListener,
    wake: Wake,
    events: Tail,
    session_lines: Tail,
    clients: Clients,
    /// The kernel releases it, however the process ends.
    _lock: FileLock,
}

impl StreamServer {
    /// Starts to listen; [`StreamServer::run`] serves the clients.
    pub fn bind(town: &Town) -> Result<Self> {
        Self::bind_in(town.root())
    }

    pub(super) fn bind_in(root: &Path) -> Result<Self> {
        let path = socket_in(root);
        let lock = root.join(".runtime/locks/stream.lock");
        let Some(held) = FileLock::try_take(&lock)? else {
            let by = lock::holder(&lock).map_or_else(String::new, |pid| format!(" by {pid}"));
            return Err(
                Problem::conflict(format!("events are streamed already{by}"))
                    .hint("`gt events --follow` listens to it"),
            );
        };
        let sessions = root.join(".sessions");
        files::make_dir(&sessions)?;
        // We hold the lock, so an existing socket belongs to a dead server.
        files::remove_if_there(&path)?;
        let cannot = |error| files::io_problem("listen on", &path, &error);
        let listener = UnixListener::bind(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidInput => cannot(error)
                .hint("the path of a socket has room for about 100 characters: move the town"),
            _ => cannot(error),
        })?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        Ok(StreamServer {
            wake: Wake::on(&[root, &sessions]),
            events: Tail::at_end(Events::in_folder(root).log().clone())?,
            session_lines: Tail::at_end(Lines::at(sessions.join("index.jsonl")))?,
            listener,
            path,
            clients: Clients::default(),
            _lock: held,
        })
    }

    /// Serves until it is cancelled.
    pub fn run(mut self, cancel: &Cancel) -> Result<()> {
        while !cancel.is_set() {
            let greeting = line(&json!({"kind": "hello", "cursor": self.events.cursor()}));
            self.clients.accept(&self.listener, &greeting);
            self.wake.drain();
            let mut text = Vec::new();
            self.events.read(|event, cursor| {
                text.extend(message("event", event, Some(cursor)));
            })?;
            self.session_lines
                .read(|session, _| text.extend(message("session", session, None)))?;
            self.clients.send(&text);
            self.wait();
        }
        Ok(())
    }

    /// Waits until a client connects or disconnects, a file changes, or the pause is over.
    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.wake.poll_fd());
        fds.extend(self.clients.poll_fds());
        let timeout = Timespec::try_from(self.wake.pause()).ok();
        // A signal ends it early, which is harmless.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        // A socket that stays is replaced by the next server.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Wraps a line of a file as a message of the stream; drops a line that is no JSON object.
fn message(kind: &str, text: &[u8], cursor: Option<Cursor>) -> Vec<u8> {
    // Null is not an object.
    let content: Value = serde_json::from_slice(text).unwrap_or_default();
    if !content.is_object() {
        return Vec::new();
    }
    let mut message = json!({"kind": kind, kind: content});
    if let Some(cursor) = cursor {
        message["cursor"] = json!(cursor);
    }
    line(&message)
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}
