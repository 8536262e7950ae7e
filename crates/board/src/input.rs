//! A text editor: a single line, or an area that keeps line breaks.

use crate::action::BoardAction;
use crate::text;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextInput {
    text: String,
    /// The byte offset of the cursor.
    at: usize,
    /// Line breaks and tabs are kept.
    is_area: bool,
}

impl TextInput {
    pub(crate) fn new(text: &str) -> Self {
        TextInput {
            text: text.to_owned(),
            at: text.len(),
            is_area: false,
        }
    }

    /// Returns an editor of several lines.
    pub(crate) fn area(text: &str) -> Self {
        let mut input = TextInput {
            is_area: true,
            ..TextInput::default()
        };
        input.insert(text);
        input
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts typed or pasted text. In a single line, line breaks and tabs become blanks. Terminals
    /// paste a line break as a carriage return.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n");
        for letter in text.chars() {
            let letter = match letter {
                '\n' | '\r' if self.is_area => '\n',
                '\t' if self.is_area => '\t',
                '\n' | '\r' | '\t' => ' ',
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
            BoardAction::NewLine if self.is_area => self.insert("\n"),
            BoardAction::Up if self.is_area => return self.move_vertically(false),
            BoardAction::Down if self.is_area => return self.move_vertically(true),
            BoardAction::Left => self.at = self.before(),
            BoardAction::Right => self.at = self.after(),
            BoardAction::Top => self.at = self.line_start(),
            BoardAction::Bottom => self.at = self.line_end(self.at),
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
                let start = head.rfind([' ', '\n', '\t']).map_or(0, |blank| blank + 1);
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

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self, from: usize) -> usize {
        let rest = self.text[from..].find('\n');
        rest.map_or(self.text.len(), |length| from + length)
    }

    /// Moves the cursor to the line above or below, to the same cell if the line is long enough.
    /// Returns whether there is such a line.
    fn move_vertically(&mut self, down: bool) -> bool {
        let start = self.line_start();
        let cell = text::width(&text::expand(&self.text[start..self.at]));
        let line = match down {
            true => match self.line_end(self.at) {
                end if end == self.text.len() => return false,
                end => end + 1,
            },
            false => match start.checked_sub(1) {
                Some(end) => self.text[..end].rfind('\n').map_or(0, |at| at + 1),
                None => return false,
            },
        };
        let end = self.line_end(line);
        let offsets = self.text[line..end].char_indices();
        let ends = offsets.map(|(at, letter)| line + at + letter.len_utf8());
        let fits = |at: &usize| text::width(&text::expand(&self.text[line..*at])) <= cell;
        self.at = ends.take_while(fits).last().unwrap_or(line);
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

    /// Returns the text wrapped to `room` cells, and the row and the cell of the cursor.
    pub(crate) fn rows(&self, room: usize) -> (Vec<String>, (usize, usize)) {
        let room = room.max(2);
        let mut rows = Vec::new();
        let mut cursor = (0, 0);
        let mut start = 0;
        for line in self.text.split('\n') {
            let is_here = (start..=start + line.len()).contains(&self.at);
            let head = is_here.then(|| text::width(&text::expand(&line[..self.at - start])));
            let (mut row, mut used, mut passed) = (String::new(), 0, 0);
            let line_cells = text::expand(line);
            for (cluster, width) in text::clusters(&line_cells) {
                if used + width > room {
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                if head == Some(passed) {
                    cursor = (rows.len(), used);
                }
                row.push_str(&cluster);
                used += width;
                passed += width;
            }
            if head == Some(passed) {
                if used == room {
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                cursor = (rows.len(), used);
            }
            rows.push(row);
            start += line.len() + 1;
        }
        (rows, cursor)
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

    #[test]
    fn area_keeps_pasted_line_breaks() {
        let mut input = TextInput::area("");
        input.insert("one\r\ntwo\rthree\nfour\tx\u{1b}");
        assert_eq!(input.text(), "one\ntwo\nthree\nfour\tx");
        let mut line = TextInput::default();
        line.insert("one\r\ntwo\rthree");
        assert_eq!(line.text(), "one two three");
        assert!(!line.edit(BoardAction::NewLine) && !line.edit(BoardAction::Up));
    }

    #[test]
    fn cursor_of_an_area_moves_by_lines() {
        let mut input = TextInput::area("long line\nab\n日本語");
        input.edit(BoardAction::Up);
        input.insert("!");
        assert_eq!(input.text(), "long line\nab!\n日本語");
        input.edit(BoardAction::Up);
        input.insert("|");
        assert_eq!(input.text(), "lon|g line\nab!\n日本語");
        input.edit(BoardAction::Bottom);
        input.edit(BoardAction::NewLine);
        input.edit(BoardAction::EraseWord);
        assert_eq!(input.text(), "lon|g \nab!\n日本語");
        input.edit(BoardAction::Up);
        input.edit(BoardAction::Top);
        input.insert(">");
        assert!(input.text().starts_with(">lon|g"));
    }

    #[test]
    fn rows_are_wrapped_by_width_and_show_the_cursor() {
        let input = TextInput::area("abcd\n日本語x");
        let (rows, cursor) = input.rows(4);
        assert_eq!(rows, ["abcd", "日本", "語x"]);
        assert_eq!(cursor, (2, 3));
        // After a full row, the cursor is in the next one.
        let (rows, cursor) = TextInput::area("abcd").rows(4);
        assert_eq!((rows.len(), cursor), (2, (1, 0)));
        assert_eq!(TextInput::area("").rows(4), (vec![String::new()], (0, 0)));
    }
}
