//! Draws the columns that fit side by side, and in each the cards that fit.

use super::Hit;
use super::canvas::{Canvas, indent, row};
use super::card::{self, CardSize};
use crate::board::Board;
use crate::theme::Tone;
use gt_core::card::Column;
use ratatui::layout::Rect;
use ratatui::text::Line;
use std::cell::RefCell;

/// Minimum height of a column whose titles have two rows, even if not all cards fit.
const TALL: u16 = 24;
/// Minimum width of a readable card.
const NARROWEST: u16 = 23;

/// Draws the columns that have cards, as many as fit, and returns those in view.
pub(super) fn draw(board: &Board, area: Rect, canvas: &mut Canvas<'_>) -> Vec<Column> {
    canvas.drawn.page = 1;
    let filled = board.columns_with_cards();
    if filled.is_empty() {
        draw_empty(board, area, canvas);
        return filled;
    }
    let fit = usize::from((area.width + 1) / (NARROWEST + 1)).clamp(1, filled.len());
    let focus = filled.iter().position(|column| *column == board.column);
    let start = focus.unwrap_or_default().saturating_sub(fit / 2);
    let start = start.min(filled.len() - fit);
    let in_view = &filled[start..start + fit];
    let count = u16::try_from(fit).unwrap_or(1);
    let rules = count - 1;
    let each = (area.width - rules) / count;
    // The remaining cells go to the first columns.
    let over = (area.width - rules) % count;
    let mut x = area.x;
    for (number, column) in (0..).zip(in_view) {
        let width = each + u16::from(number < over);
        let at = Rect { x, width, ..area };
        draw_column(board, *column, at, canvas);
        x = at.right();
        if number + 1 < count {
            for y in area.top()..area.bottom() {
                let style = canvas.theme.style(Tone::Rule);
                canvas.text(
                    Rect {
                        x,
                        y,
                        width: 1,
                        height: 1,
                    },
                    "│",
                    style,
                );
            }
            x += 1;
        }
    }
    in_view.to_vec()
}

/// Explains why there is no card.
fn draw_empty(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    let said: &[&str] = match board.lists.all {
        0 if board.facts.projects.is_empty() => &[
            "There are no projects here; `gt rig add PATH-OR-URL` adds one",
            "There are no work items here; n creates one",
        ],
        0 => &["There are no work items here; n creates one"],
        _ => &["No card fits; Esc shows all"],
    };
    let style = canvas.theme.style(Tone::Dim);
    for (y, said) in (area.height / 2..area.height).zip(said) {
        let wide = u16::try_from(said.len()).unwrap_or(0).min(area.width);
        let at = Rect {
            x: area.x + (area.width - wide) / 2,
            width: wide,
            ..row(area, y)
        };
        canvas.clear(at);
        canvas.text(at, said, style);
    }
}

fn draw_column(board: &Board, column: Column, area: Rect, canvas: &mut Canvas<'_>) {
    canvas.note(area, Hit::Column(column));
    let list = board.lists.column(column);
    let body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let width = usize::from(body.width.saturating_sub(1));
    let now = canvas.now;
    let known = RefCell::new(vec![None; list.len()]);
    let size = |number: usize| {
        let mut known = known.borrow_mut();
        *known[number]
            .get_or_insert_with(|| card::size(&board.facts.cards[list[number]], width, now))
    };
    let spacing = Spacing::choose(list.len(), size, body.height);
    let shape = card::Shape {
        width,
        title_rows: usize::from(spacing.title_rows),
        now,
    };
    let height = |number: usize| spacing.height(size(number));
    let index = column as usize;
    let mut first = canvas.drawn.first[index].min(list.len().saturating_sub(1));
    let has_cursor = board.column == column && board.cursor.is_some();
    if spacing.all_fit {
        first = 0;
    } else if has_cursor && canvas.drawn.free != Some(column) {
        first = first_in_view(first, board.row, body.height, height);
    }
    canvas.drawn.first[index] = first;

    let mut y = body.y;
    let mut next = first;
    while next < list.len() && y < body.bottom() {
        let card = &board.facts.cards[list[next]];
        let room = body.bottom() - y;
        // A partial card is drawn only if it is the first one.
        if height(next) > room && next > first {
            break;
        }
        let at = Rect {
            y,
            height: height(next).min(room),
            ..body
        };
        let is_selected = board.cursor.as_ref() == Some(&card.id);
        card::draw(board, card, shape, is_selected, at, canvas);
        canvas.note(at, Hit::Card(card.id.clone()));
        y = at.bottom() + spacing.gap;
        next += 1;
    }
    if board.column == column {
        canvas.drawn.page = (next - first).max(1);
    }
    title(
        board,
        column,
        row(area, 0),
        first,
        list.len() - next.min(list.len()),
        canvas,
    );
}

/// The rows of titles in a column, and the blank rows between its cards.
struct Spacing {
    title_rows: u16,
    gap: u16,
    all_fit: bool,
}

impl Spacing {
    /// If all cards fit, titles have two rows, and then a blank row separates the cards.
    fn choose(count: usize, size: impl Fn(usize) -> CardSize, room: u16) -> Self {
        let mut sizes = Vec::new();
        let mut least = 0;
        for number in 0..count {
            let size = size(number);
            least += size.rows + size.title_rows.min(1);
            if least > room {
                // Only the cards in view are measured.
                return Spacing {
                    title_rows: if room >= TALL { 2 } else { 1 },
                    gap: 0,
                    all_fit: false,
                };
            }
            sizes.push(size);
        }
        let spacing = |title_rows, gap| Spacing {
            title_rows,
            gap,
            all_fit: true,
        };
        let fits = |spacing: &Spacing| {
            let used: u16 = sizes
                .iter()
                .map(|size| spacing.height(*size) + spacing.gap)
                .sum();
            // The last card needs no blank row after it.
            used <= room + spacing.gap
        };
        let roomy = [spacing(2, 1), spacing(2, 0), spacing(1, 1)];
        roomy.into_iter().find(fits).unwrap_or(spacing(1, 0))
    }

    fn height(&self, size: CardSize) -> u16 {
        size.rows + size.title_rows.min(self.title_rows)
    }
}

/// Returns the first card in view: the present one, or the nearest that keeps the cursor in view.
fn first_in_view(first: usize, cursor: usize, room: u16, height: impl Fn(usize) -> u16) -> usize {
    if cursor <= first {
        return cursor;
    }
    let mut used = 0;
    let mut start = cursor;
    loop {
        used += height(start);
        if used > room {
            // The card under the cursor is shown, even if it does not fit.
            return (start + 1).min(cursor);
        }
        if start == first {
            return first;
        }
        start -= 1;
    }
}

/// Draws the name, the number of cards, and the numbers of those above and below the view.
fn title(
    board: &Board,
    column: Column,
    area: Rect,
    above: usize,
    below: usize,
    canvas: &mut Canvas<'_>,
) {
    let has_focus = board.column == column && board.cursor.is_some();
    let mark = if has_focus { "▸" } else { " " };
    let count = board.lists.column(column).len();
    let (tone, count_tone) = match column {
        Column::NeedsYou => (Tone::Label, Tone::Label),
        _ if has_focus => (Tone::Focus, Tone::Dim),
        _ => (Tone::Strong, Tone::Dim),
    };
    let spans = vec![
        canvas.span(mark, Tone::Focus),
        canvas.span(column.title(), tone),
        canvas.span(format!(" {count}"), count_tone),
    ];
    let end = canvas.line(area, &Line::from(spans));
    let mut marks = String::new();
    if above > 0 {
        marks.push_str(&format!(" ↑{above}"));
    }
    if below > 0 {
        marks.push_str(&format!(" ↓{below}"));
    }
    let line = Line::from(canvas.span(marks, Tone::Dim));
    let rest = indent(area, end - area.x);
    canvas.right(rest, &line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_get_a_second_row_before_cards_get_space() {
        let size = |_| CardSize {
            rows: 2,
            title_rows: 2,
        };
        for (room, expected) in [
            (8, (1, 0, false)),
            (9, (1, 0, true)),
            (11, (1, 1, true)),
            (12, (2, 0, true)),
            (13, (2, 0, true)),
            (14, (2, 1, true)),
        ] {
            let found = Spacing::choose(3, size, room);
            assert_eq!(
                (found.title_rows, found.gap, found.all_fit),
                expected,
                "{room}"
            );
        }
    }

    #[test]
    fn view_scrolls_only_as_far_as_needed() {
        let high = |_| 4;
        for (first, cursor, expected) in [(0, 0, 0), (0, 2, 0), (0, 3, 1), (5, 3, 3), (2, 9, 7)] {
            assert_eq!(first_in_view(first, cursor, 12, high), expected);
        }
        assert_eq!(first_in_view(0, 7, 2, high), 7, "no room for any");
        assert_eq!(first_in_view(7, 7, 2, high), 7);
    }
}
