//! Log of the requests: in memory for tests in the same process, in a file for all others.
//!
//! A request is logged once it is complete and its answer is decided, before the first byte of the
//! answer and before any delay. The file gets one line per request in one write. A reader may still
//! see a long line half written: it counts once its line break is there ([`read_log`]).

use crate::api::{Api, UsageEstimate};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One request, as a line of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoggedRequest {
    /// Time when it was complete: RFC 3339 in UTC, with milliseconds.
    pub at: String,
    /// Its number, from 1, in the order of the log.
    pub n: u64,
    pub method: String,
    /// The path, with its query.
    pub path: String,
    pub api: Api,
    pub model: String,
    /// Whether it asks for an event stream.
    pub stream: bool,
    /// Whether it offers tools. Side requests (titles, routing) offer none.
    pub has_tools: bool,
    /// Every text of the last user turn, unchanged. Empty if it holds only tool results.
    pub user: Vec<String>,
    /// Texts of that turn that a person typed, without the text that the program added.
    pub prompts: Vec<String>,
    /// All instructions to the model among the messages (system, developer), oldest first.
    #[serde(default)]
    pub asides: Vec<String>,
    /// Last text that was typed, in this turn or an earlier one.
    pub prompt: String,
    pub prompt_bytes: usize,
    /// The [`fingerprint`](crate::fingerprint) of the prompt.
    pub hash: String,
    /// Fingerprints of all texts that were typed in this conversation, oldest first.
    pub history: Vec<String>,
    /// Number of tool results in the last user turn.
    pub tool_results: usize,
    /// Status of the answer.
    pub status: u16,
    /// Tokens that the answer reports; zero for an error.
    #[serde(default)]
    pub usage: UsageEstimate,
}

impl LoggedRequest {
    /// Returns whether it brings a message that the server has not answered: it offers tools, and
    /// its last user turn holds a typed text. Follow-ups after tool calls and side requests do not.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.has_tools && !self.prompts.is_empty()
    }
}

/// Returns the requests of a log file. Ignores an incomplete last line: a long one may be half
/// written, even in the middle of a character.
pub fn read_log(path: &Path) -> io::Result<Vec<LoggedRequest>> {
    let bytes = fs::read(path)?;
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .map(|line| serde_json::from_slice(line).map_err(io::Error::from))
        .collect()
}

/// Error of a wait whose condition did not come true in time. It lists the requests so far.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {timeout:?}; the requests were:{seen}")]
pub struct TimedOut {
    timeout: Duration,
    seen: String,
}

/// All requests so far.
#[derive(Debug)]
pub(crate) struct RequestJournal {
    notes: Mutex<JournalEntries>,
    grown: Condvar,
}

#[derive(Debug)]
struct JournalEntries {
    count: u64,
    remembered: Option<Vec<LoggedRequest>>,
    file: Option<File>,
}

impl RequestJournal {
    /// Creates a journal that appends to a file, keeps the requests in memory, or both.
    pub(crate) fn new(log: Option<&Path>, remember: bool) -> io::Result<Self> {
        let file = log
            .map(|path| OpenOptions::new().create(true).append(true).open(path))
            .transpose()?;
        let remembered = remember.then(Vec::new);
        Ok(RequestJournal {
            notes: Mutex::new(JournalEntries {
                count: 0,
                remembered,
                file,
            }),
            grown: Condvar::new(),
        })
    }

    /// Logs a request and returns its number.
    pub(crate) fn note(&self, mut request: LoggedRequest) -> io::Result<u64> {
        let mut notes = self.lock();
        request.n = notes.count + 1;
        if let Some(file) = &mut notes.file {
            let mut line = serde_json::to_vec(&request)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        notes.count += 1;
        if let Some(remembered) = &mut notes.remembered {
            remembered.push(request);
        }
        self.grown.notify_all();
        Ok(notes.count)
    }

    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        self.lock().remembered.clone().unwrap_or_default()
    }

    pub(crate) fn wait_for(
        &self,
        condition: impl Fn(&[LoggedRequest]) -> bool,
        timeout: Duration,
    ) -> Result<Vec<LoggedRequest>, TimedOut> {
        let deadline = Instant::now() + timeout;
        let mut notes = self.lock();
        loop {
            let requests = notes.remembered.as_deref().unwrap_or_default();
            if condition(requests) {
                return Ok(requests.to_vec());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let seen = summary(requests);
                return Err(TimedOut { timeout, seen });
            }
            let woken = self.grown.wait_timeout(notes, left);
            notes = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Locks the notes. A test's condition may have panicked under the lock; the notes are still
    /// consistent.
    fn lock(&self) -> MutexGuard<'_, JournalEntries> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn summary(requests: &[LoggedRequest]) -> String {
    if requests.is_empty() {
        return " none".to_owned();
    }
    requests.iter().fold(String::new(), |mut text, request| {
        let LoggedRequest {
            n,
            at,
            method,
            path,
            status,
            ..
        } = request;
        let prompt: String = request.prompt.chars().take(60).collect();
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{n:>4} {at} {status} {method} {path}");
        let _ = write!(
            text,
            " tools={} prompt={prompt:?} ({} bytes)",
            request.has_tools, request.prompt_bytes
        );
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_and_the_memory_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let journal = RequestJournal::new(Some(&path), true).unwrap();
        for prompt in ["one\ntwo", "\u{1F980}"] {
            let request = LoggedRequest {
                prompt: prompt.to_owned(),
                ..LoggedRequest::default()
            };
            journal.note(request).unwrap();
        }
        let remembered = journal.requests();
        assert_eq!(remembered[1].n, 2);
        assert_eq!(read_log(&path).unwrap(), remembered);
    }

    #[test]
    fn half_a_line_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let journal = RequestJournal::new(Some(&path), false).unwrap();
        journal.note(LoggedRequest::default()).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"prompt\":\"\xc3").unwrap();
        assert_eq!(read_log(&path).unwrap().len(), 1);
        assert_eq!(journal.requests(), []);
    }

    #[test]
    fn wait_that_times_out_reports_the_requests() {
        let journal = RequestJournal::new(None, true).unwrap();
        journal
            .note(LoggedRequest {
                prompt: "hello".to_owned(),
                ..LoggedRequest::default()
            })
            .unwrap();
        let error = journal.wait_for(|_| false, Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("prompt=\"hello\""), "{error}");
        assert!(journal.wait_for(|r| r.len() == 1, Duration::ZERO).is_ok());
    }
}
