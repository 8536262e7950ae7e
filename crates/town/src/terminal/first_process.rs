//! Hands the program over to the first process of an agent's container, and signals to it.
//!
//! The broker serves one connection ([`hand_over`]): the first process gets its program and
//! environment by it ([`receive`]), so that they are in no argument and in no file of the engine.
//! The connection stays open. Each byte on it is a signal for the program, and its end means that
//! the broker is gone.
//!
//! Wire format: the length (4 bytes, big endian) and that many bytes of JSON, then the signals.

use crate::Result;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The program of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerProgram {
    /// The program and its arguments, as bytes: they need not be UTF-8.
    pub words: Vec<Vec<u8>>,
    pub env: BTreeMap<String, String>,
    /// Whether the program gets a terminal session of its own, because this kernel lets it type
    /// into its terminal otherwise (TIOCSTI), and so answer its own questions.
    pub new_session: bool,
}

/// Sends signals to the program of a container.
#[derive(Clone, Debug, Default)]
pub struct SignalLine(Arc<Mutex<Option<UnixStream>>>);

impl SignalLine {
    /// Returns whether the first process was there to get the signal.
    pub fn send(&self, signal: Signal) -> bool {
        let number = u8::try_from(signal.as_raw()).unwrap_or_default();
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = stream.as_mut().map(|stream| stream.write_all(&[number]));
        sent.is_some_and(|sent| sent.is_ok())
    }
}

/// Hands the program to the first process that connects. No other process can connect afterwards.
pub fn hand_over(listener: UnixListener, program: ContainerProgram) -> SignalLine {
    let line = SignalLine::default();
    let kept = line.clone();
    std::thread::spawn(move || {
        let accepted = listener.accept().or_warn("a container got no program");
        drop(listener);
        let Some((mut stream, _)) = accepted else {
            return;
        };
        let sent = send(&mut stream, &program).or_warn("a container got no program");
        if sent.is_some() {
            *kept.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        }
    });
    line
}

fn send(stream: &mut UnixStream, program: &ContainerProgram) -> io::Result<()> {
    let body = serde_json::to_vec(program)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(&body)
}

/// Returns the program from the broker, and the connection on which its signals arrive.
pub fn receive(socket: &Path) -> Result<(ContainerProgram, UnixStream)> {
    let lost = |error: io::Error| {
        Problem::environment("cannot reach gt outside of the container").caused_by(error)
    };
    let mut stream = UnixStream::connect(socket).map_err(lost)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(lost)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut body).map_err(lost)?;
    let program = serde_json::from_slice(&body).map_err(|error| lost(error.into()))?;
    Ok((program, stream))
}

/// Returns the next signal for the program. `None` if the broker is gone.
pub fn next_signal(stream: &mut UnixStream) -> Option<Signal> {
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).ok()?; // The broker's end closes the connection.
        if let Some(signal) = Signal::from_named_raw(byte[0].into()) {
            return Some(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_and_signals_reach_one_process_only() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("start.sock");
        let program = ContainerProgram {
            words: vec![b"sh".to_vec(), b"\xff".to_vec()],
            env: BTreeMap::from([("KEY".to_owned(), "a\nb".to_owned())]),
            new_session: true,
        };
        let line = hand_over(UnixListener::bind(&socket).unwrap(), program.clone());
        assert!(!line.send(Signal::TERM), "no process is there yet");
        let (received, mut stream) = receive(&socket).unwrap();
        assert_eq!(received, program);
        while !line.send(Signal::HUP) {
            std::thread::yield_now();
        }
        assert_eq!(next_signal(&mut stream), Some(Signal::HUP));
        assert!(receive(&socket).is_err(), "the socket is closed");
        drop(line);
        assert_eq!(next_signal(&mut stream), None);
    }
}
