//! Incremental parser for the stream of a control client.
//!
//! Bytes in, messages out; no processes, no clock. Programs in panes control parts of the stream,
//! so no input makes the parser panic, and it buffers no more than its limit.

use super::block::{Block, Guard};
use super::notification::Notification;

/// Maximum size of one answer: enough for a full history, but bounded.
const DEFAULT_LIMIT: usize = 64 << 20;

/// A complete piece of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// The answer to a command of this client.
    Reply(Block),
    /// The answer to a command that this client did not send: in a hook, or the `attach-session` of
    /// this connection.
    Injected(Block),
    /// A notification.
    Notification(Notification),
}

/// Parses a control-mode stream incrementally.
#[derive(Debug)]
pub struct ControlParser {
    /// The line that is still incomplete.
    line: Vec<u8>,
    /// Whether the line exceeded the limit; the rest of it is skipped.
    line_overflowed: bool,
    open: Option<OpenBlock>,
    limit: usize,
}

#[derive(Debug)]
struct OpenBlock {
    guard: Guard,
    body: Vec<u8>,
    truncated: bool,
}

impl Default for ControlParser {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }
}

impl ControlParser {
    /// Creates a parser that keeps at most `limit` bytes of a line, and of an answer.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            line_overflowed: false,
            open: None,
            limit,
        }
    }

    /// Takes the next bytes and returns the messages that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<ControlMessage> {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            if self.line.is_empty() && !self.line_overflowed && head.len() <= self.limit {
                messages.extend(self.take_line(head, false));
            } else {
                self.keep(head);
                let line = std::mem::take(&mut self.line);
                let overflowed = std::mem::take(&mut self.line_overflowed);
                messages.extend(self.take_line(&line, overflowed));
            }
            rest = &tail[1..];
        }
        self.keep(rest);
        messages
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.line.len());
        self.line_overflowed |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take_line(&mut self, line: &[u8], overflowed: bool) -> Option<ControlMessage> {
        let Some(mut open) = self.open.take() else {
            return self.take_line_outside(line, overflowed);
        };
        let is = |keyword| !overflowed && Guard::parse(line, keyword) == Some(open.guard);
        let succeeded = is("%end");
        if succeeded || is("%error") {
            return Some(open.close(succeeded));
        }
        open.append(line, overflowed, self.limit);
        self.open = Some(open);
        None
    }

    fn take_line_outside(&mut self, line: &[u8], overflowed: bool) -> Option<ControlMessage> {
        if !overflowed && let Some(guard) = Guard::parse(line, "%begin") {
            self.open = Some(OpenBlock {
                guard,
                body: Vec::new(),
                truncated: false,
            });
            return None;
        }
        let notification = if line.starts_with(b"%") {
            Notification::parse(line)
        } else {
            let rest = String::from_utf8_lossy(line).into_owned();
            Notification::Other {
                name: String::new(),
                rest,
            }
        };
        Some(ControlMessage::Notification(notification))
    }
}

impl OpenBlock {
    fn append(&mut self, line: &[u8], overflowed: bool, limit: usize) {
        if overflowed || self.truncated || self.body.len() + line.len() + 1 > limit {
            self.truncated = true;
            return;
        }
        self.body.extend_from_slice(line);
        self.body.push(b'\n');
    }

    fn close(self, succeeded: bool) -> ControlMessage {
        let Self {
            guard,
            body,
            truncated,
        } = self;
        let block = Block {
            guard,
            succeeded,
            body,
            truncated,
        };
        if guard.is_reply() {
            ControlMessage::Reply(block)
        } else {
            ControlMessage::Injected(block)
        }
    }
}

#[cfg(test)]
mod tests;
