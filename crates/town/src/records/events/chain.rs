//! The hash chain of the event log: its stored head, its verification, and the acceptance of a
//! break.
//!
//! The head is in `.runtime/events/head`, which each writer replaces after its lines. A writer that is
//! killed before leaves a head that is older than the log, which is valid. A writer does not create
//! a head that is missing beside a chained log: otherwise the next event would hide that events are
//! missing.

use super::Events;
use crate::Result;
use crate::base::files;
use crate::base::lines::{Durability, end_before, whole_length};
use crate::base::or_log::OrLog;
use gt_core::event::{
    ChainBreak, ChainHead, ChainReport, ChainVerifier, Event, FileHash, LONGEST_SEAL, StoredHead,
};
use std::fs::File;

/// Type of the event by which a person accepts a break.
pub(crate) const ACCEPTED: &str = "events_accepted";

/// The chain of a log while a process appends to it.
#[derive(Debug)]
pub(crate) struct OpenChain {
    pub(crate) head: ChainHead,
    /// Whether to store the head.
    is_stored: bool,
}

impl Events {
    /// Returns the chain to append to. `end` is the end of the log. The caller holds the lock.
    pub(crate) fn open_chain(&self, end: &[u8]) -> Result<OpenChain> {
        let last = ChainHead::at_end(end);
        let (stored, is_stored) = match self.stored_head()? {
            StoredHead::Present(head) => (Some(head), true),
            StoredHead::Missing if last.is_none() => {
                // If the process is killed before it stores the head, the file exists.
                self.write_head(&ChainHead::default())?;
                (None, true)
            }
            StoredHead::Missing | StoredHead::Damaged => (None, false),
        };
        Ok(OpenChain {
            head: ChainHead::to_continue(last, stored),
            is_stored,
        })
    }

    /// Returns the chain of a log that is being replaced.
    pub(crate) fn open_chain_of(&self, log: &File) -> Result<OpenChain> {
        let read = || {
            let whole = whole_length(log, log.metadata()?.len())?;
            end_before(log, whole, LONGEST_SEAL)
        };
        let end = read().map_err(|error| files::io_problem("read", self.log.path(), &error))?;
        self.open_chain(&end)
    }

    /// Stores the head after the lines are written. A failure is logged: the events are in the log,
    /// and an older head is valid.
    pub(crate) fn store_head(&self, chain: &OpenChain) {
        if chain.is_stored {
            self.write_head(&chain.head)
                .or_warn("the last hash of the events is not stored");
        }
    }

    fn write_head(&self, head: &ChainHead) -> Result<()> {
        // Cannot fail: all fields are plain values.
        let text = serde_json::to_string(head).unwrap_or_default() + "\n";
        files::write_passing(&self.head, text.as_bytes())
    }

    pub(super) fn stored_head(&self) -> Result<StoredHead> {
        Ok(match files::read_if_there(&self.head)? {
            None => StoredHead::Missing,
            Some(text) => match serde_json::from_str(&text) {
                Ok(head) => StoredHead::Present(head),
                Err(_) => StoredHead::Damaged,
            },
        })
    }

    /// Verifies the chain of the log. Takes no lock: the head is read first, and events that are
    /// written meanwhile are valid after it.
    pub fn verify(&self) -> Result<ChainReport> {
        Ok(self.read_chain()?.0)
    }

    /// Returns a verifier for the lines of the log, which are read after this call.
    pub(crate) fn verifier(&self) -> Result<ChainVerifier> {
        Ok(ChainVerifier::new(self.stored_head()?))
    }

    fn read_chain(&self) -> Result<(ChainReport, FileHash)> {
        let mut verifier = self.verifier()?;
        self.log.read_from(0, |line| {
            verifier.add(line);
            Ok(())
        })?;
        let hash = verifier.file_hash();
        Ok((verifier.finish(), hash))
    }

    /// Begins a new part of the chain after a break, with an event about it. Returns the break, or
    /// `None` if the log is valid.
    pub fn accept_break(&self, event: Event) -> Result<Option<ChainBreak>> {
        let _lock = self.lock()?;
        // Moves a torn line before the log is hashed.
        self.log.append(b"", Durability::InSystem)?;
        let (report, before) = self.read_chain()?;
        let Some(found) = report.broken else {
            return Ok(None);
        };
        let mut event = event.with("reason", found.words());
        event.set_origin(&self.origin);
        event.ts = self.clock.text();
        let line = super::line(&event)?;
        let mut chain = None;
        self.log
            .append_after(LONGEST_SEAL, Durability::InSystem, |end| {
                let chain = chain.insert(self.open_chain(end)?);
                // The lines before it may end with a lower number.
                if chain.head.seq < report.head.seq {
                    chain.head = report.head.clone();
                }
                Ok(chain.head.seal_anchor(&line, &before))
            })?;
        if let Some(chain) = chain {
            self.write_head(&chain.head)?;
        }
        if event.visibility.is_in_feed() {
            let line = [line, b"\n".to_vec()].concat();
            self.feed.append(&line, Durability::InSystem)?;
        }
        Ok(Some(found))
    }
}

/// Accepts the break of a town's log, in the name of the caller.
pub fn accept_break(town: &crate::Town) -> Result<Option<ChainBreak>> {
    Events::of(town).accept_break(super::by_command(town, ACCEPTED))
}

#[cfg(test)]
mod tests;
