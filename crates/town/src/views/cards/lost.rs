//! Finds agents of tasks that are gone without having been stopped: their tmux server died, or a
//! person closed their container by hand.

use crate::Town;
use crate::base::or_log::OrLog;
use crate::records::sessions::Sessions;
use gt_core::Identity;
use gt_core::record::Outcome;
use std::collections::HashMap;
use std::time::SystemTime;

/// Size and modification time of the journal, to detect changes.
pub(super) type JournalStamp = Option<(u64, SystemTime)>;

/// The loss of an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// End of its session in seconds since the epoch, if the journal has it.
    pub(super) at: Option<i64>,
}

/// Cache of lost agents. It is cleared when the journal has changed.
#[derive(Debug, Default)]
pub(super) struct LossCache {
    journal: JournalStamp,
    known: HashMap<String, Option<Loss>>,
}

impl LossCache {
    pub(super) fn begin(&mut self, town: &Town) {
        let journal = journal_stamp(&Sessions::of(town));
        if journal != self.journal {
            self.known.clear();
            self.journal = journal;
        }
    }

    /// Returns the loss of an agent that has no container and should have one.
    pub(super) fn of(&mut self, town: &Town, agent: &Identity) -> Option<Loss> {
        let address = agent.address();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let last = Sessions::of(town).newest_that_came_up(&address);
        // A session without a recorded end is lost as well.
        let is_lost = |outcome| matches!(outcome, None | Some(Outcome::Crash));
        let last = last.or_warn(format_args!("the last session of {agent} is unknown"));
        let lost = last.flatten().filter(|session| is_lost(session.outcome));
        let lost = lost.map(|session| Loss {
            at: session.ended_at.as_deref().and_then(seconds),
        });
        self.known.insert(address, lost);
        lost
    }
}

fn seconds(time: &str) -> Option<i64> {
    time.parse().ok().map(jiff::Timestamp::as_second)
}

pub(super) fn journal_stamp(sessions: &Sessions) -> JournalStamp {
    // A new town has no journal.
    let meta = sessions.journal_path().metadata().ok()?;
    Some((meta.len(), meta.modified().ok()?))
}
