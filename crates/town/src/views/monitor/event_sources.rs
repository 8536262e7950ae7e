//! File and process watcher: a file was touched, a pane has printed, a process ended.
//!
//! The watch of a pane is one-shot: it reports one output and must then be armed again, so that a
//! program that prints without a pause does not cause constant wakeups. If the kernel reports
//! nothing, or no watches are left, everything is reported as changed twice a second.

use super::watches::Watches;
use crate::base::processes::{self, ProcessHandle};
use crate::terminal::containers::PanePlace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Polling interval if the kernel does not report everything.
const BLIND: Duration = Duration::from_millis(500);

/// Paths of the watched files.
#[derive(Clone, Debug)]
pub(super) struct WatchedPaths {
    /// The file that other processes touch.
    pub(super) push: PathBuf,
    /// The database of work items.
    pub(super) work: PathBuf,
    /// tmux's socket.
    pub(super) socket: PathBuf,
    /// The log of events.
    pub(super) log: PathBuf,
}

/// Result of one wait: the things that may have happened.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    pub(super) pushed: bool,
    pub(super) work: bool,
    /// A tmux server may have started.
    pub(super) socket: bool,
    /// A file that the monitor's caller watches was written, created or removed.
    pub(super) files: bool,
    /// The log of events has grown.
    pub(super) log: bool,
    pub(super) printed: Vec<PanePlace>,
    pub(super) ended: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct EventSources {
    watches: Watches,
    /// Not everything can be watched, so changes are polled.
    blind: bool,
    places: WatchedPaths,
    panes: BTreeMap<PanePlace, String>,
    handles: BTreeMap<u32, ProcessHandle>,
    /// Processes that have ended, so that no handle is opened for them again.
    gone: BTreeSet<u32>,
}

impl EventSources {
    pub(super) fn open(places: WatchedPaths) -> Self {
        Self::with(Watches::open(), places)
    }

    /// Opens a watcher without kernel support.
    #[cfg(test)]
    pub(super) fn closed(places: WatchedPaths) -> Self {
        Self::with(Watches::default(), places)
    }

    fn with(mut watches: Watches, places: WatchedPaths) -> Self {
        let blind = !watches.watch_push(&places.push) || !watches.watch_work(&places.work);
        EventSources {
            watches,
            blind,
            places,
            panes: BTreeMap::new(),
            handles: BTreeMap::new(),
            gone: BTreeSet::new(),
        }
    }

    /// Starts or stops watching for a tmux server.
    pub(super) fn await_server(&mut self, wanted: bool) {
        match wanted {
            true => self.blind |= !self.watches.watch_socket(&self.places.socket),
            false => self.watches.forget_socket(),
        }
    }

    /// Starts or stops watching the log of events.
    pub(super) fn watch_log(&mut self, wanted: bool) {
        match wanted {
            true => self.blind |= !self.watches.watch_log(&self.places.log),
            false => self.watches.forget_log(),
        }
    }

    /// Replaces the watched files. Calling it again follows folders that have come or gone.
    pub(super) fn watch_files<'f>(&mut self, files: impl Iterator<Item = &'f PathBuf>) {
        self.blind |= !self.watches.watch_files(files.cloned().collect());
    }

    /// Reports the next output of this pane. The caller must read the pane after this call.
    pub(super) fn arm(&mut self, pane: PanePlace, tty: &str) {
        self.panes.insert(pane, tty.to_owned());
        self.blind |= !self.watches.watch_pane(pane, Path::new(tty));
    }

    /// Returns whether a watch of this pane was ever armed on that terminal.
    pub(super) fn knows(&self, pane: PanePlace, tty: &str) -> bool {
        self.panes.get(&pane).is_some_and(|known| known == tty)
    }

    pub(super) fn tty_of(&self, pane: PanePlace) -> Option<String> {
        self.panes.get(&pane).cloned()
    }

    /// Stops watching all panes except these.
    pub(super) fn keep_panes(&mut self, wanted: &BTreeSet<PanePlace>) {
        let is_unwanted = |pane: &&PanePlace| !wanted.contains(pane);
        let others: Vec<PanePlace> = self.panes.keys().filter(is_unwanted).copied().collect();
        for pane in others {
            self.panes.remove(&pane);
            self.watches.forget_pane(pane);
        }
    }

    /// Holds handles of exactly these processes. Returns those that have just been found ended.
    pub(super) fn hold(&mut self, wanted: &BTreeSet<u32>) -> Vec<u32> {
        self.handles.retain(|pid, _| wanted.contains(pid));
        self.gone.retain(|pid| wanted.contains(pid));
        let mut ended = Vec::new();
        for pid in wanted {
            if self.handles.contains_key(pid) || self.gone.contains(pid) {
                continue;
            }
            match processes::hold_one(*pid) {
                Some(handle) => drop(self.handles.insert(*pid, handle)),
                None => {
                    self.gone.insert(*pid);
                    ended.push(*pid);
                }
            }
        }
        ended
    }

    /// Waits for a report, for data on `woken` or for the timeout.
    pub(super) fn wait(&mut self, woken: &UnixStream, timeout: Option<Duration>) -> PendingChanges {
        let timeout = match self.blind {
            true => Some(timeout.map_or(BLIND, |timeout| timeout.min(BLIND))),
            false => timeout,
        };
        self.poll(woken, timeout);
        let mut told = PendingChanges::default();
        self.watches.read(&mut told, &self.places);
        if self.blind {
            told.pushed = true;
            told.work = true;
            told.socket = true;
            told.files = true;
            told.log = true;
            told.printed = self.panes.keys().copied().collect();
        }
        let ended = self.handles.iter().filter(|(_, handle)| handle.has_ended());
        told.ended = ended.map(|(pid, _)| *pid).collect();
        for pid in &told.ended {
            // The handle of an ended process stays readable.
            self.handles.remove(pid);
            self.gone.insert(*pid);
        }
        told
    }

    fn poll(&self, woken: &UnixStream, timeout: Option<Duration>) {
        let mut fds = vec![PollFd::new(woken, PollFlags::IN)];
        fds.extend(self.watches.poll_fd());
        #[cfg(target_os = "linux")]
        fds.extend(self.handles.values().map(ProcessHandle::poll_fd));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // An interrupted wait is not an error: the caller checks again.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}
