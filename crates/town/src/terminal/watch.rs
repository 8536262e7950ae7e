//! Waits until a pane may show new output, or its process ends.
//!
//! At first the caller is woken every few milliseconds: most programs answer that quickly, and a
//! read through tmux's socket costs next to nothing. After that, on Linux, a file watcher on the
//! terminal wakes the caller, at no cost to tmux and none while nothing happens. The file watcher
//! comes second because closing it is slow (see [`file_watcher`](crate::base::file_watcher)). On
//! Linux the end of the process is an event as well. Other systems poll for both.

use crate::base::file_watcher::{Changes, FileWatcher};
use crate::base::processes::ProcessHandle;
use rustix::fs::{Mode, OFlags};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Duration of polling at short intervals, before the file watcher takes over.
const ATTENTIVE: Duration = Duration::from_millis(250);
/// Maximum interval between two polls.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// The caller should read the screen again.
    Look,
    Ended,
    TimedOut,
}

/// Watches one pane.
#[derive(Debug)]
pub struct PaneWatch {
    tty: String,
    process: Option<ProcessHandle>,
    since: Instant,
    pause: Duration,
    /// Folders in which a created or removed file also ends a wait.
    folders: Vec<PathBuf>,
    events: Option<TerminalWatcher>,
}

impl PaneWatch {
    pub fn new(tty: &str, process: Option<ProcessHandle>) -> Self {
        PaneWatch {
            tty: tty.to_owned(),
            process,
            since: Instant::now(),
            pause: Duration::from_millis(1),
            folders: Vec::new(),
            events: None,
        }
    }

    /// Adds folders in which a created or removed file also ends a wait.
    pub fn add_folders(&mut self, folders: &[PathBuf]) {
        self.folders.extend_from_slice(folders);
        self.events = None;
    }

    /// Returns whether the process has ended. True if there is no handle on it.
    pub fn has_ended(&self) -> bool {
        self.process.as_ref().is_none_or(ProcessHandle::has_ended)
    }

    /// Returns whether the program has read all typed input; `false` if unknown.
    pub fn has_read_input(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let tty = rustix::fs::open(&self.tty, flags, Mode::empty());
        tty.is_ok_and(|tty| rustix::io::ioctl_fionread(&tty) == Ok(0))
    }

    /// Polls again at short intervals, after an action that the program will answer soon.
    pub fn poll_often(&mut self) {
        self.since = Instant::now();
        self.pause = Duration::from_millis(1);
    }

    /// Waits at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> WakeReason {
        if self.since.elapsed() < ATTENTIVE {
            let pause = self.pause.min(timeout);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            return match system::wait(self.process.as_ref(), None, pause) {
                WakeReason::TimedOut => WakeReason::Look,
                woke => woke,
            };
        }
        let (tty, folders) = (&self.tty, &self.folders);
        let events = self
            .events
            .get_or_insert_with(|| TerminalWatcher::of(tty, folders));
        system::wait(self.process.as_ref(), Some(events), timeout)
    }
}

/// File watcher on a terminal and folders; `None` if inotify is not available or cannot watch the
/// terminal.
#[derive(Debug)]
struct TerminalWatcher(Option<FileWatcher>);

impl TerminalWatcher {
    fn of(tty: &str, folders: &[PathBuf]) -> Self {
        let is_watched =
            |watcher: &FileWatcher| watcher.watch(Path::new(tty), Changes::MODIFY).is_ok();
        let watcher = FileWatcher::open().filter(is_watched);
        let comes_and_goes = Changes::CREATE | Changes::DELETE | Changes::MOVE;
        if let Some(watcher) = &watcher {
            for folder in folders {
                // Fails for a folder that does not exist yet, which is then not watched.
                let _ = watcher.watch(folder, comes_and_goes);
            }
        }
        TerminalWatcher(watcher)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Duration, FileWatcher, ProcessHandle, TerminalWatcher, WakeReason};
    use rustix::event::{PollFd, Timespec, poll};

    /// Delay after the first write: programs draw in several writes.
    const SETTLE: Duration = Duration::from_millis(5);
    /// Polling interval without a file watcher.
    const POLL: Duration = Duration::from_secs(1);

    pub(super) fn wait(
        process: Option<&ProcessHandle>,
        events: Option<&TerminalWatcher>,
        timeout: Duration,
    ) -> WakeReason {
        let mut fds: Vec<PollFd<'_>> = process.iter().map(|handle| handle.poll_fd()).collect();
        let of_process = fds.len();
        let watcher = events.and_then(|events| events.0.as_ref());
        fds.extend(watcher.map(FileWatcher::poll_fd));
        // Without a file watcher, only polling detects new output.
        let timeout = match events {
            Some(TerminalWatcher(None)) => timeout.min(POLL),
            _ => timeout,
        };
        let timeout = Timespec::try_from(timeout).ok();
        if !matches!(poll(&mut fds, timeout.as_ref()), Ok(n) if n > 0) {
            return WakeReason::TimedOut;
        }
        if fds[..of_process].iter().any(|fd| !fd.revents().is_empty()) {
            return WakeReason::Ended;
        }
        std::thread::sleep(SETTLE);
        if let Some(watcher) = watcher {
            watcher.drain();
        }
        WakeReason::Look
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Duration, ProcessHandle, TerminalWatcher, WakeReason};

    /// Polling interval: this system reports neither output nor the end of a process as an event.
    const POLL: Duration = Duration::from_millis(50);

    pub(super) fn wait(
        process: Option<&ProcessHandle>,
        events: Option<&TerminalWatcher>,
        timeout: Duration,
    ) -> WakeReason {
        let pause = if events.is_some() { POLL } else { timeout };
        std::thread::sleep(timeout.min(pause));
        match process {
            Some(process) if process.has_ended() => WakeReason::Ended,
            _ => WakeReason::Look,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::processes;

    #[test]
    fn pane_without_events_is_polled() {
        // A terminal that does not exist cannot be watched.
        let mut watch = PaneWatch::new("/nonexistent", processes::hold_one(std::process::id()));
        watch.since = Instant::now().checked_sub(ATTENTIVE).unwrap();
        let began = Instant::now();
        watch.wait(Duration::from_secs(60));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert!(!watch.has_ended());
    }
}
