//! Draws one card.

mod chips;
mod standing;

use super::canvas::{Canvas, indent, row};
use crate::Moment;
use crate::board::Board;
use crate::overlay::Overlay;
use crate::text::{clean, cut, width, wrap};
use crate::theme::{self, Tone};
pub(super) use chips::{dollars, spent, spent_text, work};
use gt_core::card::Card;
use gt_core::state::State;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
pub(super) use standing::{label as state_label, line as state};

/// The available space for the cards of a column.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) width: usize,
    pub(super) title_rows: usize,
    pub(super) now: Moment,
}

/// Indentation of all rows except the first, in cells.
const INDENT: usize = 2;

/// The number of rows of a card.
#[derive(Clone, Copy)]
pub(super) struct CardSize {
    /// The rows of the whole title, at most two.
    pub(super) title_rows: u16,
    /// All other rows.
    pub(super) rows: u16,
}

/// Measures a card of this width.
pub(super) fn size(card: &Card, width: usize, now: Moment) -> CardSize {
    let shape = Shape {
        width,
        title_rows: 2,
        now,
    };
    let rows = 1 + standing::rows(card, shape).len() + flow(chips(card, shape), shape).len();
    CardSize {
        title_rows: match card.is_agent {
            true => 0,
            false if self::width(&clean(&card.title)) <= title_room(shape) => 1,
            false => 2,
        },
        rows: u16::try_from(rows).unwrap_or(u16::MAX),
    }
}

fn title_room(shape: Shape) -> usize {
    shape.width.saturating_sub(INDENT).max(1)
}

fn title(card: &Card, shape: Shape) -> Vec<String> {
    // The address of an agent is in the first row.
    if card.is_agent {
        return Vec::new();
    }
    let room = title_room(shape);
    let whole = clean(&card.title);
    if shape.title_rows < 2 || width(&whole) <= room {
        return vec![cut(&whole, room)];
    }
    let mut lines = wrap(&whole, room);
    if lines.len() > shape.title_rows {
        let rest = lines.split_off(shape.title_rows - 1).join(" ");
        lines.push(cut(&rest, room));
    }
    lines
}

pub(super) fn draw(
    board: &Board,
    card: &Card,
    shape: Shape,
    is_selected: bool,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    if is_selected {
        let style = canvas.theme.selected();
        canvas.paint(area, style);
        for y in 0..area.height {
            let style = canvas.theme.style(Tone::Focus);
            canvas.text(
                Rect {
                    width: 1,
                    ..row(area, y)
                },
                "▌",
                style,
            );
        }
    }
    if board.marks.contains(&card.id) {
        let style = canvas.theme.style(Tone::Marked);
        canvas.text(
            Rect {
                width: 1,
                ..row(area, 0)
            },
            "◆",
            style,
        );
    }
    let inside = indent(area, 1);
    head(board, card, shape, row(inside, 0), canvas);
    let below = indent(inside, 2);
    let mut y = 1;
    for text in title(card, shape) {
        let style = canvas.theme.style(Tone::Strong);
        canvas.text(row(below, y), &text, style);
        y += 1;
    }
    standing::schedule(card, canvas);
    for pieces in standing::rows(card, shape) {
        let spans = pieces
            .into_iter()
            .map(|(text, tone)| canvas.span(text, tone));
        let line = Line::from(spans.collect::<Vec<Span<'_>>>());
        canvas.line(row(below, y), &line);
        y += 1;
    }
    for chips in flow(chips(card, shape), shape) {
        let line = line_of(chips, canvas);
        canvas.line(row(below, y), &line);
        y += 1;
    }
}

/// A short text that is never broken.
type Chip = (String, Tone);

/// Returns the short texts of a card: branch, servers, parts, program, tokens.
fn chips(card: &Card, shape: Shape) -> Vec<Chip> {
    let mut chips = work(card);
    if let Some(harness) = harness(card)
        && !has_room_in_head(card, &harness, shape)
    {
        chips.push((harness, Tone::Dim));
    }
    chips.extend(spent(card));
    chips
}

/// Arranges the chips in rows, as many in each as fit.
fn flow(chips: Vec<Chip>, shape: Shape) -> Vec<Vec<Chip>> {
    let room = shape.width.saturating_sub(INDENT);
    let mut rows: Vec<Vec<Chip>> = Vec::new();
    let mut used = 0;
    for chip in chips {
        let wide = width(&chip.0);
        match rows.last_mut() {
            Some(row) if used + 1 + wide <= room => {
                row.push(chip);
                used += 1 + wide;
            }
            _ => {
                rows.push(vec![chip]);
                used = wide;
            }
        }
    }
    rows
}

pub(super) fn line_of(chips: Vec<Chip>, canvas: &Canvas<'_>) -> Line<'static> {
    let mut spans = Vec::new();
    for (text, tone) in chips {
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        spans.push(canvas.span(text, tone));
    }
    Line::from(spans)
}

fn harness(card: &Card) -> Option<String> {
    let session = card.session.as_ref()?;
    session.harness.as_deref().map(clean)
}

/// Returns whether the program's name fits into the first row.
fn has_room_in_head(card: &Card, harness: &str, shape: Shape) -> bool {
    let rest = match card.is_agent {
        true => 2 + width(&clean(&card.title)),
        false => 2 + width(card.id.as_str()) + 4 + width(&clean(&card.kind)),
    };
    rest + 1 + width(harness) <= shape.width
}

/// Draws the first row: sign of the state, id, priority, type, and the program that works on it.
fn head(board: &Board, card: &Card, shape: Shape, area: Rect, canvas: &mut Canvas<'_>) {
    let state = match card.asking_program() {
        Some(_) => Some(State::Waiting),
        None => card.state(),
    };
    let sign = match label(board, card) {
        Some(label) => canvas.span(label.to_owned(), Tone::Label),
        None => canvas.span(theme::state_sign(state), theme::tone(state)),
    };
    let is_under_way = board
        .under_way
        .values()
        .any(|order| order.item.as_ref() == Some(&card.id));
    let mut spans = match card.is_agent {
        true => vec![
            sign,
            canvas.span(format!(" {}", clean(&card.title)), Tone::Strong),
        ],
        false => vec![
            sign,
            canvas.span(format!(" {}", card.id), Tone::Dim),
            canvas.span(format!(" P{}", card.priority), priority_tone(card.priority)),
            canvas.span(format!(" {}", clean(&card.kind)), Tone::Dim),
        ],
    };
    if is_under_way {
        spans.insert(2, canvas.span(" ⋯", Tone::Busy));
    }
    let end = canvas.line(area, &Line::from(spans));
    if let Some(harness) = harness(card)
        && has_room_in_head(card, &harness, shape)
    {
        let rest = indent(area, end.saturating_sub(area.x) + 1);
        // The sign of a command in progress may have taken its place.
        if width(&harness) <= usize::from(rest.width) {
            let line = Line::from(canvas.span(harness, Tone::Dim));
            canvas.right(rest, &line);
        }
    }
}

/// Returns the rest of the card's jump label that has to be typed, while labels are shown.
fn label<'a>(board: &'a Board, card: &Card) -> Option<&'a str> {
    let Some(Overlay::Go { labels, typed }) = &board.overlay else {
        return None;
    };
    let (label, _) = labels.iter().find(|(_, id)| *id == card.id)?;
    label.strip_prefix(typed.as_str())
}

fn priority_tone(priority: u8) -> Tone {
    match priority {
        0 => Tone::Bad,
        1 => Tone::Asks,
        _ => Tone::Dim,
    }
}
