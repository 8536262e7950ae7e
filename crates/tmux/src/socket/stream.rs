//! The connection to a server's socket.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with,
};

use super::identify::Hello;

// Only Linux uses this transport (see `Binary`); on other systems it only has to compile.
#[cfg(target_os = "linux")]
const CLOSE_ON_EXEC: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(target_os = "linux")]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const CLOSE_ON_EXEC: SocketFlags = SocketFlags::empty();
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: SendFlags = SendFlags::empty();

#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
}

impl Stream {
    /// Connects to the socket, with this timeout for the connect and for each send.
    pub(super) fn connect(path: &Path, timeout: Duration) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSE_ON_EXEC, None)?;
        // The send timeout also applies to `connect`, which blocks if a hung server accepts
        // nothing.
        set_socket_timeout(
            &socket,
            Timeout::Send,
            Some(timeout.max(Duration::from_millis(1))),
        )?;
        connect(&socket, &address)?;
        Ok(Self { socket })
    }

    /// Sends the identification, with `/dev/null` for stdin and stdout.
    pub(super) fn identify(&mut self, hello: &Hello) -> io::Result<()> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        self.identify_with(hello, null.as_fd(), null.as_fd())
    }

    /// Sends the identification with these descriptors.
    pub(super) fn identify_with(
        &mut self,
        hello: &Hello,
        stdin: BorrowedFd<'_>,
        stdout: BorrowedFd<'_>,
    ) -> io::Result<()> {
        self.send_with(&hello.with_stdin, stdin)?;
        self.send_with(&hello.with_stdout, stdout)
    }

    pub(super) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, NO_SIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Sends bytes with a descriptor, which belongs to the one message among them that announces
    /// it.
    fn send_with(&mut self, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(ErrorKind::OutOfMemory.into());
        }
        let sent = loop {
            match sendmsg(
                &self.socket,
                &[IoSlice::new(bytes)],
                &mut ancillary,
                NO_SIGNAL,
            ) {
                Ok(sent) => break sent,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.send(&bytes[sent..])
    }

    /// Waits for bytes. Returns 0 if the server closed the connection.
    pub(super) fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            set_socket_timeout(
                &self.socket,
                Timeout::Recv,
                Some(left.max(Duration::from_millis(1))),
            )?;
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
