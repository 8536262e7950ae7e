//! Saves all containers of a town, so that `gt restore` can recreate them.
//!
//! [`save`] makes one listing, captures panes in batches and writes one file atomically. Automatic
//! saves run in the background: [`save_schedule::request`] asks tmux to call `gt internal save`
//! after a short delay, once for all requests in that time, and a timer of tmux calls it every few
//! minutes. `save/store.rs` handles the files, `save/containers.rs` reads tmux.
//!
//! The newest save always contains all agents to restore. An agent that was lost with its server is
//! carried over from save to save until it is restored, deliberately ended, or too old. So neither
//! the first start after a crash nor the pruning of saves can lose data that a restore needs. A
//! town in which nothing runs is not saved.

mod containers;
mod resurrect;
mod store;

pub use store::{Save, SaveEntry, find, find_with, list, newest};

use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::surroundings;
use crate::base::time::timestamp;
use crate::catalog::roles;
use crate::records::sessions::{SessionQuery, Sessions};
use crate::terminal::{adopted, save_schedule};
use crate::{Result, Town};
use gt_core::record::SessionStatus;
use gt_core::save::{self as core, SaveHeader, SavedContainer, ServerId, VERSION};
use gt_tmux::Command;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for a concurrent save.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Seconds for which a lost agent is kept for a restore.
pub(crate) const LOST_FOR_GOOD_SECONDS: i64 = 30 * 24 * 60 * 60;

/// A completed save.
#[derive(Clone, Debug)]
pub struct CompletedSave {
    pub name: String,
    pub bytes: usize,
    /// Number of running containers.
    pub containers: usize,
    /// Number of containers carried over from the previous save.
    pub carried: usize,
    /// Steps that failed without preventing the save.
    pub warnings: Vec<String>,
}

/// Saves every container of the town. Returns `None` if nothing runs.
pub fn save(town: &Town, automatic: bool) -> Result<Option<CompletedSave>> {
    let _lock = FileLock::take(&lock_path(town), TIMEOUT)?;
    // Cleared before tmux is read: a later request may follow a change that this save misses.
    save_schedule::forget_request(town)?;
    let now = town.clock().seconds();
    let mut looks = Vec::from_iter(containers::read_containers(town, now)?);
    // The agents of a server that does not answer are carried over from the previous save.
    let others = adopted::on_other_servers(town).into_iter();
    looks.extend(others.filter_map(|other| {
        let socket = other.server().socket_path();
        let look = containers::read_containers(&other, now);
        look.or_warn(format_args!("{} is not saved", socket.display()))?
    }));
    let servers: Vec<ServerId> = looks.iter().map(|(server, _)| *server).collect();
    let mut containers: Vec<SavedContainer> =
        looks.into_iter().flat_map(|(_, found)| found).collect();
    let Some(server) = servers.first().filter(|_| !containers.is_empty()) else {
        return Ok(None);
    };
    let sessions = Sessions::of(town);
    fill_conversations(&sessions, &mut containers);
    let seen = containers.len();
    // From an unreadable save nothing is carried over.
    let before = find(town, None).map_or_else(|_| Vec::new(), |(save, _)| save.containers);
    let not_before = timestamp(now - LOST_FOR_GOOD_SECONDS);
    let last = |agent: &str| {
        let newest = sessions.newest_of(agent);
        let what = format_args!("the last session of {agent} is unknown");
        newest.or_warn(what).flatten()
    };
    let since = timestamp(server.started);
    let on_exit = |agent: &str| roles::on_exit(town, agent);
    let lost = core::carried_over(
        before,
        &containers,
        &servers,
        &since,
        &not_before,
        last,
        on_exit,
    );
    containers.extend(lost);
    let header = SaveHeader {
        version: VERSION,
        town: town.root_text().to_owned(),
        host: surroundings::host(),
        saved_at: town.clock().text(),
        automatic,
        containers: containers.len(),
    };
    let (name, bytes) = store::write(town, &header, &containers)?;
    let mut warnings = Vec::new();
    // The new save is complete; a failed prune only leaves too many files.
    warnings.extend(store::prune(town).err().map(|p| p.to_string()));
    if town.settings().save.resurrect {
        warnings.extend(resurrect::save(town).err().map(|p| p.to_string()));
    }
    save_schedule::keep_timer(town, 0);
    Ok(Some(CompletedSave {
        name,
        bytes,
        containers: seen,
        carried: containers.len() - seen,
        warnings,
    }))
}

/// Adds missing conversation ids. The tags have an id only after a hook has reported it; the
/// journal has the ids that were chosen. If the journal cannot be read now, the restore reads it.
fn fill_conversations(sessions: &Sessions, containers: &mut [SavedContainer]) {
    if containers.iter().all(|c| c.harness_session.is_some()) {
        return;
    }
    let query = SessionQuery {
        status: Some(SessionStatus::Running.as_str().to_owned()),
        ..SessionQuery::default()
    };
    let running = sessions
        .find(&query)
        .or_warn("the save may lack conversations");
    let running = running.unwrap_or_default();
    for container in containers.iter_mut() {
        let session = running
            .iter()
            .find(|session| session.id == container.session);
        let known = session.and_then(|session| session.harness_session_id.clone());
        container.harness_session = container.harness_session.take().or(known);
    }
}

/// Returns the time of the newest save in seconds since the epoch; `None` if there is none.
pub(crate) fn newest_at(town: &Town) -> Option<i64> {
    let written = store::newest_file(town)?.metadata().ok()?.modified().ok()?;
    let at = jiff::Timestamp::try_from(written).ok()?;
    Some(at.as_second())
}

/// Returns whether a save is requested or in progress.
pub(crate) fn is_pending(town: &Town) -> bool {
    let ask = Command::new("show-options").args(["-gqv", &save_schedule::due_option(town)]);
    let due = town.server().run(ask).or_debug("no save is requested");
    let due = due.and_then(|due| due.trim().parse::<i64>().ok());
    due.is_some_and(|due| due >= town.clock().seconds()) || FileLock::is_held(&lock_path(town))
}

fn lock_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("locks/save.lock")
}

/// Handles tmux's timer: saves if the newest save is old, and schedules the timer again.
pub fn timer(town: &Town) -> Result<Option<CompletedSave>> {
    let command = Command::new("set-option").args(["-gu", &save_schedule::timer_option(town)]);
    // Without a server there is nothing to save, and the save reports it.
    let _ = town.server().run(command);
    let now = town.clock().seconds();
    let age = newest_at(town).map(|at| now - at);
    let every = town.settings().save_interval().as_secs();
    match age {
        Some(age) if u64::try_from(age).is_ok_and(|age| age < every) => {
            save_schedule::keep_timer(town, age);
            Ok(None)
        }
        _ => save(town, true),
    }
}
