//! Schedules automatic saves with tmux: shortly after a change, and by a timer.
//!
//! Nothing here saves. tmux calls `gt internal save`, so that no process of ours has to wait.

use crate::base::callback::{self, Call};
use crate::base::or_log::OrLog;
use crate::terminal::containers::tmux_problem;
use crate::terminal::tmux_hooks;
use crate::{Result, Town};
use gt_tmux::{Command, ErrorKind};
use std::path::PathBuf;

/// Delay between the first request and the save.
const DELAY_SECONDS: i64 = 1;
/// Seconds after which a requested save that has not started counts as lost.
const DUE_SECONDS: i64 = 20;

/// Returns the folder of the saves.
pub(crate) fn folder(town: &Town) -> PathBuf {
    town.root().join(".sessions/saves")
}

/// Asks tmux for a save after a short delay, unless one is already requested. Does not wait. After a
/// failure the next start or stop retries.
pub(crate) fn request(town: &Town) {
    let town = &*town.with_own_server();
    if let Some(command) = request_command(town) {
        let asked = town.server().run(command);
        asked.or_debug("no save is requested");
    }
}

/// Returns the command that requests a save, for a caller that adds it to its own batch.
pub(crate) fn request_command(town: &Town) -> Option<Command> {
    let due = due_option(town);
    let is_wanted = town.settings().save.auto;
    is_wanted.then(|| call_once(town, &due, DUE_SECONDS, DELAY_SECONDS, &Call::Save.line("")))
}

/// Schedules a timer in tmux for the time at which the newest save reaches the town's maximum age,
/// unless it is already scheduled. So a town is saved as long as anything runs in it, without a
/// resident process.
pub(crate) fn keep_timer(town: &Town, age: i64) {
    let settings = &town.settings().save;
    let every = i64::try_from(town.settings().save_interval().as_secs()).unwrap_or(i64::MAX);
    if settings.auto && every > 0 {
        let wait = every.saturating_sub(age).max(1);
        let next = timer_option(town);
        let call = call_once(
            town,
            &next,
            wait + DUE_SECONDS,
            wait,
            &Call::Save.line("--timer"),
        );
        let asked = town.server().run(call);
        asked.or_debug("no automatic save is scheduled");
    }
}

/// Returns the command by which tmux calls `gt` after `wait` seconds, unless an option marks a call
/// as pending. The mark is valid for `valid` seconds.
pub(crate) fn call_once(
    town: &Town,
    option: &str,
    valid: i64,
    wait: i64,
    command: &str,
) -> Command {
    let line = callback::line(town, command);
    let now = town.clock().seconds();
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
    let limit = town.settings().save_interval();
    let folder = folder(town).metadata().and_then(|m| m.modified());
    // Adding or removing a file changes the folder's time, so one check is enough.
    let age = folder.ok().and_then(|at| at.elapsed().ok());
    if age.is_none_or(|age| age >= limit) {
        request(town);
    }
}

/// Returns the server option that holds the time until which a save of this town is pending. Each
/// town on a server has its own option.
pub(crate) fn due_option(town: &Town) -> String {
    format!("@gt_save_due_{}", tmux_hooks::hook_index(town))
}

/// Returns the server option of the timer.
pub(crate) fn timer_option(town: &Town) -> String {
    format!("@gt_save_next_{}", tmux_hooks::hook_index(town))
}

pub(crate) fn forget_request(town: &Town) -> Result<()> {
    let command = Command::new("set-option").args(["-gu", &due_option(town)]);
    match town.server().run(command) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NoServer | ErrorKind::ServerLost) => Ok(()),
        Err(error) => Err(tmux_problem("cannot save the containers", error)),
    }
}
