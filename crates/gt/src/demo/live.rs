//! The live area below the conversation, as rows and a cursor.
//!
//! Pure: a [`LiveView`] of the agent and the size of the terminal go in, a [`DemoFrame`] comes out. No row
//! is wider and no frame higher than the terminal, so `screen` knows the position of every row.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::dialog::DemoDialog;
use super::editor::Editor;
use super::screen::clean;
use super::terminal::TerminalSize;

/// Maximum number of queued messages shown.
const QUEUED_ROWS: usize = 5;
const PROMPT: &str = "❯ ";
const FOOTER: [&str; 1] = ["  ? for shortcuts"];
const SHORTCUTS: [&str; 4] = [
    "  enter sends · \\ + enter or alt + enter makes a new line",
    "  esc interrupts · ctrl-c clears, twice it exits · ctrl-d exits",
    "  /clear starts anew · /exit exits",
    "  [[delay=2]] [[text=…]] [[error=500]] [[tool=ls]] [[ask=Q?|a|b]] [[fill=9]] [[exit=3]] steer the answer",
];
const EXIT_HINT: [&str; 1] = ["  Press Ctrl-C again to exit"];

#[derive(Debug)]
pub(super) struct LiveView<'a> {
    /// Time since the agent became busy.
    pub(super) busy: Option<Duration>,
    pub(super) dialog: Option<&'a DemoDialog>,
    pub(super) editor: &'a Editor,
    pub(super) queued: Vec<&'a str>,
    pub(super) exit_hint: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct DemoFrame {
    pub(super) rows: Vec<FrameRow>,
    /// Row and column. The cursor is hidden if absent.
    pub(super) cursor: Option<(usize, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrameRow {
    pub(super) text: String,
    pub(super) dim: bool,
}

pub(super) fn frame(view: &LiveView<'_>, size: TerminalSize) -> DemoFrame {
    let mut frame = DemoFrame {
        rows: Vec::new(),
        cursor: None,
    };
    match view.dialog {
        Some(dialog) => {
            frame.push("─".repeat(size.columns), true);
            for line in dialog.lines() {
                frame.push(clip(&line, size.columns), false);
            }
        }
        None => frame.prompt(view, size),
    }
    frame.fit(size.rows);
    frame
}

impl DemoFrame {
    fn push(&mut self, text: String, dim: bool) {
        self.rows.push(FrameRow { text, dim });
    }

    fn prompt(&mut self, view: &LiveView<'_>, size: TerminalSize) {
        if let Some(busy) = view.busy {
            let line = format!("✻ Working… ({}s · esc to interrupt)", busy.as_secs());
            self.push(clip(&line, size.columns), false);
        }
        for message in view.queued.iter().take(QUEUED_ROWS) {
            let line = message.lines().next().unwrap_or_default();
            self.push(clip(&format!("  queued: {line}"), size.columns), true);
        }
        let rule = "─".repeat(size.columns);
        self.push(rule.clone(), true);
        if view.editor.is_empty() && !view.queued.is_empty() {
            self.cursor = Some((self.rows.len(), PROMPT.width()));
            let line = format!("{PROMPT}Press up to edit queued messages");
            self.push(clip(&line, size.columns), true);
        } else {
            self.input(view.editor, size);
        }
        self.push(rule, true);
        let footer: &[&str] = if view.exit_hint {
            &EXIT_HINT
        } else if view.editor.is_exactly('?') {
            &SHORTCUTS
        } else {
            &FOOTER
        };
        for line in footer {
            self.push(clip(line, size.columns), true);
        }
    }

    /// Adds the rows of the input around the cursor, as many as fit.
    fn input(&mut self, editor: &Editor, size: TerminalSize) {
        let layout = editor.layout(size.columns.saturating_sub(PROMPT.width()));
        let room = size.rows.saturating_sub(4).max(1);
        let start = (layout.row + 1).saturating_sub(room);
        self.cursor = Some((
            self.rows.len() + layout.row - start,
            PROMPT.width() + layout.column,
        ));
        for (index, row) in layout.rows.iter().enumerate().skip(start).take(room) {
            let mark = if index == 0 { PROMPT } else { "  " };
            self.push(format!("{mark}{row}"), false);
        }
    }

    /// Drops rows from the top if the terminal is too low for all.
    fn fit(&mut self, height: usize) {
        let over = self.rows.len().saturating_sub(height.max(1));
        self.rows.drain(..over);
        if let Some((row, _)) = &mut self.cursor {
            *row = row.saturating_sub(over);
        }
    }
}

fn clip(text: &str, columns: usize) -> String {
    let text = clean(text);
    if text.width() <= columns {
        return text.into_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |char: &char| {
        let width = char.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    let mut clipped: String = text.chars().take_while(fits).collect();
    clipped.push('…');
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: TerminalSize = TerminalSize {
        columns: 30,
        rows: 10,
    };

    fn check(view: &LiveView<'_>, size: TerminalSize, expected: &[&str]) -> Option<(usize, usize)> {
        let frame = frame(view, size);
        let rows: Vec<&str> = frame.rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(rows, expected);
        frame.cursor
    }

    fn view(editor: &Editor) -> LiveView<'_> {
        LiveView {
            busy: None,
            dialog: None,
            editor,
            queued: Vec::new(),
            exit_hint: false,
        }
    }

    #[test]
    fn ready() {
        let rule = "─".repeat(30);
        let cursor = check(
            &view(&Editor::default()),
            SIZE,
            &[&rule, "❯ ", &rule, "  ? for shortcuts"],
        );
        assert_eq!(cursor, Some((1, 2)));
    }

    #[test]
    fn busy_with_a_queue() {
        let rule = "─".repeat(30);
        let editor = Editor::default();
        let busy = LiveView {
            busy: Some(Duration::from_millis(3900)),
            queued: vec!["next\nline"],
            ..view(&editor)
        };
        let expected = [
            "✻ Working… (3s · esc to inter…",
            "  queued: next",
            &rule,
            "❯ Press up to edit queued mes…",
            &rule,
            "  ? for shortcuts",
        ];
        check(&busy, SIZE, &expected);
    }

    #[test]
    fn a_dialog_stands_in_place_of_the_input() {
        let dialog = DemoDialog::permission("ls");
        let editor = Editor::default();
        let asking = LiveView {
            dialog: Some(&dialog),
            ..view(&editor)
        };
        let frame = frame(&asking, SIZE);
        assert_eq!(frame.rows.len(), 7);
        assert_eq!(frame.cursor, None);
    }

    #[test]
    fn long_input_shows_the_part_with_the_cursor() {
        let mut editor = Editor::default();
        editor.paste("a\nb\nc".to_owned());
        editor.paste("\nd\ne".to_owned());
        let rule = "─".repeat(30);
        let size = TerminalSize {
            columns: 30,
            rows: 7,
        };
        let expected = ["  c", "  d", "  e"];
        let expected = [
            &rule,
            expected[0],
            expected[1],
            expected[2],
            &rule,
            "  ? for shortcuts",
        ];
        assert_eq!(check(&view(&editor), size, &expected), Some((3, 3)));
    }

    #[test]
    fn nothing_is_higher_than_the_terminal() {
        let size = TerminalSize {
            columns: 30,
            rows: 2,
        };
        assert_eq!(frame(&view(&Editor::default()), size).rows.len(), 2);
    }
}
