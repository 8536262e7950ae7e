//! Runs the queue of a rig in a background process.
//!
//! It is started when work is finished (`gt done`), and needs neither an agent nor the daemon. The
//! process is detached from its caller, so it outlives the agent that ran `gt done` and the
//! terminal of a person. At most one process of a rig merges, and at most one other waits for its
//! turn. A further process ends at once if one waits already: the waiting process reads the queue
//! after it gets the lock, and therefore sees every entry that was queued before.

use super::announce::announce;
use super::{
    MergeMessage, RunOptions, Tell, lock_path, lock_queue, requests, run_locked, validate,
};
use crate::base::callback::{self, Call};
use crate::base::lock::FileLock;
use crate::base::{estop, files};
use crate::records::items::Work;
use crate::repo::rig;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::merge::Merge;
use gt_core::work::WorkId;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Size in bytes at which a log is rotated; one older log is kept.
const LONGEST_LOG: u64 = 1_000_000;
/// Maximum wait for the lock; longer than a probe by another process holds it.
const PROBE: Duration = Duration::from_millis(200);
/// Maximum time from the start of a process until it holds a lock.
const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Returns the path of the log of a rig's background runs.
pub fn log_path(town: &Town, rig: &str) -> PathBuf {
    validate::folder(town, rig).join("queue.log")
}

/// Starts the queue of a rig in the background and returns its log. Returns `None` if the settings
/// disable it, the rig is parked, or an emergency stop holds it.
pub fn start(town: &Town, rig: &str) -> Result<Option<PathBuf>> {
    if !is_wanted(town, rig) {
        return Ok(None);
    }
    if !requests::is_requested(town, rig) {
        request(town, rig);
    }
    if estop::read(town, Some(rig)).is_some() {
        // The end of the emergency stop resumes the request.
        return Ok(None);
    }
    let log = log_path(town, rig);
    // The intermediate process starts the merging process and ends, so that the merging process is
    // not a child of the caller.
    let [internal, detached] = Call::MergeDetached.words();
    let status = callback::unattached(town, &[internal, detached, rig]).status();
    match status {
        Ok(status) if status.success() => Ok(Some(log)),
        Ok(status) => Err(cannot_start(rig).cause(status.to_string())),
        Err(error) => Err(cannot_start(rig).caused_by(error)),
    }
}

/// Returns whether finished work of a rig is merged without a command of a person.
pub(crate) fn is_wanted(town: &Town, rig: &str) -> bool {
    town.settings().merge_defaults_of(rig).automatic && rig::check_not_parked(town, rig).is_ok()
}

/// Records that work is about to be queued, in case the caller or the merging process is killed.
pub(crate) fn request(town: &Town, rig: &str) {
    if !is_wanted(town, rig) {
        return;
    }
    if let Err(problem) = requests::request(town, rig) {
        // The run is started anyway; it just cannot be resumed if it is killed.
        tracing::warn!("{}", problem.line());
    }
}

/// Restarts runs whose processes were killed. Without a due run it costs one system call. A failure
/// is left to the next caller and to `gt doctor`.
pub fn resume(town: &Town) {
    for rig in requests::due(town) {
        let is_stopped = estop::read(town, Some(&rig)).is_some();
        if is_stopped || !is_wanted(town, &rig) || is_running(town, &rig) {
            continue;
        }
        if let Err(problem) = start(town, &rig) {
            tracing::error!("{}", problem.line());
        }
    }
}

/// Removes the requests of a rig that is being removed.
pub(crate) fn forget(town: &Town, rig: &str) -> Result<()> {
    requests::forget(town, rig)
}

/// Returns how many runs of a rig were killed since the last run that ended by itself. Meaningful
/// only while no process runs.
pub(crate) fn killed_runs(town: &Town, rig: &str) -> u32 {
    requests::attempts(town, rig)
}

/// Starts the queue of a rig in the background if an entry waits in it.
pub fn start_if_waiting(town: &Town, rig: &str) -> Result<Option<PathBuf>> {
    let queue = Work::of(town).merges(Some(rig), false)?;
    match queue.iter().any(|merge| merge.status.is_waiting()) {
        true => start(town, rig),
        false => Ok(None),
    }
}

fn cannot_start(rig: &str) -> Problem {
    Problem::failed(format!("the merge queue of {rig} could not be started"))
        .hint(format!("`gt mq run {rig}` merges the waiting entries"))
}

/// Leaves the session of the caller and starts the merging process.
pub fn detach(town: &Town, rig: &str) -> Result<()> {
    rig::entry(town, rig)?;
    rustix::process::setsid()
        .map_err(|errno| cannot_start(rig).caused_by(std::io::Error::from(errno)))?;
    let path = log_path(town, rig);
    let log = open_log(&path)?;
    let cannot = |error: std::io::Error| cannot_start(rig).caused_by(error);
    let [internal, merge] = Call::Merge.words();
    let mut call = callback::unattached(town, &[internal, merge, rig]);
    call.stdout(Stdio::from(log.try_clone().map_err(cannot)?))
        .stderr(Stdio::from(log));
    call.spawn().map(drop).map_err(cannot)
}

fn open_log(path: &Path) -> Result<File> {
    files::make_dir(path.parent().unwrap_or(path))?;
    if fs::metadata(path).is_ok_and(|meta| meta.len() > LONGEST_LOG) {
        // If this fails, the log only keeps growing.
        let _ = fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| files::io_problem("write", path, &error))
}

/// Merges the waiting entries of a rig, unless another process is already waiting to do so.
pub fn run(town: &Town, rig: &str, tell: Tell<'_>) -> Result<()> {
    let Some(next) = FileLock::take_within(&next_path(town, rig), PROBE)? else {
        return Ok(());
    };
    let turn = lock_queue(town, rig, tell)?;
    if let Err(problem) = requests::begin(town, rig) {
        // The request remains; the only effect is one empty run later.
        tell(MergeMessage::Warning(&problem.to_string()));
    }
    // From here on another process may wait, because this one reads the queue now.
    drop(next);
    let result = run_locked(town, rig, &RunOptions::default(), tell, |_| {});
    // A cancelled run, as at the shutdown of the machine or by an emergency stop, is resumed later.
    let is_stopped = estop::read(town, Some(rig)).is_some();
    let is_stopped = is_stopped && result.is_err();
    let is_cancelled = town.around().cancel.is_set();
    if let Err(problem) = &result
        && !is_cancelled
        && !is_stopped
    {
        // A background process has no terminal for its error, so the entries record the reason.
        let work = Work::of(town);
        work.note_why_waiting(rig, problem.message())?;
        announce(town, rig, None, tell);
    }
    if is_stopped {
        requests::request(town, rig)?;
    }
    if !is_cancelled {
        requests::end(town, rig)?;
    }
    drop(turn);
    result
}

/// Waits until the background run has processed an entry, and returns the entry. An entry that
/// still waits holds the reason.
pub fn wait(town: &Town, entry: &WorkId) -> Result<Merge> {
    let work = Work::of(town);
    let first = work.merge(entry)?;
    let deadline = Instant::now() + START_TIMEOUT;
    let mut was_running = false;
    loop {
        // Must be read before the entry: the run may end in between.
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

/// Returns whether a process merges in this rig, or waits for its turn.
pub fn is_running(town: &Town, rig: &str) -> bool {
    FileLock::is_held(&lock_path(town, rig)) || FileLock::is_held(&next_path(town, rig))
}

fn next_path(town: &Town, rig: &str) -> PathBuf {
    lock_path(town, rig).with_extension("next.lock")
}
