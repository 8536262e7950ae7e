//! Dialogs: a question with its choices, in the place of the input line.

use super::line::ScreenLine;
use super::{mark, menu};
use crate::harness::{self, Preset};
use serde::Serialize;
use std::ops::Range;

/// A dialog that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asking {
    /// Name of a known dialog, such as `permission`, `question` or `trust`; otherwise [`UNKNOWN`].
    pub kind: String,
    /// Text above its choices.
    pub text: String,
    pub options: Vec<String>,
    /// Option that Enter would choose; some programs show it by colour only.
    pub marked: Option<usize>,
    /// Whether the choices stand next to each other, not one below the other.
    #[serde(skip)]
    pub across: bool,
    /// Numbers that the program shows before its options, if any.
    #[serde(skip)]
    pub numbers: Vec<Option<usize>>,
    /// Descriptions that the program shows with its options; empty texts, or no texts, if there
    /// are none.
    #[serde(skip)]
    pub descriptions: Vec<String>,
}

/// Kind of a dialog that the preset does not know.
pub const UNKNOWN: &str = "unknown";

/// A dialog, and the mark that identified it.
#[derive(Clone, Debug)]
pub(super) struct FoundDialog<'p> {
    pub(super) asking: Asking,
    pub(super) mark: Option<&'p str>,
    /// First line that belongs to it.
    pub(super) top: usize,
}

/// Maximum number of written lines beneath the choices.
const BENEATH: usize = 12;
/// Maximum number of lines of a dialog above its choices.
const HEIGHT: usize = 40;
/// Number of the last written lines that may name the key to leave a dialog.
const HINTS: usize = 3;

/// Returns the dialog at the end of a screen that has no input line.
pub(super) fn find<'p>(lines: &[ScreenLine], preset: &'p Preset) -> Option<FoundDialog<'p>> {
    let screen = &preset.screen;
    let is_message = |at: usize| mark::longest_match(&lines[at].text, &screen.messages).is_some();
    let is_written = |line: &&ScreenLine| !line.is_blank() && !line.is_drawn();
    let rows = menu::find(lines, is_message).filter(|rows| {
        let beneath = &lines[rows.lines.end..];
        beneath.iter().filter(is_written).count() <= BENEATH
    });
    let anchor = rows.as_ref().map_or(lines.len(), |rows| rows.lines.start);
    let is_said = |at: usize| {
        let marks = [&screen.error, &screen.limited, &screen.interrupted];
        let bears = |marks: &&Vec<String>| mark::longest_match(&lines[at].text, marks).is_some();
        is_message(at) || marks.iter().any(bears)
    };
    let top = top(lines, anchor, is_said);
    let shown = &lines[top..];
    let known = preset
        .dialogs
        .iter()
        .find_map(|dialog| shows(shown, &dialog.shows).map(|mark| (dialog, mark)));
    let waits = known
        .map(|(_, mark)| mark)
        .or_else(|| shows(shown, &screen.waiting));
    let rows = known
        .and_then(|(dialog, _)| menu::with_known_texts(shown, &dialog.options))
        .map(|rows| menu::MenuRows {
            lines: rows.lines.start + top..rows.lines.end + top,
            ..rows
        })
        .or(rows);
    let points = rows.as_ref().is_some_and(|rows| rows.marked.is_some());
    let mut last = shown.iter().rev().filter(is_written).take(HINTS);
    let leaves = |line: &ScreenLine| {
        names(line, "esc") && mark::longest_match(&line.text, &screen.busy).is_none()
    };
    if waits.is_none() && !points && !last.any(leaves) {
        return None;
    }
    let end = rows.as_ref().map_or(lines.len(), |rows| rows.lines.start);
    let text: Vec<&str> = lines[top..end]
        .iter()
        .filter(is_written)
        .map(|line| first_column(line.trimmed()))
        .collect();
    let rows = rows.unwrap_or_default();
    Some(FoundDialog {
        asking: Asking {
            kind: known
                .map_or(UNKNOWN, |(dialog, _)| dialog.name.as_str())
                .to_owned(),
            text: text.join("\n"),
            options: rows.options,
            marked: rows.marked,
            across: rows.across,
            numbers: rows.numbers,
            descriptions: rows.descriptions,
        },
        mark: waits,
        top,
    })
}

/// Returns a text without the content of a side bar next to it.
fn first_column(text: &str) -> &str {
    const GAP: &str = "            ";
    text.split(GAP).next().unwrap_or_default().trim_end()
}

/// Returns the first of the marks that matches one of the lines.
pub(super) fn shows<'p>(lines: &[ScreenLine], marks: &'p [String]) -> Option<&'p str> {
    marks
        .iter()
        .find(|mark| lines.iter().any(|line| mark::matches(&line.text, mark)))
        .map(String::as_str)
}

/// Returns whether an apparent input line is the first choice of a dialog, judging by the lines
/// beneath it.
pub(super) fn is_choice_of_dialog(
    lines: &[ScreenLine],
    found: &Range<usize>,
    preset: &Preset,
) -> bool {
    let beneath = &lines[found.end..];
    let known = |dialog: &harness::DialogPattern| shows(beneath, &dialog.shows).is_some();
    let names_a_key = |line: &ScreenLine| names(line, "enter") || names(line, "esc");
    let is_menu = || menu::find(&lines[found.clone()], |_| true).is_some();
    shows(beneath, &preset.screen.waiting).is_some()
        || preset.dialogs.iter().any(known)
        || beneath.iter().any(names_keys)
        || (beneath.iter().any(names_a_key) && is_menu())
}

/// Returns whether a line names both Enter and Escape, as the last line of a dialog does.
fn names_keys(line: &ScreenLine) -> bool {
    names(line, "enter") && names(line, "esc")
}

fn names(line: &ScreenLine, key: &str) -> bool {
    let text = line.text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric())
        .any(|word| word == key)
}

/// Returns the first line of the dialog whose choices begin at `anchor`.
fn top(lines: &[ScreenLine], anchor: usize, is_message: impl Fn(usize) -> bool) -> usize {
    let near = anchor.min(lines.len().saturating_sub(1));
    let above = (0..anchor).rev().take(HEIGHT);
    if let Some(bar) = lines.get(near).and_then(ScreenLine::bar) {
        let inside = above.take_while(|at| lines[*at].bar() == Some(bar));
        return inside.last().unwrap_or(anchor);
    }
    for at in above {
        let opens = lines[at].is_rule() || lines[at].text.trim_start().starts_with('╭');
        if opens {
            return at + 1;
        }
        if is_message(at) {
            // The rest of the message does not belong to it either.
            let rest = lines[at..anchor].iter().position(ScreenLine::is_blank);
            return rest.map_or(anchor, |blank| at + blank);
        }
    }
    anchor.saturating_sub(HEIGHT)
}

impl Asking {
    /// Returns whether it asks what to do at a usage limit.
    pub(super) fn is_about_a_limit(&self) -> bool {
        self.kind == harness::LIMIT
    }

    /// Returns whether it opens in the middle of a turn without a hook that reports it.
    pub(crate) fn stops_a_turn(&self) -> bool {
        self.is_about_a_limit() || self.kind == harness::RETRY
    }

    pub(super) fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// Returns the question in one line.
    pub(super) fn summary(&self) -> String {
        const LONGEST: usize = 200;
        let lines: Vec<&str> = self
            .text
            .lines()
            .filter(|line| !line.starts_with("Tip:"))
            .collect();
        let ends = lines.iter().rposition(|line| line.ends_with('?'));
        let asks = ends.or_else(|| lines.iter().position(|line| line.contains("? ")));
        let mut others = lines.clone();
        let first = match asks.unwrap_or(0) {
            at if at < lines.len() => others.remove(at),
            _ => "something",
        };
        let first = first.split_inclusive('?').next().unwrap_or(first);
        let mut text = format!("asks: {first}");
        if !others.is_empty() {
            text = format!("{text} ({})", others.join(" · "));
        }
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}
