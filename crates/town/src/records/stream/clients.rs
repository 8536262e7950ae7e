//! The clients of the server. No client can block another client or the server.

use rustix::event::{PollFd, PollFlags};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

/// Maximum number of pending bytes for a client that does not read; above it the client is
/// disconnected, and may connect again.
const MAX_PENDING: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Clients(Vec<StreamClient>);

#[derive(Debug)]
struct StreamClient {
    stream: UnixStream,
    /// Bytes that the socket has not taken yet.
    pending: Vec<u8>,
}

impl Clients {
    /// Accepts all waiting clients of this user and sends them a greeting.
    pub(super) fn accept(&mut self, listener: &UnixListener, greeting: &[u8]) {
        // An error means that the client is gone, or is transient: the next call retries.
        while let Ok((stream, _)) = listener.accept() {
            if is_of_this_user(&stream) && stream.set_nonblocking(true).is_ok() {
                let pending = greeting.to_vec();
                self.0.push(StreamClient { stream, pending });
            }
        }
    }

    /// Returns the file descriptors to wait for.
    pub(super) fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.0.iter().map(|client| {
            let wanted = match client.pending.is_empty() {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            PollFd::new(&client.stream, wanted)
        })
    }

    /// Sends these lines to all clients.
    pub(super) fn send(&mut self, lines: &[u8]) {
        for client in &mut self.0 {
            client.pending.extend_from_slice(lines);
        }
        self.flush();
    }

    /// Writes what can be written, and disconnects clients that are gone or too slow.
    pub(super) fn flush(&mut self) {
        self.0
            .retain_mut(|client| client.listens() && client.write());
    }
}

/// Returns whether the process at the other end belongs to this user or to root. The mode of the
/// socket excludes other users too, but only from the moment after it was made.
#[cfg(target_os = "linux")]
fn is_of_this_user(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid.is_root() || peer.uid == rustix::process::geteuid())
}

#[cfg(not(target_os = "linux"))]
fn is_of_this_user(_: &UnixStream) -> bool {
    true
}

impl StreamClient {
    fn write(&mut self) -> bool {
        let mut written = 0;
        while written < self.pending.len() {
            match self.stream.write(&self.pending[written..]) {
                Ok(length) => written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.pending.drain(..written);
        self.pending.len() <= MAX_PENDING
    }

    /// Returns whether it is still connected. Its input is discarded.
    fn listens(&mut self) -> bool {
        let mut said = [0; 512];
        loop {
            match self.stream.read(&mut said) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}
