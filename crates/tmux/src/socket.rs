//! One-shot commands without a process, using the protocol of the tmux client.
//!
//! A client connects to the server's socket, identifies itself, sends one command line, collects
//! the output and receives an exit code. Without a process this takes about a tenth of the time
//! (`examples/latency.rs` measures it). The messages are small and unchanged since tmux 3.2; only
//! their header changed, in 3.6.
//!
//! The protocol is private to tmux, and up to 3.5 a malformed message *ends the server*, so this
//! transport is conservative. It is used only if the caller has set the version of the program,
//! that version was tested, and the running server *is* that program, file for file (Linux only:
//! `socket/binary.rs`). It never starts a server. All other cases are left to the program. A
//! command that was sent is not retried through the program, unless it only reads, or the server
//! ended before it read the command.
//!
//! `socket/message.rs` is the wire format, `socket/identify.rs` the identification of a client,
//! `socket/exchange.rs` the exchange as a pure state machine, and `socket/stream.rs` the
//! connection. `socket/control.rs` connects a control client in the same way.

mod binary;
mod control;
mod exchange;
mod identify;
mod message;
mod stopped;
mod stream;

pub(crate) use binary::Binary;
pub(crate) use control::{
    ControlOutcome, ControlRequest, ControlSocket, Farewell, connect as connect_control,
};
pub(crate) use stopped::stopped_server;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use exchange::{Exchange, ExchangeStep};
use identify::{ClientIdentity, Flags};
use message::HeaderLayout;
use stream::Stream;

use crate::Version;

/// Maximum wait for the server to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// A command line for a running server.
#[derive(Debug)]
pub(crate) struct SocketRequest<'a> {
    pub(crate) socket: &'a Path,
    /// The version that the server must have.
    pub(crate) version: Version,
    pub(crate) binary: &'a Binary,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) argv: Vec<String>,
    /// The stdin of the command line.
    pub(crate) input: &'a [u8],
    pub(crate) timeout: Duration,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum ExchangeOutcome {
    /// The server ran the command line and reported an exit code.
    Finished {
        code: i32,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
    /// No server listens on the socket.
    NoServer,
    /// The server ran nothing; the caller has to use the program.
    NotTried,
    /// The request was sent, but the connection ended without an answer.
    Lost { reason: String },
    /// The request was sent, but no answer came before the timeout.
    TimedOut,
    /// The server process is stopped.
    Stopped { pid: i32 },
}

/// Runs the command line on the server, if that is possible. Calls `meanwhile` after the request
/// was sent, while the server works on it.
pub(crate) fn run(request: &SocketRequest<'_>, meanwhile: impl FnOnce()) -> ExchangeOutcome {
    let Some(layout) = HeaderLayout::of(request.version) else {
        return ExchangeOutcome::NotTried;
    };
    let deadline = Instant::now() + request.timeout;
    let mut stream = match Stream::connect(request.socket, request.timeout.min(CONNECT_TIMEOUT)) {
        Ok(stream) => stream,
        Err(error) if is_absence(&error) => return ExchangeOutcome::NoServer,
        // The server's backlog is full, and it accepts no connection.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            return ExchangeOutcome::TimedOut;
        }
        Err(_) => return ExchangeOutcome::NotTried,
    };
    if !request.binary.is_running_behind(&stream) {
        return ExchangeOutcome::NotTried;
    }
    let identity = ClientIdentity::new(&request.environment);
    let Some(hello) = identity.messages(layout, Flags::OneShot, &request.argv) else {
        return ExchangeOutcome::NotTried;
    };
    match stream.identify(&hello) {
        Ok(()) => {}
        // The last bytes contain the command, and the server did not receive them.
        Err(error) if is_hang_up(&error) => return ExchangeOutcome::NoServer,
        Err(_) => {
            return ExchangeOutcome::Lost {
                reason: "the connection broke".to_owned(),
            };
        }
    }
    meanwhile();
    let exchange = Exchange::new(layout, request.input);
    converse(&mut stream, exchange, deadline)
}

fn converse(stream: &mut Stream, mut exchange: Exchange<'_>, deadline: Instant) -> ExchangeOutcome {
    let mut buffer = vec![0; 64 * 1024];
    let mut is_answered = false;
    loop {
        let slice = deadline.min(Instant::now() + stopped::SILENCE);
        let received = match stream.receive(&mut buffer, slice) {
            Ok(count) => &buffer[..count],
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                if let Some(pid) = stopped::stopped_peer(stream) {
                    return ExchangeOutcome::Stopped { pid };
                }
                if Instant::now() >= deadline {
                    return ExchangeOutcome::TimedOut;
                }
                continue;
            }
            // The socket closed with unread bytes, and the last ones are the command: the server
            // ended with its last session before it ran anything.
            Err(error) if is_hang_up(&error) && !is_answered => return ExchangeOutcome::NoServer,
            Err(error) => {
                return ExchangeOutcome::Lost {
                    reason: error.to_string(),
                };
            }
        };
        is_answered = true;
        match exchange.take(received) {
            ExchangeStep::Continue => {}
            ExchangeStep::Done(outcome) => return outcome,
        }
        if let Err(error) = stream.send(&exchange.take_replies()) {
            return ExchangeOutcome::Lost {
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

/// Returns whether the server closed the connection before it read everything that was sent.
fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// Feeds received bytes to an exchange and returns its outcome and replies as text.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn exchange_with(is_long: bool, parts: &[&[u8]]) -> String {
    let layout = match is_long {
        true => HeaderLayout::Long,
        false => HeaderLayout::Short,
    };
    let mut exchange = Exchange::new(layout, b"input");
    let mut step = ExchangeStep::Continue;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        step = exchange.take(part);
        if matches!(step, ExchangeStep::Done(_)) {
            break;
        }
    }
    format!("{step:?} {:?}", exchange.take_replies())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Returns the outcome of a command on a server that behaves as `serve`.
    fn outcome(serve: impl FnOnce(UnixListener)) -> ExchangeOutcome {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut stream = Stream::connect(&path, TIMEOUT).unwrap();
        stream.send(b"a command").unwrap();
        serve(listener);
        let exchange = Exchange::new(HeaderLayout::Long, b"");
        converse(&mut stream, exchange, Instant::now() + TIMEOUT)
    }

    #[test]
    fn server_that_ends_before_it_reads_the_command_is_no_server() {
        assert!(matches!(outcome(drop), ExchangeOutcome::NoServer));
        let outcome = outcome(|listener| drop(listener.accept().unwrap()));
        assert!(matches!(outcome, ExchangeOutcome::NoServer), "{outcome:?}");
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
            assert!(
                matches!(outcome, ExchangeOutcome::Lost { .. }),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn server_that_ends_during_its_answer_is_lost() {
        // The server has read the command, and leaves later bytes unread.
        let outcome = outcome(|listener| {
            let (mut peer, _) = listener.accept().unwrap();
            peer.read_exact(&mut [0; 2]).unwrap();
            peer.write_all(b"x").unwrap();
        });
        assert!(
            matches!(outcome, ExchangeOutcome::Lost { .. }),
            "{outcome:?}"
        );
    }
}
