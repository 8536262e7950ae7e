//! Watches folders for changes, and falls back to polling.
//!
//! Folders are watched instead of files: a watch on a file would stay with the old file after it
//! was replaced.

use crate::base::file_watcher::{Changes, FileWatcher};
use rustix::event::PollFd;
use std::path::Path;
use std::time::Duration;

/// Maximum pause between reads if the kernel reports changes.
const TOLD: Duration = Duration::from_millis(500);
/// Pause between reads if it does not.
const NOT_TOLD: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Wake(Option<FileWatcher>);

impl Wake {
    /// Watches these folders. Falls back to polling if the kernel has no watches left.
    pub(super) fn on(folders: &[&Path]) -> Self {
        let changes = Changes::MODIFY | Changes::CREATE | Changes::MOVED_TO;
        let is_watching = |watcher: &FileWatcher| {
            let mut folders = folders.iter();
            folders.all(|folder| watcher.watch(folder, changes).is_ok())
        };
        Wake(FileWatcher::open().filter(is_watching))
    }

    pub(super) fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.0.as_ref().map(FileWatcher::poll_fd)
    }

    /// Returns the time after which the caller must read again, even without a report.
    pub(super) fn pause(&self) -> Duration {
        if self.0.is_some() { TOLD } else { NOT_TOLD }
    }

    /// Discards pending reports; the caller reads next.
    pub(super) fn drain(&self) {
        if let Some(watcher) = &self.0 {
            watcher.drain();
        }
    }
}
