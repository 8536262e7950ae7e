//! Saving all containers of a town, so that `gt restore` can make them again.
//!
//! One listing, captures in portions, one file that appears whole: [`save`]. Nobody
//! waits for an automatic one: `request` leaves it with tmux, which calls `gt save`
//! a moment later, once for all who asked in the meantime; and a timer of tmux's calls it
//! every few minutes. The files are in
//! `save/store.rs`, what is read of tmux in `save/seen.rs`.
//!
//! The newest save alone always has everybody who is to come back. An agent that was
//! lost with its server is taken over from save to save until it is back, or ended by
//! somebody's wish, or too old. So neither the first start after a crash nor the number
//! of saves that are kept can lose what a restore needs, and a town in which nothing
//! runs is not saved at all.

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

/// How long another save may take before ours.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a lost agent is kept for a restore.
pub(crate) const LOST_FOR_GOOD_SECONDS: i64 = 30 * 24 * 60 * 60;
/// Between the first who asks for a save and the save.
const DELAY_SECONDS: i64 = 1;
/// A save that was asked for and has not begun after so long was lost.
const DUE_SECONDS: i64 = 20;

/// A save that was made.
#[derive(Clone, Debug)]
pub struct Made {
    pub name: String,
    pub bytes: usize,
    /// The containers that were seen.
    pub containers: usize,
    /// Those that were taken over from the save before.
    pub carried: usize,
    /// What did not go as wished.
    pub warnings: Vec<String>,
}

/// Saves every container of the town. Gives nothing where nothing runs.
pub fn save(town: &Town, automatic: bool) -> Result<Option<Made>> {
    let _lock = FileLock::take(&lock_path(town), PATIENCE)?;
    // Before the look: whoever asks from here on may have changed what we have seen.
    forget_request(town)?;
    let now = jiff::Timestamp::now().as_second();
    let mut looks = Vec::from_iter(seen::look(town, now)?);
    // A server that does not answer is missing: its agents are taken over from the save before.
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
    // One that cannot be read has nothing to be taken over.
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
    // The new one is safe; what is left over is only too much.
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

/// The newest life of an agent, as the journal has it.
pub(crate) fn last_life(sessions: &Sessions, agent: &str) -> Result<Option<Record>> {
    let query = Query {
        agent: Some(agent.to_owned()),
        limit: Some(1),
        ..Query::default()
    };
    Ok(sessions.find(&query)?.into_iter().next())
}

/// The newest life of an agent that came up: one whose start failed has no conversation
/// to go on with, whatever id was chosen for it.
pub(crate) fn last_that_came_up(sessions: &Sessions, agent: &str) -> Result<Option<Record>> {
    // Mostly it is the newest, and hardly ever far behind it.
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

/// The tags know the conversation only once a hook has told it; the journal knows the
/// ids that were chosen. A journal that cannot be read now is asked again by a restore.
fn fill_conversations(sessions: &Sessions, containers: &mut [Saved]) {
    if containers.iter().all(|c| c.harness_session.is_some()) {
        return;
    }
    let query = Query {
        status: Some(Status::Running.word().to_owned()),
        ..Query::default()
    };
    let running = sessions.find(&query).unwrap_or_default();
    for container in containers.iter_mut() {
        let life = running.iter().find(|life| life.id == container.life);
        let known = life.and_then(|life| life.harness_session_id.clone());
        container.harness_session = container.harness_session.take().or(known);
    }
}

/// When the newest save was written, in seconds since the epoch.
pub(crate) fn newest_at(town: &Town) -> Option<i64> {
    let written = store::newest_file(town)?.metadata().ok()?.modified().ok()?;
    let at = jiff::Timestamp::try_from(written).ok()?;
    Some(at.as_second())
}

/// Whether a save was asked for that has not come yet, or is being made.
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

/// Asks tmux for a save in a moment, unless one is on its way. Nobody waits for it, and
/// nobody fails for its sake: the next start or stop asks again.
pub(crate) fn request(town: &Town) {
    let town = &*town.own();
    if let Some(command) = request_command(town) {
        let _ = town.server().run(command);
    }
}

/// The same for whoever has more to tell tmux.
pub(crate) fn request_command(town: &Town) -> Option<Command> {
    let due = due_option(town);
    let is_wanted = town.settings().save.auto;
    is_wanted.then(|| call_once(town, &due, DUE_SECONDS, DELAY_SECONDS, "save --auto"))
}

/// Lets tmux call us when the newest save will be as old as the town allows, unless it is
/// to do so already. So a town is saved for as long as anything runs in it, with nobody of
/// ours awake.
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

/// What tmux's timer calls: saves if the newest save is old, and winds the timer up again.
pub fn timer(town: &Town) -> Result<Option<Made>> {
    let command = Command::new("set-option").args(["-gu", &timer_option(town)]);
    // Without a server there is nothing to be saved, and the save says so.
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

/// The command by which tmux calls us in so many seconds, unless an option says that a call
/// is on its way; it says so for as long as the call may take to come.
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

/// Asks for a save if the newest is as old as the town allows: at the end of a turn,
/// while agents work and nobody starts or stops any.
pub(crate) fn request_if_old(town: &Town) {
    let limit = Duration::from_secs(town.settings().save.every_minutes.saturating_mul(60));
    let folder = store::folder(town).metadata().and_then(|m| m.modified());
    // A file that comes or goes changes its folder's time: one look at one thing.
    let age = folder.ok().and_then(|at| at.elapsed().ok());
    if age.is_none_or(|age| age >= limit) {
        request(town);
    }
}

/// The server's option that says until when a save of this town is on its way. Other
/// towns on the same server have their own.
fn due_option(town: &Town) -> String {
    format!("@gt_save_due_{}", tmux_hooks::place(town))
}

/// The same for the timer.
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
