//! Saves all containers of a town, so that `gt restore` can recreate them.
//!
//! [`save`] makes one listing, captures panes in batches and writes one file atomically. Automatic
//! saves run in the background: `request` asks tmux to call `gt save` after a short delay, once for
//! all requests in the meantime, and a timer of tmux calls it every few minutes. `save/store.rs`
//! handles the files, `save/seen.rs` reads tmux.
//!
//! The newest save always contains all agents to restore. An agent that was lost with its server is
//! carried over from save to save until it is restored, deliberately ended, or too old. So neither
//! the first start after a crash nor the pruning of saves can lose data that a restore needs. A
//! town in which nothing runs is not saved.

mod resurrect;
mod seen;
mod store;

pub use store::{Entry, Save, find, find_with, list};

use crate::containers::tmux_problem;
use crate::lock::FileLock;
use crate::sessions::{Query, Sessions};
use crate::when::timestamp;
use crate::{Result, Town, adopted, callback, roles, surroundings, tmux_hooks};
use gt_core::record::{Record, Status};
use gt_core::save::{self as core, Header, Saved, ServerId, VERSION};
use gt_tmux::{Command, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for a concurrent save.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Seconds for which a lost agent is kept for a restore.
pub(crate) const LOST_FOR_GOOD_SECONDS: i64 = 30 * 24 * 60 * 60;
/// Delay between the first request and the save.
const DELAY_SECONDS: i64 = 1;
/// Seconds after which a requested save that has not started counts as lost.
const DUE_SECONDS: i64 = 20;

/// A completed save.
#[derive(Clone, Debug)]
pub struct Made {
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
pub fn save(town: &Town, automatic: bool) -> Result<Option<Made>> {
    let _lock = FileLock::take(&lock_path(town), TIMEOUT)?;
    // Cleared before tmux is read: a later request may follow a change that this save misses.
    forget_request(town)?;
    let now = jiff::Timestamp::now().as_second();
    let mut looks = Vec::from_iter(seen::look(town, now)?);
    // The agents of a server that does not answer are carried over from the previous save.
    let others = adopted::elsewhere(town).into_iter();
    looks.extend(others.filter_map(|other| seen::look(&other, now).ok()?));
    let servers: Vec<ServerId> = looks.iter().map(|(server, _)| *server).collect();
    let mut containers: Vec<Saved> = looks.into_iter().flat_map(|(_, found)| found).collect();
    let Some(server) = servers.first().filter(|_| !containers.is_empty()) else {
        return Ok(None);
    };
    let sessions = Sessions::of(town);
    fill_conversations(&sessions, &mut containers);
    let seen = containers.len();
    // From an unreadable save nothing is carried over.
    let before = find(town, None).map_or_else(|_| Vec::new(), |(save, _)| save.containers);
    let not_before = timestamp(Some(now - LOST_FOR_GOOD_SECONDS));
    let last = |agent: &str| last_life(&sessions, agent).ok().flatten();
    let since = timestamp(Some(server.started));
    let on_exit = |agent: &str| roles::on_exit(town, agent);
    let lost = core::carried(
        before,
        &containers,
        &servers,
        &since,
        &not_before,
        last,
        on_exit,
    );
    containers.extend(lost);
    let header = Header {
        version: VERSION,
        town: town.root_text().to_owned(),
        host: surroundings::host(),
        saved_at: timestamp(None),
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
    keep_timer(town, 0);
    Ok(Some(Made {
        name,
        bytes,
        containers: seen,
        carried: containers.len() - seen,
        warnings,
    }))
}

/// Returns the newest session of an agent in the journal.
pub(crate) fn last_life(sessions: &Sessions, agent: &str) -> Result<Option<Record>> {
    let query = Query {
        agent: Some(agent.to_owned()),
        limit: Some(1),
        ..Query::default()
    };
    Ok(sessions.find(&query)?.into_iter().next())
}

/// Returns the newest session of an agent that came up. A session whose start failed has no
/// conversation to resume, even if an id was chosen for it.
pub(crate) fn last_that_came_up(sessions: &Sessions, agent: &str) -> Result<Option<Record>> {
    // It is usually the newest session, or close to it.
    for limit in [1, 50, usize::MAX] {
        let query = Query {
            agent: Some(agent.to_owned()),
            limit: Some(limit),
            ..Query::default()
        };
        let lives = sessions.find(&query)?;
        let is_all = lives.len() < limit;
        let mut came_up = lives.into_iter().filter(|l| l.failed_start != Some(true));
        match came_up.next() {
            None if !is_all => {}
            found => return Ok(found),
        }
    }
    Ok(None)
}

/// Adds missing conversation ids. The tags have an id only after a hook has reported it; the
/// journal has the ids that were chosen. If the journal cannot be read now, the restore reads it.
fn fill_conversations(sessions: &Sessions, containers: &mut [Saved]) {
    if containers.iter().all(|c| c.harness_session.is_some()) {
        return;
    }
    let query = Query {
        status: Some(Status::Running.as_str().to_owned()),
        ..Query::default()
    };
    let running = sessions.find(&query).unwrap_or_default();
    for container in containers.iter_mut() {
        let life = running.iter().find(|life| life.id == container.life);
        let known = life.and_then(|life| life.harness_session_id.clone());
        container.harness_session = container.harness_session.take().or(known);
    }
}

/// Returns the time of the newest save in seconds since the epoch.
pub(crate) fn newest_at(town: &Town) -> Option<i64> {
    let written = store::newest_file(town)?.metadata().ok()?.modified().ok()?;
    let at = jiff::Timestamp::try_from(written).ok()?;
    Some(at.as_second())
}

/// Returns whether a save is requested or in progress.
pub(crate) fn is_on_its_way(town: &Town) -> bool {
    let ask = Command::new("show-options").args(["-gqv", &due_option(town)]);
    let due = town.server().run(ask).ok();
    let due = due.and_then(|due| due.trim().parse::<i64>().ok());
    due.is_some_and(|due| due >= jiff::Timestamp::now().as_second())
        || FileLock::is_held(&lock_path(town))
}

fn lock_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("locks/save.lock")
}

/// Asks tmux for a save after a short delay, unless one is already requested. Does not wait and
/// ignores failures: the next start or stop retries.
pub(crate) fn request(town: &Town) {
    let town = &*town.own();
    if let Some(command) = request_command(town) {
        let _ = town.server().run(command);
    }
}

/// Returns the command that requests a save, for a caller that adds it to its own batch.
pub(crate) fn request_command(town: &Town) -> Option<Command> {
    let due = due_option(town);
    let is_wanted = town.settings().save.auto;
    is_wanted.then(|| call_once(town, &due, DUE_SECONDS, DELAY_SECONDS, "save --auto"))
}

/// Schedules a timer in tmux for the time at which the newest save reaches the town's maximum age,
/// unless it is already scheduled. So a town is saved as long as anything runs in it, without a
/// resident process.
fn keep_timer(town: &Town, age: i64) {
    let settings = &town.settings().save;
    let every = i64::try_from(settings.every_minutes.saturating_mul(60)).unwrap_or(i64::MAX);
    if settings.auto && every > 0 {
        let wait = every.saturating_sub(age).max(1);
        let next = timer_option(town);
        let call = call_once(town, &next, wait + DUE_SECONDS, wait, "save --auto --timer");
        let _ = town.server().run(call);
    }
}

/// Handles tmux's timer: saves if the newest save is old, and schedules the timer again.
pub fn timer(town: &Town) -> Result<Option<Made>> {
    let command = Command::new("set-option").args(["-gu", &timer_option(town)]);
    // Without a server there is nothing to save, and the save reports it.
    let _ = town.server().run(command);
    let now = jiff::Timestamp::now().as_second();
    let age = newest_at(town).map(|at| now - at);
    let every = town.settings().save.every_minutes.saturating_mul(60);
    match age {
        Some(age) if u64::try_from(age).is_ok_and(|age| age < every) => {
            keep_timer(town, age);
            Ok(None)
        }
        _ => save(town, true),
    }
}

/// Returns the command by which tmux calls `gt` after `wait` seconds, unless an option marks a call
/// as pending. The mark is valid for `valid` seconds.
fn call_once(town: &Town, option: &str, valid: i64, wait: i64, command: &str) -> Command {
    let line = callback::line(town, command);
    let now = jiff::Timestamp::now().as_second();
    let until = now.saturating_add(valid).to_string();
    let note = Command::new("set-option").args(["-g", option, &until]);
    let later = Command::new("run-shell").args(["-b", "-d", &wait.to_string(), &line]);
    let both = format!("{} ; {}", note.to_line(), later.to_line());
    let is_free = format!("#{{e|<:0#{{{option}}},{now}}}");
    Command::new("if-shell").args(["-F", &is_free, &both])
}

/// Requests a save if the newest has reached the town's maximum age. Called at the end of a turn,
/// for times in which agents work but none is started or stopped.
pub(crate) fn request_if_old(town: &Town) {
    let limit = Duration::from_secs(town.settings().save.every_minutes.saturating_mul(60));
    let folder = store::folder(town).metadata().and_then(|m| m.modified());
    // Adding or removing a file changes the folder's time, so one check is enough.
    let age = folder.ok().and_then(|at| at.elapsed().ok());
    if age.is_none_or(|age| age >= limit) {
        request(town);
    }
}

/// Returns the server option that holds the time until which a save of this town is pending. Each
/// town on a server has its own option.
fn due_option(town: &Town) -> String {
    format!("@gt_save_due_{}", tmux_hooks::place(town))
}

/// Returns the server option of the timer.
fn timer_option(town: &Town) -> String {
    format!("@gt_save_next_{}", tmux_hooks::place(town))
}

fn forget_request(town: &Town) -> Result<()> {
    let command = Command::new("set-option").args(["-gu", &due_option(town)]);
    match town.server().run(command) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NoServer | ErrorKind::ServerLost) => Ok(()),
        Err(error) => Err(tmux_problem("cannot save the containers", error)),
    }
}
