//! Locks between processes.
//!
//! Several `gt` processes work on one town concurrently, so only operating-system locks are safe.
//! The kernel releases a lock when its holder dies. `std` locks with `flock` on Linux and macOS, so
//! these locks and those of any program that uses `flock` exclude each other.

use crate::Result;
use crate::base::files;
use gt_core::Problem;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock without waiting; returns `None` if another process holds it.
    pub fn try_take(path: &Path) -> Result<Option<Self>> {
        let lock = Self::try_lock(path, File::try_lock)?;
        Ok(lock.map(|mut lock| {
            note_holder(&mut lock.file);
            lock
        }))
    }

    /// Takes the lock, and waits at most `timeout` for its holder.
    pub fn take(path: &Path, timeout: Duration) -> Result<Self> {
        Self::take_within(path, timeout)?.ok_or_else(|| still_held(path))
    }

    /// Takes the lock; returns `None` if another process still holds it after `timeout`.
    pub fn take_within(path: &Path, timeout: Duration) -> Result<Option<Self>> {
        Self::wait(timeout, || Self::try_take(path))
    }

    /// Takes the lock, and waits without a timeout. For background processes.
    pub fn take_waiting(path: &Path) -> Result<Self> {
        let file = open(path)?;
        file.lock()
            .map_err(|error| files::io_problem("lock", path, &error))?;
        let mut lock = FileLock { file };
        note_holder(&mut lock.file);
        Ok(lock)
    }

    /// Takes a shared lock. An exclusive lock waits for all shared ones.
    pub fn share(path: &Path, timeout: Duration) -> Result<Self> {
        let attempt = || Self::try_lock(path, File::try_lock_shared);
        Self::wait(timeout, attempt)?.ok_or_else(|| still_held(path))
    }

    /// Returns whether another process holds the lock exclusively. The check takes a shared lock
    /// for a moment, so a concurrent [`Self::try_take`] may return `None` once.
    pub fn is_held(path: &Path) -> bool {
        path.exists() && matches!(Self::try_lock(path, File::try_lock_shared), Ok(None))
    }

    fn try_lock(
        path: &Path,
        attempt: fn(&File) -> std::result::Result<(), TryLockError>,
    ) -> Result<Option<Self>> {
        let file = open(path)?;
        match attempt(&file) {
            Ok(()) => Ok(Some(FileLock { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(files::io_problem("lock", path, &error)),
        }
    }

    fn wait(timeout: Duration, attempt: impl Fn() -> Result<Option<Self>>) -> Result<Option<Self>> {
        let deadline = Instant::now() + timeout;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(lock) = attempt()? {
                return Ok(Some(lock));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            // Polls, because `flock` takes no timeout, and a signal to interrupt it would affect
            // the whole process.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

fn still_held(path: &Path) -> Problem {
    let holder = holder(path).map_or_else(String::new, |pid| format!(" (process {pid})"));
    Problem::conflict(format!("another gt{holder} still holds {}", path.display()))
        .hint("try again when it is done")
}

/// Returns the id of the process that took the lock last.
pub fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    // The id is only for a message, so failures are ignored.
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn open(path: &Path) -> Result<File> {
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
    };
    if let Ok(file) = open() {
        return Ok(file);
    }
    if let Some(dir) = path.parent() {
        files::make_dir(dir)?;
    }
    open().map_err(|error| files::io_problem("open", path, &error))
}

/// Writes the holder's process id, for messages only, so failures are ignored. The text has a fixed
/// length and overwrites the previous one: closing a truncated file makes ext4 wait for the disk,
/// which costs milliseconds under a frequently taken lock.
fn note_holder(file: &mut File) {
    // One write: formatting directly into the file would write the padding separately.
    let text = format!("{:<10}", std::process::id());
    // If this fails, a message lacks the process id.
    let _ = file.write_all_at(text.as_bytes(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, flock};

    /// Processes of earlier versions of `gt` call `flock`, and may still be running.
    #[test]
    fn locks_and_flock_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let other = open(&path).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        assert!(FileLock::is_held(&path));
        flock(&other, FlockOperation::LockShared).unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        let shared = FileLock::share(&path, Duration::ZERO).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(shared);
        flock(&other, FlockOperation::Unlock).unwrap();
        let _ours = FileLock::try_take(&path).unwrap().unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockShared).is_err());
    }

    #[test]
    fn one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/x.lock");
        let first = FileLock::try_take(&path).unwrap().unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        assert!(FileLock::is_held(&path));
        let problem = FileLock::take(&path, Duration::from_millis(5)).unwrap_err();
        assert!(problem.message().contains(&std::process::id().to_string()));
        drop(first);
        assert!(FileLock::try_take(&path).unwrap().is_some());
        assert!(!FileLock::is_held(&path));
        let shared = [(); 2].map(|()| FileLock::share(&path, Duration::ZERO).unwrap());
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(shared);
        assert!(FileLock::try_take(&path).unwrap().is_some());
    }
}
