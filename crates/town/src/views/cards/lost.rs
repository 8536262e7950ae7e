//! Finds how the last sessions of agents without a container ended. An agent of a task is lost if it
//! was not stopped: its tmux server died, or a person closed its container by hand.

use crate::Town;
use crate::base::or_log::OrLog;
use crate::records::sessions::Sessions;
use gt_core::Identity;
use gt_core::record::Outcome;
use std::collections::HashMap;
use std::time::SystemTime;

/// Size and modification time of the journal, to detect changes.
pub(super) type JournalStamp = Option<(u64, SystemTime)>;

/// The end of an agent's last session.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastEnd {
    pub(super) kind: EndKind,
    /// Seconds since the epoch, if the journal has it.
    pub(super) at: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndKind {
    /// It crashed, or its end was not recorded.
    Lost,
    Stopped,
}

/// Cache of session ends. It is cleared when the journal has changed.
#[derive(Debug, Default)]
pub(super) struct EndCache {
    journal: JournalStamp,
    known: HashMap<String, Option<LastEnd>>,
}

impl EndCache {
    pub(super) fn begin(&mut self, town: &Town) {
        let journal = journal_stamp(&Sessions::of(town));
        if journal != self.journal {
            self.known.clear();
            self.journal = journal;
        }
    }

    /// Returns the end of the last session of an agent that has no container and should have one.
    pub(super) fn of(&mut self, town: &Town, agent: &Identity) -> Option<LastEnd> {
        let address = agent.address();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let last = Sessions::of(town).newest_that_came_up(&address);
        let last = last.or_warn(format_args!("the last session of {agent} is unknown"));
        let end = last.flatten().and_then(|session| {
            let kind = match session.outcome {
                None | Some(Outcome::Crash) => EndKind::Lost,
                Some(Outcome::Stopped | Outcome::Killed) => EndKind::Stopped,
                Some(_) => return None,
            };
            let at = session.ended_at.as_deref().and_then(seconds);
            Some(LastEnd { kind, at })
        });
        self.known.insert(address, end);
        end
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
