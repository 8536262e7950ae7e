//! The cells of a frame, with the state that all drawing functions share: the theme, the time, and
//! the record of what was drawn where.

use super::{DrawnFrame, Hit};
use crate::theme::{BoardTheme, Tone};
use crate::{Moment, age, text};
use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Maximum delay of age labels, so that a board with many of them wakes up rarely.
const ROUND_SECONDS: i64 = 10;

pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    pub(super) theme: BoardTheme,
    pub(super) now: Moment,
    pub(super) drawn: DrawnFrame,
    cursor: Option<Position>,
    /// The card or row that the overlay is about.
    subject: Option<Rect>,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(
        buffer: &'a mut Buffer,
        theme: BoardTheme,
        now: Moment,
        drawn: DrawnFrame,
    ) -> Self {
        Canvas {
            buffer,
            theme,
            now,
            drawn,
            cursor: None,
            subject: None,
        }
    }

    /// Returns the record of the frame, and the cursor position if there is an input line.
    pub(super) fn done(self) -> (DrawnFrame, Option<Position>) {
        (self.drawn, self.cursor)
    }

    pub(super) fn span(&self, text: impl Into<String>, tone: Tone) -> Span<'static> {
        Span::styled(text.into(), self.theme.style(tone))
    }

    /// Returns the age label of `since`, and schedules a frame for its next change.
    pub(super) fn age(&mut self, since: i64) -> String {
        let (label, changes) = age::label(since, self.now);
        self.draw_again_at(changes);
        label
    }

    /// Schedules a frame for this moment, rounded up to [`ROUND_SECONDS`], so that changes that are
    /// close together share one frame.
    pub(super) fn draw_again_at(&mut self, changes: Moment) {
        let changes = changes.rounded_up(ROUND_SECONDS);
        let next = self.drawn.changes_at.map_or(changes, |at| at.min(changes));
        self.drawn.changes_at = Some(next);
    }

    pub(super) fn note(&mut self, area: Rect, hit: Hit) {
        self.drawn.hits.push((area, hit));
    }

    pub(super) fn point_at(&mut self, x: u16, y: u16) {
        self.cursor = Some(Position::new(x, y));
    }

    /// Draws a text in the first row of an area and cuts it to the area. Returns its end.
    pub(super) fn text(&mut self, area: Rect, text: &str, style: Style) -> u16 {
        let area = area.intersection(self.buffer.area);
        if area.is_empty() {
            return area.x;
        }
        let room = usize::from(area.width);
        let text = text::cut(text, room);
        self.buffer.set_stringn(area.x, area.y, text, room, style).0
    }

    /// Draws a line of several styles; a sign shows where it was cut.
    pub(super) fn line(&mut self, area: Rect, line: &Line<'_>) -> u16 {
        let mut rest = area;
        for span in &line.spans {
            if rest.width == 0 {
                break;
            }
            let end = self.text(rest, &span.content, line.style.patch(span.style));
            let used = end.saturating_sub(rest.x);
            if text::width(&span.content) > usize::from(used) {
                return end;
            }
            rest.x = end;
            rest.width = rest.width.saturating_sub(used);
        }
        rest.x
    }

    /// Draws a line of a captured screen; what does not fit is left out without a sign.
    pub(super) fn cropped(&mut self, area: Rect, line: &Line<'_>) {
        let area = area.intersection(self.buffer.area);
        if !area.is_empty() {
            self.buffer.set_line(area.x, area.y, line, area.width);
        }
    }

    /// Dims everything except the elements that an overlay is about, the first of which boxes do not
    /// cover.
    pub(super) fn push_back(&mut self, is_subject: impl Fn(&Hit) -> bool) {
        let hits = self.drawn.hits.iter().filter(|(_, hit)| is_subject(hit));
        let kept: Vec<Rect> = hits.map(|(area, _)| *area).collect();
        let places = kept.iter().flat_map(|area| area.positions());
        let before: Vec<(Position, Cell)> = places
            .filter_map(|at| Some((at, self.buffer.cell(at)?.clone())))
            .collect();
        let (colour, added) = self.theme.dimmed();
        // The terminal gets only the cells that change, so blank ones stay as they are.
        let is_seen = |cell: &&mut Cell| {
            let is_drawn = cell.symbol() != " " || cell.bg != Color::Reset;
            is_drawn || cell.modifier.contains(Modifier::REVERSED)
        };
        for cell in self.buffer.content.iter_mut().filter(is_seen) {
            cell.fg = colour;
            cell.bg = Color::Reset;
            cell.modifier.remove(Modifier::BOLD | Modifier::REVERSED);
            cell.modifier.insert(added);
        }
        for (at, cell) in before {
            self.buffer[at] = cell;
        }
        self.subject = kept.first().copied();
    }

    /// Moves a box beside the card that it is about, or below or above it, if it covers that card.
    /// A box that is moved up or down may get lower. Where it does not fit it stays.
    pub(super) fn beside_subject(&self, wanted: Rect, area: Rect) -> Rect {
        const LOWEST: u16 = 8;
        let Some(card) = self.subject.filter(|card| card.intersects(wanted)) else {
            return wanted;
        };
        let right = area.right().saturating_sub(card.right() + 1);
        let left = card.x.saturating_sub(area.x + 1);
        let below = (area.bottom() - 1).saturating_sub(card.bottom());
        let above = card.y.saturating_sub(area.y);
        let (x, y, height) = match wanted {
            _ if right >= wanted.width => (card.right() + 1, wanted.y, wanted.height),
            _ if left >= wanted.width => (card.x - 1 - wanted.width, wanted.y, wanted.height),
            _ if below >= above.min(wanted.height) && below >= LOWEST.min(wanted.height) => {
                (wanted.x, card.bottom(), wanted.height.min(below))
            }
            _ if above >= LOWEST.min(wanted.height) => {
                let height = wanted.height.min(above);
                (wanted.x, card.y - height, height)
            }
            _ => return wanted,
        };
        Rect {
            x,
            y,
            height,
            ..wanted
        }
    }

    /// Draws a line aligned to the right end of an area.
    pub(super) fn right(&mut self, area: Rect, line: &Line<'_>) {
        let width: usize = line
            .spans
            .iter()
            .map(|span| text::width(&span.content))
            .sum();
        let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
        let at = Rect {
            x: area.right() - width,
            width,
            ..area
        };
        self.line(at, line);
    }

    pub(super) fn paint(&mut self, area: Rect, style: Style) {
        self.buffer
            .set_style(area.intersection(self.buffer.area), style);
    }

    pub(super) fn rule(&mut self, area: Rect, tone: Tone) {
        let style = self.theme.style(tone);
        self.text(area, &"─".repeat(usize::from(area.width)), style);
    }

    /// Returns the area of the box that was drawn last.
    pub(super) fn last_box(&self) -> Option<Rect> {
        let mut hits = self.drawn.hits.iter().rev();
        let found = hits.find(|(_, hit)| *hit == Hit::Inside);
        found.map(|(area, _)| *area)
    }

    /// Clears an area, including a wide character that extends into it from the left.
    pub(super) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.top()..area.bottom() {
            if let Some(x) = area.x.checked_sub(1)
                && let Some(cell) = self.buffer.cell_mut((x, y))
                && cell.cell_width() > 1
            {
                cell.set_symbol(" ");
            }
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }

    /// Draws a box with a title over the present content. Returns the area inside it.
    pub(super) fn frame(&mut self, area: Rect, title: &str, tone: Tone) -> Rect {
        self.clear(area);
        self.note(area, Hit::Inside);
        if area.width < 2 || area.height < 2 {
            return Rect {
                width: 0,
                height: 0,
                ..area
            };
        }
        let style = self.theme.style(tone);
        let across = "─".repeat(usize::from(area.width - 2));
        let row = |y| Rect {
            y,
            height: 1,
            ..area
        };
        self.text(row(area.y), &format!("┌{across}┐"), style);
        self.text(row(area.bottom() - 1), &format!("└{across}┘"), style);
        for y in area.y + 1..area.bottom() - 1 {
            self.text(Rect { width: 1, ..row(y) }, "│", style);
            let x = area.right() - 1;
            self.text(
                Rect {
                    x,
                    width: 1,
                    ..row(y)
                },
                "│",
                style,
            );
        }
        let room = Rect {
            x: area.x + 1,
            width: area.width - 2,
            ..row(area.y)
        };
        if !title.is_empty() {
            let strong = self.theme.style(Tone::Strong);
            self.text(room, &format!(" {title} "), strong);
        }
        Rect {
            x: area.x + 1,
            y: area.y + 1,
            width: area.width - 2,
            height: area.height - 2,
        }
    }
}

/// Returns one row of an area.
pub(super) fn row(area: Rect, number: u16) -> Rect {
    Rect {
        y: area.y.saturating_add(number),
        height: u16::from(number < area.height),
        ..area
    }
}

/// Returns the area without its leftmost `cells` columns.
pub(super) fn indent(area: Rect, cells: u16) -> Rect {
    let cells = cells.min(area.width);
    Rect {
        x: area.x + cells,
        width: area.width - cells,
        ..area
    }
}
