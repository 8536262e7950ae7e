//! The exchange after the identification, as a state machine: bytes in, bytes out.
//!
//! The server opens streams and writes to them, may ask for stdin, and ends with an exit code. A
//! stream is one of ours (stdout, stderr) or a file that the client should open. Files are refused,
//! since commands that need them are not sent over this transport.

use std::collections::HashMap;

use super::ExchangeOutcome;
use super::message::{
    HEADER, HeaderLayout, MAX_MESSAGE, ParsedMessage, Received, append, kind, number, parse,
};

/// Error number that is sent to a server that asks for a file.
const NOT_SUPPORTED: i32 = rustix::io::Errno::NOTSUP.raw_os_error();
const STDIN: i32 = 0;
const STDOUT: i32 = 1;
const STDERR: i32 = 2;

#[derive(Debug)]
pub(super) struct Exchange<'a> {
    layout: HeaderLayout,
    /// Received bytes that are not yet a complete message.
    pending: Vec<u8>,
    replies: Vec<u8>,
    input: &'a [u8],
    /// The descriptor of each open stream.
    streams: HashMap<i32, i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum ExchangeStep {
    Continue,
    Done(ExchangeOutcome),
}

impl<'a> Exchange<'a> {
    pub(super) fn new(layout: HeaderLayout, input: &'a [u8]) -> Self {
        Self {
            layout,
            pending: Vec::new(),
            replies: Vec::new(),
            input,
            streams: HashMap::new(),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Processes received bytes. An empty slice means that the server closed the connection.
    pub(super) fn take(&mut self, bytes: &[u8]) -> ExchangeStep {
        if bytes.is_empty() {
            return lost("the server hung up");
        }
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        loop {
            match parse(rest, self.layout) {
                ParsedMessage::Message(message, length) => {
                    rest = &rest[length..];
                    if let ExchangeStep::Done(outcome) = self.handle(&message) {
                        return ExchangeStep::Done(outcome);
                    }
                }
                ParsedMessage::Incomplete => break,
                ParsedMessage::Garbage => return lost("the server sent something unknown"),
            }
        }
        self.pending = rest.to_vec();
        ExchangeStep::Continue
    }

    /// Returns and clears the bytes to send.
    pub(super) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    fn handle(&mut self, message: &Received) -> ExchangeStep {
        let data = message.data.as_slice();
        match message.kind {
            kind::WRITE_OPEN => self.open_for_writing(data),
            kind::WRITE => self.write(data),
            kind::WRITE_CLOSE => {
                if let Some(stream) = number(data, 0) {
                    self.streams.remove(&stream);
                }
                ExchangeStep::Continue
            }
            kind::READ_OPEN => self.read(data),
            kind::EXIT | kind::SHUTDOWN => self.exit(data),
            kind::EXITED => self.exit(&[]),
            kind::DETACH | kind::DETACHKILL => self.reply(kind::EXITING, &[]),
            // The server refused our first message, so it has not run anything.
            kind::VERSION => ExchangeStep::Done(ExchangeOutcome::NotTried),
            kind::FLAGS | kind::READ_CANCEL => ExchangeStep::Continue,
            other => lost(&format!("the server sent a message of the kind {other}")),
        }
    }

    fn open_for_writing(&mut self, data: &[u8]) -> ExchangeStep {
        let (Some(stream), Some(descriptor)) = (number(data, 0), number(data, 4)) else {
            return lost("the server opened a stream without a number");
        };
        let error = if [STDOUT, STDERR].contains(&descriptor) {
            self.streams.insert(stream, descriptor);
            0
        } else {
            NOT_SUPPORTED
        };
        self.reply(kind::WRITE_READY, &two_numbers(stream, error))
    }

    fn write(&mut self, data: &[u8]) -> ExchangeStep {
        let (Some(stream), Some(text)) = (number(data, 0), data.get(4..)) else {
            return lost("the server wrote to a stream without a number");
        };
        match self.streams.get(&stream) {
            Some(&STDOUT) => self.stdout.extend_from_slice(text),
            Some(_) => self.stderr.extend_from_slice(text),
            None => return lost("the server wrote to a stream that is not open"),
        }
        ExchangeStep::Continue
    }

    fn read(&mut self, data: &[u8]) -> ExchangeStep {
        let (Some(stream), Some(descriptor)) = (number(data, 0), number(data, 4)) else {
            return lost("the server asked for a stream without a number");
        };
        if descriptor != STDIN {
            return self.reply(kind::READ_DONE, &two_numbers(stream, NOT_SUPPORTED));
        }
        for chunk in std::mem::take(&mut self.input).chunks(MAX_MESSAGE - HEADER - 4) {
            if let ExchangeStep::Done(outcome) =
                self.reply(kind::READ, &[&stream.to_ne_bytes(), chunk].concat())
            {
                return ExchangeStep::Done(outcome);
            }
        }
        self.reply(kind::READ_DONE, &two_numbers(stream, 0))
    }

    fn exit(&mut self, data: &[u8]) -> ExchangeStep {
        if let Some(message) = data.get(4..).filter(|message| !message.is_empty()) {
            self.stderr
                .extend_from_slice(message.strip_suffix(b"\0").unwrap_or(message));
        }
        ExchangeStep::Done(ExchangeOutcome::Finished {
            code: number(data, 0).unwrap_or(0),
            stdout: std::mem::take(&mut self.stdout),
            stderr: std::mem::take(&mut self.stderr),
        })
    }

    fn reply(&mut self, kind: u32, data: &[u8]) -> ExchangeStep {
        if append(&mut self.replies, self.layout, kind, data, false) {
            ExchangeStep::Continue
        } else {
            lost("an answer was too long")
        }
    }
}

fn two_numbers(first: i32, second: i32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    bytes
}

fn lost(reason: &str) -> ExchangeStep {
    ExchangeStep::Done(ExchangeOutcome::Lost {
        reason: reason.to_owned(),
    })
}

#[cfg(test)]
mod tests;
