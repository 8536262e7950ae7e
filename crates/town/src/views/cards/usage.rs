//! Usage of items that no longer have a container or a worktree, such as cleaned-up tasks. Only the
//! journal has it.

use super::lost::{JournalStamp, journal_stamp};
use crate::Town;
use crate::base::or_log::OrLog;
use crate::records::sessions::Sessions;
use gt_core::usage::Usage;
use gt_core::work::WorkId;
use std::collections::HashMap;

/// Usage per item. One query reads it when the journal or the set of items has changed.
#[derive(Debug, Default)]
pub(super) struct UsageCache {
    journal: JournalStamp,
    items: Vec<WorkId>,
    known: HashMap<String, Usage>,
}

impl UsageCache {
    pub(super) fn read(&mut self, town: &Town, items: Vec<WorkId>) {
        let sessions = Sessions::of(town);
        let journal = journal_stamp(&sessions);
        if journal == self.journal && items == self.items {
            return;
        }
        let known = sessions.usage_by_work(items.iter().map(WorkId::as_str));
        // On failure the cards lack the usage, and the next call retries.
        if let Some(known) = known.or_warn("the usage of the items is unknown") {
            self.known = known;
            self.journal = journal;
            self.items = items;
        }
    }

    pub(super) fn of(&self, id: &WorkId) -> Option<Usage> {
        self.known.get(id.as_str()).map(|sum| sum.clone().rounded())
    }
}
