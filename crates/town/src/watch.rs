//! Waiting for one pane: until it prints or its process ends.
//!
//! On Linux the kernel tells both at once (inotify on the terminal, a pidfd for
//! the process), at no cost to tmux. Elsewhere it is a short sleep, and the
//! caller looks again.

use crate::processes::Handle;
use std::time::Duration;

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    Printed,
    Ended,
    TimedOut,
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Duration, Handle, Woke};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;

    #[derive(Debug)]
    pub struct PaneWatch {
        process: Option<Handle>,
        terminal: Option<OwnedFd>,
    }

    impl PaneWatch {
        pub fn new(tty: &str, process: Option<Handle>) -> Self {
            let terminal = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
                .ok()
                .filter(|fd| inotify::add_watch(fd, tty, WatchFlags::MODIFY).is_ok());
            PaneWatch { process, terminal }
        }

        pub fn wait(&self, patience: Duration) -> Woke {
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
            fds.extend(self.process.iter().map(Handle::poll_fd));
            let process_fds = fds.len();
            fds.extend(
                self.terminal
                    .iter()
                    .map(|fd| PollFd::new(fd, PollFlags::IN)),
            );
            let timeout = Timespec::try_from(patience).ok();
            if !matches!(poll(&mut fds, timeout.as_ref()), Ok(n) if n > 0) {
                return Woke::TimedOut;
            }
            let ended = fds[..process_fds].iter().any(|fd| !fd.revents().is_empty());
            if let Some(terminal) = &self.terminal {
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut events = inotify::Reader::new(terminal, &mut buffer);
                while events.next().is_ok() {}
            }
            if ended { Woke::Ended } else { Woke::Printed }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Duration, Handle, Woke};

    #[derive(Debug)]
    pub struct PaneWatch {
        process: Option<Handle>,
    }

    impl PaneWatch {
        pub fn new(_tty: &str, process: Option<Handle>) -> Self {
            PaneWatch { process }
        }

        pub fn wait(&self, patience: Duration) -> Woke {
            std::thread::sleep(patience.min(Duration::from_millis(30)));
            match &self.process {
                Some(process) if process.has_ended() => Woke::Ended,
                _ => Woke::Printed,
            }
        }
    }
}

pub use system::PaneWatch;
