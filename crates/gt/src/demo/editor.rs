//! The input line: text, a cursor, and pastes that are too large to show.
//!
//! A large paste is one piece of the line with a short label, and is sent in full, as in the real
//! programs. The editor neither draws nor sends: `screen` asks it for rows, and the agent asks it
//! for the finished [`SubmittedText`].

use std::rc::Rc;

use unicode_width::UnicodeWidthChar;

use super::input::TerminalKey;

/// Minimum number of lines of a paste that is shown as a label.
const LABEL_LINES: usize = 4;
/// Maximum number of characters of a paste that is shown in full.
const LABEL_CHARS: usize = 800;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SubmittedText {
    /// Text that is sent.
    pub(super) text: String,
    /// Text that the conversation shows.
    pub(super) shown: String,
}

impl SubmittedText {
    /// Creates a message that was not typed here and so has no labels.
    pub(super) fn plain(text: String) -> Self {
        Self {
            shown: text.clone(),
            text,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Editor {
    pieces: Vec<EditorPiece>,
    /// Index of the piece under the cursor.
    cursor: usize,
    pastes: usize,
}

#[derive(Debug, Clone)]
enum EditorPiece {
    Char(char),
    Paste(Rc<Paste>),
}

#[derive(Debug)]
struct Paste {
    label: String,
    text: String,
}

/// The input wrapped to a width, and the position of the cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditorLayout {
    pub(super) rows: Vec<String>,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Editor {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn is_exactly(&self, char: char) -> bool {
        matches!(self.pieces[..], [EditorPiece::Char(only)] if only == char)
    }

    pub(super) fn clear(&mut self) {
        self.pieces = Vec::new();
        self.cursor = 0;
    }

    /// Inserts text that is shown in full.
    pub(super) fn insert_text(&mut self, text: &str) {
        text.chars()
            .for_each(|char| self.insert(EditorPiece::Char(char)));
    }

    pub(super) fn paste(&mut self, text: String) {
        let breaks = text.matches('\n').count();
        if breaks + 1 < LABEL_LINES && text.chars().nth(LABEL_CHARS).is_none() {
            self.insert_text(&text);
            return;
        }
        self.pastes += 1;
        let label = match breaks {
            0 => format!("[Pasted text #{}]", self.pastes),
            _ => format!("[Pasted text #{} +{breaks} lines]", self.pastes),
        };
        self.insert(EditorPiece::Paste(Rc::new(Paste { label, text })));
    }

    /// Handles Enter. Returns the message, unless the line is blank or ends in a backslash, which
    /// inserts a line break.
    pub(super) fn enter(&mut self) -> Option<SubmittedText> {
        if let Some(before) = self.cursor.checked_sub(1)
            && matches!(self.pieces[before], EditorPiece::Char('\\'))
        {
            self.pieces[before] = EditorPiece::Char('\n');
            return None;
        }
        let (mut text, mut shown) = (String::new(), String::new());
        for piece in &self.pieces {
            match piece {
                EditorPiece::Char(char) => {
                    text.push(*char);
                    shown.push(*char);
                }
                EditorPiece::Paste(paste) => {
                    text.push_str(&paste.text);
                    shown.push_str(&paste.label);
                }
            }
        }
        if text.trim().is_empty() {
            return None;
        }
        self.clear();
        Some(SubmittedText { text, shown })
    }

    /// Handles an editing key. Ignores other keys.
    pub(super) fn key(&mut self, key: TerminalKey) {
        match key {
            TerminalKey::Char(char) => self.insert(EditorPiece::Char(char)),
            TerminalKey::Newline => self.insert(EditorPiece::Char('\n')),
            TerminalKey::Backspace if self.cursor > 0 => self.delete(self.cursor - 1),
            TerminalKey::Delete | TerminalKey::Ctrl('d') if self.cursor < self.pieces.len() => {
                self.pieces.remove(self.cursor);
            }
            TerminalKey::Left | TerminalKey::Ctrl('b') => {
                self.cursor = self.cursor.saturating_sub(1);
            }
            TerminalKey::Right | TerminalKey::Ctrl('f') => {
                self.cursor = (self.cursor + 1).min(self.pieces.len());
            }
            TerminalKey::WordLeft => self.cursor = self.word_start(),
            TerminalKey::WordRight => self.cursor = self.word_end(),
            TerminalKey::Home | TerminalKey::Ctrl('a') => self.cursor = self.line_start(),
            TerminalKey::End | TerminalKey::Ctrl('e') => self.cursor = self.line_end(),
            TerminalKey::Up => self.line_up(),
            TerminalKey::Down => self.line_down(),
            TerminalKey::Ctrl('u') => self.delete(self.line_start()),
            TerminalKey::Ctrl('w') => self.delete(self.word_start()),
            TerminalKey::Ctrl('k') => drop(self.pieces.drain(self.cursor..self.line_end())),
            _ => {}
        }
    }

    pub(super) fn layout(&self, width: usize) -> EditorLayout {
        let width = width.max(2);
        let mut layout = EditorLayout {
            rows: vec![String::new()],
            row: 0,
            column: 0,
        };
        let mut column = 0;
        let put = |layout: &mut EditorLayout, char: char, column: &mut usize| {
            // Control characters of a paste must not reach the terminal.
            let (char, wide) = match char.width() {
                Some(wide) => (char, wide),
                None if char == '\t' => (' ', 1),
                None => (char::REPLACEMENT_CHARACTER, 1),
            };
            if *column + wide > width {
                layout.rows.push(String::new());
                *column = 0;
            }
            if let Some(row) = layout.rows.last_mut() {
                row.push(char);
            }
            *column += wide;
        };
        for index in 0..=self.pieces.len() {
            // The cursor needs a cell, also after a full row.
            if index == self.cursor {
                let full = column >= width;
                layout.row = layout.rows.len() - usize::from(!full);
                layout.column = if full { 0 } else { column };
                if full {
                    layout.rows.push(String::new());
                    column = 0;
                }
            }
            match self.pieces.get(index) {
                Some(EditorPiece::Char('\n')) => {
                    layout.rows.push(String::new());
                    column = 0;
                }
                Some(EditorPiece::Char(char)) => put(&mut layout, *char, &mut column),
                Some(EditorPiece::Paste(paste)) => {
                    for char in paste.label.chars() {
                        put(&mut layout, char, &mut column);
                    }
                }
                None => {}
            }
        }
        layout
    }

    fn insert(&mut self, piece: EditorPiece) {
        self.pieces.insert(self.cursor, piece);
        self.cursor += 1;
    }

    /// Deletes from `start` to the cursor.
    fn delete(&mut self, start: usize) {
        self.pieces.drain(start..self.cursor);
        self.cursor = start;
    }

    fn is(&self, index: usize, test: impl Fn(char) -> bool) -> bool {
        matches!(self.pieces.get(index), Some(EditorPiece::Char(char)) if test(*char))
    }

    fn word_start(&self) -> usize {
        let mut at = self.cursor;
        while at > 0 && self.is(at - 1, char::is_whitespace) {
            at -= 1;
        }
        let end = at;
        while at > 0 && self.is(at - 1, |char| !char.is_whitespace()) {
            at -= 1;
        }
        // A label counts as one word.
        if at == end { at.saturating_sub(1) } else { at }
    }

    fn word_end(&self) -> usize {
        let mut at = self.cursor;
        while self.is(at, char::is_whitespace) {
            at += 1;
        }
        let start = at;
        while self.is(at, |char| !char.is_whitespace()) {
            at += 1;
        }
        if at == start {
            (at + 1).min(self.pieces.len())
        } else {
            at
        }
    }

    fn line_start(&self) -> usize {
        let mut at = self.cursor;
        while at > 0 && !self.is(at - 1, |char| char == '\n') {
            at -= 1;
        }
        at
    }

    fn line_end(&self) -> usize {
        let mut at = self.cursor;
        while at < self.pieces.len() && !self.is(at, |char| char == '\n') {
            at += 1;
        }
        at
    }

    fn line_up(&mut self) {
        let start = self.line_start();
        let column = self.cursor - start;
        if start > 0 {
            self.cursor = start - 1;
            let above = self.line_start();
            self.cursor = (above + column).min(self.cursor);
        }
    }

    fn line_down(&mut self) {
        let column = self.cursor - self.line_start();
        let end = self.line_end();
        if end < self.pieces.len() {
            self.cursor = end + 1;
            self.cursor = (self.cursor + column).min(self.line_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(text: &str) -> Editor {
        let mut editor = Editor::default();
        for char in text.chars() {
            editor.key(if char == '\n' {
                TerminalKey::Newline
            } else {
                TerminalKey::Char(char)
            });
        }
        editor
    }

    fn check(text: &str, keys: &[TerminalKey], expected: &str) {
        let mut editor = editor(text);
        keys.iter().for_each(|key| editor.key(*key));
        editor.key(TerminalKey::Char('|'));
        let message = editor.enter().expect("a message");
        assert_eq!(message.text, expected, "{text:?} after {keys:?}");
    }

    #[test]
    fn editing_keys() {
        check("ab", &[TerminalKey::Left], "a|b");
        check("ab", &[TerminalKey::Home], "|ab");
        check("ab", &[TerminalKey::Ctrl('a'), TerminalKey::Right], "a|b");
        check("ab", &[TerminalKey::Backspace], "a|");
        check("ab", &[TerminalKey::Home, TerminalKey::Delete], "|b");
        check("one two", &[TerminalKey::Ctrl('w')], "one |");
        check("one two ", &[TerminalKey::WordLeft], "one |two ");
        check(
            "one two",
            &[TerminalKey::Home, TerminalKey::WordRight],
            "one| two",
        );
        check("one\ntwo", &[TerminalKey::Ctrl('u')], "one\n|");
        check(
            "one\ntwo",
            &[TerminalKey::Home, TerminalKey::Ctrl('k')],
            "one\n|",
        );
        check("one\ntwo", &[TerminalKey::Up], "one|\ntwo");
        check("a\nlong", &[TerminalKey::Up], "a|\nlong");
        check("long\na", &[TerminalKey::Up, TerminalKey::Down], "long\na|");
    }

    #[test]
    fn enter_sends_once_and_blank_never() {
        let mut editor = editor("hi");
        assert_eq!(editor.enter(), Some(SubmittedText::plain("hi".to_owned())));
        assert!(editor.is_empty());
        assert_eq!(editor.enter(), None);
        editor.key(TerminalKey::Char(' '));
        assert_eq!(editor.enter(), None);
    }

    #[test]
    fn a_backslash_before_enter_makes_a_line() {
        let mut editor = editor("one\\");
        assert_eq!(editor.enter(), None);
        editor.key(TerminalKey::Char('2'));
        assert_eq!(editor.enter().map(|m| m.text), Some("one\n2".to_owned()));
    }

    #[test]
    fn small_pastes_are_text_and_big_ones_labels() {
        for (paste, shown) in [
            ("a\nb\nc".to_owned(), "a\nb\nc".to_owned()),
            ("x".repeat(800), "x".repeat(800)),
            (
                "a\nb\nc\nd".to_owned(),
                "[Pasted text #1 +3 lines]".to_owned(),
            ),
            ("x".repeat(801), "[Pasted text #1]".to_owned()),
        ] {
            let mut editor = Editor::default();
            editor.paste(paste.clone());
            let message = editor.enter().expect("a message");
            assert_eq!(message, SubmittedText { text: paste, shown });
        }
    }

    #[test]
    fn labels_count_up_and_go_as_one() {
        let mut editor = editor("see ");
        editor.paste("x".repeat(900));
        editor.paste("y".repeat(900));
        assert_eq!(
            editor.layout(80).rows,
            ["see [Pasted text #1][Pasted text #2]"]
        );
        editor.key(TerminalKey::Backspace);
        let message = editor.enter().expect("a message");
        assert_eq!(message.text, format!("see {}", "x".repeat(900)));
        assert_eq!(message.shown, "see [Pasted text #1]");
    }

    #[test]
    fn rows_wrap_by_cells_and_give_the_cursor_a_place() {
        let wide = editor("日本語").layout(4);
        assert_eq!(wide.rows, ["日本", "語"]);
        assert_eq!((wide.row, wide.column), (1, 2));

        let full = editor("abcd").layout(4);
        assert_eq!(full.rows, ["abcd", ""]);
        assert_eq!((full.row, full.column), (1, 0));

        let lines = editor("a\nb").layout(4);
        assert_eq!(lines.rows, ["a", "b"]);
        assert_eq!((lines.row, lines.column), (1, 1));
    }
}
