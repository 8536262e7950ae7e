//! The daemon as other processes see it: its lock, and the status file that it writes about its
//! duties.
//!
//! The daemon itself is the crate `gt-daemon`. No part of the engine depends on whether it runs.

use crate::base::callback;
use crate::base::error_enum::error_enum;
use crate::base::files;
use crate::base::lock::{self, FileLock};
use crate::base::processes::{self, ProcessHandle};
use crate::{Result, Town};
use gt_core::Problem;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum wait until a new daemon holds its lock, and until one that was asked to end has ended.
const START_TIMEOUT: Duration = Duration::from_secs(15);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A daemon that was not started.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DaemonError {
    /// A daemon of this town runs already.
    #[error(transparent)]
    Running(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(DaemonError: Running, Other);

/// The lock of a town's daemon. It is held for as long as the daemon runs.
#[derive(Debug)]
pub struct DaemonLock {
    _lock: FileLock,
}

impl DaemonLock {
    /// Takes the lock; fails if a daemon runs.
    pub fn take(town: &Town) -> Result<Self, DaemonError> {
        // Checks by other processes hold the lock for a moment.
        const PROBE: Duration = Duration::from_millis(500);
        let path = lock_path(town);
        match FileLock::take_within(&path, PROBE)? {
            Some(lock) => Ok(DaemonLock { _lock: lock }),
            None => Err(DaemonError::Running(runs_already(town))),
        }
    }
}

/// The state that the daemon reports about itself, rewritten after every duty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct DaemonNote {
    pub pid: u32,
    pub version: String,
    pub started_at: String,
    /// Whether it ended on request. If this is false and the daemon is gone, it was killed.
    #[serde(default)]
    pub ended: bool,
    #[serde(default)]
    pub duties: BTreeMap<String, DutyRecord>,
}

/// The record of one duty since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct DutyRecord {
    pub runs: u64,
    pub failures: u64,
    pub last_at: String,
    pub last_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

fn lock_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("daemon.lock")
}

fn note_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("daemon.json")
}

fn runs_already(town: &Town) -> Problem {
    let by = lock::holder(&lock_path(town)).map(|pid| format!(" (process {pid})"));
    let by = by.unwrap_or_default();
    Problem::conflict(format!("a daemon of this town runs already{by}"))
        .hint("`gt daemon status` shows it, `gt daemon restart` replaces it")
}

/// Writes the note. Only the daemon calls this.
pub fn write_note(town: &Town, note: &DaemonNote) -> Result<()> {
    let text = serde_json::to_vec(note)
        .map_err(|error| Problem::failed("cannot write the daemon's note").caused_by(error))?;
    // The note informs people; it need not survive a power failure.
    files::write_passing(&note_path(town), &text)
}

/// Returns the newest note, of a daemon that runs or ran.
pub fn note(town: &Town) -> Result<Option<DaemonNote>> {
    let path = note_path(town);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(None);
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Problem::failed(format!("{} cannot be read", path.display())).caused_by(error)
    })
}

/// Returns the pid of the running daemon.
pub fn running(town: &Town) -> Option<u32> {
    let path = lock_path(town);
    FileLock::is_held(&path)
        .then(|| lock::holder(&path))
        .flatten()
}

/// Returns whether the last daemon was killed: it has not ended by itself, and none runs now.
pub fn was_killed(town: &Town) -> bool {
    running(town).is_none() && note(town).is_ok_and(|note| note.is_some_and(|note| !note.ended))
}

/// Starts a daemon in the background, and returns its pid as soon as it has reported. Fails if one
/// runs already.
pub fn start(town: &Town) -> Result<u32, DaemonError> {
    if running(town).is_some() {
        return Err(DaemonError::Running(runs_already(town)));
    }
    let cannot = || {
        Problem::failed("the daemon could not be started")
            .hint("`gt daemon run` runs it in this terminal, and shows why")
    };
    let mut call = callback::unattached(town, &["daemon", "run", "--detach"]);
    let mut child = call.spawn().map_err(|error| cannot().caused_by(error))?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        // A status file that is being written is read again in the next iteration.
        let note = note(town).ok().flatten();
        if note.is_some_and(|note| note.pid == child.id() && !note.ended) {
            return Ok(child.id());
        }
        let ended = child.try_wait().map_err(|error| cannot().caused_by(error));
        if let Some(status) = ended? {
            // Another process may have started one at the same moment.
            let other = running(town);
            return other.ok_or_else(|| cannot().cause(status.to_string()).into());
        }
        if Instant::now() > deadline {
            let problem = Problem::failed("the daemon has not reported within 15 seconds");
            return Err(problem.hint("`gt daemon logs` shows its log").into());
        }
        town.around().cancel.check()?;
        std::thread::sleep(POLL);
    }
}

/// Asks the daemon to end, and waits until it has saved and ended. Returns its pid, or `None` if
/// none runs.
pub fn stop(town: &Town) -> Result<Option<u32>> {
    let Some(pid) = running(town) else {
        return Ok(None);
    };
    let Some(handle) = processes::hold_one(pid) else {
        return Ok(None);
    };
    // Between the two reads the daemon may have ended, and another process may have its pid.
    if running(town) != Some(pid) {
        return Ok(None);
    }
    let held: Vec<ProcessHandle> = vec![handle];
    processes::signal_all(&held, Signal::TERM);
    if processes::wait_all(held, STOP_TIMEOUT).is_empty() {
        return Ok(Some(pid));
    }
    let problem = Problem::failed(format!(
        "the daemon (process {pid}) has not ended within 30 seconds"
    ));
    Err(problem.hint(format!("`kill -9 {pid}` ends it; nothing is lost by that")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTown;

    #[test]
    fn note_without_a_process_belongs_to_a_daemon_that_was_killed() {
        let stage = TestTown::new();
        let town = &stage.town;
        assert!(!was_killed(town), "there was no daemon");
        let mut note = DaemonNote {
            pid: 1,
            ..DaemonNote::default()
        };
        write_note(town, &note).unwrap();
        assert!(was_killed(town));
        note.ended = true;
        write_note(town, &note).unwrap();
        assert!(!was_killed(town));
    }

    #[test]
    fn second_daemon_is_refused_by_the_lock_of_the_first() {
        let stage = TestTown::new();
        let town = &stage.town;
        assert_eq!(running(town), None);
        let first = DaemonLock::take(town).unwrap();
        assert_eq!(running(town), Some(std::process::id()));
        let problem = DaemonLock::take(town).unwrap_err();
        let expected = format!("runs already (process {})", std::process::id());
        assert!(problem.problem().message().contains(&expected), "{problem}");
        drop(first);
        DaemonLock::take(town).unwrap();
    }
}
