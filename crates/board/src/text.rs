//! Makes untrusted text safe for a row of cells: cut, padded and wrapped by its display width.
//!
//! The display width is the sum of the widths of the grapheme clusters, as they are drawn.

use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::Span;

/// Maximum number of combining marks on one letter.
const MARKS: usize = 2;
/// The width of a tab stop.
pub(crate) const TAB: usize = 8;

/// Returns the text as one line without control sequences. Line breaks and tabs become blanks;
/// control characters, and invisible characters that join, hide or reorder their neighbours, are
/// dropped.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut marks = 0;
    for letter in text.chars() {
        match letter {
            ' '..='~' => marks = 0,
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
                marks = 0;
                cleaned.push(' ');
                continue;
            }
            _ if letter.is_control() || is_unseen(letter) => continue,
            _ if unicode_width::UnicodeWidthChar::width(letter) == Some(0) => {
                marks += 1;
                if marks > MARKS || cleaned.is_empty() {
                    continue;
                }
            }
            _ => marks = 0,
        }
        cleaned.push(letter);
    }
    cleaned
}

/// Returns whether the character controls layout, joining or direction. Terminals disagree about
/// the widths of these characters.
fn is_unseen(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the display width in cells.
pub(crate) fn width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    Span::raw(text)
        .styled_graphemes(Style::default())
        .map(|cluster| usize::from(cluster.symbol.cell_width()))
        .sum()
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Cuts the text to `room` cells, with a sign at the end if something is missing.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(1) else {
        return String::new();
    };
    let mut kept = head(text, room);
    kept.push('…');
    kept
}

/// Cuts the beginning of the text such that `room` cells are left, with a sign if something is
/// missing.
pub(crate) fn cut_front(text: &str, room: usize) -> String {
    let wide = width(text);
    if wide <= room {
        return text.to_owned();
    }
    match room.checked_sub(1) {
        Some(room) => format!("…{}", skip(text, wide - room)),
        None => String::new(),
    }
}

/// Returns the leading clusters that fit, without a sign.
fn head(text: &str, room: usize) -> String {
    let mut kept = String::new();
    let mut used = 0;
    for cluster in Span::raw(text).styled_graphemes(Style::default()) {
        used += usize::from(cluster.symbol.cell_width());
        if used > room {
            break;
        }
        kept.push_str(cluster.symbol);
    }
    kept
}

/// Returns the text after the first `cells` cells.
pub(crate) fn skip(text: &str, cells: usize) -> String {
    let mut kept = String::new();
    let mut passed = 0;
    for cluster in Span::raw(text).styled_graphemes(Style::default()) {
        let width = usize::from(cluster.symbol.cell_width());
        if passed >= cells {
            kept.push_str(cluster.symbol);
        } else if passed + width > cells {
            // The right half of a wide character is in view.
            kept.extend(std::iter::repeat_n(' ', passed + width - cells));
        }
        passed += width;
    }
    kept
}

/// Cuts or pads the text to exactly `room` cells.
pub(crate) fn fit(text: &str, room: usize) -> String {
    let mut fitted = cut(text, room);
    let missing = room.saturating_sub(width(&fitted));
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

/// Returns the grapheme clusters, each with its display width.
pub(crate) fn clusters(text: &str) -> Vec<(String, usize)> {
    Span::raw(text)
        .styled_graphemes(Style::default())
        .map(|cluster| {
            let width = usize::from(cluster.symbol.cell_width());
            (cluster.symbol.to_owned(), width)
        })
        .collect()
}

/// Replaces tabs by blanks.
pub(crate) fn expand(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    for (number, piece) in text.split('\t').enumerate() {
        if number > 0 {
            let blanks = TAB - width(&expanded) % TAB;
            expanded.extend(std::iter::repeat_n(' ', blanks));
        }
        expanded.push_str(&clean(piece));
    }
    expanded
}

/// Wraps the text to lines of at most `room` cells, at blanks where possible.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = Vec::new();
    for line in text.lines() {
        wrap_line(&expand(line), room, &mut lines);
    }
    lines
}

/// Wraps the text to lines of at most `room` cells, of which the first `used` cells of the first
/// line are taken. The first line is empty if not even one word fits there.
pub(crate) fn wrap_after(used: usize, text: &str, room: usize) -> Vec<String> {
    let whole = clean(text);
    if used + width(&whole) <= room {
        return vec![whole];
    }
    let room = room.max(2);
    let mut first = String::new();
    let mut rest = whole.trim_start();
    while let Some(word) = rest.split(' ').next().filter(|word| !word.is_empty()) {
        let gap = usize::from(!first.is_empty());
        if used + width(&first) + gap + width(word) > room {
            break;
        }
        first.extend(std::iter::repeat_n(' ', gap));
        first.push_str(word);
        rest = rest[word.len()..].trim_start();
    }
    let mut lines = vec![first];
    if !rest.is_empty() {
        wrap_line(rest, room, &mut lines);
    }
    lines
}

fn wrap_line(line: &str, room: usize, lines: &mut Vec<String>) {
    let line = line.trim_end();
    // Continuation lines keep the indentation.
    let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
    let indent = if indent.len() * 2 > room {
        String::new()
    } else {
        indent
    };
    let mut current = indent.clone();
    let mut used = indent.len();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_owned();
        let gap = usize::from(used > indent.len());
        if used + gap + width(&word) > room && gap > 0 {
            lines.push(std::mem::replace(&mut current, indent.clone()));
            used = indent.len();
        } else if gap > 0 {
            current.push(' ');
            used += 1;
        }
        while used + width(&word) > room {
            let part = head(&word, room - used);
            if part.is_empty() {
                break;
            }
            word = word[part.len()..].to_owned();
            current.push_str(&part);
            lines.push(std::mem::replace(&mut current, indent.clone()));
            used = indent.len();
        }
        used += width(&word);
        current.push_str(&word);
    }
    lines.push(current);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_upon_gets_through() {
        assert_eq!(clean("a\u{1b}[31mb\u{7}\r\nc\td"), "a[31mb  c d");
        assert_eq!(clean("abc\u{202e}fed\u{200d}x\u{feff}"), "abcfedx");
        assert_eq!(clean("e\u{301}\u{301}\u{301}\u{301}!"), "e\u{301}\u{301}!");
        assert_eq!(clean("\u{301}a"), "a");
        assert_eq!(clean("\u{9b}31m"), "31m", "controls of eight bits");
    }

    #[test]
    fn it_is_cut_by_the_width_that_it_has() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello", 4), "hel…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 0), "");
        assert_eq!(cut("cafe\u{301}s", 5), "cafe\u{301}s");
        assert_eq!(cut_front("src/a.rs", 6), "…/a.rs");
        assert_eq!(cut_front("a.rs", 4), "a.rs");
        assert_eq!(cut_front("a.rs", 0), "");
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(fit("a", 3), "a  ");
        assert_eq!(width("日a"), 3);
    }

    #[test]
    fn text_after_other_text_begins_beside_it_if_a_word_fits() {
        assert_eq!(wrap_after(4, "one two", 11), ["one two"]);
        assert_eq!(wrap_after(4, "one two", 10), ["one", "two"]);
        assert_eq!(wrap_after(4, "one two", 6), ["", "one", "two"]);
        assert_eq!(wrap_after(4, "abcdefgh ij", 6), ["", "abcdef", "gh ij"]);
        assert_eq!(wrap_after(9, "x", 6), ["", "x"]);
        assert_eq!(wrap_after(1, "日本 語", 6), ["日本", "語"]);
    }

    #[test]
    fn scrolling_to_the_side_may_leave_half_a_character() {
        assert_eq!(skip("日本語", 1), " 本語");
        assert_eq!(skip("日本語", 2), "本語");
        assert_eq!(skip("abc", 9), "");
    }

    #[test]
    fn it_is_wrapped_at_blanks_and_long_words_are_broken() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(
            wrap("- a\n\n  indented text here", 12),
            ["- a", "", "  indented", "  text here"]
        );
        assert_eq!(wrap("日本語日本語", 5), ["日本", "語日", "本語"]);
        assert_eq!(wrap("a\tb", 20), ["a b"]);
        for line in wrap("x 日本語 \u{1b}[0m yyyyyyyyyyyyyyyyyyy", 3) {
            assert!(width(&line) <= 3, "{line:?}");
        }
    }
}
