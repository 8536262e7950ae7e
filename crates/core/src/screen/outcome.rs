//! What stands above the input line: the busy line, and how the last turn ended.

use super::line::Line;
use super::mark;
use crate::harness::{Screen, Spinner};
use crate::limit::{Reset, Retry};

/// How the conversation above the input line ends.
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
    /// Over, while something that it started goes on.
    Background {
        mark: &'p str,
        count: u32,
    },
}

/// The line that says what a busy program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BusyLine<'p> {
    pub(super) mark: &'p str,
    pub(super) says: String,
    /// The lines that hang below it.
    pub(super) below: String,
}

/// Signs before the call of a tool, in programs whose errors are framed blocks.
const TOOL_SIGNS: &[char] = &['$', '→', '←', '✱', '%', '⚙', '#', '~'];

/// How far a sign may be from the left edge to be the program's own.
const EDGE: usize = 1;

/// The line that says what the program does right now. Between it and the input
/// line stand only things that hang below it, such as tips and queued messages.
pub(super) fn busy<'p>(above: &[Line], screen: &'p Screen) -> Option<BusyLine<'p>> {
    for (at, line) in above.iter().enumerate().rev() {
        if line.is_blank() {
            continue;
        }
        if let Some((mark, says)) = spins(line, &screen.spinner) {
            let below = above[at + 1..].iter().take_while(|line| !line.is_blank());
            let below: Vec<&str> = below.map(Line::bare).collect();
            let below = below.join(" ");
            return Some(BusyLine { mark, says, below });
        }
        let is_message = mark::best(&line.text, &screen.messages).is_some();
        if is_message || line.indent() <= EDGE {
            return None;
        }
    }
    None
}

/// The line beneath the input line that says that a request failed and is sent again.
pub(super) fn retrying<'p>(beneath: &[Line], screen: &'p Screen) -> Option<(&'p str, Retry)> {
    let bears = |line: &Line| mark::best(&line.text, &screen.retrying);
    let (at, mark) = beneath
        .iter()
        .enumerate()
        .find_map(|(at, line)| Some((at, bears(line)?)))?;
    let below: Vec<&str> = beneath[at + 1..].iter().map(Line::bare).collect();
    let retry = Retry::parse(beneath[at].bare(), &below.join(" "))?;
    Some((mark, retry))
}

fn spins<'p>(line: &Line, spinner: &'p Spinner) -> Option<(&'p str, String)> {
    let text = line.text.trim_start();
    let rest = text.strip_prefix(|sign| spinner.signs.contains(sign))?;
    if line.indent() > EDGE || !rest.starts_with(' ') {
        return None;
    }
    let mark = mark::best(rest, &spinner.says)?;
    // What else stands in that line is set off by blanks.
    let says = rest.trim_start().split("  ").next().unwrap_or_default();
    Some((mark, says.to_owned()))
}

/// How the last turn ended, where that is worth a word. The lowest line that bears
/// any of the marks tells, and of several marks the longest.
pub(super) fn ending<'p>(above: &[Line], screen: &'p Screen) -> Option<Ending<'p>> {
    let mut background = None;
    for (at, line) in above.iter().enumerate().rev() {
        let text = &line.text;
        let longest = |marks: &'p [String]| mark::best(text, marks);
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

/// The message that says when a limit ends, in lines that all tell of one. Without such a
/// message an agent may only talk about limits.
fn limit_text(lines: &[Line], lowest: usize, screen: &Screen) -> Option<String> {
    for (at, line) in lines.iter().enumerate().take(lowest + 1).rev() {
        let of_limit = mark::best(&line.text, &screen.limited);
        let is_message = mark::best(&line.text, &screen.messages).is_some();
        let text = of_limit.map(|_| {
            // A hint that has nothing to do with the time may hang below it.
            let first = paragraph(&lines[at..=at], screen);
            match Reset::parse(&first) {
                Some(_) => first,
                None => paragraph(&lines[at..], screen),
            }
        });
        // Only the program's own lines are not set off as a message.
        if let Some(text) = text.filter(|text| !is_message || Reset::parse(text).is_some()) {
            return Some(text);
        }
        if of_limit.is_none() && is_message {
            return None;
        }
    }
    None
}

/// The numbers before what is still running: `Worked for 1s · 2 shells still running`.
fn count_of_tasks(text: &str) -> u32 {
    let last = text.rsplit('·').next().unwrap_or_default();
    let numbers = last.split(|c: char| !c.is_ascii_digit());
    let count = numbers
        .filter_map(|digits| digits.parse::<u32>().ok())
        .sum();
    u32::max(count, 1)
}

/// A line together with those it was wrapped to.
fn paragraph(lines: &[Line], screen: &Screen) -> String {
    const MOST: usize = 4;
    let mut words: Vec<&str> = Vec::new();
    for (index, line) in lines.iter().take(MOST).enumerate() {
        let is_next = index > 0 && mark::best(&line.text, &screen.messages).is_some();
        if line.is_blank() || is_next {
            break;
        }
        words.push(line.bare());
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

/// The text of the block with a bar that is directly above, if it is an error. A message and
/// its error are two blocks, one below the other, so it is the error when their number is even.
/// A single block is the error of the answer above it; a message has the end of the turn before
/// above it, or the call of a tool that was refused.
fn block_above(lines: &[Line], turn_ends: &[String]) -> Option<String> {
    let (block, mut rest) = last_block(lines)?;
    let mut count = 1;
    while let Some((_, above)) = last_block(rest) {
        count += 1;
        rest = above;
    }
    let before = rest.iter().rev().find(|line| !line.is_blank());
    let is_answer = before.is_some_and(|line| {
        let is_call = TOOL_SIGNS.contains(&line.bare().chars().next().unwrap_or(' '));
        mark::best(&line.text, turn_ends).is_none() && !is_call
    });
    let text: Vec<&str> = block.iter().map(Line::bare).collect();
    let text: Vec<&str> = text.into_iter().filter(|text| !text.is_empty()).collect();
    let is_error = count % 2 == 0 || (count == 1 && is_answer);
    is_error.then(|| text.join(" "))
}

/// The block at the end of the lines, and what is above it.
fn last_block(lines: &[Line]) -> Option<(&[Line], &[Line])> {
    let end = lines.iter().rposition(|line| !line.is_blank())? + 1;
    let bar = lines[end - 1].bar()?;
    let height = lines[..end]
        .iter()
        .rev()
        .take_while(|line| line.bar() == Some(bar))
        .count();
    Some((&lines[end - height..end], &lines[..end - height]))
}
