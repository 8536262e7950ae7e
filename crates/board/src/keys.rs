//! The one table of keys. Key handling, help, the action menu, the palette and the manual are all
//! generated from it; no other code knows keys.

mod table;

use crate::action::BoardAction;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

pub use table::TABLE;

/// The part of the board that receives the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMode {
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
    /// The offer to resume the last conversation instead of a start.
    ResumeFirst,
    Cleanup,
    /// The question after a start whose init command failed.
    InitFailed,
    /// The list of escalations.
    Escalations,
    /// The merge queue.
    MergeQueue,
    /// The emergency stop, before it is confirmed.
    EmergencyStop,
    Confirm,
    /// A line of text: an answer or a comment.
    Write,
    /// A text of several lines: a message, the notes of a handoff, a reason.
    Message,
    /// The fields of an item.
    Form,
    /// Read-only text: help and the message log.
    Read,
}

impl KeyMode {
    pub const ALL: [KeyMode; 21] = [
        KeyMode::Board,
        KeyMode::Actions,
        KeyMode::Detail,
        KeyMode::Go,
        KeyMode::Search,
        KeyMode::Filter,
        KeyMode::Sort,
        KeyMode::Pick,
        KeyMode::Servers,
        KeyMode::MergeChoice,
        KeyMode::ResumeFirst,
        KeyMode::Cleanup,
        KeyMode::InitFailed,
        KeyMode::Escalations,
        KeyMode::MergeQueue,
        KeyMode::EmergencyStop,
        KeyMode::Confirm,
        KeyMode::Form,
        KeyMode::Write,
        KeyMode::Message,
        KeyMode::Read,
    ];

    pub fn title(self) -> &'static str {
        match self {
            KeyMode::Board => "Board",
            KeyMode::Actions => "Actions (Space)",
            KeyMode::Detail => "Detail",
            KeyMode::Go => "Go to (g)",
            KeyMode::Search => "Search (/)",
            KeyMode::Filter => "Filter (F)",
            KeyMode::Sort => "Sort (o)",
            KeyMode::Pick => "Palette, projects and workers",
            KeyMode::Servers => "Dev servers (Space r)",
            KeyMode::MergeChoice => "Branch behind its base (Space a)",
            KeyMode::ResumeFirst => "Start of an item with a conversation (Space s)",
            KeyMode::Cleanup => "Cleanup (Space d)",
            KeyMode::InitFailed => "An init command has failed",
            KeyMode::Escalations => "Escalations (E)",
            KeyMode::MergeQueue => "Merge queue (Q)",
            KeyMode::EmergencyStop => "Emergency stop (X)",
            KeyMode::Confirm => "Questions",
            KeyMode::Form => "New item and edit (n, Space e)",
            KeyMode::Write => "Answer (y)",
            KeyMode::Message => "Message, handoff and reason (Space n, Space h)",
            KeyMode::Read => "Help and messages",
        }
    }

    /// Returns whether letters that are not bound are text.
    pub(crate) fn takes_text(self) -> bool {
        matches!(
            self,
            KeyMode::Search | KeyMode::Pick | KeyMode::Write | KeyMode::Message | KeyMode::Form
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
}

impl Key {
    /// Parses the name of a key in the table.
    pub fn parse(name: &str) -> Option<Key> {
        let (name, ctrl) = match name.strip_prefix("Ctrl-") {
            Some(letter) => (letter, true),
            None => (name, false),
        };
        let (name, alt) = match name.strip_prefix("Alt-") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let named = NAMES.iter().find(|(other, _)| *other == name);
        let mut letters = name.chars();
        let code = match (named, letters.next(), letters.next()) {
            (Some((_, code)), ..) => *code,
            (None, Some(letter), None) => KeyCode::Char(letter),
            _ => return None,
        };
        Some(Key { code, ctrl, alt })
    }

    pub(crate) fn of(event: &KeyEvent) -> Option<Key> {
        // The letter itself shows whether Shift was held. With any other modifier the key is
        // unknown.
        let known = KeyModifiers::SHIFT | KeyModifiers::CONTROL | KeyModifiers::ALT;
        let held = event.modifiers - known;
        held.is_empty().then_some(Key {
            code: event.code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.contains(KeyModifiers::ALT),
        })
    }

    pub fn event(self) -> KeyEvent {
        let mut modifiers = KeyModifiers::NONE;
        modifiers.set(KeyModifiers::CONTROL, self.ctrl);
        modifiers.set(KeyModifiers::ALT, self.alt);
        KeyEvent::new(self.code, modifiers)
    }

    /// Returns the letter that the key types.
    pub(crate) fn letter(self) -> Option<char> {
        match self.code {
            KeyCode::Char(letter) if !self.ctrl && !self.alt => Some(letter),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        if self.alt {
            f.write_str("Alt-")?;
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
    pub mode: KeyMode,
    /// The names of the keys, separated by blanks; empty for an action that only the palette
    /// offers.
    pub keys: &'static str,
    pub action: BoardAction,
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
pub(crate) fn find(mode: KeyMode, key: Key) -> Option<BoardAction> {
    let rows = TABLE.iter().filter(|row| row.mode == mode);
    let mut hits = rows.filter(|row| row.keys().any(|other| other == key));
    hits.next().map(|row| row.action)
}

/// Returns the rows of one mode.
pub fn rows(mode: KeyMode) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.mode == mode)
}

/// Returns the name of the first key for an action in a mode, for hints.
pub(crate) fn key_of(mode: KeyMode, action: BoardAction) -> &'static str {
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
        for mode in KeyMode::ALL {
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
        let letters: String = rows(KeyMode::Actions)
            .filter(|row| matches!(row.action, BoardAction::Card(_)))
            .flat_map(Binding::keys)
            .filter_map(Key::letter)
            .collect();
        assert_eq!(letters, "sS!aupRxdrmMfPynihgeEc");
    }
}
