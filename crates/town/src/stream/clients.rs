//! Those who listen. None of them can hold up another, or the server.

use rustix::event::{PollFd, PollFlags};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

/// So much may wait for one that does not read; then it is let go, and may come again.
const MOST_PENDING: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Clients(Vec<Client>);

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// What the socket has not taken yet.
    pending: Vec<u8>,
}

impl Clients {
    /// Takes everybody in who waits at the door, with a greeting.
    pub(super) fn accept(&mut self, listener: &UnixListener, greeting: &[u8]) {
        // A failure is the caller's that is gone already, or passes: the next look
        // tries again.
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                let pending = greeting.to_vec();
                self.0.push(Client { stream, pending });
            }
        }
    }

    /// What to wait for.
    pub(super) fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.0.iter().map(|client| {
            let wanted = match client.pending.is_empty() {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            PollFd::new(&client.stream, wanted)
        })
    }

    /// Gives these lines to everybody.
    pub(super) fn tell(&mut self, lines: &[u8]) {
        for client in &mut self.0 {
            client.pending.extend_from_slice(lines);
        }
        self.flush();
    }

    /// Writes what can be written, and lets those go who are gone or too slow.
    pub(super) fn flush(&mut self) {
        self.0
            .retain_mut(|client| client.listens() && client.write());
    }
}

impl Client {
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
        self.pending.len() <= MOST_PENDING
    }

    /// Whether it is still there. It has nothing to say that we would understand.
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
