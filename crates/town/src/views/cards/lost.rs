//! Finds how the last sessions of agents without a container ended. An agent of a task is lost if it
//! was not stopped: its tmux server died, or a person closed its container by hand. Also finds
//! conversations that can be resumed, and all agents that `gt restore` would bring back.

use crate::Town;
use crate::base::or_log::OrLog;
use crate::lifecycle::restore::{self, Resumable};
use crate::records::sessions::Sessions;
use crate::terminal::containers::Container;
use gt_core::Identity;
use gt_core::record::{Outcome, Record};
use gt_core::startup::Conversation;
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

/// The last session of an agent that does not run.
#[derive(Clone, Copy, Debug, Default)]
struct LastSession {
    end: Option<LastEnd>,
    is_resumable: bool,
}

/// Cache of session ends. It is cleared when the journal has changed.
#[derive(Debug, Default)]
pub(super) struct EndCache {
    journal: JournalStamp,
    known: HashMap<String, LastSession>,
    /// The agents that a restore would bring back, with the containers at that time.
    restorable: Option<(Vec<String>, Vec<String>)>,
}

impl EndCache {
    pub(super) fn begin(&mut self, town: &Town) {
        let journal = journal_stamp(&Sessions::of(town));
        if journal != self.journal {
            self.known.clear();
            self.restorable = None;
            self.journal = journal;
        }
    }

    /// Returns the end of the last session of an agent that has no container and should have one.
    pub(super) fn of(&mut self, town: &Town, agent: &Identity) -> Option<LastEnd> {
        self.last_session(town, agent).end
    }

    /// Returns whether the last conversation of an agent that does not run can be resumed.
    pub(super) fn is_resumable(&mut self, town: &Town, agent: &Identity) -> bool {
        self.last_session(town, agent).is_resumable
    }

    /// Returns the agents that went down with the town's tmux server.
    pub(super) fn restorable(&mut self, town: &Town, containers: &[Container]) -> Vec<String> {
        let present: Vec<String> = containers.iter().map(|it| it.name().to_owned()).collect();
        if let Some((known, agents)) = &self.restorable
            && *known == present
        {
            return agents.clone();
        }
        let lost = restore::lost_agents(town, containers);
        let lost = lost.or_warn("the agents that were lost with their tmux server are unknown");
        let agents = lost.unwrap_or_default();
        self.restorable = Some((present, agents.clone()));
        agents
    }

    fn last_session(&mut self, town: &Town, agent: &Identity) -> LastSession {
        let address = agent.address();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let last = Sessions::of(town).newest_that_came_up(&address);
        let last = last.or_warn(format_args!("the last session of {agent} is unknown"));
        let last = last.flatten();
        let end = last.as_ref().and_then(|session| {
            let kind = match session.outcome {
                None | Some(Outcome::Crash) => EndKind::Lost,
                Some(Outcome::Stopped | Outcome::Killed) => EndKind::Stopped,
                Some(_) => return None,
            };
            let at = session.ended_at.as_deref().and_then(seconds);
            Some(LastEnd { kind, at })
        });
        let known = LastSession {
            end,
            is_resumable: last.is_some_and(|session| has_conversation(town, agent, &session)),
        };
        self.known.insert(address, known);
        known
    }
}

/// Returns whether a start after this session would continue its conversation.
fn has_conversation(town: &Town, agent: &Identity, last: &Record) -> bool {
    let ended = Resumable {
        harness: last.harness.as_deref().unwrap_or_default(),
        start: last.start.as_deref().unwrap_or_default(),
        id: last.harness_session_id.as_deref(),
        alone: true,
    };
    restore::conversation(town, agent, &ended) != Conversation::New
}

fn seconds(time: &str) -> Option<i64> {
    time.parse().ok().map(jiff::Timestamp::as_second)
}

pub(super) fn journal_stamp(sessions: &Sessions) -> JournalStamp {
    // A new town has no journal.
    let meta = sessions.journal_path().metadata().ok()?;
    Some((meta.len(), meta.modified().ok()?))
}
