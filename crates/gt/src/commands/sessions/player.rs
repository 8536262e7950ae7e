//! Plays a recording in the terminal at its original pace, and restores the terminal afterwards.

use super::replay::Span;
use crate::raw_mode::RawMode;
use gt_core::Problem;
use gt_core::cast::view::PlaybackScreen;
use gt_core::cast::{CastContent, CastEvent};
use gt_town::Cancel;
use gt_town::terminal::recording::Recording;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Write, stdin, stdout};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Playback speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) speed: f64,
    /// In seconds of the recording's time.
    pub(super) longest_pause: Option<f64>,
}

pub(super) struct Player<'a> {
    /// Without a pace, all events are written at once.
    pace: Option<Pace>,
    /// Earlier events are written at once, later ones not at all.
    span: Span,
    cancel: &'a Cancel,
    screen: PlaybackScreen,
    /// Keys are read while this exists.
    keys: Option<RawMode>,
    /// Time at which the next event is due.
    due: Instant,
    /// Time of the last event.
    at: f64,
    is_paused: bool,
}

enum PlayerKey {
    Pause,
    Step,
    Quit,
}

impl<'a> Player<'a> {
    pub(super) fn new(pace: Option<Pace>, span: Span, cancel: &'a Cancel) -> Self {
        let has_keys = pace.is_some() && stdin().is_terminal();
        Player {
            pace,
            span,
            cancel,
            screen: PlaybackScreen::default(),
            // Without keys, the recording still plays.
            keys: has_keys.then(RawMode::enter).and_then(Result::ok),
            due: Instant::now(),
            at: 0.0,
            is_paused: false,
        }
    }

    pub(super) fn play(mut self, recording: &Recording) -> Result<(), Problem> {
        let mut outcome = Ok(());
        let read = recording.for_each(|event| {
            let flow = self.event(&event).unwrap_or_else(|error| {
                outcome = Err(error);
                ControlFlow::Break(())
            });
            Ok(flow)
        });
        let back = format!("{}\r\n", self.screen.restore());
        let restored = show(&back);
        // The terminal is restored before any error is returned.
        drop(self.keys.take());
        read?;
        match outcome.and(restored) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Problem::failed("cannot write to the terminal").caused_by(error))
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &CastEvent) -> io::Result<ControlFlow<()>> {
        if event.at > self.span.to {
            return Ok(ControlFlow::Break(()));
        }
        let text = match (&event.what, event.what.remark_text()) {
            (CastContent::Output(text), _) => self.screen.push(text),
            (_, Some(remark)) => {
                self.screen.interrupt();
                format!("\x1b[0m\r\n[{remark}]\r\n")
            }
            // The player does not resize the terminal.
            _ => return Ok(ControlFlow::Continue(())),
        };
        if event.at < self.span.from {
            self.at = event.at;
        } else if self.wait_for(event)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        show(&text)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Waits until the event is due, and until a paused player continues.
    fn wait_for(&mut self, event: &CastEvent) -> io::Result<ControlFlow<()>> {
        let Some(pace) = self.pace else {
            return Ok(self.flow());
        };
        let mut pause = (event.at - self.at).max(0.0);
        if let Some(longest) = pace.longest_pause {
            pause = pause.min(longest);
        }
        self.at = event.at;
        let pause = Duration::try_from_secs_f64(pause / pace.speed).unwrap_or(Duration::MAX);
        self.due = self.due.checked_add(pause).unwrap_or(self.due);
        loop {
            if self.flow().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let left = self.due.saturating_duration_since(Instant::now());
            if !self.is_paused && left.is_zero() {
                return Ok(ControlFlow::Continue(()));
            }
            match self.key((!self.is_paused).then_some(left))? {
                Some(PlayerKey::Quit) => return Ok(ControlFlow::Break(())),
                Some(PlayerKey::Pause) => {
                    self.is_paused = !self.is_paused;
                    self.due = Instant::now() + left;
                }
                Some(PlayerKey::Step) if self.is_paused => {
                    self.due = Instant::now();
                    return Ok(ControlFlow::Continue(()));
                }
                Some(PlayerKey::Step) | None => {}
            }
        }
    }

    fn flow(&self) -> ControlFlow<()> {
        match self.cancel.is_set() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Returns the key that is pressed before the timeout.
    fn key(&mut self, timeout: Option<Duration>) -> io::Result<Option<PlayerKey>> {
        // Bounded, because a signal may arrive just before the wait begins.
        const LONGEST: Duration = Duration::from_millis(500);
        let timeout = timeout.unwrap_or(LONGEST).min(LONGEST);
        let timeout = Timespec::try_from(timeout).ok();
        let input = stdin();
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        let polled = match self.keys {
            Some(_) => &mut polled[..],
            None => &mut [],
        };
        match poll(polled, timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        // Bypasses the buffer of `Stdin`, because `poll` does not see buffered bytes.
        let mut pressed = [0; 1];
        if rustix::io::read(&input, &mut pressed)? == 0 {
            return Ok(Some(PlayerKey::Quit));
        }
        Ok(match pressed[0] {
            b' ' => Some(PlayerKey::Pause),
            b'.' => Some(PlayerKey::Step),
            b'q' | 0x03 => Some(PlayerKey::Quit),
            _ => None,
        })
    }
}

fn show(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
