//! A server that is stopped (SIGSTOP): it accepts connections and answers nothing.
//!
//! Silence alone may be load. The state of the process at the other end of the connection
//! tells the two apart, so that a stopped server is reported at once and a slow one is
//! waited for.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use super::stream::Stream;

/// After so long without an answer the server's process is looked at.
pub(super) const SILENCE: Duration = Duration::from_millis(300);

/// How long a server may take to accept the connection by which its process is found.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the process of the server on this socket, if it is stopped.
pub(crate) fn stopped_server(socket: &Path) -> Option<i32> {
    stopped_peer(&Stream::connect(socket, CONNECT_TIMEOUT).ok()?)
}

/// Returns the process at the other end of a connection, if it is stopped.
#[cfg(target_os = "linux")]
pub(super) fn stopped_peer(connection: &impl AsFd) -> Option<i32> {
    let peer = rustix::net::sockopt::socket_peercred(connection).ok()?;
    let pid = peer.pid.as_raw_nonzero().get();
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold any byte; the state follows the last one.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    (stat.get(name_end + 2) == Some(&b'T')).then_some(pid)
}

/// Elsewhere there is no cheap way to know.
#[cfg(not(target_os = "linux"))]
pub(super) fn stopped_peer(_connection: &impl AsFd) -> Option<i32> {
    None
}
