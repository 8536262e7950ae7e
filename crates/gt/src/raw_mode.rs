//! Raw mode: the terminal passes on each key as it is pressed.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, stdin};

/// Guard that keeps the terminal in raw mode until it is dropped.
#[derive(Debug)]
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // `Now` keeps input that was typed before the program was ready.
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Fails only if the terminal is gone, and then nothing is left to restore.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
