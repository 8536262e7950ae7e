//! Matches answers to pending commands.
//!
//! tmux answers in the order of sending, one block per command, and a line ends early if one of its
//! commands fails. So each entry counts the blocks that each of its lines can produce. Some
//! commands run other commands and produce a block for each of them, which cannot be counted in
//! advance; others continue after their block has ended. After such commands a marker is sent, and
//! all blocks up to the marker belong to them.

use std::collections::VecDeque;

use super::block::Block;
use super::pending::Answer;
use crate::nonce::nonce;
use crate::{Batch, Command, Error};

/// Commands that run other commands, each with a separate block, or that continue after their block
/// has ended.
const MARKED_COMMANDS: [&str; 6] = [
    "if-shell",
    "load-buffer",
    "run-shell",
    "save-buffer",
    "source-file",
    "wait-for",
];

/// The pending answers, in the order of sending.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    entries: VecDeque<PendingReply>,
    /// The reason for the end of the connection, once it has ended.
    ended: Option<String>,
}

#[derive(Debug)]
pub(super) struct PendingReply {
    summary: String,
    expected: Expected,
    output: Vec<u8>,
    failure: Option<Error>,
    answer: Answer,
}

#[derive(Debug)]
enum Expected {
    /// The number of blocks that each line can still produce.
    Blocks(VecDeque<usize>),
    /// All blocks up to the one with this body.
    UpTo(Vec<u8>),
}

impl PendingReply {
    /// Creates the entry for a batch, and the text to send.
    pub(super) fn new(batch: &Batch, summary: String, answer: Answer) -> (Self, String) {
        let mut script = batch.to_script();
        let marked = batch
            .commands()
            .any(|command| MARKED_COMMANDS.contains(&command.name()));
        let expected = if marked {
            let mark = nonce();
            script.push_str(
                &Command::new("display-message")
                    .flag("-p")
                    .arg(&mark)
                    .to_line(),
            );
            script.push('\n');
            Expected::UpTo(format!("{mark}\n").into_bytes())
        } else {
            Expected::Blocks(batch.lines().map(<[Command]>::len).collect())
        };
        let entry = Self {
            summary,
            expected,
            output: Vec::new(),
            failure: None,
            answer,
        };
        (entry, script)
    }

    /// Takes a block. Returns whether it was the last one of this entry.
    fn take(&mut self, block: Block) -> bool {
        match &mut self.expected {
            Expected::UpTo(mark) if block.body == *mark => return true,
            Expected::UpTo(_) => {}
            Expected::Blocks(lines) => {
                if let Some(left) = lines.front_mut() {
                    *left = if block.succeeded {
                        left.saturating_sub(1)
                    } else {
                        0
                    };
                }
                if lines.front() == Some(&0) {
                    lines.pop_front();
                }
            }
        }
        if !block.succeeded {
            let message = String::from_utf8_lossy(&block.body);
            let message = message.strip_prefix("parse error: ").unwrap_or(&message);
            self.failure
                .get_or_insert_with(|| Error::refused(self.summary.clone(), None, message));
        } else if block.truncated {
            self.failure
                .get_or_insert_with(|| Error::protocol(&self.summary, "the output is too long"));
        } else {
            self.output.extend_from_slice(&block.body);
        }
        matches!(&self.expected, Expected::Blocks(lines) if lines.is_empty())
    }

    fn finish(self) {
        self.answer.give(self.failure.map_or(Ok(self.output), Err));
    }

    fn lose(self, reason: &str) {
        self.answer.give(Err(Error::ServerLost {
            command: self.summary,
            reason: reason.to_owned(),
        }));
    }
}

impl ReplyQueue {
    /// Appends the entry, or fails it at once if the connection has ended.
    pub(super) fn push(&mut self, entry: PendingReply) {
        match &self.ended {
            Some(reason) => entry.lose(reason),
            None => self.entries.push_back(entry),
        }
    }

    /// Passes the block to the first entry. Returns false if there is none, which means that the
    /// count of blocks is wrong.
    pub(super) fn take(&mut self, block: Block) -> bool {
        let Some(first) = self.entries.front_mut() else {
            return false;
        };
        if first.take(block)
            && let Some(entry) = self.entries.pop_front()
        {
            entry.finish();
        }
        true
    }

    /// Fails all pending entries, and all later ones.
    pub(super) fn end(&mut self, reason: &str) {
        let reason = self.ended.get_or_insert_with(|| reason.to_owned());
        for entry in self.entries.drain(..) {
            entry.lose(reason);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::Guard;
    use super::super::pending::Pending;
    use super::*;
    use crate::ErrorKind;
    use std::time::Duration;

    fn block(succeeded: bool, body: &str) -> Block {
        let guard = Guard {
            time: 1,
            number: 1,
            flags: 1,
        };
        Block {
            guard,
            succeeded,
            body: body.as_bytes().to_vec(),
            truncated: false,
        }
    }

    fn push(queue: &mut ReplyQueue, batch: impl Into<Batch>) -> (Pending, String) {
        let (pending, answer) = Pending::new("summary".into());
        let (entry, script) = PendingReply::new(&batch.into(), "summary".into(), answer);
        queue.push(entry);
        (pending, script)
    }

    fn wait(pending: Pending) -> Result<String, Error> {
        pending.wait(Duration::ZERO)
    }

    #[test]
    fn one_command_gets_one_block() {
        let mut queue = ReplyQueue::default();
        let (first, script) = push(&mut queue, Command::new("list-panes"));
        let (second, _) = push(&mut queue, Command::new("list-panes"));
        assert_eq!(script, "list-panes\n");
        assert!(queue.take(block(true, "a\n")));
        assert!(queue.take(block(false, "can't find pane: %1\n")));
        assert_eq!(wait(first).unwrap(), "a\n");
        assert_eq!(wait(second).unwrap_err().kind(), ErrorKind::NoSuchPane);
        assert!(!queue.take(block(true, "")), "no caller waits any more");
    }

    #[test]
    fn a_failure_ends_its_line_only() {
        let mut queue = ReplyQueue::default();
        let line = [Command::new("a"), Command::new("b"), Command::new("c")];
        let (pending, _) = push(
            &mut queue,
            Batch::from(line).then_line().then(Command::new("d")),
        );
        let (next, _) = push(&mut queue, Command::new("e"));
        queue.take(block(true, "a\n"));
        queue.take(block(false, "no\n"));
        queue.take(block(true, "d\n"));
        queue.take(block(true, "e\n"));
        assert_eq!(wait(pending).unwrap_err().stderr(), Some("no"));
        assert_eq!(wait(next).unwrap(), "e\n");
    }

    #[test]
    fn marked_commands_take_all_up_to_the_mark() {
        let mut queue = ReplyQueue::default();
        let (pending, script) = push(&mut queue, Command::new("if-shell").args(["-F", "1", "x"]));
        let mark = script
            .lines()
            .last()
            .and_then(|line| line.split(' ').next_back())
            .unwrap();
        for body in ["", "a\n", "b\n", &format!("{mark}\n")] {
            queue.take(block(true, body));
        }
        assert_eq!(wait(pending).unwrap(), "a\nb\n");
    }

    #[test]
    fn end_fails_all_requests_with_its_first_reason() {
        let mut queue = ReplyQueue::default();
        let (before, _) = push(&mut queue, Command::new("a"));
        queue.end("server exited");
        queue.end("later");
        let (after, _) = push(&mut queue, Command::new("b"));
        for pending in [before, after] {
            let error = wait(pending).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ServerLost);
            assert!(error.to_string().ends_with("server exited"), "{error}");
        }
    }
}
