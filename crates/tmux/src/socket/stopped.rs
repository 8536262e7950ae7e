//! Detects a server that is stopped (SIGSTOP): it accepts connections but does not answer.
//!
//! A missing answer may also mean high load. The state of the process at the other end of the
//! connection distinguishes the two, so that a stopped server is reported at once while the client
//! keeps waiting for a slow one.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use super::stream::Stream;

/// Time without an answer after which the state of the server's process is checked.
pub(super) const SILENCE: Duration = Duration::from_millis(300);

/// Maximum wait for a connection that is used to find the server's process.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the pid of the server on this socket, if it is stopped.
pub(crate) fn stopped_server(socket: &Path) -> Option<i32> {
    // Without a server there is no stopped one.
    stopped_peer(&Stream::connect(socket, CONNECT_TIMEOUT).ok()?)
}

/// Returns the pid of the process at the other end of a connection, if it is stopped; `None` as well
/// if the process has ended.
#[cfg(target_os = "linux")]
pub(super) fn stopped_peer(connection: &impl AsFd) -> Option<i32> {
    let peer = rustix::net::sockopt::socket_peercred(connection).ok()?;
    let pid = peer.pid.as_raw_nonzero().get();
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any byte; the state follows the last one.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    (stat.get(name_end + 2) == Some(&b'T')).then_some(pid)
}

/// Returns `None`: other systems have no cheap way to find out.
#[cfg(not(target_os = "linux"))]
pub(super) fn stopped_peer(_connection: &impl AsFd) -> Option<i32> {
    None
}
