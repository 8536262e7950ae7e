//! The control client itself: a tmux process, or a connection to the server's socket.
//!
//! The socket is preferred ([`crate::socket`] says when it can be used, and why it is safer). Both
//! have a pipe for commands and a pipe for answers; they differ in how they end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{Shutdown, shutdown};

use super::{FAREWELL, spawn};
use crate::socket::{ControlOutcome, ControlRequest, ControlSocket, Farewell, connect_control};
use crate::{Error, Server};

/// A client that is about to be used.
#[derive(Debug)]
pub(super) enum ControlClient {
    Program(std::process::Command),
    Socket(ControlSocket),
}

impl ControlClient {
    /// Connects to the socket, or prepares the program if that is not possible.
    pub(super) fn of(server: &Server, argv: Vec<String>) -> Result<Self, Error> {
        let settings = server.settings();
        let socket = settings.socket_path();
        let connected = match settings.known_version() {
            None => ControlOutcome::NotTried,
            Some((version, binary)) => connect_control(&ControlRequest {
                socket: &socket,
                version: *version,
                binary,
                argv: argv.clone(),
                timeout: settings.timeout(),
            }),
        };
        match connected {
            ControlOutcome::Connected(connected) => Ok(ControlClient::Socket(connected)),
            ControlOutcome::NoServer => Err(Error::NoServer { socket }),
            ControlOutcome::NotTried => {
                let mut program = server.client_command();
                // Without `-N` an attach would start a server, and with it the user's configuration.
                program.args(["-N", "-C"]).args(argv);
                Ok(ControlClient::Program(program))
            }
        }
    }

    /// Starts the client: returns the pipe for commands, the link for the reading thread, and the
    /// means to end it.
    pub(super) fn start(self) -> io::Result<(File, Link, Peer)> {
        match self {
            ControlClient::Program(program) => {
                let mut child = spawn::spawn(program)?;
                let missing = || io::Error::other("the child has no stream");
                let stdin = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
                let stdout = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
                let stderr = child.stderr.take().ok_or_else(missing)?;
                let link = Link {
                    output: stdout.into(),
                    end: LinkEnd::Program(stderr),
                };
                Ok((stdin.into(), link, Peer::Program(child)))
            }
            ControlClient::Socket(socket) => {
                let copy = socket.farewell.as_fd().try_clone_to_owned()?;
                let link = Link {
                    output: socket.output,
                    end: LinkEnd::Socket {
                        farewell: socket.farewell,
                        has_ended: false,
                    },
                };
                Ok((socket.input, link, Peer::Socket(copy)))
            }
        }
    }
}

/// The far end of a connection, for ending it from another thread.
#[derive(Debug)]
pub(super) enum Peer {
    Program(Child),
    Socket(OwnedFd),
}

impl Peer {
    /// Ends a client that did not end by itself.
    pub(super) fn kill(&mut self) {
        match self {
            // Fails only if it has exited by now.
            Peer::Program(child) => drop(child.kill()),
            // Fails only if the server has closed the connection. The reader sees its end.
            Peer::Socket(socket) => drop(shutdown(socket, Shutdown::Both)),
        }
    }

    /// Cleans up after the answers have ended. Returns the exit code of a process that has exited.
    pub(super) fn reap(mut self) -> Option<i32> {
        let Peer::Program(child) = &mut self else {
            return None;
        };
        // A process whose status cannot be read has no exit code.
        let status = child.try_wait().ok().flatten();
        // Both fail only if it has ended by now. Its stdout is closed, so it has nothing left to do.
        let _ = child.kill();
        let _ = child.wait();
        status.and_then(|status| status.code())
    }
}

/// The answers of a client, for the thread that reads them.
#[derive(Debug)]
pub(super) struct Link {
    output: File,
    end: LinkEnd,
}

#[derive(Debug)]
enum LinkEnd {
    /// The process prints its reason to stderr.
    Program(ChildStderr),
    Socket {
        farewell: Farewell,
        has_ended: bool,
    },
}

impl Link {
    /// Reads output, and waits for it at most `timeout`. Returns `None` if nothing came, and 0 if
    /// the client has ended.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> io::Result<Option<usize>> {
        let is_readable = match &mut self.end {
            LinkEnd::Program(_) => {
                timeout.is_none() || wait(&[self.output.as_fd()], timeout)?.contains(&0)
            }
            // The server has closed its end, or will not write again.
            LinkEnd::Socket {
                has_ended: true, ..
            } => match wait(&[self.output.as_fd()], Some(Duration::ZERO))?.contains(&0) {
                true => true,
                false => return Ok(Some(0)),
            },
            LinkEnd::Socket {
                farewell,
                has_ended,
            } => {
                let ready = wait(&[self.output.as_fd(), farewell.as_fd()], timeout)?;
                // Output comes first: the server sends all of it before it ends the client.
                let has_output = ready.contains(&0);
                if !has_output && ready.contains(&1) {
                    *has_ended = !farewell.read()?;
                }
                has_output
            }
        };
        if !is_readable {
            return Ok(None);
        }
        match self.output.read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the words of the client about its end.
    pub(super) fn end_message(self) -> String {
        match self.end {
            LinkEnd::Program(mut stderr) => {
                let mut said = Vec::new();
                let mut piece = [0; 4096];
                // stderr closes with the process. The wait for it is bounded by a timeout.
                while let Ok([0]) = wait(&[stderr.as_fd()], Some(FAREWELL)).as_deref() {
                    match stderr.read(&mut piece) {
                        Ok(count) if count > 0 => said.extend_from_slice(&piece[..count]),
                        _ => break,
                    }
                }
                String::from_utf8_lossy(&said).trim().to_owned()
            }
            LinkEnd::Socket {
                mut farewell,
                mut has_ended,
            } => {
                // Output that ends first is followed by the reason, unless the server hangs.
                while !has_ended
                    && wait(&[farewell.as_fd()], Some(FAREWELL))
                        .is_ok_and(|ready| !ready.is_empty())
                {
                    has_ended = !farewell.read().unwrap_or(false);
                }
                farewell.reason().unwrap_or_default()
            }
        }
    }
}

/// Waits until one of these can be read, and returns the indices of those that can.
fn wait(
    streams: &[std::os::fd::BorrowedFd<'_>],
    timeout: Option<Duration>,
) -> io::Result<Vec<usize>> {
    let timeout = timeout
        .map(Timespec::try_from)
        .transpose()
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut fds: Vec<PollFd<'_>> = streams
        .iter()
        .map(|stream| PollFd::from_borrowed_fd(*stream, PollFlags::IN))
        .collect();
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let ready = fds.iter().enumerate();
    let ready = ready.filter(|(_, fd)| !fd.revents().is_empty());
    Ok(ready.map(|(index, _)| index).collect())
}
