//! The file watcher on systems without inotify: there is none.

use super::{Report, WatchId};
use rustix::event::PollFd;
use rustix::io::Errno;
use std::ops::BitOr;
use std::path::Path;

/// Has no values, because [`FileWatcher::open`] makes none.
#[derive(Debug)]
pub(crate) enum FileWatcher {}

impl FileWatcher {
    pub(crate) fn open() -> Option<Self> {
        None
    }

    pub(crate) fn watch(&self, _path: &Path, _changes: Changes) -> Result<WatchId, Errno> {
        match *self {}
    }

    pub(crate) fn forget(&self, _watch: WatchId) {
        match *self {}
    }

    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        match *self {}
    }

    pub(crate) fn read(&self, _each: impl FnMut(Report<'_>)) {
        match *self {}
    }

    pub(crate) fn drain(&self) {
        match *self {}
    }
}

/// The changes that Linux reports, by their names there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changes;

impl Changes {
    pub(crate) const ATTRIB: Self = Changes;
    pub(crate) const CREATE: Self = Changes;
    pub(crate) const DELETE: Self = Changes;
    pub(crate) const MASK_ADD: Self = Changes;
    pub(crate) const MODIFY: Self = Changes;
    pub(crate) const MOVE: Self = Changes;
    pub(crate) const MOVED_TO: Self = Changes;
    pub(crate) const MOVE_SELF: Self = Changes;
    pub(crate) const ONESHOT: Self = Changes;
    pub(crate) const ONLYDIR: Self = Changes;
}

impl BitOr for Changes {
    type Output = Self;

    fn bitor(self, _other: Self) -> Self {
        Changes
    }
}
