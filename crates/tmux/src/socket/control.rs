//! A control client on the server's socket, without a process.
//!
//! Commands and answers travel through two pipes whose far ends the server receives with the
//! identification. The socket itself carries only the end of the client.
//!
//! Besides the process, this saves the server: 3.3a crashes with all its sessions if it
//! notifies a control client that has named its flags and not yet finished its identification
//! (tmux pull request 4980 reports it for 3.5a). The tmux program identifies itself in several
//! writes, so a session that is created or closed in between is enough. Here the flags and the end
//! of the identification are in one write, which the server handles as a whole.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::binary::Binary;
use super::identify::{ClientIdentity, Flags};
use super::message::{HeaderLayout, ParsedMessage, append, kind, number, parse};
use super::stream::Stream;
use super::{CONNECT_TIMEOUT, is_absence, is_hang_up};
use crate::Version;

/// The request for a control client.
#[derive(Debug)]
pub(crate) struct ControlRequest<'a> {
    pub(crate) socket: &'a Path,
    pub(crate) version: Version,
    pub(crate) binary: &'a Binary,
    /// The command that attaches the client. It must not depend on the client's environment.
    pub(crate) argv: Vec<String>,
    pub(crate) timeout: Duration,
}

/// The result of [`connect`].
#[derive(Debug)]
pub(crate) enum ControlOutcome {
    Connected(ControlSocket),
    NoServer,
    /// The server knows nothing of the client; the caller has to use the program.
    NotTried,
}

/// A connected control client.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    /// Pipe for commands.
    pub(crate) input: File,
    /// Pipe with answers and notifications.
    pub(crate) output: File,
    pub(crate) farewell: Farewell,
}

/// The socket of a control client: the server says on it why the client has to end.
#[derive(Debug)]
pub(crate) struct Farewell {
    stream: Stream,
    layout: HeaderLayout,
    pending: Vec<u8>,
    reason: Option<String>,
}

/// Connects a control client, if the server is the program whose version is known.
pub(crate) fn connect(request: &ControlRequest<'_>) -> ControlOutcome {
    let Some(layout) = HeaderLayout::of(request.version) else {
        return ControlOutcome::NotTried;
    };
    let mut stream = match Stream::connect(request.socket, request.timeout.min(CONNECT_TIMEOUT)) {
        Ok(stream) => stream,
        Err(error) if is_absence(&error) => return ControlOutcome::NoServer,
        Err(_) => return ControlOutcome::NotTried,
    };
    if !request.binary.is_running_behind(&stream) {
        return ControlOutcome::NotTried;
    }
    match identify(&mut stream, layout, &request.argv) {
        Ok(Some((input, output))) => ControlOutcome::Connected(ControlSocket {
            input,
            output,
            farewell: Farewell {
                stream,
                layout,
                pending: Vec::new(),
                reason: None,
            },
        }),
        Ok(None) => ControlOutcome::NotTried,
        Err(error) if is_hang_up(&error) => ControlOutcome::NoServer,
        // The connection closes with `stream`, so the server forgets the client.
        Err(_) => ControlOutcome::NotTried,
    }
}

/// Sends the identification with the server's ends of the pipes, and returns ours.
fn identify(
    stream: &mut Stream,
    layout: HeaderLayout,
    argv: &[String],
) -> io::Result<Option<(File, File)>> {
    let (server_in, input) = io::pipe()?;
    let (output, server_out) = io::pipe()?;
    // Without variables the identification fits into one read of the server.
    let identity = ClientIdentity::new(&[]);
    let Some(hello) = identity.messages(layout, Flags::Control, argv) else {
        return Ok(None);
    };
    stream.identify_with(&hello, server_in.as_fd(), server_out.as_fd())?;
    let [input, output] = [OwnedFd::from(input), OwnedFd::from(output)];
    Ok(Some((input.into(), output.into())))
}

impl Farewell {
    /// Reads one message, which is available, and answers it. Returns false if the client has
    /// ended.
    pub(crate) fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let soon = Instant::now() + Duration::from_millis(100);
        let count = match self.stream.receive(&mut buffer, soon) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(true),
            Err(error) if is_hang_up(&error) => 0,
            Err(error) => return Err(error),
        };
        if count == 0 {
            let unexpected = || "server exited unexpectedly".to_owned();
            self.reason.get_or_insert_with(unexpected);
            return Ok(false);
        }
        self.pending.extend_from_slice(&buffer[..count]);
        self.handle_pending()
    }

    /// Returns the reason for the end, in the words of the tmux program.
    pub(crate) fn reason(self) -> Option<String> {
        self.reason.filter(|reason| !reason.is_empty())
    }

    fn handle_pending(&mut self) -> io::Result<bool> {
        loop {
            match parse(&self.pending, self.layout) {
                ParsedMessage::Incomplete => return Ok(true),
                ParsedMessage::Garbage => {
                    return Err(io::Error::other("the server sent something unknown"));
                }
                ParsedMessage::Message(message, length) => {
                    self.pending.drain(..length);
                    if !self.handle(message.kind, &message.data)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn handle(&mut self, kind: u32, data: &[u8]) -> io::Result<bool> {
        let text = |data: &[u8]| {
            let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let reason = match kind {
            kind::EXIT => data.get(4..).map(text).unwrap_or_default(),
            kind::SHUTDOWN => "server exited".to_owned(),
            kind::DETACH | kind::DETACHKILL => format!("detached (from session {})", text(data)),
            kind::EXITED | kind::VERSION => return Ok(false),
            // Files of the client: commands that need them are not sent to a control client.
            kind::WRITE_OPEN => return self.refuse(kind::WRITE_READY, data),
            kind::READ_OPEN => return self.refuse(kind::READ_DONE, data),
            _ => return Ok(true),
        };
        self.reason.get_or_insert(reason);
        self.reply(kind::EXITING, &[])
    }

    fn refuse(&mut self, answer: u32, data: &[u8]) -> io::Result<bool> {
        let stream = number(data, 0).unwrap_or_default().to_ne_bytes();
        let error = rustix::io::Errno::NOTSUP.raw_os_error().to_ne_bytes();
        self.reply(answer, &[stream, error].concat())
    }

    fn reply(&mut self, kind: u32, data: &[u8]) -> io::Result<bool> {
        let mut bytes = Vec::new();
        if !append(&mut bytes, self.layout, kind, data, false) {
            return Err(io::Error::other("an answer was too long"));
        }
        match self.stream.send(&bytes) {
            // The server has closed the socket: the next read reports the end.
            Err(error) if is_hang_up(&error) => Ok(true),
            result => result.map(|()| true),
        }
    }
}

impl AsFd for Farewell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
