//! Being woken when something changes in a folder.
//!
//! Folders and not files are watched: a file that is replaced keeps its name, but the
//! watch on it would stay with the one that is gone.

use std::time::Duration;

/// How long nobody may look where changes are told.
#[cfg(target_os = "linux")]
const TOLD: Duration = Duration::from_millis(500);
/// How long nobody may look where they are not.
const NOT_TOLD: Duration = Duration::from_millis(100);

#[cfg(target_os = "linux")]
pub(super) use linux::Wake;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Duration, NOT_TOLD, TOLD};
    use rustix::event::{PollFd, PollFlags};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    #[derive(Debug)]
    pub(in crate::stream) struct Wake(Option<OwnedFd>);

    impl Wake {
        /// Watches these folders. Where the kernel has no watches left, time has to do.
        pub(in crate::stream) fn on(folders: &[&Path]) -> Self {
            let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
            Wake(fd.filter(|fd| {
                folders
                    .iter()
                    .all(|folder| inotify::add_watch(fd, *folder, changes).is_ok())
            }))
        }

        pub(in crate::stream) fn poll_fd(&self) -> Option<PollFd<'_>> {
            self.0.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN))
        }

        /// After so long somebody has to look again, whatever is told.
        pub(in crate::stream) fn pause(&self) -> Duration {
            if self.0.is_some() { TOLD } else { NOT_TOLD }
        }

        /// Forgets what was told so far; the caller looks next.
        pub(in crate::stream) fn drain(&self) {
            if let Some(fd) = &self.0 {
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut events = inotify::Reader::new(fd, &mut buffer);
                while events.next().is_ok() {}
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Wake;

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{Duration, NOT_TOLD};
    use rustix::event::PollFd;
    use std::path::Path;

    /// Nothing is told here: a look now and then has to do.
    #[derive(Debug)]
    pub(in crate::stream) struct Wake;

    impl Wake {
        pub(in crate::stream) fn on(_folders: &[&Path]) -> Self {
            Wake
        }

        pub(in crate::stream) fn poll_fd(&self) -> Option<PollFd<'_>> {
            None
        }

        pub(in crate::stream) fn pause(&self) -> Duration {
            NOT_TOLD
        }

        pub(in crate::stream) fn drain(&self) {}
    }
}
