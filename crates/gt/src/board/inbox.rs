//! The board's one place to wait: for keys, and for news from the threads.

use gt_board::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use std::io::{self, Read, Write, stdin};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where news arrive.
#[derive(Debug)]
pub(super) struct Inbox {
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
    news: Arc<Mutex<News>>,
    waker: Arc<UnixStream>,
    bell: Arc<AtomicBool>,
}

/// What has come and nobody has taken yet. Of what is only a newer picture of the same the
/// latest is kept: while the terminal is somebody else's nobody takes any.
#[derive(Debug, Default)]
struct News {
    facts: Option<Event>,
    screen: Option<Event>,
    detail: Option<Event>,
    others: Vec<Event>,
}

impl Post {
    /// Something has happened that a person should hear of.
    pub(super) fn ring(&self) {
        self.bell.store(true, Ordering::Relaxed);
        let _ = (&*self.waker).write(&[0]);
    }

    pub(super) fn send(&self, event: Event) {
        {
            let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Event::Facts(_) => news.facts = Some(event),
                Event::Screen(_) => news.screen = Some(event),
                Event::Detail { .. } => news.detail = Some(event),
                other => news.others.push(other),
            }
        }
        // A full pipe wakes as well.
        let _ = (&*self.waker).write(&[0]);
    }
}

impl Inbox {
    pub(super) fn open() -> io::Result<Self> {
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
    pub(super) fn news(&self) -> Vec<Event> {
        let news = self.post.news.lock();
        let news = std::mem::take(&mut *news.unwrap_or_else(PoisonError::into_inner));
        let pictures = [news.facts, news.screen, news.detail];
        let mut all = news.others;
        all.extend(pictures.into_iter().flatten());
        all
    }
}
