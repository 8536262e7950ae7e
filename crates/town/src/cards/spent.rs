//! The usage of items that have neither a container nor a worktree any more, such as those
//! that were cleaned up: it is in the journal alone.

use super::lost::{JournalStamp, journal_stamp};
use crate::Town;
use crate::sessions::Sessions;
use gt_core::usage::Usage;
use gt_core::work::WorkId;
use std::collections::HashMap;

/// The usage per item, read with one query when the journal or the set of items has changed.
#[derive(Debug, Default)]
pub(super) struct Spent {
    journal: JournalStamp,
    items: Vec<WorkId>,
    known: HashMap<String, Usage>,
}

impl Spent {
    pub(super) fn read(&mut self, town: &Town, items: Vec<WorkId>) {
        let sessions = Sessions::of(town);
        let journal = journal_stamp(&sessions);
        if journal == self.journal && items == self.items {
            return;
        }
        // The cards show the rest without it, and the next look asks again.
        if let Ok(known) = sessions.usage_by_work(items.iter().map(WorkId::as_str)) {
            self.known = known;
            self.journal = journal;
            self.items = items;
        }
    }

    pub(super) fn of(&self, id: &WorkId) -> Option<Usage> {
        self.known.get(id.as_str()).map(|sum| sum.clone().rounded())
    }
}
