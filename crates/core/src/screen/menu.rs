//! Rows to choose from.
//!
//! A menu is a run of numbered rows, or a row with a cursor sign and its neighbours whose text
//! begins in the same column. Text with a deeper indent belongs to the row above it: the rest of a
//! wrapped text, or a description.

use super::line::{ScreenLine, is_frame};
use std::ops::Range;

/// Signs with which programs mark the chosen row of a menu.
const CURSORS: &[char] = &['❯', '›', '▶', '→'];
/// Signs that also begin lines of a conversation: cursors only before a number.
const NUMBERED_CURSORS: &[char] = &['●', '>'];
/// Signs before the row that is in force already.
const TICKS: &[char] = &['✔', '✓'];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MenuRows {
    pub(super) options: Vec<String>,
    pub(super) marked: Option<usize>,
    pub(super) lines: Range<usize>,
    /// Whether the choices stand next to each other.
    pub(super) across: bool,
    /// Numbers before the options, if they have any.
    pub(super) numbers: Vec<Option<usize>>,
    /// Descriptions beside or below the options; empty texts, or no texts, if there are none.
    pub(super) descriptions: Vec<String>,
}

/// Returns the lowest menu. `is_message` tells which lines begin a message: they have the same
/// signs.
pub(super) fn find(lines: &[ScreenLine], is_message: impl Fn(usize) -> bool) -> Option<MenuRows> {
    let rows: Vec<Option<MenuRow>> = lines.iter().map(MenuRow::parse).collect();
    let numbered = numbered(lines, &rows);
    let pointed = pointed(&rows, is_message);
    match (numbered, pointed) {
        (Some(numbered), Some(pointed)) => {
            let is_lower = pointed.lines.start >= numbered.lines.end;
            Some(if is_lower { pointed } else { numbered })
        }
        (numbered, pointed) => numbered.or(pointed),
    }
}

/// Returns choices with known texts, in separate rows or all in one line.
pub(super) fn with_known_texts(lines: &[ScreenLine], texts: &[String]) -> Option<MenuRows> {
    known_rows(lines, texts).or_else(|| known_words(lines, texts))
}

fn known_rows(lines: &[ScreenLine], texts: &[String]) -> Option<MenuRows> {
    let rows: Vec<Option<MenuRow>> = lines.iter().map(MenuRow::parse).collect();
    let is_text =
        |at: &usize, text: &str| rows[*at].as_ref().is_some_and(|row| row.title() == text);
    let mut found: Vec<usize> = texts
        .iter()
        .filter_map(|text| (0..rows.len()).rev().find(|at| is_text(at, text)))
        .collect();
    found.sort_unstable();
    let (first, last) = (*found.first()?, *found.last()?);
    let shown = || found.iter().filter_map(|at| rows[*at].as_ref());
    (found.len() > 1).then(|| MenuRows {
        options: shown().map(|row| row.title().to_owned()).collect(),
        numbers: shown().map(|row| row.number).collect(),
        marked: shown().position(MenuRow::points),
        lines: first..last + 1,
        across: false,
        descriptions: Vec::new(),
    })
}

fn known_words(lines: &[ScreenLine], texts: &[String]) -> Option<MenuRows> {
    let first = texts.first()?;
    let at = lines
        .iter()
        .rposition(|line| line.text.contains(first.as_str()))?;
    let line = &lines[at];
    let found: Vec<(&String, usize)> = texts
        .iter()
        .filter_map(|text| {
            let byte = line.text.find(text.as_str())?;
            Some((text, line.text[..byte].chars().count()))
        })
        .collect();
    let places: Vec<(&ScreenLine, usize)> =
        found.iter().map(|(_, column)| (line, *column)).collect();
    Some(MenuRows {
        options: found.iter().map(|(text, _)| (*text).clone()).collect(),
        numbers: vec![None; found.len()],
        marked: set_off(&places),
        lines: at..at + 1,
        across: true,
        descriptions: Vec::new(),
    })
}

/// Returns the place whose background differs from what is left of it, if exactly one does.
fn set_off(places: &[(&ScreenLine, usize)]) -> Option<usize> {
    // A highlighted text may have one highlighted blank before it.
    let is_set_off = |(line, column): &(&ScreenLine, usize)| {
        line.ground_at(*column) != line.ground_at(column.saturating_sub(2))
    };
    let mut found = (0..places.len()).filter(|index| is_set_off(&places[*index]));
    found.next().filter(|_| found.next().is_none())
}

#[derive(Clone, Debug)]
struct MenuRow {
    /// Column of its number, or of its text if it has none.
    column: usize,
    /// Column after its number.
    dot: usize,
    /// Column of its text.
    label: usize,
    number: Option<usize>,
    cursor: Option<char>,
    text: String,
}

impl MenuRow {
    fn parse(line: &ScreenLine) -> Option<MenuRow> {
        let chars: Vec<char> = line.text.trim_end_matches(is_frame).chars().collect();
        let skip = |from: usize, is: fn(char) -> bool| {
            from + chars[from..].iter().take_while(|c| is(**c)).count()
        };
        let mut at = skip(0, is_frame);
        let mut cursor = None;
        let sign = *chars.get(at)?;
        if CURSORS.contains(&sign) || NUMBERED_CURSORS.contains(&sign) {
            cursor = Some(sign);
            at = skip(at + 1, is_frame);
        }
        if chars.get(at).is_some_and(|c| TICKS.contains(c)) {
            at = skip(at + 1, char::is_whitespace);
        }
        let column = at;
        let digits = skip(at, |c| c.is_ascii_digit());
        let mut number = None;
        if digits > at && digits - at <= 2 && chars.get(digits) == Some(&'.') {
            let value: String = chars[at..digits].iter().collect();
            let text = skip(digits + 1, char::is_whitespace);
            if text > digits + 1 && text < chars.len() {
                number = value.parse().ok();
                at = text;
            }
        }
        if chars.get(at) == Some(&'[') && chars.get(at + 2) == Some(&']') {
            at = skip(at + 3, char::is_whitespace);
        }
        let text: String = chars.get(at..)?.iter().collect();
        if text.is_empty() {
            return None;
        }
        Some(MenuRow {
            column,
            dot: digits,
            label: at,
            number,
            cursor,
            text,
        })
    }

    fn points(&self) -> bool {
        self.cursor
            .is_some_and(|sign| CURSORS.contains(&sign) || self.number.is_some())
    }

    /// Returns the text in the first of its columns.
    fn title(&self) -> &str {
        self.text.split("  ").next().unwrap_or_default().trim_end()
    }
}

fn numbered(lines: &[ScreenLine], rows: &[Option<MenuRow>]) -> Option<MenuRows> {
    let number = |at: usize| rows[at].as_ref().and_then(|row| row.number);
    let mut end = rows.len();
    // From the bottom up: the first run that counts down to one.
    while let Some(last) = (0..end).rev().find(|at| number(*at).is_some()) {
        if let Some(run) = count_down(lines, rows, last)
            && run.len() > 1
        {
            return Some(collect(lines, rows, &run));
        }
        end = last;
    }
    None
}

/// Returns the lines of the rows 1 to n, where `last` is row n. The numbers are aligned left or
/// right.
fn count_down(lines: &[ScreenLine], rows: &[Option<MenuRow>], last: usize) -> Option<Vec<usize>> {
    let end = rows[last].as_ref()?;
    // Programs count their rows from one: "0." begins a line of text.
    let mut wanted = end.number.filter(|number| *number > 0)?;
    let mut run = Vec::new();
    for at in (0..=last).rev() {
        match &rows[at] {
            Some(row)
                if row.number == Some(wanted)
                    && (row.column == end.column || row.dot == end.dot) =>
            {
                run.push(at);
                wanted -= 1;
                if wanted == 0 {
                    run.reverse();
                    return Some(run);
                }
            }
            Some(row) if row.column > end.column => {}
            // Some rows are set off from the others.
            _ if lines[at].is_blank() || lines[at].is_drawn() => {}
            _ => return None,
        }
    }
    None
}

/// Collects the rows, and those between them that have no number: they begin left of where a
/// description would.
fn collect(lines: &[ScreenLine], rows: &[Option<MenuRow>], run: &[usize]) -> MenuRows {
    let (first, last) = (run[0], run[run.len() - 1]);
    let label = |at: usize| rows[at].as_ref().map_or(0, |row| row.label);
    let column = rows[first].as_ref().map_or(0, |row| row.column);
    let mut all = run.to_vec();
    for pair in run.windows(2) {
        all.extend((pair[0] + 1..pair[1]).filter(|at| {
            let left = label(pair[0]);
            rows[*at]
                .as_ref()
                .is_some_and(|row| row.number.is_none() && row.column > column && row.column < left)
        }));
    }
    all.sort_unstable();
    let points = |at: &usize| rows[*at].as_ref().is_some_and(MenuRow::points);
    let marked = all.iter().position(points).or_else(|| {
        let places: Vec<(&ScreenLine, usize)> =
            all.iter().map(|at| (&lines[*at], column)).collect();
        set_off(&places)
    });
    MenuRows {
        options: all.iter().map(|at| whole(lines, rows, *at).0).collect(),
        descriptions: all.iter().map(|at| description(lines, rows, *at)).collect(),
        numbers: all
            .iter()
            .map(|at| rows[*at].as_ref().and_then(|row| row.number))
            .collect(),
        marked,
        lines: first..depth(lines, rows, last),
        across: false,
    }
}

fn pointed(rows: &[Option<MenuRow>], is_message: impl Fn(usize) -> bool) -> Option<MenuRows> {
    let points = |at: &usize| {
        rows[*at]
            .as_ref()
            .is_some_and(|row| row.points() && row.number.is_none() && !is_message(*at))
    };
    let at = (0..rows.len()).rev().find(points)?;
    let column = rows[at].as_ref()?.column;
    let belongs =
        |at: &usize| rows[*at].as_ref().is_some_and(|row| row.column >= column) && !is_message(*at);
    let first = (0..at).rev().take_while(belongs).last().unwrap_or(at);
    let last = (at..rows.len()).take_while(belongs).last().unwrap_or(at);
    let all: Vec<usize> = (first..=last)
        .filter(|at| rows[*at].as_ref().is_some_and(|row| row.column == column))
        .collect();
    let title = |at: &usize| rows[*at].as_ref().map(|row| row.title().to_owned());
    (all.len() > 1).then(|| MenuRows {
        options: all.iter().filter_map(title).collect(),
        numbers: vec![None; all.len()],
        marked: all.iter().position(|row| *row == at),
        lines: first..last + 1,
        across: false,
        descriptions: Vec::new(),
    })
}

/// Returns the index after the last line of a row.
fn depth(lines: &[ScreenLine], rows: &[Option<MenuRow>], at: usize) -> usize {
    let label = rows[at].as_ref().map_or(0, |row| row.label);
    let hangs = |at: &usize| rows[*at].as_ref().is_some_and(|row| row.column >= label);
    at + 1 + (at + 1..lines.len()).take_while(hangs).count()
}

/// Returns the description of a row: the text beside its title, or below it.
fn description(lines: &[ScreenLine], rows: &[Option<MenuRow>], at: usize) -> String {
    let Some(row) = &rows[at] else {
        return String::new();
    };
    let beside = row.text[row.title().len()..].trim();
    let (_, end) = whole(lines, rows, at);
    let hangs = |more: &&MenuRow| more.column >= row.label && more.number.is_none();
    let below = rows[end..].iter().map_while(Option::as_ref);
    let below = below.take_while(hangs).map(|more| more.text.trim());
    let parts: Vec<&str> = std::iter::once(beside).chain(below).collect();
    parts.join(" ").trim().to_owned()
}

/// Returns the text of a row together with its wrapped lines, and the index after them. A
/// description begins in the same column, but its first word would have had room above.
fn whole(lines: &[ScreenLine], rows: &[Option<MenuRow>], at: usize) -> (String, usize) {
    let Some(row) = &rows[at] else {
        return (String::new(), at + 1);
    };
    let mut text = row.title().to_owned();
    let mut end = at + 1;
    if text.len() < row.text.len() {
        return (text, end);
    }
    let width = |line: &ScreenLine| line.text.trim_end_matches(is_frame).chars().count();
    let room = room(lines);
    for next in at + 1..lines.len() {
        let Some(more) = &rows[next] else { break };
        let word = more.text.split(' ').next().unwrap_or_default();
        let had_room = width(&lines[next - 1]) + 1 + word.chars().count() < room;
        if more.column != row.label || more.number.is_some() || more.cursor.is_some() || had_room {
            break;
        }
        text = format!("{text} {}", more.text);
        end = next + 1;
    }
    (text, end)
}

/// Returns the estimated maximum width of a text on this screen.
fn room(lines: &[ScreenLine]) -> usize {
    /// Maximum margin that a program may leave when it wraps.
    const MARGIN: usize = 4;
    let widths = lines.iter().map(|line| line.text.chars().count());
    widths.max().unwrap_or(0).saturating_sub(MARGIN)
}
