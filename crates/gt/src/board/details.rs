//! Contents of the tabs of the detail view.

use gt_board::{ChainSession, Detail, Happening, WindowFacts};
use gt_core::card::CardServer;
use gt_core::event::Event;
use gt_core::record::{Outcome, Record, SessionStatus};
use gt_core::usage::Usage;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::records::events;
use gt_town::records::items::Work;
use gt_town::views::cards;
use gt_town::workflow::task;
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(super) fn task(town: &Town, id: &WorkId) -> Result<Detail, Problem> {
    let item = Work::of(town).get(id)?;
    Ok(Detail::Task {
        description: item.body(),
        notes: item.notes,
    })
}

/// Returns the first tab of an agent without an item.
pub(super) fn agent(agent: &Identity) -> Detail {
    let address = agent.address();
    Detail::Task {
        description: format!(
            "{address} has no work item.\n\n- `gt sling ITEM {address}` gives it one\n- \
             `gt nudge {address} MESSAGE` tells it something"
        ),
        notes: String::new(),
    }
}

/// Returns the diff of an item, or of an agent without an item.
pub(super) fn diff(town: &Town, id: &WorkId, agent: Option<&Identity>) -> Result<Detail, Problem> {
    let diff = match agent {
        Some(agent) => task::agent_diff(town, agent, id)?,
        None => task::diff(town, id)?,
    };
    let text = diff.patch()?;
    Ok(Detail::Diff { text })
}

pub(super) fn events(
    town: &Town,
    id: &WorkId,
    agent: Option<&Identity>,
) -> Result<Detail, Problem> {
    let own = Identity::task(id.as_str(), town.registry());
    let agent = agent.unwrap_or(&own);
    let found = cards::events_of(town, id, agent)?;
    let address = agent.address();
    let all = found.iter().map(|event| happening(event, &address));
    Ok(Detail::Events(all.collect()))
}

fn happening(event: &Event, agent: &str) -> Happening {
    let at = events::time_of(event);
    let here = at.map(|at| at.to_zoned(TimeZone::system()));
    Happening {
        at: at.map_or(0, Timestamp::as_second),
        clock: here.map_or_else(String::new, |at| at.strftime("%m-%d %H:%M:%S").to_string()),
        kind: event.kind.replace('_', " "),
        source: event.source_words(),
        text: event.line_about(agent),
    }
}

/// Returns the tab of windows of an agent without an item. Only tasks have background tasks.
pub(super) fn servers(servers: Vec<CardServer>) -> Detail {
    Detail::Windows {
        windows: Vec::new(),
        servers,
    }
}

pub(super) fn windows(
    town: &Town,
    id: &WorkId,
    servers: Vec<CardServer>,
) -> Result<Detail, Problem> {
    let windows = task::show(town, id)?.windows.into_iter();
    Ok(Detail::Windows {
        windows: windows
            .map(|window| WindowFacts {
                name: window.name,
                running: window.running,
                exit_code: window.exit_code,
            })
            .collect(),
        servers,
    })
}

/// Returns the sessions that worked on an item, or those of an agent without an item.
pub(super) fn chain(town: &Town, id: &WorkId, agent: Option<&Identity>) -> Result<Detail, Problem> {
    let sessions = match agent {
        Some(agent) => cards::sessions_of_agent(town, agent)?,
        None => cards::sessions_of(town, id)?,
    };
    Ok(Detail::Chain(sessions.into_iter().map(session).collect()))
}

fn session(record: Record) -> ChainSession {
    let seconds = |time: &str| time.parse().map_or(0, Timestamp::as_second);
    let outcome = record.outcome.map(Outcome::as_str);
    let status = outcome.or(record.status.map(SessionStatus::as_str));
    ChainSession {
        agent: record.agent.unwrap_or_default(),
        started_at: record.started_at.as_deref().map_or(0, seconds),
        ended_at: record.ended_at.as_deref().map(seconds),
        status: status.unwrap_or_default().to_owned(),
        tokens: record.usage.as_ref().map_or(0, Usage::tokens),
        cost_usd: record.usage.and_then(|usage| usage.cost_usd),
        id: record.id,
    }
}
