//! A plain table: columns as wide as their widest cell, or as the terminal permits.

use super::Paint;
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// Cell: its text and its colour. Its width is that of the text alone.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    paint: Option<fn(Paint, &str) -> String>,
    /// A text that is too long loses its beginning instead of its end.
    keeps_end: bool,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        // A value from outside must not control the terminal.
        Cell {
            text: super::clean(&text.into()),
            paint: None,
            keeps_end: false,
        }
    }
}

impl Cell {
    pub(crate) fn painted(text: impl Into<String>, paint: fn(Paint, &str) -> String) -> Self {
        Cell {
            paint: Some(paint),
            ..Cell::from(text)
        }
    }

    /// A cell with an agent's address, which ends with the name of the agent.
    pub(crate) fn address(text: impl Into<String>) -> Self {
        Cell {
            keeps_end: true,
            ..Cell::from(text)
        }
    }
}

/// Columns are never narrower than this and their titles, unless their widest cell is.
const MIN_WIDTH: usize = 6;
/// Default of `last_width`.
const LAST_WIDTH: usize = 16;
/// A first column that is to stay whole yields once the others are as narrow as this.
const KEPT_WIDTH: usize = 10;
/// Gap between two columns.
const GAP: usize = 2;

#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    /// Texts below single rows, by the index of the row.
    notes: BTreeMap<usize, String>,
    /// Whether long cells wrap; otherwise they are cut.
    wraps: bool,
    /// The last column is not made narrower than this before the others.
    last_width: usize,
    /// A column that is made narrower only after the others, and the width that it then has at most
    /// in the comparison with them.
    kept: Option<(usize, usize)>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Table {
            header: header.to_vec(),
            rows: Vec::new(),
            notes: BTreeMap::new(),
            wraps: false,
            last_width: LAST_WIDTH,
            kept: None,
        }
    }

    /// Breaks cells that do not fit into several lines, instead of cutting them.
    pub(crate) fn wrapping(self) -> Self {
        Table {
            wraps: true,
            ..self
        }
    }

    /// Keeps at least this width for the last column, and makes the others narrower.
    pub(crate) fn with_last_width(self, last_width: usize) -> Self {
        Table { last_width, ..self }
    }

    /// Keeps the first column whole, as long as the others can be narrower.
    pub(crate) fn keeping_first(self) -> Self {
        Table {
            kept: Some((0, KEPT_WIDTH)),
            ..self
        }
    }

    /// Keeps a column whole, such as one of times: a table that is too wide becomes several.
    pub(crate) fn keeping(self, column: usize) -> Self {
        Table {
            kept: Some((column, MIN_WIDTH)),
            ..self
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row with a text in the lines below it.
    pub(crate) fn row_with_note(&mut self, cells: Vec<Cell>, note: &str) {
        self.notes.insert(self.rows.len(), super::clean(note));
        self.row(cells);
    }

    /// Renders the table for stdout: it fits the terminal. Other outputs get whole cells.
    pub(crate) fn render(&self, paint: Paint) -> String {
        self.render_for(super::terminal_columns(), paint)
    }

    fn render_for(&self, columns: Option<usize>, paint: Paint) -> String {
        let header: Vec<Cell> = self
            .header
            .iter()
            .map(|title| Cell::painted(*title, Paint::dim))
            .collect();
        let lines = || std::iter::once(&header).chain(&self.rows);
        let mut widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let width = |row: &Vec<Cell>| row.get(column).map_or(0, |cell| cell.text.width());
                lines().map(width).max().unwrap_or(0)
            })
            .collect();
        if let Some(columns) = columns {
            let whole = widths.clone();
            self.narrow(&mut widths, columns);
            if total(&widths) > columns && self.header.len() > 2 {
                return self.render_blocks(&whole, columns, paint);
            }
        }
        let mut text = String::new();
        for (index, row) in lines().enumerate() {
            text += &match self.wraps {
                true => wrap_row(row, &widths, paint),
                false => render_row(row, &widths, paint),
            };
            // The first line is the header.
            let note = index
                .checked_sub(1)
                .and_then(|index| self.notes.get(&index));
            if let Some(note) = note {
                text += &render_note(note, columns, paint);
            }
        }
        text
    }

    /// Renders a table with too many columns as several ones below each other, each with the first
    /// column.
    fn render_blocks(&self, widths: &[usize], columns: usize, paint: Paint) -> String {
        let first = widths[0].min(columns / 3);
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut used = columns;
        for (at, width) in widths.iter().enumerate().skip(1) {
            if used + GAP + width > columns {
                blocks.push(vec![0]);
                used = first;
            }
            used += GAP + width;
            if let Some(block) = blocks.last_mut() {
                block.push(at);
            }
        }
        let block = |picked: &Vec<usize>| {
            let cells = |row: &Vec<Cell>| {
                let cell = |at: &usize| row.get(*at).cloned().unwrap_or_else(|| "".into());
                picked.iter().map(cell).collect()
            };
            let table = Table {
                header: picked.iter().map(|at| self.header[*at]).collect(),
                rows: self.rows.iter().map(cells).collect(),
                notes: BTreeMap::new(),
                ..*self
            };
            table.render_for(Some(columns), paint)
        };
        let blocks: Vec<String> = blocks.iter().map(block).collect();
        blocks.join("\n")
    }

    /// Makes the last column, which often is a text, and then the widest columns narrower until the
    /// row fits.
    fn narrow(&self, widths: &mut [usize], columns: usize) {
        let used = widths.iter().enumerate();
        let used = used.filter(|(at, width)| has_room(*at, **width)).count();
        let available = columns.saturating_sub(GAP * used.saturating_sub(1));
        let all: usize = widths.iter().sum();
        if let Some(last) = widths.last_mut() {
            let least = self.last_width.min(*last);
            *last = last
                .saturating_sub(all.saturating_sub(available))
                .max(least);
        }
        while widths.iter().sum::<usize>() > available {
            let last = widths.len() - 1;
            // Columns that are to stay wide yield only after the others.
            let rank = |(index, width): &(usize, &mut usize)| match (*index, self.kept) {
                (index, Some((kept, most))) if index == kept => (**width).min(most),
                (index, _) if index == last => (**width).min(LAST_WIDTH),
                _ => **width,
            };
            let least = |at: usize| self.header[at].width().max(MIN_WIDTH);
            let yielding = widths.iter_mut().enumerate();
            let stays = |at: usize| self.kept == Some((at, MIN_WIDTH));
            let yielding = yielding.filter(|(at, width)| !stays(*at) && **width > least(*at));
            let Some((_, widest)) = yielding.max_by_key(rank) else {
                return;
            };
            *widest -= 1;
        }
    }
}

/// Returns the width of a row.
fn total(widths: &[usize]) -> usize {
    let used = widths.iter().enumerate();
    let used = used.filter(|(at, width)| has_room(*at, **width)).count();
    widths.iter().sum::<usize>() + GAP * used.saturating_sub(1)
}

/// Renders the text below a row, indented.
fn render_note(note: &str, columns: Option<usize>, paint: Paint) -> String {
    const INDENT: &str = "    ";
    let width = columns.map_or(usize::MAX, |columns| columns.saturating_sub(INDENT.len()));
    let lines = wrap(note, width.max(LAST_WIDTH)).into_iter();
    lines
        .map(|line| format!("{INDENT}{}\n", paint.dim(&line)))
        .collect()
}

/// Returns whether a column takes room. One without title and values is an indentation if it is the
/// first, and nothing elsewhere.
fn has_room(at: usize, width: usize) -> bool {
    at == 0 || width > 0
}

fn render_row(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        if !has_room(at, *width) {
            continue;
        }
        let text = match cell.keeps_end {
            true => cut_front(&cell.text, *width),
            false => cut(&cell.text, *width),
        };
        line.push_str(
            &cell
                .paint
                .map_or_else(|| text.clone(), |with| with(paint, &text)),
        );
        let padding = width.saturating_sub(text.width()) + GAP;
        line.push_str(&" ".repeat(padding));
    }
    format!("{}\n", line.trim_end())
}

/// Renders a row whose cells may take several lines.
fn wrap_row(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap(&cell.text, *width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    (0..height)
        .map(|at| {
            let line: Vec<Cell> = row
                .iter()
                .zip(&cells)
                .map(|(cell, lines)| Cell {
                    text: lines.get(at).cloned().unwrap_or_default(),
                    paint: cell.paint,
                    keeps_end: cell.keeps_end,
                })
                .collect();
            render_row(&line, widths, paint)
        })
        .collect()
}

/// Breaks a text into lines of this width, between words where possible.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in super::wrapped(text, width) {
        let mut rest = line;
        while rest.width() > width {
            let (head, tail) = split_at_width(&rest, width);
            lines.push(head.to_owned());
            rest = tail.to_owned();
        }
        lines.push(rest);
    }
    lines
}

/// Cuts a text that is too wide, and marks the cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (head, _) = split_at_width(text, width.saturating_sub(1));
    format!("{}…", head.trim_end())
}

/// Cuts the beginning of a text that is too wide, and marks the cut.
fn cut_front(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut starts = text.char_indices().map(|(at, _)| at);
    let fits = |at: &usize| text[*at..].width() < width;
    let start = starts.find(fits).unwrap_or(text.len());
    format!("…{}", &text[start..])
}

/// Splits a text after as many characters as fit, at least one.
fn split_at_width(text: &str, width: usize) -> (&str, &str) {
    // The width of an emoji may be more than that of its characters.
    let fits = |(at, c): &(usize, char)| text[..at + c.len_utf8()].width() <= width || *at == 0;
    let end = text.char_indices().take_while(fits).last();
    text.split_at(end.map_or(0, |(at, c)| at + c.len_utf8()))
}

#[cfg(test)]
mod tests;
