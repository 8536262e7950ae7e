//! Draws the diff of the detail view: the files with their changes, and the lines, side by side
//! where there is room.

use super::Hit;
use super::canvas::{Canvas, indent, row};
use crate::action::BoardAction;
use crate::board::{Board, OpenCard};
use crate::diff::{DiffFile, DiffRow, LineComment, ParsedDiff, RowKind};
use crate::keys::{self, KeyMode};
use crate::text::{clean, cut, cut_front, fit, skip, width};
use crate::theme::Tone;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Minimum width for the list of files beside the lines.
const WITH_LIST: u16 = 100;
const LIST: u16 = 32;
/// Minimum width of the lines for the side-by-side view.
const SIDE_BY_SIDE: u16 = 100;

/// Draws the diff and returns the position of the first row in view.
pub(super) fn draw(
    board: &Board,
    open: &OpenCard,
    area: Rect,
    scroll: usize,
    canvas: &mut Canvas<'_>,
) -> usize {
    let diff = &open.diff;
    let comments = board.comments.get(&open.id).map_or(&[][..], Vec::as_slice);
    summary(diff, area, canvas);
    let mut body = area;
    if !comments.is_empty() && area.height > 3 {
        body.height -= 1;
        comment_row(open, comments, row(area, area.height - 1), canvas);
    }
    if area.width >= WITH_LIST {
        files(
            open,
            Rect {
                width: LIST,
                ..body
            },
            canvas,
        );
        body = indent(body, LIST + 1);
    }
    let side_by_side = body.width >= SIDE_BY_SIDE && diff.replaces_lines();
    canvas.drawn.side_by_side = side_by_side;
    canvas.drawn.page = usize::from(body.height.saturating_sub(1)).max(1);
    let height = usize::from(body.height).max(1);
    let cursor = diff.position(open.diff_row, side_by_side);
    let rows = diff.len(side_by_side);
    let first = scroll.clamp((cursor + 1).saturating_sub(height), cursor);
    let first = first.min(rows.saturating_sub(height));
    let painter = RowPainter {
        diff,
        comments,
        aside: open.aside,
        number_width: diff.last_line.to_string().len().max(3),
    };
    for (y, position) in (0..).zip(first..rows.min(first + height)) {
        let at = row(body, y);
        let (old, new) = match side_by_side {
            true => diff.pairs[position],
            false => (Some(position), Some(position)),
        };
        let here = new.or(old).unwrap_or_default();
        if diff.rows[here].kind == RowKind::File {
            let style = canvas.theme.selected();
            canvas.paint(at, style);
        }
        if position == cursor {
            let style = canvas.theme.cursor_row();
            canvas.paint(at, style);
        }
        match side_by_side && old != new {
            true => painter.pair(old, new, at, canvas),
            false if side_by_side && diff.rows[here].kind == RowKind::Context => {
                painter.pair(old, new, at, canvas);
            }
            false => painter.whole(here, at, canvas),
        }
        if position == cursor {
            let style = canvas.theme.style(Tone::Focus);
            canvas.text(Rect { width: 1, ..at }, "▌", style);
        }
        canvas.note(at, Hit::DiffRow(here));
    }
    first
}

/// Draws the numbers of files and lines into the rule above the diff.
fn summary(diff: &ParsedDiff, area: Rect, canvas: &mut Canvas<'_>) {
    let added: usize = diff.files.iter().map(|file| file.added).sum();
    let removed: usize = diff.files.iter().map(|file| file.removed).sum();
    let files = match diff.files.len() {
        1 => " 1 file".to_owned(),
        count => format!(" {count} files"),
    };
    let line = Line::from(vec![
        canvas.span(files, Tone::Text),
        canvas.span(format!(" +{added}"), Tone::Good),
        canvas.span(format!(" −{removed} "), Tone::Bad),
    ]);
    let above = Rect {
        y: area.y.saturating_sub(1),
        height: 1,
        width: area.width.saturating_sub(2),
        ..area
    };
    canvas.right(above, &line);
}

/// Draws the comment on the line under the cursor, or else the number of comments.
fn comment_row(open: &OpenCard, comments: &[LineComment], area: Rect, canvas: &mut Canvas<'_>) {
    let place = open.diff.place(open.diff_row);
    let here = comments.iter().find(|it| Some(&it.place) == place.as_ref());
    let key = |action| keys::key_of(KeyMode::Detail, action);
    let text = match (here, comments.len()) {
        (Some(comment), _) => clean(&comment.text),
        (None, 1) => "1 comment".to_owned(),
        (None, count) => format!("{count} comments"),
    };
    let mut line = vec![
        canvas.span(" » ", Tone::Asks),
        canvas.span(text, Tone::Text),
    ];
    if comments.iter().any(|it| it.sent_by.is_none()) {
        let hint = format!(
            "  {} changes it · {} sends them",
            key(BoardAction::Comment),
            key(BoardAction::SendComments)
        );
        line.push(canvas.span(hint, Tone::Dim));
    }
    canvas.line(area, &Line::from(line));
}

/// Draws the list of files; that of the cursor is marked and in view.
fn files(open: &OpenCard, area: Rect, canvas: &mut Canvas<'_>) {
    let diff = &open.diff;
    let current = diff.rows.get(open.diff_row).map_or(0, |row| row.file);
    let height = usize::from(area.height).max(1);
    let first = (current + 1).saturating_sub(height);
    for (y, (number, file)) in (0..).zip(diff.files.iter().enumerate().skip(first).take(height)) {
        let at = row(area, y);
        let is_current = number == current;
        if is_current {
            let style = canvas.theme.cursor_row();
            canvas.paint(at, style);
        }
        let counts = counts(file, canvas);
        let taken: usize = counts.iter().map(|span| width(&span.content)).sum();
        let room = usize::from(area.width).saturating_sub(taken + 2);
        let tone = if is_current { Tone::Strong } else { Tone::Text };
        let path = fit(&cut_front(&clean(&file.path), room), room);
        let mut spans = vec![canvas.span(format!(" {path}"), tone)];
        spans.extend(counts);
        canvas.line(at, &Line::from(spans));
        canvas.note(at, Hit::DiffRow(file.row));
    }
    for y in 0..area.height {
        let style = canvas.theme.style(Tone::Rule);
        let at = Rect {
            x: area.right(),
            width: 1,
            ..row(area, y)
        };
        canvas.text(at, "│", style);
    }
}

fn counts(file: &DiffFile, canvas: &Canvas<'_>) -> Vec<Span<'static>> {
    vec![
        canvas.span(format!(" +{}", file.added), Tone::Good),
        canvas.span(format!(" −{}", file.removed), Tone::Bad),
    ]
}

struct RowPainter<'a> {
    diff: &'a ParsedDiff,
    comments: &'a [LineComment],
    /// Horizontal scroll offset.
    aside: usize,
    number_width: usize,
}

impl RowPainter<'_> {
    /// Draws a row over the whole width.
    fn whole(&self, number: usize, area: Rect, canvas: &mut Canvas<'_>) {
        let row = &self.diff.rows[number];
        let inside = indent(area, 1);
        match row.kind {
            RowKind::File => {
                let file = &self.diff.files[row.file];
                let counts = counts(file, canvas);
                let room = usize::from(inside.width).saturating_sub(14);
                let mut spans = vec![canvas.span(cut_front(&row.text, room), Tone::Strong)];
                spans.extend(counts);
                canvas.line(inside, &Line::from(spans));
            }
            RowKind::Remark => {
                let style = canvas.theme.style(Tone::Dim);
                canvas.text(inside, &row.text, style);
            }
            RowKind::Hunk => {
                let style = canvas.theme.style(Tone::Focus);
                canvas.text(inside, &cut(&row.text, usize::from(inside.width)), style);
            }
            RowKind::Context | RowKind::Added | RowKind::Removed => {
                let number = row.new.or(row.old);
                let line = self.line(row, number, canvas);
                canvas.cropped(area, &line);
            }
        }
    }

    /// Draws the old line at the left and the new one at the right.
    fn pair(&self, old: Option<usize>, new: Option<usize>, area: Rect, canvas: &mut Canvas<'_>) {
        let half = (area.width - 1) / 2;
        let left = Rect {
            width: half,
            ..area
        };
        let right = indent(area, half + 1);
        if let Some(row) = old.map(|number| &self.diff.rows[number]) {
            let line = self.line(row, row.old, canvas);
            canvas.cropped(left, &line);
        }
        if let Some(row) = new.map(|number| &self.diff.rows[number]) {
            let line = self.line(row, row.new, canvas);
            canvas.cropped(right, &line);
        }
        let rule = canvas.theme.style(Tone::Rule);
        let between = Rect {
            x: left.right(),
            width: 1,
            ..area
        };
        canvas.text(between, "│", rule);
    }

    /// Returns a line with its number and its sign.
    fn line(&self, row: &DiffRow, number: Option<u32>, canvas: &Canvas<'_>) -> Line<'static> {
        let (sign, tone) = match row.kind {
            RowKind::Added => ("+", Tone::Good),
            RowKind::Removed => ("-", Tone::Bad),
            _ => (" ", Tone::Text),
        };
        let mark = if self.has_comment(row) { "»" } else { " " };
        let number = number.map_or_else(String::new, |number| number.to_string());
        let wide = self.number_width;
        Line::from(vec![
            canvas.span(format!(" {mark}"), Tone::Asks),
            canvas.span(format!("{number:>wide$} "), Tone::Dim),
            canvas.span(format!("{sign}{}", skip(&row.text, self.aside)), tone),
        ])
    }

    fn has_comment(&self, row: &DiffRow) -> bool {
        let path = self.diff.files.get(row.file).map(|file| file.path.as_str());
        self.comments.iter().any(|it| {
            let line = if it.place.is_old { row.old } else { row.new };
            let is_side = it.place.is_old == row.new.is_none();
            is_side && path == Some(it.place.path.as_str()) && line == Some(it.place.line)
        })
    }
}
