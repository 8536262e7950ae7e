//! Sources of a restore: a save, and sessions that only the journal has.
//!
//! A save follows a start after a second, and a town may have automatic saves disabled. An agent
//! that is lost before its first save is still in the journal, with its start options: it is
//! restored without windows and scrollback.

use crate::base::time::timestamp;
use crate::lifecycle::save;
use crate::lifecycle::sync;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::terminal::containers::Container;
use crate::{Result, Town};
use gt_core::record::{Outcome, Record};
use gt_core::save::SavedContainer;
use gt_core::{Identity, Problem};
use std::collections::HashSet;

/// The containers of a restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreSource {
    /// The save that they are from; `None` if only the journal has them.
    pub save: Option<String>,
    pub containers: Vec<SavedContainer>,
    /// Errors of newer saves.
    pub damaged: Vec<String>,
}

impl RestoreSource {
    fn has(&self, who: &Identity) -> bool {
        has(&self.containers, who)
    }
}

fn has(containers: &[SavedContainer], who: &Identity) -> bool {
    let address = who.address();
    containers.iter().any(|saved| saved.agent == address)
}

/// Returns the named save, or the newest save that has these agents. Agents that were lost since
/// belong to the newest save.
pub fn find(town: &Town, wanted: Option<&str>, named: &[Identity]) -> Result<RestoreSource> {
    // A save that cannot be read is reported below.
    let newest = save::find(town, None).ok().map(|(save, _)| save.name);
    let lost = lost_containers(town, None)?;
    let fits = |save: &save::Save| {
        let in_it = |who: &Identity| has(&save.containers, who) || has(&lost, who);
        named.iter().all(in_it)
    };
    let (save, damaged) = match wanted.is_none() && !lost.is_empty() {
        // Perhaps there is no save yet, or none can be read.
        true => save::newest(town, fits),
        false => {
            let (save, damaged) = save::find_with(town, wanted, fits)?;
            (Some(save), damaged)
        }
    };
    let (name, containers) = save.map(|save| (save.name, save.containers)).unzip();
    let mut source = RestoreSource {
        save: name,
        containers: containers.unwrap_or_default(),
        damaged,
    };
    if wanted.is_none() || source.save == newest {
        let is_new =
            |session: &SavedContainer| !source.containers.iter().any(|c| c.agent == session.agent);
        let lost: Vec<SavedContainer> = lost.into_iter().filter(is_new).collect();
        source.containers.extend(lost);
    }
    match named.iter().find(|who| !source.has(who)) {
        Some(missing) => {
            let words = match &source.save {
                Some(name) => format!("{missing} is not in the save {name}"),
                None => format!("{missing} was neither saved nor lost"),
            };
            Err(Problem::not_found(words)
                .hint("`gt save --list --json` shows the agents of each save"))
        }
        None => Ok(source),
    }
}

/// Returns the addresses of agents that went down with the town's server, run nowhere now, and are
/// wanted back.
pub fn lost_agents(town: &Town, containers: &[Container]) -> Result<Vec<String>> {
    let is_here = |agent: &str| {
        let identities = containers.iter().filter_map(Container::identity);
        identities.into_iter().any(|it| it.address() == agent)
    };
    let lost = lost_containers(town, Some(containers))?.into_iter();
    let lost = lost.map(|saved| saved.agent);
    let is_known = |agent: &String| Identity::from_address(agent, town.registry()).is_some();
    Ok(lost
        .filter(|agent| !is_here(agent) && is_known(agent))
        .collect())
}

/// Returns whether a session that the journal has as running has no container.
fn is_any_missing(sessions: &Sessions, containers: &[Container]) -> Result<bool> {
    let shown = containers.iter().map(|it| it.pane().tag_session.as_str());
    let shown: HashSet<&str> = shown.collect();
    let running = sessions.running_ids()?;
    Ok(running.iter().any(|id| !shown.contains(id.as_str())))
}

/// Returns the agents whose newest session ended with its server, as containers without windows.
/// `containers` are all present ones, if the caller has read them.
fn lost_containers(town: &Town, containers: Option<&[Container]>) -> Result<Vec<SavedContainer>> {
    let sessions = Sessions::of(town);
    let socket = town.server().socket_path().to_string_lossy().into_owned();
    let now = town.clock().seconds();
    let not_before = timestamp(now - save::LOST_FOR_GOOD_SECONDS);
    // A sync may be due. It is computed here and not written. It finds no lost session if all
    // running ones have their containers.
    let is_due = containers.map_or(Ok(true), |containers| is_any_missing(&sessions, containers));
    let unwritten = match is_due? {
        true => sync::sync(town, &sessions, true)?.lines,
        false => Vec::new(),
    };
    let is_lost = |line: &Record| line.lost == Some(true);
    let ids = unwritten.iter().map(|(_, line)| line);
    let ids = ids
        .filter(|line| is_lost(line))
        .map(|line| line.id.as_str());
    let mut records: Vec<Record> = sessions.find_known(ids)?.into_values().collect();
    let written = sessions.find(&SessionQuery {
        outcome: Some(Outcome::Crash.as_str().to_owned()),
        since: Some(not_before.clone()),
        ..SessionQuery::default()
    })?;
    records.extend(written.into_iter().filter(|session| {
        is_lost(session)
            && session.tmux_socket.as_deref() == Some(&socket)
            && session.ended_at.as_deref() >= Some(&not_before)
    }));
    let mut found = Vec::new();
    for session in records {
        let Some(saved) = container_of_record(&session) else {
            continue;
        };
        let last = sessions.newest_of(&saved.agent)?;
        if last.is_some_and(|last| last.id == session.id) {
            found.push(saved);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Returns a container from the journal's data. A session that was only named like an agent's has
/// no harness, because `gt` did not start it.
fn container_of_record(session: &Record) -> Option<SavedContainer> {
    Some(SavedContainer {
        name: session.tmux_session.clone()?,
        agent: session.agent.clone()?,
        session: session.id.clone(),
        chain: session
            .chain_id
            .clone()
            .unwrap_or_else(|| session.id.clone()),
        harness: session.harness.clone()?,
        harness_session: session.harness_session_id.clone(),
        start: session.start.clone().unwrap_or_default(),
        seen_at: session.started_at.clone().unwrap_or_default(),
        ..SavedContainer::default()
    })
}
