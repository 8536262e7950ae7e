//! The event queue of the board: keys, and events of its threads.

use gt_board::BoardEvent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use std::io::{self, Read, Write, stdin};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Receiving end of the queue.
#[derive(Debug)]
pub(super) struct BoardInbox {
    woken: UnixStream,
    post: Post,
    /// Set by a signal that asks the process to end.
    ending: Arc<AtomicBool>,
    /// Set by SIGINT, which a terminal sends for Ctrl-C.
    interrupted: Arc<AtomicBool>,
}

/// Sending end of the queue.
#[derive(Clone, Debug)]
pub(super) struct Post {
    news: Arc<Mutex<QueuedEvents>>,
    waker: Arc<UnixStream>,
    bell: Arc<AtomicBool>,
}

/// Queued events. Facts, screens and details replace earlier ones of their kind, so that the queue
/// stays small while another process has the terminal.
#[derive(Debug, Default)]
struct QueuedEvents {
    facts: Option<BoardEvent>,
    screen: Option<BoardEvent>,
    detail: Option<BoardEvent>,
    others: Vec<BoardEvent>,
}

impl Post {
    /// Requests the terminal's bell for a change that a person should notice.
    pub(super) fn request_bell(&self) {
        self.bell.store(true, Ordering::Relaxed);
        // A full pipe wakes the board too.
        let _ = (&*self.waker).write(&[0]);
    }

    pub(super) fn send(&self, event: BoardEvent) {
        {
            let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                BoardEvent::Facts(_) => news.facts = Some(event),
                BoardEvent::Screen(_) => news.screen = Some(event),
                BoardEvent::Detail { .. } => news.detail = Some(event),
                other => news.others.push(other),
            }
        }
        // A failed write to a full pipe is fine: the pipe already wakes the reader.
        let _ = (&*self.waker).write(&[0]);
    }
}

impl BoardInbox {
    pub(super) fn open() -> io::Result<Self> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let ending = Arc::new(AtomicBool::new(false));
        // Signals write to the pipe, so that they also wake a wait that is about to begin.
        let interrupted = Arc::new(AtomicBool::new(false));
        for (signal, flag) in [
            (SIGHUP, &ending),
            (SIGINT, &interrupted),
            (SIGTERM, &ending),
        ] {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGWINCH, waker.try_clone()?)?;
        let waker = Arc::new(waker);
        Ok(BoardInbox {
            woken,
            post: Post {
                news: Arc::default(),
                waker,
                bell: Arc::default(),
            },
            ending,
            interrupted,
        })
    }

    pub(super) fn post(&self) -> Post {
        self.post.clone()
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    /// Ignores a Ctrl-C that was meant for the process that had the terminal: the signal reaches
    /// the whole process group.
    pub(super) fn ignore_interrupt(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// Returns whether the bell was requested since the last call.
    pub(super) fn take_bell_request(&self) -> bool {
        self.post.bell.swap(false, Ordering::Relaxed)
    }

    /// Sleeps until a key or an event arrives, or until the timeout; without a timeout,
    /// indefinitely.
    pub(super) fn wait(&self, timeout: Option<Duration>) {
        let input = stdin();
        let mut fds = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // An interrupted wait is treated as a wake-up.
        let _ = poll(&mut fds, timeout.as_ref());
        // The terminal is gone.
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            self.ending.store(true, Ordering::Relaxed);
        }
        let mut bytes = [0; 256];
        while matches!((&self.woken).read(&mut bytes), Ok(length) if length == bytes.len()) {}
    }

    /// Takes all queued events.
    pub(super) fn take_events(&self) -> Vec<BoardEvent> {
        let news = self.post.news.lock();
        let news = std::mem::take(&mut *news.unwrap_or_else(PoisonError::into_inner));
        let pictures = [news.facts, news.screen, news.detail];
        let mut all = news.others;
        all.extend(pictures.into_iter().flatten());
        all
    }
}
