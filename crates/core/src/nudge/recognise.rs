//! Recognises a message on a screen.
//!
//! A terminal does not show every character that a program prints. tmux 3.3a keeps 21 bytes of a
//! cell, so it cuts long grapheme clusters (a family emoji, a flag of tags, 30 combining marks),
//! and it drops noncharacters and unassigned code points. It never adds a character. So a screen
//! and a message are compared by their *solid* characters, each of which has its own cell in every
//! terminal. The other characters count only if a message has no solid one; then the screen must
//! show a subsequence of them.
//!
//! Claude Code also composes its input: a letter and its combining mark become one character. So a
//! message with marks is compared a second time, without the letters that may have been composed.

use unicode_width::UnicodeWidthChar;

/// Number of solid characters of a message that identify it if not all of it is visible. The
/// sender does not count: it begins all messages of one agent.
const ENOUGH: usize = 24;
/// Minimum number of rows of an input line that hides a part of its text. Every program shows a
/// shorter line in full.
const SCROLLING_ROWS: usize = 3;

/// Returns whether every terminal shows this character in its own cell. This holds for letters and
/// digits of every script, and for punctuation and symbols of the blocks without emoji and
/// combining marks.
fn is_solid(c: char) -> bool {
    const SYMBOLS: &[std::ops::RangeInclusive<char>] = &[
        '!'..='~',
        '\u{a1}'..='\u{ac}',
        '\u{ae}'..='\u{bf}',
        '\u{2010}'..='\u{2027}',
        '\u{2030}'..='\u{203b}',
        '\u{203d}'..='\u{2048}',
        '\u{204a}'..='\u{205e}',
        '\u{20a0}'..='\u{20bf}',
        '\u{2190}'..='\u{2193}',
        '\u{2200}'..='\u{22ff}',
        '\u{2500}'..='\u{259f}',
        '\u{3001}'..='\u{3029}',
        '\u{ff01}'..='\u{ff60}',
    ];
    (c.is_alphanumeric() || SYMBOLS.iter().any(|block| block.contains(&c)))
        && c.width().is_some_and(|width| width > 0)
}

/// How texts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As they are.
    Plain,
    /// Without letters that a program may have composed with the marks after them.
    Composed,
}

impl Form {
    /// Returns the forms in which a program may show a message.
    fn of(message: &str) -> &'static [Form] {
        match message.chars().any(is_mark) {
            true => &[Form::Plain, Form::Composed],
            false => &[Form::Plain],
        }
    }
}

fn is_mark(c: char) -> bool {
    c.width() == Some(0)
}

/// Returns whether the character may stand for a letter and its marks.
fn is_composed(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{4ff}' | '\u{1e00}'..='\u{1fff}'
        | '\u{3041}'..='\u{30ff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Counts the letters of a text that are composed or may become so.
fn composable(text: &str) -> usize {
    let next = text.chars().skip(1).map(is_mark).chain([false]);
    let is_it = |(c, is_marked): &(char, bool)| is_composed(*c) || (*is_marked && is_solid(*c));
    text.chars().zip(next).filter(is_it).count()
}

/// Returns the solid characters of a text, in this form.
fn skeleton(text: &str, form: Form) -> String {
    let next = text.chars().skip(1).map(is_mark).chain([false]);
    let counts = |(c, is_marked): &(char, bool)| {
        is_solid(*c) && (form == Form::Plain || !(*is_marked || is_composed(*c)))
    };
    let counting = text.chars().zip(next).filter(counts);
    counting.map(|(c, _)| c).collect()
}

/// Returns the other characters of a text, which a terminal may drop. Skips replacement
/// characters: they stand for characters that the program itself could not show.
fn soft(text: &str) -> impl Iterator<Item = char> {
    let is_soft = |c: &char| !is_solid(*c) && !c.is_whitespace() && *c != '\u{fffd}';
    text.chars().filter(is_soft)
}

/// Returns whether a terminal shows any part of this text.
pub fn is_showable(text: &str) -> bool {
    // Blanks and noncharacters have to be excluded explicitly: blanks have a width, and the width
    // table contains some noncharacters.
    let is_noncharacter =
        |c: char| (c as u32 & 0xfffe) == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&c);
    let shows = |c: char| {
        is_solid(c)
            || (!c.is_whitespace()
                && !is_noncharacter(c)
                && c.width().is_some_and(|width| width > 0))
    };
    text.chars().any(shows)
}

/// Returns whether the first text is a subsequence of the second.
fn is_subsequence(shown: impl Iterator<Item = char>, of: impl Iterator<Item = char>) -> bool {
    let mut rest = of;
    let mut shown = shown;
    shown.all(|c| rest.any(|other| other == c))
}

/// Returns whether the text in an input line is this message, in full or as the program shows a
/// long one. Programs wrap, so blanks are ignored.
pub fn is_in_input(input: &str, message: &str) -> bool {
    is_paste_of(input, message)
        || Form::of(message)
            .iter()
            .any(|form| is_shown_as(input, message, *form))
}

fn is_shown_as(input: &str, message: &str, form: Form) -> bool {
    let (shown, wanted) = (skeleton(input, form), skeleton(message, form));
    let own = skeleton(without_sender(message), form).chars().count();
    if shown != wanted {
        return input.lines().count() >= SCROLLING_ROWS && is_part(&shown, &wanted, own);
    }
    // Few solid characters do not distinguish messages such as "👍" and "👎".
    own > ENOUGH
        || (!squeeze(input).is_empty()
            && (form == Form::Plain || composable(input) <= composable(message))
            && is_subsequence(soft(input), soft(message)))
}

/// Returns whether the visible part of a line that scrolls belongs to the message: it is the
/// message's end, its beginning, or both. The last `own` characters of the message come after its
/// sender.
fn is_part(shown: &str, wanted: &str, own: usize) -> bool {
    let (length, sender) = (wanted.chars().count(), wanted.chars().count() - own);
    let visible = shown.chars().count();
    if own <= ENOUGH || visible >= length {
        return false;
    }
    let beginning: String = wanted.chars().take(sender + ENOUGH).collect();
    let end: String = wanted.chars().skip(length - ENOUGH).collect();
    let begins = visible >= sender + ENOUGH && wanted.starts_with(shown);
    let ends = visible >= ENOUGH && wanted.ends_with(shown);
    begins || ends || (shown.starts_with(&beginning) && shown.ends_with(&end))
}

/// Returns a message without the sender in front of its text.
fn without_sender(message: &str) -> &str {
    let rest = message.strip_prefix("[from ");
    let text = rest.and_then(|rest| rest.split_once("] "));
    text.map_or(message, |(_, text)| text)
}

/// Returns whether `added` was appended to the previous text of the line. A line that is higher
/// than its window shows only its end.
pub fn is_added(input: &str, before: &str, added: &str) -> bool {
    let (shown, stood) = (squeeze(input), squeeze(before));
    match shown.strip_prefix(&stood) {
        Some(rest) => is_in_input(rest, added),
        None => {
            let label = shown.rfind(PASTED).map(|at| &shown[at..]);
            label.is_some_and(|label| is_paste_of(label, added)) || ends_with(&shown, added)
        }
    }
}

/// Removes blanks from a text, because they depend on where it is wrapped.
pub fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns whether the text before the cursor ends with this message, for programs whose input line
/// is not described. Ignores blanks, and compares only the last characters.
pub fn ends_with(before_cursor: &str, message: &str) -> bool {
    let ends_in = |form: &Form| {
        let last = |text: &str| -> String {
            let solid = skeleton(text, *form);
            solid.chars().rev().take(ENOUGH).collect()
        };
        let wanted = last(message);
        !wanted.is_empty() && last(before_cursor).starts_with(&wanted)
    };
    if skeleton(message, Form::Plain).is_empty() {
        let end = before_cursor.trim_end().chars().next_back();
        return end.is_some_and(|end| soft(message).any(|c| c == end));
    }
    Form::of(message).iter().any(ends_in)
}

/// Start of the label that a program shows for a long paste.
const PASTED: &str = "[Pasted";

/// Returns whether the line holds only the label of a long paste of this message, such as
/// `[Pasted text #1 +29 lines]`. One of the counts in the label must equal the number of lines or
/// characters of the message. A number after `#` only tells pastes apart. Blanks are ignored: after
/// other words the label may be wrapped.
fn is_paste_of(input: &str, message: &str) -> bool {
    /// A label without counts is accepted for messages longer than this. Programs show such a label
    /// from about 800 characters.
    const LONG: usize = 700;
    let input = squeeze(input);
    let inside = input.strip_prefix(PASTED);
    let inside = inside.and_then(|rest| rest.strip_suffix(']'));
    let Some(inside) = inside.filter(|inside| !inside.contains('[')) else {
        return false;
    };
    let mut counts = inside
        .split(|c: char| !c.is_ascii_digit() && c != '#')
        .filter_map(|word| word.parse::<usize>().ok())
        .peekable();
    if counts.peek().is_none() {
        return message.chars().count() > LONG;
    }
    let breaks = message.matches('\n').count();
    let units = message.encode_utf16().count();
    let true_counts = [
        breaks,
        breaks + 1,
        message.len(),
        message.chars().count(),
        units,
    ];
    counts.any(|count| true_counts.contains(&count))
}

#[cfg(test)]
mod tests;
