//! Reads the lines above the input line: the busy line, and how the last turn ended.

use super::line::ScreenLine;
use super::mark;
use crate::harness::{ScreenPatterns, Spinner};
use crate::limit::{Reset, Retry};

/// End of the conversation above the input line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending<'p> {
    Failed {
        mark: &'p str,
        text: String,
    },
    Interrupted {
        mark: &'p str,
    },
    /// At a usage limit.
    Limited {
        mark: &'p str,
        text: String,
    },
    /// Over, while tasks that it started still run.
    Background {
        mark: &'p str,
        count: u32,
    },
}

/// Line in which a busy program shows its activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BusyLine<'p> {
    pub(super) mark: &'p str,
    pub(super) says: String,
    /// Indented lines below it.
    pub(super) below: String,
}

/// Signs before a tool call, in programs whose errors are framed blocks.
const TOOL_SIGNS: &[char] = &['$', '→', '←', '✱', '%', '⚙', '#', '~'];

/// Maximum distance from the left edge of a sign that the program draws.
const EDGE: usize = 1;

/// Returns the line with the present activity of the program. Only lines that hang below it, such
/// as tips and queued messages, stand between it and the input line.
pub(super) fn busy<'p>(above: &[ScreenLine], screen: &'p ScreenPatterns) -> Option<BusyLine<'p>> {
    for (at, line) in above.iter().enumerate().rev() {
        if line.is_blank() {
            continue;
        }
        if let Some((mark, says)) = spins(line, &screen.spinner) {
            let below = above[at + 1..].iter().take_while(|line| !line.is_blank());
            let below: Vec<&str> = below.map(ScreenLine::trimmed).collect();
            let below = below.join(" ");
            return Some(BusyLine { mark, says, below });
        }
        let is_message = mark::longest_match(&line.text, &screen.messages).is_some();
        if is_message || line.indent() <= EDGE {
            return None;
        }
    }
    None
}

/// Returns the line beneath the input line that reports a failed request and its retry.
pub(super) fn retrying<'p>(
    beneath: &[ScreenLine],
    screen: &'p ScreenPatterns,
) -> Option<(&'p str, Retry)> {
    let bears = |line: &ScreenLine| mark::longest_match(&line.text, &screen.retrying);
    let (at, mark) = beneath
        .iter()
        .enumerate()
        .find_map(|(at, line)| Some((at, bears(line)?)))?;
    let below: Vec<&str> = beneath[at + 1..].iter().map(ScreenLine::trimmed).collect();
    let retry = Retry::parse(beneath[at].trimmed(), &below.join(" "))?;
    Some((mark, retry))
}

fn spins<'p>(line: &ScreenLine, spinner: &'p Spinner) -> Option<(&'p str, String)> {
    let text = line.text.trim_start();
    let rest = text.strip_prefix(|sign| spinner.signs.contains(sign))?;
    if line.indent() > EDGE || !rest.starts_with(' ') {
        return None;
    }
    let mark = mark::longest_match(rest, &spinner.says)?;
    // Blanks set off the rest of that line.
    let says = rest.trim_start().split("  ").next().unwrap_or_default();
    Some((mark, says.to_owned()))
}

/// Returns how the last turn ended, unless it ended normally. The lowest line with any of the marks
/// decides, and of several marks the longest.
pub(super) fn ending<'p>(above: &[ScreenLine], screen: &'p ScreenPatterns) -> Option<Ending<'p>> {
    let mut background = None;
    for (at, line) in above.iter().enumerate().rev() {
        let text = &line.text;
        let longest = |marks: &'p [String]| mark::longest_match(text, marks);
        let length = |mark: Option<&str>| mark.map_or(0, |mark| mark.chars().count());
        if background.is_none()
            && let Some(mark) = longest(&screen.background)
        {
            background = Some(Ending::Background {
                mark,
                count: count_of_tasks(text),
            });
            continue;
        }
        let message = longest(&screen.messages);
        let failed = longest(&screen.error);
        let interrupted = longest(&screen.interrupted);
        let above_it = longest(&screen.error_above);
        let limited = longest(&screen.limited);
        let top = [message, failed, interrupted, above_it, limited].map(length);
        let Some(most) = top.iter().copied().max().filter(|most| *most > 0) else {
            continue;
        };
        let has_most = |mark: Option<&'p str>| mark.filter(|_| length(mark) == most);
        if let Some(mark) = has_most(limited) {
            let text = limit_text(above, at, screen);
            return text.map(|text| Ending::Limited { mark, text });
        }
        if let Some(mark) = has_most(failed) {
            let text = paragraph(&above[at..], screen);
            return Some(Ending::Failed { mark, text });
        }
        if let Some(mark) = has_most(interrupted) {
            return background.or(Some(Ending::Interrupted { mark }));
        }
        if let Some(mark) = has_most(above_it)
            && let Some(text) = block_above(&above[..at], &screen.error_above)
        {
            return Some(Ending::Failed { mark, text });
        }
        return background;
    }
    background
}

/// Returns the message that says when a limit ends, from lines that all are about one. Without such
/// a message an agent may only write about limits.
fn limit_text(lines: &[ScreenLine], lowest: usize, screen: &ScreenPatterns) -> Option<String> {
    for (at, line) in lines.iter().enumerate().take(lowest + 1).rev() {
        let of_limit = mark::longest_match(&line.text, &screen.limited);
        let is_message = mark::longest_match(&line.text, &screen.messages).is_some();
        let text = of_limit.map(|_| {
            // An unrelated hint may hang below it.
            let first = paragraph(&lines[at..=at], screen);
            match Reset::parse(&first) {
                Some(_) => first,
                None => paragraph(&lines[at..], screen),
            }
        });
        // Only lines that the program itself writes are not set off as a message.
        if let Some(text) = text.filter(|text| !is_message || Reset::parse(text).is_some()) {
            return Some(text);
        }
        if of_limit.is_none() && is_message {
            return None;
        }
    }
    None
}

/// Returns the sum of the numbers before what still runs, such as 2 for `Worked for 1s · 2 shells
/// still running`.
fn count_of_tasks(text: &str) -> u32 {
    let last = text.rsplit('·').next().unwrap_or_default();
    let numbers = last.split(|c: char| !c.is_ascii_digit());
    let count = numbers
        .filter_map(|digits| digits.parse::<u32>().ok())
        .sum();
    u32::max(count, 1)
}

/// Joins a line and its wrapped lines.
fn paragraph(lines: &[ScreenLine], screen: &ScreenPatterns) -> String {
    const MAX: usize = 4;
    let mut words: Vec<&str> = Vec::new();
    for (index, line) in lines.iter().take(MAX).enumerate() {
        let is_next = index > 0 && mark::longest_match(&line.text, &screen.messages).is_some();
        if line.is_blank() || is_next {
            break;
        }
        words.push(line.trimmed());
    }
    let text = words.join(" ");
    // The sign before it belongs to the program.
    match text.split_once(' ') {
        Some((sign, rest)) if sign.chars().all(|c| !c.is_alphanumeric()) => {
            rest.trim_start().to_owned()
        }
        _ => text,
    }
}

/// Returns the text of the block with a bar directly above, if it is an error. A message and its
/// error are two blocks, one below the other, so the last block is an error if their number is
/// even. A single block is the error of the answer above it; above a message stands the end of the
/// turn before, or the call of a tool that was refused.
fn block_above(lines: &[ScreenLine], turn_ends: &[String]) -> Option<String> {
    let (block, mut rest) = last_block(lines)?;
    let mut count = 1;
    while let Some((_, above)) = last_block(rest) {
        count += 1;
        rest = above;
    }
    let before = rest.iter().rev().find(|line| !line.is_blank());
    let is_answer = before.is_some_and(|line| {
        let is_call = TOOL_SIGNS.contains(&line.trimmed().chars().next().unwrap_or(' '));
        mark::longest_match(&line.text, turn_ends).is_none() && !is_call
    });
    let text: Vec<&str> = block.iter().map(ScreenLine::trimmed).collect();
    let text: Vec<&str> = text.into_iter().filter(|text| !text.is_empty()).collect();
    let is_error = count % 2 == 0 || (count == 1 && is_answer);
    is_error.then(|| text.join(" "))
}

/// Returns the block at the end of the lines, and the lines above it.
fn last_block(lines: &[ScreenLine]) -> Option<(&[ScreenLine], &[ScreenLine])> {
    let end = lines.iter().rposition(|line| !line.is_blank())? + 1;
    let bar = lines[end - 1].bar()?;
    let height = lines[..end]
        .iter()
        .rev()
        .take_while(|line| line.bar() == Some(bar))
        .count();
    Some((&lines[end - height..end], &lines[..end - height]))
}
