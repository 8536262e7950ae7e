//! The session that a start continues: its parent, and with it the chain of both.
//!
//! A handoff continues the session that handed over. Any other start continues the newest session
//! of the same conversation, else of the same work item, else the session that it replaces, unless
//! that one had other work. How the earlier session ended makes no difference.

use super::existing::{Existing, Previous};
use super::prepared::Prepared;
use crate::base::clock::Clock;
use crate::records::sessions::{SessionEnd, SessionQuery, Sessions};
use crate::{Result, Town};
use gt_core::record::Record;
use gt_core::session::SessionId;
use gt_core::startup::Conversation;

/// Number of the agent's sessions that are searched for a conversation.
const SEARCHED: usize = 50;

/// A session that is started, and the sessions before it.
pub(super) struct Lineage {
    /// The session that is replaced.
    pub(super) previous: Option<Previous>,
    /// The session that is continued.
    parent: Option<Parent>,
    /// The journal line that begins the session.
    pub(super) begin: Record,
}

impl Lineage {
    pub(super) fn of(
        town: &Town,
        sessions: &Sessions,
        prepared: &Prepared<'_>,
        session: SessionId,
        existing: &mut Existing,
    ) -> Self {
        let options = prepared.options;
        let restored = options.restored.as_ref().map(Previous::from);
        let mut previous = existing.previous.take().or(restored);
        let mut begin = prepared.record(town, session, existing.handed.as_ref());
        let parent = match options.takes_over.is_some() {
            true => previous.as_ref().map(Parent::from),
            false => {
                note_ended(sessions, previous.as_mut());
                // Without its parent it is still a session.
                let found = parent(sessions, &begin, &options.conversation, previous.as_ref());
                found.unwrap_or_else(|_| previous.as_ref().map(Parent::from))
            }
        };
        if let Some(parent) = &parent {
            begin.parent_id = Some(parent.id.clone());
            begin.chain_id = Some(parent.chain.clone());
        }
        Lineage {
            previous,
            parent,
            begin,
        }
    }

    /// Returns the chain that is continued.
    pub(super) fn chain(&self) -> Option<&str> {
        self.parent.as_ref().map(|parent| parent.chain.as_str())
    }

    /// Returns the journal lines: the end of the replaced session, the child of the continued one,
    /// and `begin`.
    pub(super) fn lines(&self, begin: Record, clock: &Clock) -> Vec<Record> {
        let replaced = self.previous.iter().filter(|before| !before.is_ended);
        let mut lines: Vec<Record> = replaced
            .map(|before| {
                let end = SessionEnd {
                    outcome: before.outcome,
                    at: before.died_at,
                    exit_code: before.exit_code,
                };
                Sessions::ending(before.id.clone(), end, clock)
            })
            .collect();
        if let Some(parent) = &self.parent {
            let child = Record {
                child_id: Some(begin.id.clone()),
                ..Record::about(parent.id.clone())
            };
            match lines.iter_mut().find(|line| line.id == parent.id) {
                Some(line) => line.merge(child),
                None => lines.push(child),
            }
        }
        lines.push(begin);
        lines
    }
}

/// Looks up whether the journal already has the end of the replaced session, which is written once.
/// If the index cannot be read, `previous` stays as it is.
fn note_ended(sessions: &Sessions, previous: Option<&mut Previous>) {
    let Some(previous) = previous else {
        return;
    };
    let known = sessions.find_known([previous.id.as_str()].into_iter());
    let is_ended = known.is_ok_and(|known| {
        let session = known.get(&previous.id);
        session.is_some_and(|session| session.outcome.is_some())
    });
    previous.is_ended |= is_ended;
}

/// A session that another one continues.
struct Parent {
    id: String,
    chain: String,
}

impl Parent {
    fn of(session: Record) -> Self {
        Parent {
            chain: session.chain_id.unwrap_or_else(|| session.id.clone()),
            id: session.id,
        }
    }
}

impl From<&Previous> for Parent {
    fn from(previous: &Previous) -> Self {
        Parent {
            id: previous.id.clone(),
            chain: previous.chain.clone(),
        }
    }
}

/// Finds the parent of the session that `begin` describes.
fn parent(
    sessions: &Sessions,
    begin: &Record,
    conversation: &Conversation,
    replaced: Option<&Previous>,
) -> Result<Option<Parent>> {
    if let Some(session) = of_conversation(sessions, begin, conversation)? {
        return Ok(Some(Parent::of(session)));
    }
    if let Some(item) = &begin.work_unit
        && let Some(session) = newest(sessions, by_work(item))?
    {
        return Ok(Some(Parent::of(session)));
    }
    let Some(replaced) = replaced else {
        return Ok(None);
    };
    let known = sessions.find_known([replaced.id.as_str()].into_iter())?;
    let had = known
        .get(&replaced.id)
        .and_then(|session| session.work_unit.as_ref());
    let has_other_work = had.is_some() && begin.work_unit.is_some();
    Ok((!has_other_work).then(|| Parent::from(replaced)))
}

/// Returns the newest session that had the resumed conversation.
fn of_conversation(
    sessions: &Sessions,
    begin: &Record,
    conversation: &Conversation,
) -> Result<Option<Record>> {
    let of_agent = SessionQuery {
        agent: begin.agent.clone(),
        limit: Some(SEARCHED),
        ..SessionQuery::default()
    };
    let id = match conversation {
        Conversation::New | Conversation::Fork(_) => return Ok(None),
        // The program continues its newest conversation in this folder.
        Conversation::Continue => return newest(sessions, of_agent),
        Conversation::Resume(id) => id,
    };
    let has_it = |session: &Record| session.harness_session_id.as_ref() == Some(id);
    if let Some(found) = sessions.find(&of_agent)?.into_iter().find(has_it) {
        return Ok(Some(found));
    }
    // Another agent had it. If ids of conversations can be chosen, it is the id of the first
    // session that had it.
    let mut known = sessions.find_known([id.as_str()].into_iter())?;
    let Some(first) = known.remove(id) else {
        return Ok(None);
    };
    let chain = sessions.find(&SessionQuery {
        chain: first.chain_id.clone(),
        limit: Some(SEARCHED),
        ..SessionQuery::default()
    })?;
    Ok(chain.into_iter().find(has_it).or(Some(first)))
}

fn by_work(item: &str) -> SessionQuery {
    SessionQuery {
        work: Some(item.to_owned()),
        ..SessionQuery::default()
    }
}

fn newest(sessions: &Sessions, query: SessionQuery) -> Result<Option<Record>> {
    let found = sessions.find(&SessionQuery {
        limit: Some(1),
        ..query
    })?;
    Ok(found.into_iter().next())
}
