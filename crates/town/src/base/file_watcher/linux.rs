//! The file watcher on Linux: inotify.

use super::{Report, WatchId};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use rustix::fs::inotify::WatchFlags as Changes;

#[derive(Debug)]
pub(crate) struct FileWatcher(OwnedFd);

impl FileWatcher {
    pub(crate) fn open() -> Option<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        // The instances of the user may be used up; the caller then looks at intervals.
        fd.ok().map(FileWatcher)
    }

    /// Watches a file or folder. A path that is already watched keeps its watch.
    pub(crate) fn watch(&self, path: &Path, changes: Changes) -> Result<WatchId, Errno> {
        inotify::add_watch(&self.0, path, changes).map(WatchId)
    }

    pub(crate) fn forget(&self, watch: WatchId) {
        // Fails only for a watch that has ended by itself.
        let _ = inotify::remove_watch(&self.0, watch.0);
    }

    /// Becomes readable when there are reports.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.0, PollFlags::IN)
    }

    /// Calls `each` for every pending report. Does not wait.
    pub(crate) fn read(&self, mut each: impl FnMut(Report<'_>)) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        while let Ok(event) = events.next() {
            let watch = WatchId(event.wd());
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                each(Report::Lost);
            } else if event.events().contains(ReadFlags::IGNORED) {
                each(Report::Ended(watch));
            } else {
                let name = event.file_name().map(CStr::to_bytes);
                let name = name.map(OsStr::from_bytes);
                each(Report::Changed { watch, name });
            }
        }
    }

    /// Discards the pending reports.
    pub(crate) fn drain(&self) {
        self.read(|_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_until_the_watch_ends() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = FileWatcher::open().unwrap();
        let folder = watcher.watch(dir.path(), Changes::CREATE).unwrap();
        let file = dir.path().join("x");
        std::fs::write(&file, "").unwrap();
        let once = Changes::MODIFY | Changes::ONESHOT;
        let one = watcher.watch(&file, once).unwrap();
        std::fs::write(&file, "a").unwrap();
        std::fs::write(&file, "b").unwrap();
        let mut found = Vec::new();
        watcher.read(|report| {
            found.push(match report {
                Report::Changed { watch, name } => (watch, name.map(OsStr::to_owned)),
                Report::Ended(watch) => (watch, Some("ended".into())),
                Report::Lost => panic!("lost"),
            });
        });
        let expected = [
            (folder, Some("x".into())),
            (one, None),
            (one, Some("ended".into())),
        ];
        assert_eq!(found, expected);
        watcher.forget(folder);
        watcher.drain();
        std::fs::write(dir.path().join("y"), "").unwrap();
        watcher.read(|report| panic!("{report:?}"));
        let missing = watcher.watch(&dir.path().join("z"), Changes::MODIFY);
        assert_eq!(missing, Err(Errno::NOENT));
    }
}
