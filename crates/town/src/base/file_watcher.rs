//! File watcher: reports changes of files, folders and terminals.
//!
//! This module is the only one that uses inotify. rustix has its system calls; a larger crate would
//! add a thread or an event loop, whereas the callers poll the watcher together with processes and
//! sockets. Without inotify (on macOS, or if the user's limit of inotify instances is reached)
//! [`FileWatcher::open`] returns `None`, and the caller polls at intervals.
//!
//! *Closing* a watcher waits for the kernel (15 ms measured), so polling is better for short waits.

#[cfg(target_os = "linux")]
#[path = "file_watcher/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "file_watcher/elsewhere.rs"]
mod system;

pub(crate) use system::{Changes, FileWatcher};

use std::ffi::OsStr;

/// Number of one watch, unique within its watcher. The number of a watch that has ended may be
/// used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchId(i32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "nothing is reported without inotify")
)]
pub(crate) enum Report<'a> {
    Changed {
        watch: WatchId,
        /// The changed entry of a watched folder.
        name: Option<&'a OsStr>,
    },
    /// The watch has ended: its file is gone, or the watch was for one change only.
    Ended(WatchId),
    /// Reports were lost, so anything may have changed.
    Lost,
}
