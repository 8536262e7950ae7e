//! The contents of a card's tabs.

use crate::records::events::{self, Events};
use crate::records::sessions::{self, Sessions};
use crate::records::usage;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::event::Event;
use gt_core::record::Record;
use gt_core::work::WorkId;

/// Maximum number of events shown.
const MAX_EVENTS: usize = 200;

/// Maximum number of sessions shown of an agent without an item.
const MAX_SESSIONS: usize = 50;

/// Returns the sessions that had an item on their hook, newest first, with their usage for it.
pub fn sessions_of(town: &Town, id: &WorkId) -> Result<Vec<Record>> {
    let query = sessions::SessionQuery {
        work: Some(id.to_string()),
        ..sessions::SessionQuery::default()
    };
    let mut sessions = Sessions::of(town).find(&query)?;
    usage::refresh_all(town, &mut sessions);
    usage::keep_shares(&mut sessions, id.as_str());
    Ok(sessions)
}

/// Returns the latest sessions of an agent, newest first, with their usage.
pub fn sessions_of_agent(town: &Town, agent: &Identity) -> Result<Vec<Record>> {
    let query = sessions::SessionQuery {
        agent: Some(agent.address()),
        limit: Some(MAX_SESSIONS),
        ..sessions::SessionQuery::default()
    };
    let mut sessions = Sessions::of(town).find(&query)?;
    usage::refresh_all(town, &mut sessions);
    Ok(sessions)
}

/// Returns the events of an item and its agent, newest first.
pub fn events_of(town: &Town, id: &WorkId, agent: &Identity) -> Result<Vec<Event>> {
    let mut found = Events::of(town).find(&events::EventQuery {
        about: vec![agent.address(), id.to_string()],
        limit: Some(MAX_EVENTS),
        reach: Some(events::SEARCHED_AT_ONCE),
        ..events::EventQuery::default()
    })?;
    found.reverse();
    Ok(found)
}
