//! Signals as things to poll: a flag for each, and one pipe that wakes the loop.
//!
//! The program has one thread and one place where it waits, [`Signals::wait`], for
//! input, for commands it runs, for time and for signals together. Nothing spins and
//! nothing wakes up without a reason, because hundreds of these run side by side.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGWINCH};
use signal_hook::{flag, low_level};

/// The signals that end the program, and the status it then ends with.
const ENDING: [(i32, u8); 3] = [(SIGHUP, 129), (SIGINT, 130), (SIGTERM, 143)];

#[derive(Debug)]
pub(super) struct Signals {
    wake: UnixStream,
    waker: UnixStream,
    ending: Vec<(Arc<AtomicBool>, u8)>,
    resized: Arc<AtomicBool>,
}

impl Signals {
    /// With `ignore_term` the program outlives TERM and HUP, as Gemini CLI does.
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

    /// Hears of commands that end, and leaves the other signals alone.
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
        // A hook may end without reading its input. That must be an error of the
        // write and not the end of the agent, whatever the main program has set.
        flag::register(SIGPIPE, Arc::default())?;
        Ok(signals)
    }

    /// The flag comes before the wake-up: whoever is woken finds it set.
    fn flag(&self, signal: i32) -> io::Result<Arc<AtomicBool>> {
        let set = Arc::new(AtomicBool::new(false));
        flag::register(signal, Arc::clone(&set))?;
        low_level::pipe::register(signal, self.waker.try_clone()?)?;
        Ok(set)
    }

    /// The exit status, once a signal asked the program to end.
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

    /// Waits until one of `fds` is ready, a signal comes, or it is `until`.
    pub(super) fn wait<'a>(&'a self, fds: &mut Vec<PollFd<'a>>, until: Option<Instant>) {
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        // The only error that can come is EINTR, and the caller looks at everything
        // after each wait anyway.
        let _ = poll(fds, timeout.as_ref());
        // Emptied before the caller looks at the flags, so no signal is missed.
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    /// Waits for time alone; false if a signal asks the program to end.
    pub(super) fn sleep_until(&self, until: Instant) -> bool {
        while self.ending().is_none() && Instant::now() < until {
            self.wait(&mut Vec::new(), Some(until));
        }
        self.ending().is_none()
    }
}
