//! A single-line text editor.

use crate::action::BoardAction;
use crate::text;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextInput {
    text: String,
    /// The byte offset of the cursor.
    at: usize,
}

impl TextInput {
    pub(crate) fn new(text: &str) -> Self {
        TextInput {
            text: text.to_owned(),
            at: text.len(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts typed or pasted text. Line breaks and tabs become blanks.
    pub(crate) fn insert(&mut self, text: &str) {
        for letter in text.chars() {
            let letter = match letter {
                '\n' | '\t' => ' ',
                _ if letter.is_control() => continue,
                _ => letter,
            };
            self.text.insert(self.at, letter);
            self.at += letter.len_utf8();
        }
    }

    /// Applies an editing action. Returns whether the action was one.
    pub(crate) fn edit(&mut self, action: BoardAction) -> bool {
        match action {
            BoardAction::Left => self.at = self.before(),
            BoardAction::Right => self.at = self.after(),
            BoardAction::Top => self.at = 0,
            BoardAction::Bottom => self.at = self.text.len(),
            BoardAction::Erase => {
                let start = self.before();
                self.text.replace_range(start..self.at, "");
                self.at = start;
            }
            BoardAction::Delete => {
                let end = self.after();
                self.text.replace_range(self.at..end, "");
            }
            BoardAction::EraseWord => {
                let head = self.text[..self.at].trim_end();
                let start = head.rfind(' ').map_or(0, |blank| blank + 1);
                self.text.replace_range(start..self.at, "");
                self.at = start;
            }
            BoardAction::EraseAll => {
                self.text.clear();
                self.at = 0;
            }
            _ => return false,
        }
        true
    }

    fn before(&self) -> usize {
        self.text[..self.at]
            .char_indices()
            .next_back()
            .map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        let rest = self.text[self.at..].chars().next();
        self.at + rest.map_or(0, char::len_utf8)
    }

    /// Returns the part of the line that fits into `room` cells, and the cell of the cursor.
    pub(crate) fn view(&self, room: usize) -> (String, usize) {
        let head = text::width(&text::clean(&self.text[..self.at]));
        let scrolled = (head + 1).saturating_sub(room);
        let shown = text::skip(&text::clean(&self.text), scrolled);
        (shown, head - scrolled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_where_the_cursor_is() {
        let mut input = TextInput::new("日本");
        input.edit(BoardAction::Left);
        input.insert("x\ny\u{1b}");
        assert_eq!(input.text(), "日x y本");
        input.edit(BoardAction::Erase);
        input.edit(BoardAction::Delete);
        assert_eq!(input.text(), "日x ");
        input.edit(BoardAction::EraseWord);
        assert_eq!(input.text(), "");
        for action in [
            BoardAction::Erase,
            BoardAction::Delete,
            BoardAction::Left,
            BoardAction::Right,
        ] {
            assert!(input.edit(action));
        }
        assert!(!input.edit(BoardAction::Accept));
    }

    #[test]
    fn the_cursor_stays_in_view() {
        let mut input = TextInput::new("one two 三四");
        assert_eq!(input.view(20), ("one two 三四".to_owned(), 12));
        let (shown, at) = input.view(6);
        assert!(at < 6, "{shown:?} {at}");
        input.edit(BoardAction::Top);
        assert_eq!(input.view(6).1, 0);
    }
}
