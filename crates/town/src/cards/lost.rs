//! Agents of tasks that are gone although nobody has ended them: their tmux server went down,
//! or somebody closed their container by hand.

use crate::sessions::Sessions;
use crate::{Town, save};
use gt_core::Identity;
use gt_core::record::Outcome;
use std::collections::HashMap;
use std::time::SystemTime;

/// The size and the time of the journal, by which a change of it is seen.
pub(super) type JournalStamp = Option<(u64, SystemTime)>;

/// An agent that is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// When its session ended, in seconds since the epoch, where the journal knows it.
    pub(super) at: Option<i64>,
}

/// Who is lost, as far as the journal was asked; that is asked again when it has grown.
#[derive(Debug, Default)]
pub(super) struct Lost {
    journal: JournalStamp,
    known: HashMap<String, Option<Loss>>,
}

impl Lost {
    pub(super) fn begin(&mut self, town: &Town) {
        let journal = journal_stamp(&Sessions::of(town));
        if journal != self.journal {
            self.known.clear();
            self.journal = journal;
        }
    }

    /// How an agent was lost that has no container and should have one.
    pub(super) fn of(&mut self, town: &Town, agent: &Identity) -> Option<Loss> {
        let address = agent.address();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let last = save::last_that_came_up(&Sessions::of(town), &address);
        // One that ended without anybody knowing yet is lost as well.
        let is_lost = |outcome| matches!(outcome, None | Some(Outcome::Crash));
        let lost = last.ok().flatten().filter(|life| is_lost(life.outcome));
        let lost = lost.map(|life| Loss {
            at: life.ended_at.as_deref().and_then(seconds),
        });
        self.known.insert(address, lost);
        lost
    }
}

fn seconds(time: &str) -> Option<i64> {
    time.parse().ok().map(jiff::Timestamp::as_second)
}

pub(super) fn journal_stamp(sessions: &Sessions) -> JournalStamp {
    let meta = sessions.journal_path().metadata().ok()?;
    Some((meta.len(), meta.modified().ok()?))
}
