//! Live updates about agents, while the board or `gt watch` needs them.
//!
//! The board and `gt watch` hold a [`Monitor`] open. It does not poll. One control client reports
//! containers that come and go, the kernel reports processes that end (pidfd) and panes that print
//! (inotify on the terminal), and every `gt` that changes a tag touches a file (`wake.rs`). Callers
//! can add files to watch, such as those of git for a worktree. Reports that arrive within a moment
//! are combined into one [`MonitorChange`]. While nothing happens, the thread sleeps. The only
//! timer is for running dev servers, because no event reports that a port stopped answering.
//!
//! The monitor reads the screen only of agents whose program has no hooks, of programs that resolve
//! merge conflicts beside an agent, of agents that show a dialog, and of agents that fell silent
//! during a turn, which may have been interrupted. It does so only after the pane has printed, at
//! most twice a second. Programs with hooks may change the title of their terminal without calling
//! a hook (an interrupt, an approval), so their pane is listed again after it has printed, at most
//! once a second. Where the kernel reports nothing (macOS), slow polling takes its place.
//!
//! `monitor/event_loop.rs` is the event loop, `monitor/event_sources.rs` waits for files and processes,
//! `monitor/watches.rs` knows what is watched, `monitor/files.rs` the watched files of clients,
//! `monitor/tmux.rs` the control client, `monitor/reading.rs` reads agents, and `wake.rs` is the
//! file that other processes touch. The monitor starts, stops and types nothing.

mod event_loop;
mod event_sources;
mod files;
mod reading;
mod tmux;
mod watches;

pub use files::{FileStamp, Files, stamps};
pub use reading::{MonitoredAgent, agents};

pub use crate::agents::states::{AgentStateChange, SideWindow};
use crate::terminal::containers::PanePlace;
use crate::{Result, Town};
use event_loop::EventLoop;
use event_sources::{EventSources, WatchedPaths};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A possible change.
#[derive(Clone, Debug, PartialEq)]
pub enum MonitorChange {
    /// Containers came, went or died, or a tag or title changed: read them again.
    Agents,
    /// The state of an agent changed. [`MonitorChange::Agents`] follows.
    Moved(Box<AgentStateChange>),
    /// The pane in view has printed.
    Screen(PanePlace),
    /// A work item has changed.
    Work,
    /// One of the watched files has changed.
    Files,
    /// The log of events has grown, and events are watched.
    Events,
}

/// A running monitor. Dropping it stops it.
#[derive(Debug)]
pub struct Monitor {
    shared: Arc<SharedMonitor>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Starts to watch. Agents are read once before this returns, so that [`Monitor::agents`] has a
    /// result at once. The monitor's thread calls `send` for each later change; it should return
    /// quickly.
    pub fn start(town: &Town, send: impl Fn(MonitorChange) + Send + 'static) -> Result<Monitor> {
        Self::start_with(town, EventSources::open, send)
    }

    fn start_with(
        town: &Town,
        open: fn(WatchedPaths) -> EventSources,
        send: impl Fn(MonitorChange) + Send + 'static,
    ) -> Result<Monitor> {
        let shared = Arc::new(SharedMonitor::new()?);
        let events = EventLoop::begin(town, Arc::clone(&shared), open, send)?;
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || events.run())
            .map_err(|error| gt_core::Problem::failed("cannot watch").caused_by(error))?;
        Ok(Monitor {
            shared,
            thread: Some(thread),
        })
    }

    /// Sets the pane in view: its output is reported as [`MonitorChange::Screen`].
    pub fn set_view(&self, pane: Option<PanePlace>) {
        self.shared.request(|requests| requests.view = pane);
    }

    /// Replaces the watched files, each as the caller has last seen it. A difference is reported as
    /// [`MonitorChange::Files`].
    pub fn watch_files(&self, files: Files) {
        self.shared.request(|requests| requests.files = Some(files));
    }

    /// Sets whether new events are reported as [`MonitorChange::Events`]. Each call with `true`
    /// also reports one change immediately, so that no event is lost between the caller's read and
    /// this call.
    pub fn watch_events(&self, wanted: bool) {
        self.shared
            .request(|requests| requests.events = Some(wanted));
    }

    /// Returns the agents that have a container, as they were last read. Runs no command.
    pub fn agents(&self) -> Vec<MonitoredAgent> {
        lock(&self.shared.seen).clone()
    }

    /// Returns how often the monitor has woken up. It does not grow while nothing happens.
    pub fn wakeups(&self) -> u64 {
        self.shared.wakeups.load(Ordering::Relaxed)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.request(|requests| requests.stop = true);
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic of the thread.
            let _ = thread.join();
        }
    }
}

/// State shared by the threads.
#[derive(Debug)]
struct SharedMonitor {
    requests: Mutex<MonitorRequests>,
    seen: Mutex<Vec<MonitoredAgent>>,
    wakeups: AtomicU64,
    /// Writing to `waker` wakes the thread that waits on `woken`.
    waker: UnixStream,
    woken: UnixStream,
}

/// Requests to the monitor's thread.
#[derive(Clone, Debug, Default)]
struct MonitorRequests {
    view: Option<PanePlace>,
    /// Replacement for the watched files.
    files: Option<Files>,
    /// Whether events are wanted, if that was just set.
    events: Option<bool>,
    stop: bool,
    /// tmux reported that containers have changed.
    containers: bool,
    /// The control client is gone.
    lost: bool,
}

impl SharedMonitor {
    fn new() -> Result<Self> {
        let open = || {
            let (waker, woken) = UnixStream::pair()?;
            waker.set_nonblocking(true)?;
            woken.set_nonblocking(true)?;
            Ok((waker, woken))
        };
        let (waker, woken) = open().map_err(|error: std::io::Error| {
            gt_core::Problem::failed("cannot watch").caused_by(error)
        })?;
        Ok(SharedMonitor {
            requests: Mutex::default(),
            seen: Mutex::default(),
            wakeups: AtomicU64::new(0),
            waker,
            woken,
        })
    }

    /// Changes the requests and wakes the thread.
    fn request(&self, change: impl FnOnce(&mut MonitorRequests)) {
        change(&mut lock(&self.requests));
        // A full socket means that the thread is already being woken.
        let _ = (&self.waker).write(&[0]);
    }

    /// Returns the requests; one-time requests are cleared.
    fn take_requests(&self) -> MonitorRequests {
        let mut piece = [0; 64];
        loop {
            match (&self.woken).read(&mut piece) {
                Ok(length) if length == piece.len() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        let mut requests = lock(&self.requests);
        let files = requests.files.take();
        let now = MonitorRequests {
            files,
            ..requests.clone()
        };
        requests.containers = false;
        requests.lost = false;
        requests.events = None;
        now
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
