//! Draws messages as boxes in the corner above the last line.

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
    let skipped = toasts.len().saturating_sub(SHOWN);
    let mut bottom = area.bottom().saturating_sub(1);
    for toast in toasts[skipped..].iter().rev() {
        bottom = draw_one(toast, area, bottom, canvas);
    }
    if skipped > 0 {
        let more = Toast::note(format!("and {skipped} more"));
        draw_one(&more, area, bottom, canvas);
    }
}

/// Draws one message that ends above the row `bottom`. Returns its first row.
fn draw_one(toast: &Toast, area: Rect, bottom: u16, canvas: &mut Canvas<'_>) -> u16 {
    let room = usize::from(WIDEST.min(area.width.saturating_sub(8)));
    let mut lines = Vec::new();
    for line in toast.text.lines() {
        lines.extend(wrap(&clean(line), room));
    }
    lines.truncate(ROWS);
    let wide = lines.iter().map(|line| width(line)).max().unwrap_or(0) + 6;
    let wide = u16::try_from(wide).unwrap_or(area.width).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(3);
    let Some(y) = bottom.checked_sub(height).filter(|y| *y > area.y) else {
        return bottom;
    };
    let at = Rect {
        x: area.right() - wide,
        y,
        width: wide,
        height,
    };
    let (sign, tone) = tone(toast.tenor);
    let inside = canvas.frame(at, "", tone);
    for (number, line) in (0..).zip(&lines) {
        let sign = if number == 0 { sign } else { " " };
        let spans = vec![
            canvas.span(format!(" {sign} "), tone),
            canvas.span(line.clone(), Tone::Text),
        ];
        canvas.line(row(inside, number), &Line::from(spans));
    }
    y
}
