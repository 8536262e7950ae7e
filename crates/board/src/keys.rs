//! The one table of keys. Key handling, help, the action menu, the palette and the manual are all
//! generated from it; no other code knows keys.

mod table;

use crate::action::Action;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

pub use table::TABLE;

/// The part of the board that receives the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Board,
    /// The action menu, after `Space`.
    Actions,
    Detail,
    /// Jump labels, after `g`.
    Go,
    Search,
    Filter,
    Sort,
    /// Lists with a search line: the palette and the projects.
    Pick,
    Servers,
    MergeChoice,
    Cleanup,
    /// The question after a start whose init command failed.
    InitFailed,
    /// The list of escalations.
    Escalations,
    /// The emergency stop, before it is confirmed.
    EmergencyStop,
    Confirm,
    /// A line of text: an answer or a message.
    Write,
    /// Read-only text: help and the message log.
    Read,
}

impl Mode {
    pub const ALL: [Mode; 17] = [
        Mode::Board,
        Mode::Actions,
        Mode::Detail,
        Mode::Go,
        Mode::Search,
        Mode::Filter,
        Mode::Sort,
        Mode::Pick,
        Mode::Servers,
        Mode::MergeChoice,
        Mode::Cleanup,
        Mode::InitFailed,
        Mode::Escalations,
        Mode::EmergencyStop,
        Mode::Confirm,
        Mode::Write,
        Mode::Read,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Mode::Board => "Board",
            Mode::Actions => "Actions (Space)",
            Mode::Detail => "Detail",
            Mode::Go => "Go to (g)",
            Mode::Search => "Search (/)",
            Mode::Filter => "Filter (F)",
            Mode::Sort => "Sort (o)",
            Mode::Pick => "Palette and projects",
            Mode::Servers => "Dev servers (Space r)",
            Mode::MergeChoice => "Branch behind its base (Space a)",
            Mode::Cleanup => "Cleanup (Space d)",
            Mode::InitFailed => "An init command has failed",
            Mode::Escalations => "Escalations (E)",
            Mode::EmergencyStop => "Emergency stop (X)",
            Mode::Confirm => "Questions",
            Mode::Write => "Answer and message (Space y, Space n)",
            Mode::Read => "Help and messages",
        }
    }

    /// Returns whether letters that are not bound are text.
    pub(crate) fn takes_text(self) -> bool {
        matches!(self, Mode::Search | Mode::Pick | Mode::Write)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
}

impl Key {
    /// Parses the name of a key in the table.
    pub fn parse(name: &str) -> Option<Key> {
        let (name, ctrl) = match name.strip_prefix("Ctrl-") {
            Some(letter) => (letter, true),
            None => (name, false),
        };
        let named = NAMES.iter().find(|(other, _)| *other == name);
        let mut letters = name.chars();
        let code = match (named, letters.next(), letters.next()) {
            (Some((_, code)), ..) => *code,
            (None, Some(letter), None) => KeyCode::Char(letter),
            _ => return None,
        };
        Some(Key { code, ctrl })
    }

    pub(crate) fn of(event: &KeyEvent) -> Option<Key> {
        // The letter itself shows whether Shift was held. With any other modifier the key is
        // unknown.
        let held = event.modifiers - KeyModifiers::SHIFT - KeyModifiers::CONTROL;
        held.is_empty().then_some(Key {
            code: event.code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
        })
    }

    pub fn event(self) -> KeyEvent {
        let modifiers = if self.ctrl {
            KeyModifiers::CONTROL
        } else {
            KeyModifiers::NONE
        };
        KeyEvent::new(self.code, modifiers)
    }

    /// Returns the letter that the key types.
    pub(crate) fn letter(self) -> Option<char> {
        match self.code {
            KeyCode::Char(letter) if !self.ctrl => Some(letter),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        let named = NAMES.iter().find(|(_, code)| *code == self.code);
        match (named, self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(letter)) => write!(f, "{letter}"),
            (None, code) => write!(f, "{code:?}"),
        }
    }
}

/// Names of the keys that are not letters.
const NAMES: &[(&str, KeyCode)] = &[
    ("Space", KeyCode::Char(' ')),
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("Shift-Tab", KeyCode::BackTab),
    ("Backspace", KeyCode::Backspace),
    ("Delete", KeyCode::Delete),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
];

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub mode: Mode,
    /// The names of the keys, separated by blanks; empty for an action that only the palette
    /// offers.
    pub keys: &'static str,
    pub action: Action,
    pub help: &'static str,
    /// The equivalent `gt` command.
    pub command: Option<&'static str>,
}

impl Binding {
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.keys.split_whitespace().filter_map(Key::parse)
    }
}

/// Returns the action of a key in a mode.
pub(crate) fn find(mode: Mode, key: Key) -> Option<Action> {
    let rows = TABLE.iter().filter(|row| row.mode == mode);
    let mut hits = rows.filter(|row| row.keys().any(|other| other == key));
    hits.next().map(|row| row.action)
}

/// Returns the rows of one mode.
pub fn rows(mode: Mode) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.mode == mode)
}

/// Returns the name of the first key for an action in a mode, for hints.
pub(crate) fn key_of(mode: Mode, action: Action) -> &'static str {
    rows(mode)
        .find(|row| row.action == action)
        .and_then(|row| row.keys.split(' ').next())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_in_one_place() {
        for mode in Mode::ALL {
            let mut seen: Vec<Key> = Vec::new();
            for row in rows(mode) {
                assert!(!row.help.is_empty());
                for key in row.keys() {
                    assert!(!seen.contains(&key), "{mode:?} {key}");
                    seen.push(key);
                }
            }
            assert!(!seen.is_empty(), "{mode:?}");
        }
    }

    #[test]
    fn every_name_is_that_of_a_key() {
        for row in TABLE {
            let names: Vec<String> = row.keys().map(|key| key.to_string()).collect();
            assert_eq!(names.join(" "), row.keys);
        }
    }

    #[test]
    fn the_letters_of_actions_are_those_of_the_document() {
        let letters: String = rows(Mode::Actions)
            .filter(|row| matches!(row.action, Action::Do(_)))
            .flat_map(Binding::keys)
            .filter_map(Key::letter)
            .collect();
        assert_eq!(letters, "sS!aupRxdrmMfPync");
    }
}
