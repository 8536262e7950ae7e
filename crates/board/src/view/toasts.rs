//! Draws messages as boxes in the corner above the last line. A box that would cover a part of an
//! open dialog is drawn as text in the last line instead.

use super::canvas::{Canvas, row};
use crate::board::Board;
use crate::text::{clean, width, wrap};
use crate::theme::Tone;
use crate::toast::{Toast, ToastKind};
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Maximum number of visible messages; the newest are shown.
const SHOWN: usize = 4;
const WIDEST: u16 = 60;
const ROWS: usize = 6;

pub(super) fn tone(tenor: ToastKind) -> (&'static str, Tone) {
    match tenor {
        ToastKind::Running => ("⋯", Tone::Busy),
        ToastKind::Note => ("·", Tone::Text),
        ToastKind::Good => ("✓", Tone::Good),
        ToastKind::Bad => ("✗", Tone::Bad),
    }
}

pub(super) fn draw(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    let toasts = board.toasts.shown();
    let dialog = match &board.overlay {
        Some(overlay) if overlay.covers_the_view() => canvas.last_box(),
        _ => None,
    };
    let skipped = toasts.len().saturating_sub(SHOWN);
    let last = row(area, area.height.saturating_sub(1));
    let mut bottom = last.y;
    let more = Toast::note(format!("and {skipped} more"));
    let more = (skipped > 0).then_some(&more);
    for toast in toasts[skipped..].iter().rev().chain(more) {
        let message = ToastBox::new(toast, area);
        let Some(at) = message.place(area, bottom) else {
            continue;
        };
        if dialog.is_some_and(|dialog| dialog.intersects(at)) {
            // The newest counts; the log has the others.
            if bottom == last.y {
                message.draw_in_line(last, canvas);
            }
            return;
        }
        message.draw(at, canvas);
        bottom = at.y;
    }
}

/// A message and its wrapped text.
struct ToastBox<'a> {
    toast: &'a Toast,
    lines: Vec<String>,
}

impl<'a> ToastBox<'a> {
    fn new(toast: &'a Toast, area: Rect) -> Self {
        let room = usize::from(WIDEST.min(area.width.saturating_sub(8)));
        let mut lines = Vec::new();
        for line in toast.text.lines() {
            lines.extend(wrap(&clean(line), room));
        }
        lines.truncate(ROWS);
        ToastBox { toast, lines }
    }

    /// Returns the box that ends above the row `bottom`, if there is room.
    fn place(&self, area: Rect, bottom: u16) -> Option<Rect> {
        let widest = self.lines.iter().map(|line| width(line)).max();
        let wide = u16::try_from(widest.unwrap_or(0) + 6).unwrap_or(area.width);
        let width = wide.min(area.width);
        let height = u16::try_from(self.lines.len() + 2).unwrap_or(3);
        let y = bottom.checked_sub(height).filter(|y| *y > area.y)?;
        Some(Rect {
            x: area.right() - width,
            y,
            width,
            height,
        })
    }

    fn draw(&self, at: Rect, canvas: &mut Canvas<'_>) {
        let (sign, tone) = tone(self.toast.tenor);
        let inside = canvas.frame(at, "", tone);
        for (number, line) in (0..).zip(&self.lines) {
            let sign = if number == 0 { sign } else { " " };
            let spans = vec![
                canvas.span(format!(" {sign} "), tone),
                canvas.span(line.clone(), Tone::Text),
            ];
            canvas.line(row(inside, number), &Line::from(spans));
        }
    }

    fn draw_in_line(&self, at: Rect, canvas: &mut Canvas<'_>) {
        let (sign, tone) = tone(self.toast.tenor);
        canvas.clear(at);
        let spans = vec![
            canvas.span(format!(" {sign} "), tone),
            canvas.span(self.lines.join(" "), Tone::Text),
        ];
        canvas.line(at, &Line::from(spans));
    }
}
