//! Draws the columns that fit side by side, and in each the cards that fit.

use super::Hit;
use super::canvas::{Canvas, indent, row};
use super::card;
use crate::Moment;
use crate::board::Board;
use crate::theme::Tone;
use gt_core::card::{Card, Column};
use ratatui::layout::Rect;
use ratatui::text::Line;

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
    let said = match board.lists.all {
        0 => "There are no work items here",
        _ => "No card fits; Esc shows all",
    };
    let wide = u16::try_from(said.len()).unwrap_or(0).min(area.width);
    let at = Rect {
        x: area.x + (area.width - wide) / 2,
        width: wide,
        ..row(area, area.height / 2)
    };
    canvas.clear(at);
    let style = canvas.theme.style(Tone::Dim);
    canvas.text(at, said, style);
}

fn draw_column(board: &Board, column: Column, area: Rect, canvas: &mut Canvas<'_>) {
    canvas.note(area, Hit::Column(column));
    let list = board.lists.column(column);
    let body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let cards = |number: usize| &board.facts.cards[list[number]];
    let (shape, gap) = spacing(list.len(), cards, body, canvas.now);
    let bare = |number: usize| card::height(cards(number), shape);
    let height = |number: usize| bare(number) + gap;
    let index = column as usize;
    let mut first = canvas.drawn.first[index].min(list.len().saturating_sub(1));
    let has_cursor = board.column == column && board.cursor.is_some();
    if has_cursor && canvas.drawn.free != Some(column) {
        first = first_in_view(first, board.row, body.height, height);
    }
    canvas.drawn.first[index] = first;

    let mut y = body.y;
    let mut next = first;
    while next < list.len() && y < body.bottom() {
        let card = &board.facts.cards[list[next]];
        let room = body.bottom() - y;
        // A partial card is drawn only if it is the first one.
        if bare(next) > room && next > first {
            break;
        }
        let at = Rect {
            y,
            height: bare(next).min(room),
            ..body
        };
        let is_selected = board.cursor.as_ref() == Some(&card.id);
        card::draw(board, card, shape, is_selected, at, canvas);
        canvas.note(at, Hit::Card(card.id.clone()));
        y = at.bottom() + gap;
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

/// Returns the shape of the cards of a column, and the number of blank rows between them. If all
/// cards fit, titles have two rows, and then a blank row separates the cards.
fn spacing<'a>(
    count: usize,
    card: impl Fn(usize) -> &'a Card,
    body: Rect,
    now: Moment,
) -> (card::Shape, u16) {
    let shape = |title_rows| card::Shape {
        width: usize::from(body.width.saturating_sub(1)),
        title_rows,
        now,
    };
    let fits = |title_rows, gap| {
        let mut used = 0;
        (0..count).all(|number| {
            used += card::height(card(number), shape(title_rows)) + gap;
            // The last card needs no blank row after it.
            used <= body.height + gap
        })
    };
    let found = [(2, 1), (2, 0), (1, 1)]
        .into_iter()
        .find(|(rows, gap)| fits(*rows, *gap));
    let (title_rows, gap) = found.unwrap_or((if body.height >= TALL { 2 } else { 1 }, 0));
    (shape(title_rows), gap)
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
    use super::first_in_view;

    #[test]
    fn the_view_moves_no_more_than_it_must() {
        let high = |_| 4;
        for (first, cursor, expected) in [(0, 0, 0), (0, 2, 0), (0, 3, 1), (5, 3, 3), (2, 9, 7)] {
            assert_eq!(first_in_view(first, cursor, 12, high), expected);
        }
        assert_eq!(first_in_view(0, 7, 2, high), 7, "no room for any");
        assert_eq!(first_in_view(7, 7, 2, high), 7);
    }
}
