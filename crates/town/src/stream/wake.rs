//! Watches folders for changes.
//!
//! Folders are watched instead of files: a watch on a file would stay with the old file after it
//! was replaced.

use std::time::Duration;

/// Maximum pause between reads if the kernel reports changes.
#[cfg(target_os = "linux")]
const TOLD: Duration = Duration::from_millis(500);
/// Pause between reads if it does not.
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
        /// Watches these folders. Falls back to polling if the kernel has no watches left.
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

        /// Returns the time after which the caller must read again, even without a report.
        pub(in crate::stream) fn pause(&self) -> Duration {
            if self.0.is_some() { TOLD } else { NOT_TOLD }
        }

        /// Discards pending reports; the caller reads next.
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

    /// Polling only: this system reports nothing.
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
