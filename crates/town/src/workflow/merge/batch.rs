//! Merges several entries with one validation.
//!
//! The entries are combined one after the other in memory, and the rig's commands run once, on the
//! last of these commits. If they succeed, the base moves to it in one step. If they fail, only the
//! first half is tried, and so on, until a single entry is left, which [`LockedQueue::merge_one`]
//! merges or refuses. An entry that does not combine with those before it is merged alone as well.

use super::base::Advance;
use super::combine::Combined;
use super::queue::LockedQueue;
use super::validate::{MergeCandidate, ValidationResult, validate};
use crate::Result;
use crate::base::estop;
use crate::base::fault;
use gt_core::merge::{Merge, MergeStatus};
use std::cell::Cell;

/// Size of the batches of one run.
#[derive(Debug)]
pub(super) struct BatchSize {
    most: usize,
    now: Cell<usize>,
}

impl BatchSize {
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        BatchSize {
            most,
            now: Cell::new(most),
        }
    }

    /// Returns how many entries the next batch may have; 1 means none.
    pub(super) fn get(&self) -> usize {
        self.now.get()
    }

    /// Reduces the next batch to half of one that failed.
    fn halve(&self, failed: usize) {
        self.now.set((failed / 2).max(1));
    }

    /// Allows whole batches again: the entry that failed was found.
    pub(super) fn restore(&self) {
        self.now.set(self.most);
    }
}

/// Result of a batch.
pub(super) enum BatchOutcome {
    Merged(Vec<Merge>),
    /// Nothing was merged, and the size was reduced.
    Failed,
    /// Fewer than two entries can be merged together now: merge a single one.
    TooSmall,
}

impl LockedQueue<'_> {
    /// Merges the first of these waiting entries together.
    pub(super) fn merge_together(
        &self,
        waiting: &[Merge],
        size: &BatchSize,
    ) -> Result<BatchOutcome> {
        // A process that was killed may have merged an entry that is already being merged.
        let is_new = |merge: &&Merge| merge.status == MergeStatus::Queued;
        let fresh: Vec<&Merge> = waiting.iter().take_while(is_new).take(size.get()).collect();
        if fresh.len() < 2 {
            return Ok(BatchOutcome::TooSmall);
        }
        self.base.fetch_for_queue()?;
        self.catch_up()?;
        let tip = self.base.tip()?;
        let chain = self.combine_all(&tip, &fresh)?;
        let Some((last, rest)) = chain.split_last().filter(|(_, rest)| !rest.is_empty()) else {
            return Ok(BatchOutcome::TooSmall);
        };
        let count = rest.len() + 1;
        self.progress(&format!("merging {count} branches together"));
        let candidate = MergeCandidate {
            rig: self.rig,
            merge: None,
            base: &tip,
            commit: &last.1,
        };
        let say = |text: &str| self.progress(text);
        if let ValidationResult::Red { reason, .. } = validate(self.town, candidate, &say)? {
            self.progress(&format!("{reason}: trying half of them"));
            size.halve(count);
            return Ok(BatchOutcome::Failed);
        }
        fault::point(self.town, "mq.validated");
        // The last check before the base moves.
        estop::check(self.town, Some(self.rig))?;
        for (merge, commit) in &chain {
            self.work.begin_merge(&merge.id)?;
            self.work.plan_merge(&merge.id, commit)?;
        }
        fault::point(self.town, "mq.built");
        match self.base.advance(&tip, &last.1)? {
            Advance::Done => {
                fault::point(self.town, "mq.advanced");
                let settle = |(merge, commit): &(&Merge, String)| self.settle(merge, commit);
                let merged: Result<Vec<Merge>> = chain.iter().map(settle).collect();
                Ok(BatchOutcome::Merged(merged?))
            }
            // The entries are tried one by one, which also finds the one that is not accepted.
            Advance::Moved | Advance::NotTaken(_) => {
                for (merge, _) in &chain {
                    self.work
                        .put_back_merge(&merge.id, "the batch was not accepted")?;
                }
                size.halve(1);
                Ok(BatchOutcome::Failed)
            }
        }
    }

    /// Combines the entries one after the other, and leaves out those that do not combine or that
    /// need an approval.
    fn combine_all<'m>(
        &self,
        tip: &str,
        entries: &[&'m Merge],
    ) -> Result<Vec<(&'m Merge, String)>> {
        let mut chain: Vec<(&Merge, String)> = Vec::new();
        for merge in entries {
            let before = chain.last().map_or(tip, |(_, commit)| commit);
            if self.base.contains(before, &merge.commit)? {
                continue;
            }
            let title = self.work.get(&merge.item)?.title;
            let message = merge.message(&title);
            if let Combined::Commit(commit) = self.base.combine(before, &merge.commit, &message)?
                && self.unapproved(merge, before, &commit)?.is_empty()
            {
                chain.push((merge, commit));
            }
        }
        Ok(chain)
    }
}
