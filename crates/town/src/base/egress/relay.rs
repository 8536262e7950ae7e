//! Forwards bytes between two sockets in both directions, with fixed buffers.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const BUFFER: usize = 16 * 1024;

/// Maximum silence after one side has ended its direction.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(300);

/// A connected socket.
pub(super) trait RelaySocket: AsFd {
    fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn write_some(&self, bytes: &[u8]) -> io::Result<usize>;
    fn end_writing(&self) -> io::Result<()>;
    fn unblock(&self) -> io::Result<()>;
}

macro_rules! socket {
    ($($stream:ty),*) => {$(
        impl RelaySocket for $stream {
            fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
                (&*self).read(buffer)
            }
            fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
                (&*self).write(bytes)
            }
            fn end_writing(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Write)
            }
            fn unblock(&self) -> io::Result<()> {
                self.set_nonblocking(true)
            }
        }
    )*};
}

socket!(TcpStream, UnixStream);

/// Limit of the bytes from the client.
#[derive(Clone, Copy, Debug)]
pub(super) enum BodyLimit {
    None,
    /// More bytes than these end the connection: they would be another request.
    Bytes(u64),
}

/// Forwards until both directions have ended. `pending` are bytes of the client that were already
/// read. The end of one direction is passed on, and the other one continues.
pub(super) fn relay(
    client: &impl RelaySocket,
    server: &impl RelaySocket,
    pending: Vec<u8>,
    limit: BodyLimit,
) -> io::Result<()> {
    client.unblock()?;
    server.unblock()?;
    let mut up = RelayDirection::new(pending, limit)?;
    let mut down = RelayDirection::new(Vec::new(), BodyLimit::None)?;
    while !(up.is_done && down.is_done) {
        up.copy(client, server)?;
        down.copy(server, client)?;
        // After the response to a plain request there is nothing left to send.
        if down.is_done && matches!(limit, BodyLimit::Bytes(_)) {
            break;
        }
        wait(client, server, &up, &down)?;
    }
    Ok(())
}

/// One direction of a connection.
struct RelayDirection {
    buffer: Vec<u8>,
    /// The part of the buffer that is to be written.
    start: usize,
    end: usize,
    limit: BodyLimit,
    is_ended: bool,
    is_done: bool,
}

impl RelayDirection {
    fn new(pending: Vec<u8>, limit: BodyLimit) -> io::Result<Self> {
        let end = pending.len();
        let mut buffer = pending;
        buffer.resize(end.max(BUFFER), 0);
        let mut direction = Self {
            buffer,
            start: 0,
            end,
            limit,
            is_ended: false,
            is_done: false,
        };
        direction.count(end)?;
        Ok(direction)
    }

    fn count(&mut self, read: usize) -> io::Result<()> {
        if let BodyLimit::Bytes(left) = &mut self.limit {
            let error = || io::Error::new(ErrorKind::InvalidData, "bytes after the request");
            *left = left.checked_sub(read as u64).ok_or_else(error)?;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn wants_to_read(&self) -> bool {
        self.is_empty() && !self.is_ended
    }

    /// Copies until one of the sockets would block.
    fn copy(&mut self, from: &impl RelaySocket, to: &impl RelaySocket) -> io::Result<()> {
        while !self.is_done {
            if self.wants_to_read() {
                match from.read_some(&mut self.buffer) {
                    Ok(length) => {
                        self.count(length)?;
                        (self.start, self.end) = (0, length);
                        self.is_ended = length == 0;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                }
            }
            if !self.is_empty() {
                match to.write_some(&self.buffer[self.start..self.end]) {
                    Ok(length) => self.start += length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            } else if self.is_ended {
                self.is_done = true;
                match to.end_writing() {
                    // The other side has closed the connection, and reads nothing more.
                    Err(error) if error.kind() == ErrorKind::NotConnected => {}
                    ended => return ended,
                }
            }
        }
        Ok(())
    }
}

/// Waits until a direction can continue. Fails after a long silence of a half-closed connection.
fn wait(
    client: &impl RelaySocket,
    server: &impl RelaySocket,
    up: &RelayDirection,
    down: &RelayDirection,
) -> io::Result<()> {
    let events = |reads: &RelayDirection, writes: &RelayDirection| {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, reads.wants_to_read());
        events.set(PollFlags::OUT, !writes.is_empty());
        events
    };
    // A socket without expected events would report a hang-up again and again.
    let mut fds = Vec::with_capacity(2);
    let (of_client, of_server) = (events(up, down), events(down, up));
    if !of_client.is_empty() {
        fds.push(PollFd::from_borrowed_fd(client.as_fd(), of_client));
    }
    if !of_server.is_empty() {
        fds.push(PollFd::from_borrowed_fd(server.as_fd(), of_server));
    }
    if fds.is_empty() {
        return Ok(());
    }
    let is_half = up.is_done || down.is_done;
    let timeout = Timespec {
        tv_sec: HALF_CLOSED_TIMEOUT.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    match poll(&mut fds, is_half.then_some(&timeout)) {
        Ok(0) if is_half => Err(ErrorKind::TimedOut.into()),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
