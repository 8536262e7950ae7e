//! What a program's screen says, read by the marks of its preset.
//!
//! Only the last lines count: further up stands what the agent *talked about*.
//! A screen is the weakest witness of all; see [`crate::state`] for the others.

use crate::harness::{Dialog, Preset};
use crate::state::State;

/// How many of the last written lines are looked at.
const LAST_LINES: usize = 24;

/// What is drawn around text, and so does not begin it.
fn is_frame(c: char) -> bool {
    c.is_whitespace() || ('\u{2500}'..='\u{257f}').contains(&c)
}

/// Signs with which programs mark the chosen row of a menu.
const CURSORS: &[char] = &['❯', '›', '▶', '→'];
/// Signs that also begin lines of a conversation: cursors only before a number.
const NUMBERED_CURSORS: &[char] = &['●', '>'];

/// Whether a line bears a mark: `^x` when it begins with `x` behind blanks and
/// frames, otherwise when it contains it. A no-break space counts as a space.
pub fn matches(line: &str, mark: &str) -> bool {
    let line = line.replace('\u{a0}', " ");
    match mark.strip_prefix('^') {
        // The screen comes without trailing blanks, so `❯ ` may arrive as `❯`.
        Some(start) => {
            let text = line.trim_start_matches(is_frame);
            text.starts_with(start) || text == start.trim_end()
        }
        None => line.contains(mark),
    }
}

/// What the last lines say, and the mark that said so.
pub fn read<'p>(lines: &[impl AsRef<str>], preset: &'p Preset) -> Option<(State, &'p str)> {
    let last = last_lines(lines);
    let find = |marks: &'p [String]| {
        marks
            .iter()
            .find(|mark| last.iter().any(|line| matches(line, mark)))
            .map(String::as_str)
    };
    // An open question outweighs everything, a busy line the prompt beneath it.
    let screen = &preset.screen;
    find(&screen.waiting)
        .map(|mark| (State::Waiting, mark))
        .or_else(|| find(&screen.busy).map(|mark| (State::Busy, mark)))
        .or_else(|| {
            find(&screen.ready)
                .filter(|_| menu(&last).is_none())
                .map(|mark| (State::Idle, mark))
        })
        .or_else(|| find(&screen.error).map(|mark| (State::Error, mark)))
}

/// A start-up dialog that is open now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDialog {
    pub name: String,
    pub menu: Menu,
    /// The row that the preset wants, if it is there.
    pub wanted: Option<usize>,
}

/// The rows of a menu, and the marked one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    pub options: Vec<String>,
    pub marked: usize,
}

/// The known dialog that the screen shows, if its rows can be read.
pub fn open_dialog(lines: &[impl AsRef<str>], dialogs: &[Dialog]) -> Option<OpenDialog> {
    let last = last_lines(lines);
    let dialog = dialogs.iter().find(|dialog| {
        let shown = |mark: &String| last.iter().any(|line| matches(line, mark));
        dialog.shows.iter().any(shown)
    })?;
    let menu = menu(&last)?;
    let wanted = dialog.choose.iter().find_map(|choice| {
        menu.options
            .iter()
            .position(|option| option.contains(choice.as_str()))
    });
    Some(OpenDialog {
        name: dialog.name.clone(),
        menu,
        wanted,
    })
}

/// The end of the screen, from the first of the last written lines on. Blank ones
/// do not count: some programs draw a tall empty screen above their footer.
fn last_lines(lines: &[impl AsRef<str>]) -> Vec<&str> {
    let is_written = |line: &&str| !line.trim().is_empty();
    let mut last: Vec<&str> = Vec::new();
    let mut written = 0;
    for line in lines
        .iter()
        .rev()
        .map(AsRef::as_ref)
        .skip_while(|line| !is_written(line))
    {
        written += usize::from(is_written(&line));
        if written > LAST_LINES {
            break;
        }
        last.push(line);
    }
    last.reverse();
    last
}

/// Reads a menu: a row with a cursor, and its neighbours whose text begins in
/// the same column. At least two rows, or it is no choice.
fn menu(lines: &[&str]) -> Option<Menu> {
    let rows: Vec<Option<(usize, bool, &str)>> = lines.iter().map(|line| row(line)).collect();
    let at = rows
        .iter()
        .rposition(|row| matches!(row, Some((_, true, _))))?;
    let column = rows[at]?.0;
    let is_option = |index: usize| rows[index].filter(|(start, _, _)| *start == column);
    // Wrapped text begins further right and belongs to the row above it.
    let belongs = |index: usize| rows[index].is_some_and(|(start, _, _)| start >= column);
    let first = (0..at)
        .rev()
        .take_while(|i| belongs(*i))
        .last()
        .unwrap_or(at);
    let last = (at..rows.len())
        .take_while(|i| belongs(*i))
        .last()
        .unwrap_or(at);
    let found: Vec<(usize, &str)> = (first..=last)
        .filter_map(|index| is_option(index).map(|(_, _, text)| (index, text)))
        .collect();
    let marked = found.iter().position(|(index, _)| *index == at)?;
    (found.len() > 1).then(|| Menu {
        options: found.iter().map(|(_, text)| (*text).to_owned()).collect(),
        marked,
    })
}

/// The column where a line's text begins, whether a cursor stands before it, and the text.
fn row(line: &str) -> Option<(usize, bool, &str)> {
    let mut chars = line
        .char_indices()
        .enumerate()
        .skip_while(|(_, (_, c))| is_frame(*c))
        .peekable();
    let (_, (_, first)) = *chars.peek()?;
    let has_cursor = CURSORS.contains(&first) || NUMBERED_CURSORS.contains(&first);
    if has_cursor {
        chars.next();
        while chars.next_if(|(_, (_, c))| is_frame(*c)).is_some() {}
    }
    let (column, (byte, _)) = *chars.peek()?;
    let text = line[byte..].trim_end_matches(is_frame);
    let unnumbered = text
        .split_once(". ")
        .filter(|(number, _)| number.chars().all(|c| c.is_ascii_digit()))
        .map(|(_, rest)| rest);
    let marked = CURSORS.contains(&first) || (has_cursor && unnumbered.is_some());
    Some((column, marked, unnumbered.unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_match_behind_frames_and_with_hard_spaces() {
        assert!(matches("│ ❯\u{a0}hello", "^❯ "));
        assert!(matches("❯", "^❯ "));
        assert!(!matches("say ❯ x", "^❯ "));
        assert!(matches("  (3s · esc to interrupt)", "esc to interrupt"));
    }

    fn preset() -> Preset {
        let mut preset = Preset::default();
        preset.screen.ready = vec!["^❯ ".into()];
        preset.screen.busy = vec!["esc to interrupt".into()];
        preset.screen.waiting = vec!["Do you want to proceed?".into()];
        preset
    }

    #[test]
    fn a_question_outweighs_a_busy_line_outweighs_the_prompt() {
        let preset = preset();
        let check = |text: &str, expected: Option<State>| {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(
                read(&lines, &preset).map(|(state, _)| state),
                expected,
                "{text}"
            );
        };
        check("hello\n───\n❯ \n───", Some(State::Idle));
        check("✻ Working… (esc to interrupt)\n❯ ", Some(State::Busy));
        check(
            "Do you want to proceed?\n❯ 1. Yes\n  2. No",
            Some(State::Waiting),
        );
        check("pick one\n❯ A\n  B", None);
        check("loading", None);
        check("> one\n  two\n● three\n───\n❯\n───", Some(State::Idle));
        check("Allow it?\n● 1. Once\n  2. Always\n❯", None);
        let talked = format!("esc to interrupt\n{}❯ ", "talk\n".repeat(40));
        check(&talked, Some(State::Idle));
    }

    #[test]
    fn rows_of_a_menu_are_read_with_their_mark() {
        let trust = Dialog {
            name: "trust".into(),
            shows: vec!["Do you trust".into()],
            choose: vec!["Yes, I trust this folder".into()],
        };
        let check = |text: &str, options: &[&str], marked, wanted| {
            let lines: Vec<&str> = text.lines().collect();
            let open = open_dialog(&lines, std::slice::from_ref(&trust)).unwrap();
            assert_eq!(open.menu.options, options);
            assert_eq!((open.menu.marked, open.wanted), (marked, wanted));
        };
        check(
            " Do you trust the files in this folder?\n\n ❯ No, exit\n   Yes, I trust this folder\n\n Enter to confirm",
            &["No, exit", "Yes, I trust this folder"],
            0,
            Some(1),
        );
        check(
            "│ Do you trust it?\n│\n│   1. Nope\n│ ❯ 2. Yes, I trust this folder\n│      really\n│   3. Other\n",
            &["Nope", "Yes, I trust this folder", "Other"],
            1,
            Some(1),
        );
        check(
            " Do you trust it?\n ❯ Later\n   Never",
            &["Later", "Never"],
            0,
            None,
        );
        assert_eq!(open_dialog(&["❯ Do you trust it?"], &[trust]), None);
    }
}
