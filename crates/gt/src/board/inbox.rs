//! The board's one place to wait: for keys, and for news from the threads.

use gt_board::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use std::io::{self, Read, Write, stdin};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryIter, channel};
use std::time::Duration;

/// Where news arrive.
#[derive(Debug)]
pub(super) struct Inbox {
    receiver: Receiver<Event>,
    woken: UnixStream,
    post: Post,
    /// Somebody wants us to end.
    ending: Arc<AtomicBool>,
    /// The same, by what a terminal sends for Ctrl-C.
    interrupted: Arc<AtomicBool>,
}

/// Where news are sent.
#[derive(Clone, Debug)]
pub(super) struct Post {
    sender: Sender<Event>,
    waker: Arc<UnixStream>,
    bell: Arc<AtomicBool>,
}

impl Post {
    /// Something has happened that a person should hear of.
    pub(super) fn ring(&self) {
        self.bell.store(true, Ordering::Relaxed);
        let _ = (&*self.waker).write(&[0]);
    }

    pub(super) fn send(&self, event: Event) {
        // Who is gone needs no news. A full pipe wakes as well.
        let _ = self.sender.send(event);
        let _ = (&*self.waker).write(&[0]);
    }
}

impl Inbox {
    pub(super) fn open() -> io::Result<Self> {
        let (sender, receiver) = channel();
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let ending = Arc::new(AtomicBool::new(false));
        // A signal must wake the wait even if it comes just before it begins.
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
        Ok(Inbox {
            receiver,
            woken,
            post: Post {
                sender,
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

    /// Forgets a Ctrl-C that was meant for whoever had the terminal meanwhile: it reaches
    /// all of the terminal's group.
    pub(super) fn forgive_interrupt(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// Whether somebody has rung since the last time.
    pub(super) fn has_rung(&self) -> bool {
        self.post.bell.swap(false, Ordering::Relaxed)
    }

    /// Sleeps until there are keys or news, or so much time has passed; for ever if none is
    /// named.
    pub(super) fn wait(&self, patience: Option<Duration>) {
        let input = stdin();
        let mut fds = [
            PollFd::new(&input, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        // Interrupted is as good as woken.
        let _ = poll(&mut fds, timeout.as_ref());
        // Nobody holds the other end any more: there is no terminal to draw on.
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            self.ending.store(true, Ordering::Relaxed);
        }
        let mut bytes = [0; 256];
        while matches!((&self.woken).read(&mut bytes), Ok(length) if length == bytes.len()) {}
    }

    /// The news that have come.
    pub(super) fn news(&self) -> TryIter<'_, Event> {
        self.receiver.try_iter()
    }
}
