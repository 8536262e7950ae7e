//! The queue of a rig, run by a process of its own.
//!
//! Finished work starts it: no agent and no daemon takes part. The process is detached from
//! its caller, so it outlives the agent that ran `gt done` and the terminal of a person. At
//! most one process of a rig merges, and at most one other waits for its turn. A second one
//! that finds somebody waiting ends at once: whoever waits reads the queue after it has the
//! turn, and therefore sees everything that was queued before.

use super::announce::announce;
use super::{Note, RunOptions, Tell, lock_path, requests, run_locked, take_turn, validate};
use crate::lock::FileLock;
use crate::work::Work;
use crate::{Result, Town, callback, files, hook_log, rig};
use gt_core::Problem;
use gt_core::merge::Merge;
use gt_core::work::WorkId;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A log that is longer begins anew; the one before is kept.
const LONGEST_LOG: u64 = 1_000_000;
/// Longer than anybody only probes the lock.
const PROBE: Duration = Duration::from_millis(200);
/// Maximum time from the start of a process until it holds a lock.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// The file with the messages of a rig's background runs.
pub fn log_path(town: &Town, rig: &str) -> PathBuf {
    validate::folder(town, rig).join("queue.log")
}

/// Starts the queue of a rig in the background, and returns its log. `None` where the
/// settings or a parked rig leave that to a person.
pub fn start(town: &Town, rig: &str) -> Result<Option<PathBuf>> {
    if !is_wanted(town, rig) {
        return Ok(None);
    }
    if !requests::is_requested(town, rig) {
        request(town, rig);
    }
    let log = log_path(town, rig);
    // It starts the process that merges, and ends: nobody is the parent of that any more.
    let status = callback::unattached(town, &["mq", "run", rig, "--detach"]).status();
    match status {
        Ok(status) if status.success() => Ok(Some(log)),
        Ok(status) => Err(cannot_start(rig).cause(status.to_string())),
        Err(error) => Err(cannot_start(rig).caused_by(error)),
    }
}

/// Whether finished work of a rig is merged without a command of a person.
pub(crate) fn is_wanted(town: &Town, rig: &str) -> bool {
    town.settings().merge_defaults_of(rig).automatic && rig::check_not_parked(town, rig).is_ok()
}

/// Notes that work is about to be queued, for the case that the caller or the process that
/// merges is killed.
pub(crate) fn request(town: &Town, rig: &str) {
    if !is_wanted(town, rig) {
        return;
    }
    if let Err(problem) = requests::request(town, rig) {
        // The run is started all the same; only one that is killed is not resumed.
        hook_log::note(town, "mq", &problem);
    }
}

/// Starts the runs whose processes were killed. Commands that look at the town call it: where
/// no run is due it costs one system call. A failure is left to the next caller and to
/// `gt doctor`.
pub fn resume(town: &Town) {
    for rig in requests::due(town) {
        if !is_wanted(town, &rig) || is_running(town, &rig) {
            continue;
        }
        if let Err(problem) = start(town, &rig) {
            hook_log::note(town, "mq", &problem);
        }
    }
}

/// Removes the requests of a rig that is removed.
pub(crate) fn forget(town: &Town, rig: &str) -> Result<()> {
    requests::forget(town, rig)
}

/// The number of runs of a rig that were killed since the last one that ended by itself.
/// Meaningful while no process runs.
pub(crate) fn killed_runs(town: &Town, rig: &str) -> u32 {
    requests::attempts(town, rig)
}

/// Starts the queue of a rig in the background if something waits in it.
pub fn start_if_waiting(town: &Town, rig: &str) -> Result<Option<PathBuf>> {
    let queue = Work::of(town).merges(Some(rig), false)?;
    match queue.iter().any(|merge| merge.status.is_waiting()) {
        true => start(town, rig),
        false => Ok(None),
    }
}

fn cannot_start(rig: &str) -> Problem {
    Problem::failed(format!("the merge queue of {rig} could not be started"))
        .hint(format!("`gt mq run {rig}` merges what waits"))
}

/// Leaves the session of the caller, and starts the process that merges.
pub fn detach(town: &Town, rig: &str) -> Result<()> {
    rig::entry(town, rig)?;
    rustix::process::setsid()
        .map_err(|errno| cannot_start(rig).caused_by(std::io::Error::from(errno)))?;
    let path = log_path(town, rig);
    let log = open_log(&path)?;
    let cannot = |error: std::io::Error| cannot_start(rig).caused_by(error);
    let mut call = callback::unattached(town, &["mq", "run", rig, "--background"]);
    call.stdout(Stdio::from(log.try_clone().map_err(cannot)?))
        .stderr(Stdio::from(log));
    call.spawn().map(drop).map_err(cannot)
}

fn open_log(path: &Path) -> Result<File> {
    files::make_dir(path.parent().unwrap_or(path))?;
    if fs::metadata(path).is_ok_and(|meta| meta.len() > LONGEST_LOG) {
        // Where it fails, the log only grows on.
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| files::cannot("write", path, &error))
}

/// Merges what waits in a rig, unless another process is about to do so.
pub fn run(town: &Town, rig: &str, tell: Tell<'_>) -> Result<()> {
    let Ok(next) = FileLock::take(&next_path(town, rig), PROBE) else {
        return Ok(());
    };
    let turn = take_turn(town, rig, tell)?;
    if let Err(problem) = requests::begin(town, rig) {
        // The request stays, and an empty run follows.
        tell(Note::Warning(&problem.to_string()));
    }
    // From here on others may wait, and this process reads the queue.
    drop(next);
    let result = run_locked(town, rig, &RunOptions::default(), tell, |_| {});
    if let Err(problem) = &result {
        // Nobody reads this process' error: the entries themselves say why they wait.
        let work = Work::of(town);
        work.note_why_waiting(rig, problem.message())?;
        announce(town, rig, None, tell);
    }
    // A run that was told to end, as at the shutdown of the machine, is resumed later.
    if !town.around().cancel.is_set() {
        requests::end(town, rig)?;
    }
    drop(turn);
    result
}

/// Waits until the background run has dealt with an entry. Returns the entry as it is then:
/// one that still waits says why.
pub fn wait(town: &Town, entry: &WorkId) -> Result<Merge> {
    let work = Work::of(town);
    let first = work.merge(entry)?;
    let deadline = Instant::now() + START_TIMEOUT;
    let mut was_running = false;
    loop {
        // Looked at before the entry: the run may end in between.
        let is_running = is_running(town, &first.rig);
        let merge = work.merge(entry)?;
        was_running |= is_running;
        let is_tried = merge.reason.is_some() && merge.updated_at != first.updated_at;
        let is_over = was_running || is_tried || Instant::now() > deadline;
        if !merge.status.is_waiting() || (is_over && !is_running) {
            return Ok(merge);
        }
        town.around().cancel.check()?;
        std::thread::sleep(POLL);
    }
}

/// Whether a process merges in this rig, or waits for its turn.
pub fn is_running(town: &Town, rig: &str) -> bool {
    FileLock::is_held(&lock_path(town, rig)) || FileLock::is_held(&next_path(town, rig))
}

fn next_path(town: &Town, rig: &str) -> PathBuf {
    lock_path(town, rig).with_extension("next.lock")
}
