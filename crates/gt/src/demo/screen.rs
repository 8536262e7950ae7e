//! Writes to the terminal: the conversation scrolls up, the live area stays below it.
//!
//! It draws inline and not on the alternate screen, so that tmux's scrollback keeps the
//! conversation. Lines of the conversation are written once. The live area (see `live`) is redrawn:
//! the cursor moves up to its first row, everything below is erased, and new conversation lines and
//! the new rows follow, all in one write. The terminal rewraps when its width changes, so the
//! distance up is computed from the widths of the drawn rows.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;

use unicode_width::UnicodeWidthStr;

use super::live::DemoFrame;
use super::terminal::{self, TerminalSize};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";
const PASTES_ON: &str = "\x1b[?2004h";
const PASTES_OFF: &str = "\x1b[?2004l";
const CURSOR_ON: &str = "\x1b[?25h";
const CURSOR_OFF: &str = "\x1b[?25l";

/// Maximum length shown of a message or an output; the transcript has all of it.
const SHOWN_LINES: usize = 50;
const SHOWN_CHARS: usize = 2000;

#[derive(Debug)]
pub(super) struct DemoScreen {
    out: File,
    size: TerminalSize,
    /// Conversation lines and control sequences that are not yet written.
    pending: String,
    drawn: Option<DemoFrame>,
    title: &'static str,
    gone: bool,
}

impl DemoScreen {
    pub(super) fn open() -> io::Result<Self> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self {
            out,
            size: terminal::size(),
            pending: PASTES_ON.to_owned(),
            drawn: None,
            title: "",
            gone: false,
        })
    }

    pub(super) fn size(&self) -> TerminalSize {
        self.size
    }

    /// Returns whether the terminal is gone.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Reads the size again. The next draw is a full one.
    pub(super) fn resize(&mut self) {
        self.size = terminal::size();
        if let Some(drawn) = self.drawn.take() {
            let up = rows_above_cursor(&drawn, self.size.columns);
            self.pending.insert_str(0, &erase(up));
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.pending.push_str(&clean(line));
        self.pending.push_str("\r\n");
    }

    pub(super) fn greeting(&mut self, identity: &str) {
        self.line(" demo agent");
        self.line(&format!(" {identity}"));
        self.line("");
    }

    pub(super) fn user(&mut self, text: &str) {
        self.block("> ", "  ", text, "");
    }

    pub(super) fn answer(&mut self, text: &str) {
        self.block("● ", "  ", text, "");
        self.line("");
    }

    /// Adds the output of a command or a hook.
    pub(super) fn output(&mut self, text: &str) {
        self.block("  ⎿  ", "     ", text, DIM);
    }

    /// Sets the title for the agent's state, if it changed.
    pub(super) fn state_title(&mut self, title: &'static str) {
        if self.title != title {
            self.title = title;
            self.set_title(title);
        }
    }

    pub(super) fn set_title(&mut self, title: &str) {
        let title = clean(title);
        // At the front, so that it does not split a line of the conversation.
        self.pending.insert_str(0, &format!("\x1b]2;{title}\x07"));
    }

    /// Clears the screen; tmux's scrollback stays.
    pub(super) fn clear(&mut self) {
        self.drawn = None;
        self.pending.push_str("\x1b[H\x1b[J");
    }

    /// Updates the terminal, with at most one write.
    pub(super) fn draw(&mut self, frame: DemoFrame) {
        if self.pending.is_empty() && self.drawn.as_ref() == Some(&frame) {
            return;
        }
        let mut bytes = String::with_capacity(1024 + self.pending.len());
        bytes.push_str(CURSOR_OFF);
        if let Some(drawn) = &self.drawn {
            bytes.push_str(&erase(rows_above_cursor(drawn, self.size.columns)));
        }
        bytes.push_str(&std::mem::take(&mut self.pending));
        write_frame(&mut bytes, &frame);
        self.drawn = Some(frame);
        self.write(&bytes);
    }

    /// Erases the live area and leaves the conversation on the terminal.
    pub(super) fn close(&mut self) {
        let mut bytes = String::new();
        if let Some(drawn) = self.drawn.take() {
            bytes.push_str(&erase(rows_above_cursor(&drawn, self.size.columns)));
        }
        bytes.push_str(&std::mem::take(&mut self.pending));
        bytes.push_str(PASTES_OFF);
        bytes.push_str(CURSOR_ON);
        self.write(&bytes);
    }

    fn block(&mut self, first: &str, next: &str, text: &str, style: &str) {
        let lines = text.lines().count();
        // Empty text is one empty line.
        let shown = text
            .lines()
            .chain((lines == 0).then_some(""))
            .take(SHOWN_LINES);
        for (index, line) in shown.enumerate() {
            let mark = if index == 0 { first } else { next };
            let (line, cut) = match line.char_indices().nth(SHOWN_CHARS) {
                Some((end, _)) => (&line[..end], "…"),
                None => (line, ""),
            };
            let line = clean(line);
            let plain = if style.is_empty() { "" } else { PLAIN };
            // Writing to a String cannot fail.
            let _ = write!(self.pending, "{style}{mark}{line}{cut}{plain}\r\n");
        }
        if lines > SHOWN_LINES {
            let left_out = lines - SHOWN_LINES;
            let _ = write!(self.pending, "{DIM}{next}… +{left_out} lines{PLAIN}\r\n");
        }
    }

    fn write(&mut self, bytes: &str) {
        if !self.gone && self.out.write_all(bytes.as_bytes()).is_err() {
            self.gone = true;
        }
    }
}

fn erase(up: usize) -> String {
    match up {
        0 => "\r\x1b[J".to_owned(),
        _ => format!("\r\x1b[{up}A\x1b[J"),
    }
}

fn write_frame(bytes: &mut String, frame: &DemoFrame) {
    for (index, row) in frame.rows.iter().enumerate() {
        if index > 0 {
            bytes.push_str("\r\n");
        }
        match row.dim {
            true => bytes.extend([DIM, &row.text, PLAIN]),
            false => bytes.push_str(&row.text),
        }
    }
    let Some((row, column)) = frame.cursor else {
        return;
    };
    bytes.push('\r');
    let up = frame.rows.len().saturating_sub(1 + row);
    for (count, letter) in [(up, 'A'), (column, 'C')] {
        if count > 0 {
            let _ = write!(bytes, "\x1b[{count}{letter}");
        }
    }
    bytes.push_str(CURSOR_ON);
}

/// Returns the number of terminal rows between the first row of the frame and the cursor, after a
/// possible rewrap to another width.
fn rows_above_cursor(frame: &DemoFrame, columns: usize) -> usize {
    let columns = columns.max(1);
    let last = frame.rows.len().saturating_sub(1);
    let row = frame.cursor.map_or(last, |(row, _)| row);
    let above = frame.rows.iter().take(row);
    let rows: usize = above
        .map(|row| row.text.width().div_ceil(columns).max(1))
        .sum();
    rows + frame.cursor.map_or(0, |(_, column)| column / columns)
}

/// Replaces control characters, which the terminal would obey.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let text = text.replace('\t', "    ");
    text.replace(char::is_control, "\u{fffd}").into()
}

#[cfg(test)]
mod tests {
    use super::super::live::FrameRow;
    use super::*;

    fn frame(rows: &[&str], cursor: Option<(usize, usize)>) -> DemoFrame {
        let rows = rows.iter().map(|text| FrameRow {
            text: (*text).to_owned(),
            dim: false,
        });
        DemoFrame {
            rows: rows.collect(),
            cursor,
        }
    }

    #[test]
    fn the_way_up_follows_the_width() {
        let frame = frame(&["──────────", "❯ abcd", "──────────"], Some((1, 6)));
        assert_eq!(rows_above_cursor(&frame, 10), 1);
        assert_eq!(rows_above_cursor(&frame, 5), 2 + 1);
        assert_eq!(rows_above_cursor(&frame, 100), 1);
    }

    #[test]
    fn a_frame_ends_with_the_cursor_in_its_place() {
        let mut bytes = String::new();
        write_frame(&mut bytes, &frame(&["a", "b", "c"], Some((1, 2))));
        assert_eq!(bytes, "a\r\nb\r\nc\r\x1b[1A\x1b[2C\x1b[?25h");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("a\x1b]2;x\x07b"), "a\u{fffd}]2;x\u{fffd}b");
        assert_eq!(clean("a\tb"), "a    b");
        assert_eq!(clean("ü"), "ü");
    }
}
