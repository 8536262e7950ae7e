//! The terminal: taken over, handed over, given back.

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

pub(super) type Screen = ratatui::Terminal<CrosstermBackend<Stdout>>;

/// The terminal while the board has it. It is given back when this is dropped.
pub(super) struct Terminal {
    screen: Screen,
    mouse: bool,
}

impl Terminal {
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        give_back_on_panic();
        take(mouse)?;
        let screen = Screen::new(CrosstermBackend::new(stdout()));
        let screen = screen.inspect_err(|_| give_back())?;
        Ok(Terminal { screen, mouse })
    }

    pub(super) fn screen(&mut self) -> &mut Screen {
        &mut self.screen
    }

    pub(super) fn ring(&mut self) -> io::Result<()> {
        let mut terminal = stdout();
        terminal.write_all(b"\x07")?;
        terminal.flush()
    }

    /// Lets somebody else have it meanwhile.
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let result = to();
        take(self.mouse)?;
        // Whatever was drawn before is not there any more.
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

/// Fails only when the terminal is gone, and then there is nothing to give back.
fn give_back() {
    let _ = execute!(
        stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = disable_raw_mode();
}

/// What is said then must be readable, and the shell after it usable.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
        // Whichever thread it was: nobody draws on a terminal that was given back.
        std::process::abort();
    }));
}
