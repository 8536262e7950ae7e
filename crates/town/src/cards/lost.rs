//! Agents of tasks that are gone although nobody has ended them: their tmux server went down,
//! or somebody closed their container by hand.

use crate::sessions::Sessions;
use crate::{Town, save};
use gt_core::Identity;
use gt_core::record::Outcome;
use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

/// Who is lost, as far as the journal was asked; that is asked again when it has grown.
#[derive(Debug, Default)]
pub(super) struct Lost {
    journal: Option<(u64, SystemTime)>,
    known: HashMap<String, bool>,
}

impl Lost {
    pub(super) fn begin(&mut self, town: &Town) {
        let journal = stamp(Sessions::of(town).journal_path());
        if journal != self.journal {
            self.known.clear();
            self.journal = journal;
        }
    }

    /// Whether an agent that has no container should have one.
    pub(super) fn is(&mut self, town: &Town, agent: &Identity) -> bool {
        let address = agent.address();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let last = save::last_that_came_up(&Sessions::of(town), &address);
        // One that ended without anybody knowing yet is lost as well.
        let is_lost = |outcome| matches!(outcome, None | Some(Outcome::Crash));
        let lost = matches!(last, Ok(Some(life)) if is_lost(life.outcome));
        self.known.insert(address, lost);
        lost
    }
}

fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let meta = path.metadata().ok()?;
    Some((meta.len(), meta.modified().ok()?))
}
