//! A plain table: columns as wide as their widest cell.

use super::Paint;
use unicode_width::UnicodeWidthStr;

/// Cell: its text and its colour. Its width is that of the text alone.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    paint: Option<fn(Paint, &str) -> String>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        // A value from outside must not control the terminal.
        Cell {
            text: super::clean(&text.into()),
            paint: None,
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
}

#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Table {
            header: header.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn render(&self, paint: Paint) -> String {
        let header: Vec<Cell> = self
            .header
            .iter()
            .map(|title| Cell::painted(*title, Paint::dim))
            .collect();
        let lines = || std::iter::once(&header).chain(&self.rows);
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let width = |row: &Vec<Cell>| row.get(column).map_or(0, |cell| cell.text.width());
                lines().map(width).max().unwrap_or(0)
            })
            .collect();
        lines().map(|row| render_row(row, &widths, paint)).collect()
    }
}

fn render_row(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let shown = cell
            .paint
            .map_or_else(|| cell.text.clone(), |with| with(paint, &cell.text));
        line.push_str(&shown);
        let padding = width - cell.text.width() + 2;
        line.push_str(&" ".repeat(padding));
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_control_characters() {
        let mut table = Table::new(&["A", "B"]);
        table.row(["日本".into(), "x".into()]);
        table.row(["a\u{1b}[2J".into(), "y".into()]);
        let text = table.render(Paint { on: false });
        assert_eq!(text, "A      B\n日本   x\na\u{fffd}[2J  y\n");
    }
}
