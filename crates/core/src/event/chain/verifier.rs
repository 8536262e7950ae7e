//! Verification of a chain, line by line.

use super::{Anchor, ChainHead, FileHash, Seal};
use crate::event::Event;
use crate::plural::counted;
use serde::Serialize;
use serde_json::Value;

/// Payload field of an anchor: the break that its writer has found, and that no person has
/// accepted.
pub(super) const BROKEN: &str = "broken";

/// The first place at which a log is not as `gt` wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainBreak {
    /// The line of the log, from 1; the number of lines plus 1 if the end is missing.
    pub line: u64,
    /// The time of the event in that line, if it can be read.
    #[serde(rename = "ts", skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub reason: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    pub lines: u64,
    /// Lines of earlier versions, before the chain begins.
    pub unchained: u64,
    /// The last line of the chain.
    pub head: ChainHead,
    #[serde(rename = "break", skip_serializing_if = "Option::is_none")]
    pub broken: Option<ChainBreak>,
}

/// The file that holds the head of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredHead {
    Missing,
    /// The file cannot be parsed.
    Damaged,
    Present(ChainHead),
}

/// Verifies the lines of a log in their order.
#[derive(Debug)]
pub struct ChainVerifier {
    stored: StoredHead,
    file: FileHash,
    report: ChainReport,
    /// The first line that was changed, inserted or moved since the last valid anchor.
    changed: Option<ChainBreak>,
    /// The last anchor that does not match the file before it. A later anchor makes it irrelevant.
    mismatch: Option<ChainBreak>,
    /// The first gap since the last anchor. A prune leaves gaps before its anchor.
    gap: Option<ChainBreak>,
    /// Whether the stored head is one of the lines, or was pruned.
    has_stored: bool,
}

impl ChainVerifier {
    /// Begins a verification. The stored head must have been read before the lines are read.
    pub fn new(stored: StoredHead) -> Self {
        ChainVerifier {
            has_stored: matches!(&stored, StoredHead::Present(head) if head.seq == 0),
            stored,
            file: FileHash::default(),
            report: ChainReport::default(),
            changed: None,
            mismatch: None,
            gap: None,
        }
    }

    /// Checks the next line, which ends with a newline.
    pub fn add(&mut self, line: &[u8]) {
        self.report.lines += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match Seal::of(text) {
            Some(seal) => self.add_sealed(text, &seal),
            None if self.report.head.seq == 0 => self.report.unchained += 1,
            None => self.note_changed(text, "the line has no hash".to_owned()),
        }
        self.file.add(line);
    }

    fn add_sealed(&mut self, line: &[u8], seal: &Seal<'_>) {
        let before = self.report.head.clone();
        let seq = seal.head.seq;
        if let StoredHead::Present(stored) = &self.stored
            && stored.seq == seq
        {
            self.has_stored = true;
            if stored.hash != seal.head.hash {
                self.note_changed(line, "the line is not the one that was written".to_owned());
            }
        }
        if seq <= before.seq {
            self.note_changed(line, format!("event {seq} follows event {}", before.seq));
        } else if seq == before.seq + 1 {
            if !seal.is_after(&before.hash) {
                let reason = "the hash does not match the line and the line before it";
                self.note_changed(line, reason.to_owned());
            }
        } else if self.gap.is_none() {
            let reason = match (before.seq + 1, seq - 1) {
                (first, last) if first == last => format!("event {first} is missing"),
                (first, last) => format!("events {first} to {last} are missing"),
            };
            self.gap = Some(self.break_at(line, reason));
        }
        if let Some(anchor) = &seal.anchor {
            self.add_anchor(line, seal, anchor);
        }
        // A line that was moved back must not hide the lines after it.
        if seq > before.seq {
            self.report.head = seal.head.clone();
        }
    }

    fn add_anchor(&mut self, line: &[u8], seal: &Seal<'_>, anchor: &Anchor<'_>) {
        self.gap = None;
        if !seal.is_after(anchor.previous) {
            let reason = "the hash does not match the line";
            self.note_changed(line, reason.to_owned());
            return;
        }
        if anchor.before != self.file.hex() {
            let reason = "the lines before it are not those that a prune has kept";
            self.mismatch = Some(self.break_at(line, reason.to_owned()));
            return;
        }
        (self.changed, self.mismatch) = (None, None);
        // A head that was stored before a prune may be the number of a pruned line.
        if matches!(&self.stored, StoredHead::Present(stored) if stored.seq < seal.head.seq) {
            self.has_stored = true;
        }
        if let Some(found) = found_by_prune(line) {
            self.changed = Some(self.break_at(line, found));
        }
    }

    fn note_changed(&mut self, line: &[u8], reason: String) {
        if self.changed.is_none() {
            self.changed = Some(self.break_at(line, reason));
        }
    }

    fn break_at(&self, line: &[u8], reason: String) -> ChainBreak {
        // A line that is not JSON has no time.
        let event: Option<Value> = serde_json::from_slice(line).ok();
        let at = event.as_ref().and_then(|event| event["ts"].as_str());
        ChainBreak {
            line: self.report.lines,
            at: at.map(str::to_owned),
            reason,
        }
    }

    /// Returns the hash of the lines so far, for an anchor after them.
    pub fn file_hash(&self) -> FileHash {
        self.file.clone()
    }

    /// Returns the result after the last line.
    pub fn finish(self) -> ChainReport {
        let end = self.missing_end();
        let mut report = self.report;
        let inside = match self.changed {
            Some(changed) => Some(changed),
            None => self.mismatch.or(self.gap),
        };
        report.broken = inside.or(end);
        report
    }

    /// Compares the last line with the stored head.
    fn missing_end(&self) -> Option<ChainBreak> {
        let has_chain = self.report.head.seq > 0;
        let reason = match &self.stored {
            StoredHead::Missing if has_chain => {
                "the file with the last hash is missing, so events may be missing too".to_owned()
            }
            StoredHead::Damaged => {
                "the file with the last hash is damaged, so events may be missing".to_owned()
            }
            StoredHead::Present(head) if !self.has_stored => {
                format!("the log ends before event {}", head.seq)
            }
            StoredHead::Missing | StoredHead::Present(_) => return None,
        };
        Some(ChainBreak {
            line: self.report.lines + 1,
            at: None,
            reason,
        })
    }
}

impl ChainReport {
    /// Describes a log without a break.
    pub fn words(&self) -> String {
        let lines = counted(self.lines, "line");
        let old = match self.unchained {
            0 => String::new(),
            old => format!(", {old} of them from an earlier version and without a hash"),
        };
        match self.head.seq {
            0 => format!("The log has {lines}{old}."),
            seq => format!(
                "The log is as gt wrote it: {lines}{old}. The last event is number {seq}, with the hash {}.",
                self.head.hash
            ),
        }
    }
}

impl ChainBreak {
    /// Returns the line, the time and the reason as text.
    pub fn words(&self) -> String {
        let at = self.at.as_ref();
        let at = at.map_or_else(String::new, |at| format!(" ({at})"));
        format!("line {}{at}: {}", self.line, self.reason)
    }
}

impl Event {
    /// Records a break of the chain in an anchor that is no acceptance of it.
    #[must_use]
    pub fn with_break(self, found: Option<&ChainBreak>) -> Self {
        self.with(BROKEN, found.map(ChainBreak::words))
    }
}

/// Returns the break that the writer of an anchor has recorded.
fn found_by_prune(line: &[u8]) -> Option<String> {
    // A line that is not JSON is not an anchor.
    let event: Value = serde_json::from_slice(line).ok()?;
    let found = event["payload"][BROKEN].as_str()?;
    // The next prune records it once more.
    const FOUND: &str = "a prune has found a break at ";
    let found = found.split_once(FOUND).map_or(found, |(_, found)| found);
    Some(format!("{FOUND}{found}"))
}
