//! A dialog: a heading, rows to choose from, and the marked row.
//!
//! Pure: keys go in, an [`DialogAnswer`] comes out, and [`DemoDialog::lines`] returns the text to draw. The
//! agent drops pastes while a dialog is open, as the real programs do. A blind Enter after a paste
//! therefore chooses the marked row.

use super::input::TerminalKey;

/// Maximum number of lines shown of a command.
const COMMAND_LINES: usize = 10;

#[derive(Debug)]
pub(super) struct DemoDialog {
    heading: Vec<String>,
    rows: Vec<String>,
    marked: usize,
    numbered: bool,
    footer: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DialogAnswer {
    Row(usize),
    Cancelled,
}

impl DemoDialog {
    /// Creates a permission dialog. Row 0 is yes, row 1 is no.
    pub(super) fn permission(command: &str) -> Self {
        let mut heading = vec!["Bash command".to_owned()];
        let lines = command.lines();
        heading.extend(lines.take(COMMAND_LINES).map(|line| format!("  {line}")));
        let left_out = command.lines().count().saturating_sub(COMMAND_LINES);
        if left_out > 0 {
            heading.push(format!("  … +{left_out} lines"));
        }
        heading.push("Do you want to proceed?".to_owned());
        Self {
            heading,
            rows: vec![
                "Yes".to_owned(),
                "No, and tell demo what to do differently (esc)".to_owned(),
            ],
            marked: 0,
            numbered: true,
            footer: "Esc to cancel",
        }
    }

    pub(super) fn question(question: &str, options: &[String]) -> Self {
        Self {
            heading: question.lines().map(str::to_owned).collect(),
            rows: options.to_vec(),
            marked: 0,
            numbered: true,
            footer: "Enter to select · ↑/↓ to navigate · Esc to cancel",
        }
    }

    /// Creates a trust dialog. Row 0, marked at first, is no: a blind Enter ends the program.
    /// Claude Code 2.1.325 behaves like that, and a program that starts agents must handle it.
    pub(super) fn trust(folder: &str) -> Self {
        Self {
            heading: vec![
                "Do you trust the files in this folder?".to_owned(),
                format!("  {folder}"),
            ],
            rows: vec!["No, exit".to_owned(), "Yes, I trust this folder".to_owned()],
            marked: 0,
            numbered: false,
            footer: "Enter to confirm · Esc to cancel",
        }
    }

    pub(super) fn key(&mut self, key: TerminalKey) -> Option<DialogAnswer> {
        match key {
            TerminalKey::Up => self.marked = self.marked.saturating_sub(1),
            TerminalKey::Down => self.marked = (self.marked + 1).min(self.rows.len() - 1),
            TerminalKey::Enter => return Some(DialogAnswer::Row(self.marked)),
            TerminalKey::Esc | TerminalKey::Ctrl('c') => return Some(DialogAnswer::Cancelled),
            TerminalKey::Char(digit @ '1'..='9') if self.numbered => {
                let row = digit as usize - '1' as usize;
                return (row < self.rows.len()).then_some(DialogAnswer::Row(row));
            }
            _ => {}
        }
        None
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let heading = self.heading.iter().map(|line| format!(" {line}"));
        let rows = self.rows.iter().enumerate().map(|(index, row)| {
            let mark = if index == self.marked { '❯' } else { ' ' };
            match self.numbered {
                true => format!(" {mark} {}. {row}", index + 1),
                false => format!(" {mark} {row}"),
            }
        });
        let footer = std::iter::once(format!(" {}", self.footer));
        heading.chain(rows).chain(footer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut dialog: DemoDialog, keys: &[TerminalKey], expected: Option<DialogAnswer>) {
        let answer = keys.iter().find_map(|key| dialog.key(*key));
        assert_eq!(answer, expected, "{keys:?}");
    }

    #[test]
    fn a_permission_reads_like_the_real_one() {
        assert_eq!(
            DemoDialog::permission("touch a\ntouch b").lines(),
            [
                " Bash command",
                "   touch a",
                "   touch b",
                " Do you want to proceed?",
                " ❯ 1. Yes",
                "   2. No, and tell demo what to do differently (esc)",
                " Esc to cancel",
            ]
        );
    }

    #[test]
    fn keys_choose() {
        let permission = || DemoDialog::permission("ls");
        check(
            permission(),
            &[TerminalKey::Enter],
            Some(DialogAnswer::Row(0)),
        );
        check(
            permission(),
            &[TerminalKey::Down, TerminalKey::Enter],
            Some(DialogAnswer::Row(1)),
        );
        let far = [
            TerminalKey::Down,
            TerminalKey::Down,
            TerminalKey::Up,
            TerminalKey::Up,
            TerminalKey::Up,
            TerminalKey::Enter,
        ];
        check(permission(), &far, Some(DialogAnswer::Row(0)));
        check(
            permission(),
            &[TerminalKey::Char('2')],
            Some(DialogAnswer::Row(1)),
        );
        check(permission(), &[TerminalKey::Char('3')], None);
        check(
            permission(),
            &[TerminalKey::Esc],
            Some(DialogAnswer::Cancelled),
        );
        check(
            permission(),
            &[TerminalKey::Char('y'), TerminalKey::Char(' ')],
            None,
        );
    }

    #[test]
    fn trust_marks_no_and_takes_no_digits() {
        check(DemoDialog::trust("/x"), &[TerminalKey::Char('2')], None);
        check(
            DemoDialog::trust("/x"),
            &[TerminalKey::Enter],
            Some(DialogAnswer::Row(0)),
        );
        assert_eq!(DemoDialog::trust("/x").lines()[2], " ❯ No, exit");
    }
}
