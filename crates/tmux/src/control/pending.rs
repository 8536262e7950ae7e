//! The answer to commands in flight.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::Error;

type ReplyResult = Result<Vec<u8>, Error>;

/// Commands that were sent and not yet answered. Dropping it does not cancel them.
#[derive(Debug)]
#[must_use = "the commands run either way, but their failures are not seen"]
pub struct Pending {
    summary: String,
    receiver: Receiver<ReplyResult>,
}

/// The sending end of the answer.
#[derive(Debug)]
pub(super) struct Answer {
    sender: SyncSender<ReplyResult>,
}

impl Answer {
    pub(super) fn give(self, outcome: ReplyResult) {
        // Fails if the receiver was dropped; the answer is then not wanted.
        let _ = self.sender.try_send(outcome);
    }
}

impl Pending {
    pub(super) fn new(summary: String) -> (Self, Answer) {
        let (sender, receiver) = sync_channel(1);
        (Self { summary, receiver }, Answer { sender })
    }

    /// Returns an empty answer that is already complete, for an empty batch.
    pub(super) fn empty() -> Self {
        let (pending, answer) = Self::new(String::new());
        answer.give(Ok(Vec::new()));
        pending
    }

    /// Waits for the output. After a timeout the commands may still run.
    pub fn wait(self, timeout: Duration) -> Result<String, Error> {
        let output = self.wait_bytes(timeout)?;
        Ok(String::from_utf8(output)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Waits for the output as raw bytes, which need not be UTF-8.
    pub fn wait_bytes(self, timeout: Duration) -> Result<Vec<u8>, Error> {
        self.receiver.recv_timeout(timeout).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => Error::TimedOut {
                    command: self.summary,
                    after: timeout,
                },
                RecvTimeoutError::Disconnected => Error::ServerLost {
                    command: self.summary,
                    reason: String::new(),
                },
            })
        })
    }
}
