//! Takes over the terminal, lends it to commands, and restores it.

use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout, Write, stdout};

pub(super) type TerminalScreen = ratatui::Terminal<CrosstermBackend<Stdout>>;

/// The terminal while the board owns it. Restored on drop.
pub(super) struct Terminal {
    screen: TerminalScreen,
    mouse: bool,
}

impl Terminal {
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        give_back_on_panic();
        take(mouse)?;
        let screen = TerminalScreen::new(CrosstermBackend::new(stdout()));
        let screen = screen.inspect_err(|_| give_back())?;
        Ok(Terminal { screen, mouse })
    }

    pub(super) fn screen(&mut self) -> &mut TerminalScreen {
        &mut self.screen
    }

    pub(super) fn ring(&mut self) -> io::Result<()> {
        let mut terminal = stdout();
        terminal.write_all(b"\x07")?;
        terminal.flush()
    }

    /// Restores the terminal while `to` runs, then takes it over again.
    pub(super) fn restore_while<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let result = to();
        take(self.mouse)?;
        // The earlier frame is gone from the screen.
        self.screen.clear()?;
        Ok(result)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

fn take(mouse: bool) -> io::Result<()> {
    enable_raw_mode()?;
    let taken = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide);
    let taken = match mouse {
        true => taken.and_then(|()| execute!(stdout(), EnableMouseCapture)),
        false => taken,
    };
    taken.inspect_err(|_| give_back())
}

/// Restores the terminal. This fails only if the terminal is gone, and then nothing is left to
/// restore.
fn give_back() {
    // Fails only without a terminal.
    let _ = execute!(
        stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    // Fails only without a terminal.
    let _ = disable_raw_mode();
}

/// Restores the terminal on a panic, so that the message is readable and the shell usable.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
        // Whichever thread panicked: the board must not draw on a restored terminal.
        std::process::abort();
    }));
}
