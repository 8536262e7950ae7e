//! Colours by meaning. Signs show every state as well, so colours are optional.

use gt_core::card::ServerState;
use gt_core::state::State;
use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoardTheme {
    /// Light text on a dark background.
    #[default]
    Dark,
    Light,
    /// No colours (`NO_COLOR`), only bold, dim and reversed.
    Plain,
}

/// The meaning of a piece of text, from which its style follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Text,
    Strong,
    Dim,
    /// Borders and separators.
    Rule,
    /// The column, tab or box that receives the keys.
    Focus,
    /// A key hint.
    Key,
    Good,
    Busy,
    Asks,
    Bad,
    Paused,
    Marked,
    Label,
}

impl BoardTheme {
    /// Switches between dark and light; `Plain` stays `Plain`.
    #[must_use]
    pub fn toggled(self) -> Self {
        match self {
            BoardTheme::Dark => BoardTheme::Light,
            BoardTheme::Light => BoardTheme::Dark,
            BoardTheme::Plain => BoardTheme::Plain,
        }
    }

    pub(crate) fn style(self, tone: Tone) -> Style {
        let modifier = match tone {
            Tone::Strong | Tone::Focus | Tone::Key | Tone::Asks | Tone::Bad | Tone::Marked => {
                Modifier::BOLD
            }
            Tone::Label => Modifier::BOLD | Modifier::REVERSED,
            Tone::Dim | Tone::Rule => Modifier::DIM,
            _ => Modifier::empty(),
        };
        let (dark, light) = match tone {
            Tone::Text | Tone::Strong => (Color::Reset, Color::Reset),
            // An explicit grey is easier to read than the dim attribute of most terminals.
            Tone::Dim => (Color::Indexed(246), Color::Indexed(242)),
            Tone::Rule => (Color::Indexed(240), Color::Indexed(250)),
            Tone::Focus => (Color::Indexed(117), Color::Indexed(25)),
            Tone::Key => (Color::Indexed(222), Color::Indexed(94)),
            Tone::Good => (Color::Indexed(114), Color::Indexed(28)),
            Tone::Busy => (Color::Indexed(117), Color::Indexed(25)),
            Tone::Asks | Tone::Label => (Color::Indexed(221), Color::Indexed(130)),
            Tone::Bad => (Color::Indexed(203), Color::Indexed(124)),
            Tone::Paused => (Color::Indexed(183), Color::Indexed(91)),
            Tone::Marked => (Color::Indexed(213), Color::Indexed(127)),
        };
        let style = Style::new();
        match self {
            BoardTheme::Plain => style.add_modifier(modifier),
            BoardTheme::Dark | BoardTheme::Light => {
                let modifier = modifier - Modifier::DIM;
                let colour = if self == BoardTheme::Dark {
                    dark
                } else {
                    light
                };
                style.fg(colour).add_modifier(modifier)
            }
        }
    }

    /// Returns the background of the card or row under the cursor.
    pub(crate) fn selected(self) -> Style {
        match self {
            BoardTheme::Dark => Style::new().bg(Color::Indexed(237)),
            BoardTheme::Light => Style::new().bg(Color::Indexed(254)),
            BoardTheme::Plain => Style::new(),
        }
    }

    /// Returns the colour of everything behind an overlay, and what is added to its style.
    pub(crate) fn dimmed(self) -> (Color, Modifier) {
        match self {
            BoardTheme::Dark => (Color::Indexed(240), Modifier::empty()),
            BoardTheme::Light => (Color::Indexed(249), Modifier::empty()),
            BoardTheme::Plain => (Color::Reset, Modifier::DIM),
        }
    }

    /// Returns the style of a row that must not be overlooked.
    pub(crate) fn alarm_style(self) -> Style {
        let style = match self {
            BoardTheme::Dark => Style::new().fg(Color::Indexed(231)).bg(Color::Indexed(160)),
            BoardTheme::Light => Style::new().fg(Color::Indexed(231)).bg(Color::Indexed(124)),
            BoardTheme::Plain => Style::new().add_modifier(Modifier::REVERSED),
        };
        style.add_modifier(Modifier::BOLD)
    }

    /// Returns the style of the row under the cursor, where nothing else marks it.
    pub(crate) fn cursor_row(self) -> Style {
        match self {
            BoardTheme::Plain => Style::new().add_modifier(Modifier::REVERSED),
            _ => self.selected(),
        }
    }

    /// Returns the part of a captured screen's style that may be shown.
    pub(crate) fn captured_style(self, style: Style) -> Style {
        match self {
            BoardTheme::Plain => Style {
                fg: None,
                bg: None,
                ..style
            },
            _ => style,
        }
    }
}

/// Returns the sign of a state, which is distinct without colours.
pub(crate) fn state_sign(state: Option<State>) -> &'static str {
    match state {
        Some(State::Initializing | State::Starting) => "◌",
        Some(State::Running) => "◐",
        Some(State::Idle) => "○",
        Some(State::Busy) => "●",
        Some(State::Waiting) => "?",
        Some(State::Error) => "!",
        Some(State::Limited) => "◷",
        Some(State::Paused) => "‖",
        Some(State::Done) => "✓",
        Some(State::Exited) => "□",
        Some(State::Crashed) => "✗",
        Some(State::Stopped) => "■",
        None => "·",
    }
}

pub(crate) fn tone(state: Option<State>) -> Tone {
    match state {
        Some(State::Initializing | State::Starting | State::Running | State::Busy) => Tone::Busy,
        Some(State::Waiting | State::Limited) => Tone::Asks,
        Some(State::Error | State::Crashed) => Tone::Bad,
        Some(State::Paused) => Tone::Paused,
        Some(State::Done) => Tone::Good,
        Some(State::Idle | State::Exited) => Tone::Text,
        Some(State::Stopped) | None => Tone::Dim,
    }
}

pub(crate) fn server(state: ServerState) -> (&'static str, &'static str, Tone) {
    match state {
        ServerState::Running => ("●", "running", Tone::Good),
        ServerState::Starting => ("◌", "starting", Tone::Busy),
        ServerState::Stopped => ("■", "stopped", Tone::Dim),
        ServerState::Error => ("✗", "error", Tone::Bad),
    }
}
