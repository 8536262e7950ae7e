//! One-shot commands without a process: the protocol that the tmux client itself speaks.
//!
//! A client connects to the server's socket, says who it is, sends one command line, collects
//! the output and is told an exit code. Doing that here instead of starting a program costs
//! about a tenth (`examples/latency.rs` measures it). The messages are small and have been the
//! same since tmux 3.2; only their header changed, with 3.6.
//!
//! The protocol is private to tmux, and up to 3.5 a server *ends itself* over a malformed
//! message, so this transport is careful. It is used only if the caller has said which version
//! the program has, the version is one that was tried, and the running server *is* that
//! program, file for file (Linux only: `socket/binary.rs`). It never starts a server. Whatever
//! does not fit is left to the program. And once a command was sent it is not sent again by
//! another way, unless it only reads.
//!
//! `socket/message.rs` is the wire format, `socket/identify.rs` what a client says about
//! itself, `socket/exchange.rs` the conversation as a pure state machine, and
//! `socket/stream.rs` the connection.

mod binary;
mod exchange;
mod identify;
mod message;
mod stopped;
mod stream;

pub(crate) use binary::Binary;
pub(crate) use stopped::stopped_server;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use exchange::{Exchange, Step};
use identify::Identity;
use message::Layout;
use stream::Stream;

use crate::Version;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// A command line for a running server.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) socket: &'a Path,
    /// The version and the file that the server must be.
    pub(crate) version: Version,
    pub(crate) binary: &'a Binary,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) argv: Vec<String>,
    /// What a command that reads stdin gets.
    pub(crate) input: &'a [u8],
    pub(crate) timeout: Duration,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The server ran it and said how it ended.
    Finished {
        code: i32,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
    /// Nobody listens on the socket.
    NoServer,
    /// Nothing was run; the program has to do it.
    NotTried,
    /// It was sent and no answer came.
    Lost { reason: String },
    /// It was sent and no answer came in time.
    TimedOut,
    /// The server is stopped.
    Stopped { pid: i32 },
}

/// Runs the command line on the server, if that is possible. While the server is at it the
/// caller does something else.
pub(crate) fn run(request: &Request<'_>, meanwhile: impl FnOnce()) -> Outcome {
    let Some(layout) = Layout::of(request.version) else {
        return Outcome::NotTried;
    };
    let deadline = Instant::now() + request.timeout;
    let mut stream = match Stream::connect(request.socket, request.timeout.min(CONNECT_TIMEOUT)) {
        Ok(stream) => stream,
        Err(error) if is_absence(&error) => return Outcome::NoServer,
        // Its queue of connections is full, and it accepts none.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Outcome::TimedOut,
        Err(_) => return Outcome::NotTried,
    };
    if !request.binary.is_running_behind(&stream) {
        return Outcome::NotTried;
    }
    let identity = Identity::new(&request.environment);
    let Some(hello) = identity.messages(layout, &request.argv) else {
        return Outcome::NotTried;
    };
    if stream.greet(&hello).is_err() {
        // The last piece carries the command. Whether it arrived is not known.
        return Outcome::Lost {
            reason: "the connection broke".to_owned(),
        };
    }
    meanwhile();
    let exchange = Exchange::new(layout, request.input);
    converse(&mut stream, exchange, deadline)
}

fn converse(stream: &mut Stream, mut exchange: Exchange<'_>, deadline: Instant) -> Outcome {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let slice = deadline.min(Instant::now() + stopped::SILENCE);
        let received = match stream.receive(&mut buffer, slice) {
            Ok(count) => &buffer[..count],
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                if let Some(pid) = stopped::stopped_peer(stream) {
                    return Outcome::Stopped { pid };
                }
                if Instant::now() >= deadline {
                    return Outcome::TimedOut;
                }
                continue;
            }
            Err(error) => {
                return Outcome::Lost {
                    reason: error.to_string(),
                };
            }
        };
        match exchange.take(received) {
            Step::Continue => {}
            Step::Done(outcome) => return outcome,
        }
        if let Err(error) = stream.send(&exchange.take_replies()) {
            return Outcome::Lost {
                reason: error.to_string(),
            };
        }
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}
