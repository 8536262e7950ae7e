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
//! another way, unless it only reads, or the server ended before it read the command.
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
    match stream.greet(&hello) {
        Ok(()) => {}
        // The last bytes carry the command, and they were not taken.
        Err(error) if is_hang_up(&error) => return Outcome::NoServer,
        Err(_) => {
            return Outcome::Lost {
                reason: "the connection broke".to_owned(),
            };
        }
    }
    meanwhile();
    let exchange = Exchange::new(layout, request.input);
    converse(&mut stream, exchange, deadline)
}

fn converse(stream: &mut Stream, mut exchange: Exchange<'_>, deadline: Instant) -> Outcome {
    let mut buffer = vec![0; 64 * 1024];
    let mut is_answered = false;
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
            // The socket closed with unread bytes in it, and the last ones are the command: the
            // server ended with its last session before it ran anything.
            Err(error) if is_hang_up(&error) && !is_answered => return Outcome::NoServer,
            Err(error) => {
                return Outcome::Lost {
                    reason: error.to_string(),
                };
            }
        };
        is_answered = true;
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

/// Whether the server closed the connection without reading everything that was sent.
fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// The outcome of a command that is sent to a server which then does this.
    fn outcome(serve: impl FnOnce(UnixListener)) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut stream = Stream::connect(&path, PATIENCE).unwrap();
        stream.send(b"a command").unwrap();
        serve(listener);
        let exchange = Exchange::new(Layout::Long, b"");
        converse(&mut stream, exchange, Instant::now() + PATIENCE)
    }

    #[test]
    fn server_that_ends_before_it_reads_the_command_is_no_server() {
        assert!(matches!(outcome(drop), Outcome::NoServer));
        let outcome = outcome(|listener| drop(listener.accept().unwrap()));
        assert!(matches!(outcome, Outcome::NoServer), "{outcome:?}");
    }

    #[test]
    fn server_that_ends_after_it_reads_the_command_is_lost() {
        let outcome_of = |answer: &[u8]| {
            outcome(|listener| {
                let (mut peer, _) = listener.accept().unwrap();
                let _ = peer.read(&mut [0; 64]).unwrap();
                peer.write_all(answer).unwrap();
            })
        };
        for answer in [&b""[..], b"x"] {
            let outcome = outcome_of(answer);
            assert!(matches!(outcome, Outcome::Lost { .. }), "{outcome:?}");
        }
    }

    #[test]
    fn server_that_ends_during_its_answer_is_lost() {
        // It has read the command, and leaves what came after unread.
        let outcome = outcome(|listener| {
            let (mut peer, _) = listener.accept().unwrap();
            peer.read_exact(&mut [0; 2]).unwrap();
            peer.write_all(b"x").unwrap();
        });
        assert!(matches!(outcome, Outcome::Lost { .. }), "{outcome:?}");
    }
}
