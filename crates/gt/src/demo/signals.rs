//! Signals as pollable events: a flag for each, and one pipe that wakes the loop.
//!
//! The program has one thread and one wait, [`Signals::wait`], for input, for the commands it runs,
//! for deadlines and for signals. It never polls on a timer, because hundreds of these agents run
//! concurrently.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGWINCH};
use signal_hook::{flag, low_level};

/// Signals that end the program, with their exit status.
const ENDING: [(i32, u8); 3] = [(SIGHUP, 129), (SIGINT, 130), (SIGTERM, 143)];

#[derive(Debug)]
pub(super) struct Signals {
    wake: UnixStream,
    waker: UnixStream,
    ending: Vec<(Arc<AtomicBool>, u8)>,
    resized: Arc<AtomicBool>,
}

impl Signals {
    /// Installs the handlers. With `ignore_term` the program survives TERM and HUP, as Gemini CLI
    /// does.
    pub(super) fn install(ignore_term: bool) -> io::Result<Self> {
        let mut signals = Self::new()?;
        for (signal, status) in ENDING {
            let set = signals.flag(signal)?;
            if !(ignore_term && signal != SIGINT) {
                signals.ending.push((set, status));
            }
        }
        signals.resized = signals.flag(SIGWINCH)?;
        Ok(signals)
    }

    /// Handles the end of child processes only.
    pub(super) fn new() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let signals = Self {
            wake,
            waker,
            ending: Vec::new(),
            resized: Arc::default(),
        };
        signals.flag(SIGCHLD)?;
        // A hook may end without reading its input. The write must then fail with an error instead
        // of ending the agent, even if the main program has reset SIGPIPE.
        flag::register(SIGPIPE, Arc::default())?;
        Ok(signals)
    }

    /// Registers the flag before the wake-up, so that it is set when the reader wakes.
    fn flag(&self, signal: i32) -> io::Result<Arc<AtomicBool>> {
        let set = Arc::new(AtomicBool::new(false));
        flag::register(signal, Arc::clone(&set))?;
        low_level::pipe::register(signal, self.waker.try_clone()?)?;
        Ok(set)
    }

    /// Returns the exit status, once a signal asked the program to end.
    pub(super) fn ending(&self) -> Option<u8> {
        let set = self
            .ending
            .iter()
            .find(|(set, _)| set.load(Ordering::SeqCst));
        set.map(|(_, status)| *status)
    }

    pub(super) fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::SeqCst)
    }

    /// Waits until one of `fds` is ready, a signal arrives, or `until` has passed.
    pub(super) fn wait<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, until: Option<Instant>) {
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        // The only possible error is EINTR, and the caller checks everything after each wait.
        let _ = poll(fds, timeout.as_ref());
        // Drained before the caller checks the flags, so that no signal is missed.
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    /// Sleeps until the given time. Returns false if a signal asks the program to end.
    pub(super) fn sleep_until(&self, until: Instant) -> bool {
        while self.ending().is_none() && Instant::now() < until {
            self.wait(&mut Vec::new(), Some(until));
        }
        self.ending().is_none()
    }
}
