//! Replaces the values of a listing that differ between runs, without moving a column.
//!
//! Ids and times get zeros of the same width. Ages and amounts differ in width as well, so they are
//! replaced by column: each is narrower than the title of its column, and the column is as wide
//! with any of them.

use crate::env::TestEnv;
use unicode_width::UnicodeWidthStr;

/// Titles of the columns with ages and amounts.
const AMOUNTS: &[&str] = &["SINCE", "AGE", "LASTED", "TOOK", "TIME", "TOKENS"];

/// Masks the answer of a command.
pub(super) fn masked(env: &TestEnv, text: &str) -> String {
    let text = text.replace(env.home().to_str().unwrap(), "~");
    let mut header = Vec::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let titles = titles(line);
        if line.is_empty() || !titles.is_empty() {
            header = titles;
            lines.push(line.to_owned());
        } else {
            lines.push(masked_words(&masked_cells(line, &header)));
        }
    }
    lines.join("\n")
}

/// A title of a column, and the columns of the terminal where it begins and where the next begins.
struct Title {
    text: String,
    first: usize,
    end: usize,
}

/// Returns the titles of a line; none if the line is not the header of a table.
fn titles(line: &str) -> Vec<Title> {
    let is_title = |c: char| c.is_ascii_uppercase() || c == ' ' || c == '…';
    if line.starts_with(' ') || line.len() < 2 || !line.chars().all(is_title) {
        return Vec::new();
    }
    let mut titles: Vec<Title> = Vec::new();
    let mut first = 0;
    for part in line.split_inclusive("  ") {
        let text = part.trim();
        if !text.is_empty() {
            let first = first + part.width() - part.trim_start().width();
            if let Some(last) = titles.last_mut() {
                last.end = first;
            }
            titles.push(Title {
                text: text.to_owned(),
                first,
                end: usize::MAX,
            });
        }
        first += part.width();
    }
    titles
}

/// Replaces the ages and amounts in a row of a table, and the states that an agent changes by
/// itself.
fn masked_cells(line: &str, header: &[Title]) -> String {
    let mut masked = String::new();
    let mut column = 0;
    let mut rest = line;
    for title in header {
        let (_, from) = split_at(rest, title.first - column);
        masked += &rest[..rest.len() - from.len()];
        let (cell, after) = split_at(from, title.end - title.first);
        let text = cell.trim_end();
        let is_amount = AMOUNTS.contains(&title.text.as_str()) && text.starts_with(is_digit);
        let shown = match text {
            _ if is_amount => {
                let width = title.text.width();
                assert!(text.width() <= width, "{} moves: {line}", title.text);
                "·".repeat(width)
            }
            "busy" if title.text == "STATE" => "idle".to_owned(),
            text => text.to_owned(),
        };
        let width = cell.width();
        masked += &shown;
        masked += &" ".repeat(width.saturating_sub(shown.width()));
        column = title.end.min(title.first + width);
        rest = after;
    }
    masked += rest;
    masked.trim_end().to_owned()
}

/// Splits a text at a width.
fn split_at(text: &str, width: usize) -> (&str, &str) {
    let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let mut end = 0;
    while let Some(next) = ends.next().filter(|next| text[..*next].width() <= width) {
        end = next;
    }
    text.split_at(end)
}

/// Replaces ids, times and ages in the words of a line.
fn masked_words(line: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:.…".contains(c);
    let mut masked = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        masked += &match is_word(first) {
            true if after.starts_with(" ago") => "0s".to_owned(),
            true if after.starts_with(" tokens") && word.starts_with(is_digit) => zeros(word),
            true => masked_word(word),
            false => word.to_owned(),
        };
        rest = after;
    }
    masked
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn zeros(text: &str) -> String {
    let zero = |c: char| if c.is_ascii_alphanumeric() { '0' } else { c };
    text.chars().map(zero).collect()
}

fn masked_word(word: &str) -> String {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    if days.contains(&word) {
        return "Day".to_owned();
    }
    let of = |allowed: &str| word.chars().all(|c| allowed.contains(c));
    let has_separator = word.contains(['-', ':']);
    let is_time = has_separator && word.len() > 4 && of("0123456789-:.");
    // A UUID, or its beginning: the first digits are those of the time.
    let is_uuid = word.len() > 4 && word.starts_with("01") && of("0123456789abcdef-…");
    if is_time || is_uuid {
        return zeros(word);
    }
    let mut parts: Vec<String> = word.split('-').map(str::to_owned).collect();
    for at in 1..parts.len() {
        let is_prefix = ["gt", "hq", "mr", "esc"].contains(&parts[at - 1].as_str());
        let is_cut = parts[at].ends_with('…') && at + 1 == parts.len();
        let digits = parts[at].trim_end_matches('…');
        let is_id = digits.len() == 5 && digits != "mayor" || is_cut && digits.len() < 5;
        let is_plain = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase();
        if is_prefix && is_id && digits.chars().all(is_plain) {
            parts[at] = zeros(&parts[at]);
        }
    }
    parts.join("-")
}

#[test]
fn values_are_replaced_without_moving_a_column() {
    let check = |line: &str, expected: &str| {
        let header = titles("ID        STATE  AGE  TITLE");
        assert_eq!(masked_words(&masked_cells(line, &header)), expected);
    };
    check("gt-a1b2c  busy   3s   One", "gt-00000  idle   ···  One");
    check("gt-a1b2c  idle   59m  One", "gt-00000  idle   ···  One");
    check("gt-a1b…   crash       On…", "gt-000…   crash       On…");
    assert!(titles("Nothing waits.").is_empty());
    for (word, expected) in [
        ("2026-11-19", "0000-00-00"),
        ("06:26", "00:00"),
        ("01a1f27b-fd…", "00000000-00…"),
        ("gt-crew-max", "gt-crew-max"),
        ("hq-mayor", "hq-mayor"),
        ("gt-Toast", "gt-Toast"),
        ("30s", "30s"),
    ] {
        assert_eq!(masked_word(word), expected);
    }
}
