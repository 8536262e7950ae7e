//! A terminal that hands over each key as it is pressed.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, stdin};

/// Raw mode for as long as it lives.
#[derive(Debug)]
pub(crate) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // `Now` keeps what was typed before the program was ready.
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Fails only when the terminal is gone, and then there is nothing to restore.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
