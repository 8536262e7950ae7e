//! The session that a start continues: its parent, and with it the chain of both.
//!
//! A handoff continues the session that handed over. Any other start continues the newest session
//! of the same conversation, else of the same work item, else the session that it replaces, unless
//! that one had other work. How the earlier session ended makes no difference.

use super::existing::Previous;
use crate::Result;
use crate::records::sessions::{Query, Sessions};
use gt_core::record::Record;
use gt_core::startup::Conversation;

/// Number of the agent's sessions that are searched for a conversation.
const SEARCHED: usize = 50;

/// The session before the one that is started.
pub(super) struct Parent {
    pub(super) id: String,
    pub(super) chain: String,
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
pub(super) fn parent(
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
    let known = sessions.known([replaced.id.as_str()].into_iter())?;
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
    let of_agent = Query {
        agent: begin.agent.clone(),
        limit: Some(SEARCHED),
        ..Query::default()
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
    let mut known = sessions.known([id.as_str()].into_iter())?;
    let Some(first) = known.remove(id) else {
        return Ok(None);
    };
    let chain = sessions.find(&Query {
        chain: first.chain_id.clone(),
        limit: Some(SEARCHED),
        ..Query::default()
    })?;
    Ok(chain.into_iter().find(has_it).or(Some(first)))
}

fn by_work(item: &str) -> Query {
    Query {
        work: Some(item.to_owned()),
        ..Query::default()
    }
}

fn newest(sessions: &Sessions, query: Query) -> Result<Option<Record>> {
    let found = sessions.find(&Query {
        limit: Some(1),
        ..query
    })?;
    Ok(found.into_iter().next())
}
