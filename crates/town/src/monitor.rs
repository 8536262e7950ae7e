//! Being told what agents do, for as long as somebody looks.
//!
//! A [`Monitor`] is what the board and `gt watch` hold open. It asks nobody again and
//! again; it is told: by one control client when containers come and go, by the kernel
//! when a process ends (pidfd) or a pane prints (inotify on its terminal), and by every
//! `gt` that changes a tag ([`tell`]). Files that somebody names are watched as well, such as
//! what git keeps of a worktree. What is told within a moment is one [`Change`].
//! While nothing happens nothing runs: there is no timer, but one for dev servers, for as long
//! as any run, since nobody tells that a port answers no more.
//!
//! The screen is read only of agents whose program has no hooks, of whoever was given
//! the conflicts of a merge beside an agent, and of those that ask or have fallen silent at
//! work, which may have been interrupted; and only after their pane has printed, at most
//! twice a second. Programs with hooks may still change the
//! title of their terminal without one (an interrupt, an approval), so a pane of theirs
//! that has printed is listed again, once a second at most. Where the kernel tells
//! nothing (macOS), a slow look takes its place.
//!
//! `monitor/rounds.rs` is the thread, `monitor/eyes.rs` what the kernel tells,
//! `monitor/files.rs` the files of others, `monitor/tmux.rs` the control client, `monitor/reading.rs` how agents are read, and
//! `wake.rs` the file by which others tell. It starts, stops and types nothing.

mod eyes;
mod files;
mod reading;
mod rounds;
mod tmux;

pub use files::{Files, Written, seen};
pub use reading::{Seen, agents};

use crate::containers::PanePlace;
pub use crate::states::{Moved, Window};
use crate::{Result, Town};
use eyes::{Eyes, Places};
use rounds::Rounds;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What may have changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Containers came, went or died, or a tag or title is another: read them again.
    Agents,
    /// An agent is in another state than before. [`Change::Agents`] follows.
    Moved(Box<Moved>),
    /// The pane in view has printed.
    Screen(PanePlace),
    /// A work item has changed.
    Work,
    /// One of the files has changed that somebody wants to hear of.
    Files,
    /// Something was added to the log of events, which somebody wants to hear of.
    Events,
}

/// Open eyes and ears. They close when it is dropped.
#[derive(Debug)]
pub struct Monitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Begins to watch. The first look is taken before this returns, so that
    /// [`Monitor::agents`] has an answer at once; `send` is called by the monitor's own
    /// thread for what changes from there on, and should not take long.
    pub fn start(town: &Town, send: impl Fn(Change) + Send + 'static) -> Result<Monitor> {
        Self::start_with(town, Eyes::open, send)
    }

    fn start_with(
        town: &Town,
        open: fn(Places) -> Eyes,
        send: impl Fn(Change) + Send + 'static,
    ) -> Result<Monitor> {
        let shared = Arc::new(Shared::new()?);
        let rounds = Rounds::begin(town, Arc::clone(&shared), open, send)?;
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || rounds.run())
            .map_err(|error| gt_core::Problem::failed("cannot watch").caused_by(error))?;
        Ok(Monitor {
            shared,
            thread: Some(thread),
        })
    }

    /// Which pane is in view: its prints are told as [`Change::Screen`].
    pub fn look_at(&self, pane: Option<PanePlace>) {
        self.shared.wish(|wishes| wishes.view = pane);
    }

    /// Which files of others somebody wants to hear of, as they were seen last; no others
    /// from now on. That one is not so any more is told as [`Change::Files`].
    pub fn watch_files(&self, files: Files) {
        self.shared.wish(|wishes| wishes.files = Some(files));
    }

    /// Whether somebody wants to hear of events: that there are new ones is told as
    /// [`Change::Events`]. The first is told at once, so that none falls between a look and
    /// this; so it is where this is said again.
    pub fn watch_events(&self, wanted: bool) {
        self.shared.wish(|wishes| wishes.events = Some(wanted));
    }

    /// The agents that have a container, as they were seen last. It asks nobody.
    pub fn agents(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }

    /// How often the monitor has had something to do. It does not grow while nothing happens.
    pub fn wakeups(&self) -> u64 {
        self.shared.wakeups.load(Ordering::Relaxed)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.wish(|wishes| wishes.stop = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the threads have in common.
#[derive(Debug)]
struct Shared {
    wishes: Mutex<Wishes>,
    seen: Mutex<Vec<Seen>>,
    wakeups: AtomicU64,
    /// One end wakes, the other is waited on.
    waker: UnixStream,
    woken: UnixStream,
}

/// What the monitor's thread is asked to do next.
#[derive(Clone, Debug, Default)]
struct Wishes {
    view: Option<PanePlace>,
    /// Other files than before.
    files: Option<Files>,
    /// Whether events are wanted, if somebody has just said.
    events: Option<bool>,
    stop: bool,
    /// tmux said that containers have changed.
    containers: bool,
    /// The control client is gone.
    lost: bool,
}

impl Shared {
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
        Ok(Shared {
            wishes: Mutex::default(),
            seen: Mutex::default(),
            wakeups: AtomicU64::new(0),
            waker,
            woken,
        })
    }

    /// Changes what is wished for, and wakes the thread.
    fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut lock(&self.wishes));
        // Full means that it is being woken already.
        let _ = (&self.waker).write(&[0]);
    }

    /// The wishes as they are now; what happened is told once.
    fn take_wishes(&self) -> Wishes {
        let mut piece = [0; 64];
        loop {
            match (&self.woken).read(&mut piece) {
                Ok(length) if length == piece.len() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        let mut wishes = lock(&self.wishes);
        let files = wishes.files.take();
        let now = Wishes {
            files,
            ..wishes.clone()
        };
        wishes.containers = false;
        wishes.lost = false;
        wishes.events = None;
        now
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
