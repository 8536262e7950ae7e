//! Finds the input line.
//!
//! It is the only part of the screen that the program draws and that never contains the agent's
//! text, so everything else is read relative to it: above it the conversation ends, beneath it is
//! the footer, and if it is missing a dialog has taken its place.

use super::line::ScreenLine;
use super::mark;
use crate::harness::{InputFrame, InputLine, ScreenPatterns};
use serde::Serialize;
use std::ops::Range;

/// Content of the input line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputContent {
    /// Its lines as they are shown; a wrapped line is two.
    pub text: String,
    /// Whether the text is the program's hint, and not typed.
    pub placeholder: bool,
    /// Whether some of it stands for a longer text that was pasted.
    pub pasted: bool,
}

impl InputContent {
    /// Returns the text that was typed or pasted.
    pub fn typed(&self) -> &str {
        if self.placeholder { "" } else { &self.text }
    }
}

/// An input line, and its position.
#[derive(Clone, Debug)]
pub(super) struct FoundInput {
    pub(super) input: InputContent,
    /// From its upper rule to its lower one, or as much of a frame as it has.
    pub(super) lines: Range<usize>,
}

/// Returns the input line of a screen. Also finds a dialog of the same form; the caller checks the
/// lines beneath it.
pub(super) fn find(lines: &[ScreenLine], screen: &ScreenPatterns) -> Option<FoundInput> {
    let form = screen.input.as_ref()?;
    let place = match form.frame {
        InputFrame::Rules => between_rules(lines, form),
        InputFrame::RuleAbove => below_a_rule(lines, form),
        InputFrame::Paragraph => as_paragraph(lines, form),
        InputFrame::Bar => behind_a_bar(lines),
    }?;
    // If a message stands beneath it, it is a part of the conversation.
    let is_message =
        |line: &ScreenLine| mark::longest_match(&line.text, &screen.messages).is_some();
    if lines[place.lines.end..].iter().any(is_message) {
        return None;
    }
    Some(FoundInput {
        input: place.read(lines, form),
        lines: place.lines,
    })
}

struct InputArea {
    lines: Range<usize>,
    text: Range<usize>,
    /// First column of the text in each of its lines; `edge` is the column after the last.
    column: usize,
    edge: usize,
}

impl InputArea {
    fn read(&self, lines: &[ScreenLine], form: &InputLine) -> InputContent {
        let rows: Vec<&ScreenLine> = lines[self.text.clone()].iter().collect();
        let shown: Vec<String> = rows
            .iter()
            .map(|line| cut(line, self.column, self.edge))
            .collect();
        let text = shown.join("\n").trim().to_owned();
        let bears = |marks: &[String]| marks.iter().any(|mark| mark::matches(&text, mark));
        let first = rows.first();
        let is_faint = first.is_some_and(|line| line.is_faint_from(self.column));
        InputContent {
            placeholder: !text.is_empty() && (is_faint || bears(&form.placeholders)),
            pasted: bears(&form.pastes),
            text,
        }
    }
}

/// Returns a line without the columns left of the text, and without the sign at its right end that
/// indicates more text.
fn cut(line: &ScreenLine, column: usize, edge: usize) -> String {
    let text: String = line.text.chars().take(edge).skip(column).collect();
    let text = text
        .strip_suffix(['↑', '↓'])
        .filter(|rest| rest.ends_with("  "))
        .unwrap_or(&text);
    text.trim_end().to_owned()
}

/// Returns the width of the prompt that a line begins with.
fn prompt(line: &ScreenLine, form: &InputLine) -> Option<usize> {
    let padded = format!("{} ", line.text);
    let fitting = form
        .prompts
        .iter()
        .find(|sign| padded.starts_with(sign.as_str()))?;
    Some(fitting.chars().count())
}

fn between_rules(lines: &[ScreenLine], form: &InputLine) -> Option<InputArea> {
    let is_rule = |line: &ScreenLine| line.is_rule() && line.indent() == 0;
    let lower = lines.iter().rposition(is_rule)?;
    let upper = lines[..lower].iter().rposition(is_rule)?;
    let text = upper + 1..lower;
    let first = lines.get(text.start).filter(|_| !text.is_empty())?;
    let width = form.prompts.iter().map(|sign| sign.chars().count()).max()?;
    // A text higher than the screen is shown without its beginning.
    let is_rest = || {
        let hangs = |line: &ScreenLine| line.is_blank() || line.indent() >= width;
        lines[text.clone()].iter().all(hangs) && !first.is_blank()
    };
    let column = prompt(first, form).or_else(|| is_rest().then_some(width))?;
    Some(InputArea {
        lines: upper..lower + 1,
        text,
        column,
        edge: usize::MAX,
    })
}

/// Maximum distance of the rule above: a line of hints and a drawn or blank one may be between.
const RULE_DISTANCE: usize = 3;

fn below_a_rule(lines: &[ScreenLine], form: &InputLine) -> Option<InputArea> {
    let rule = lines
        .iter()
        .rposition(|line| line.is_rule() && line.indent() == 0)?;
    let near = lines.len().min(rule + 1 + RULE_DISTANCE);
    let (at, column) =
        (rule + 1..near).find_map(|at| prompt(&lines[at], form).map(|column| (at, column)))?;
    let hangs = |line: &&ScreenLine| line.is_blank() || line.indent() >= column;
    let more = lines[at + 1..].iter().take_while(hangs).count();
    Some(InputArea {
        lines: rule..at + 1 + more,
        text: at..at + 1 + more,
        column,
        edge: usize::MAX,
    })
}

fn as_paragraph(lines: &[ScreenLine], form: &InputLine) -> Option<InputArea> {
    let at = (0..lines.len()).rev().find(|at| {
        let begins = *at == 0 || lines[at - 1].is_blank();
        begins && prompt(&lines[*at], form).is_some()
    })?;
    let column = prompt(&lines[at], form)?;
    let beneath = &lines[at + 1..];
    let end = match beneath.iter().rposition(ScreenLine::is_blank) {
        Some(blank) => at + 1 + blank,
        None if beneath.is_empty() => at + 1,
        None => return None,
    };
    let hangs = |line: &ScreenLine| line.is_blank() || line.indent() >= column;
    beneath.iter().all(hangs).then_some(InputArea {
        lines: at..end,
        text: at..end,
        column,
        edge: usize::MAX,
    })
}

fn behind_a_bar(lines: &[ScreenLine]) -> Option<InputArea> {
    let foot = lines
        .iter()
        .rposition(|line| line.text.trim_start().starts_with('╹'))?;
    let bar = lines[foot].indent();
    let has_bar = |line: &&ScreenLine| line.bar() == Some(bar);
    let height = lines[..foot].iter().rev().take_while(has_bar).count();
    let top = foot - height;
    // The last line names the model; the line above it is empty.
    let inside = |line: &ScreenLine| line.text.chars().skip(bar + 1).any(|c| c != ' ');
    let answers = (top..foot).rev().find(|at| inside(&lines[*at]))?;
    // A menu of completions has a bar at its right as well.
    let is_menu =
        |line: &ScreenLine| line.text.ends_with('┃') && line.text.chars().count() > bar + 1;
    let start = (top..answers)
        .rev()
        .find(|at| is_menu(&lines[*at]))
        .map_or(top, |at| at + 1);
    let first = (start..answers)
        .find(|at| inside(&lines[*at]))
        .unwrap_or(start);
    Some(InputArea {
        lines: top..foot + 1,
        text: first.min(answers)..answers,
        column: bar + 3,
        // Beyond the foot there may be a side bar.
        edge: lines[foot].text.chars().count(),
    })
}
