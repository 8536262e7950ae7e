//! Draws the help, generated from the table of keys, and the message log.

use super::{middle, scrolled};
use crate::board::Board;
use crate::keys::{self, KeyMode};
use crate::text::{clean, fit, wrap};
use crate::theme::Tone;
use crate::view::canvas::{Canvas, indent};
use crate::view::toasts;
use ratatui::layout::Rect;
use ratatui::text::Line;

pub(super) fn help(first: KeyMode, scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let mut lines = Vec::new();
    let others = KeyMode::ALL.into_iter().filter(|mode| *mode != first);
    for mode in std::iter::once(first).chain(others) {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(canvas.span(mode.title(), Tone::Focus)));
        for binding in keys::rows(mode).filter(|row| !row.keys.is_empty()) {
            lines.push(Line::from(vec![
                canvas.span(format!("  {} ", fit(binding.keys, 18)), Tone::Key),
                canvas.span(binding.help, Tone::Text),
                canvas.span(
                    format!("  {}", binding.command.unwrap_or_default()),
                    Tone::Dim,
                ),
            ]));
        }
    }
    boxed("Keys", &lines, scroll, area, canvas);
}

pub(super) fn log(board: &Board, scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let mut lines = Vec::new();
    let room = usize::from(area.width.saturating_sub(16));
    for (at, tenor, text) in board.toasts.log() {
        let age = canvas.age(at.seconds());
        let (sign, tone) = toasts::tone(*tenor);
        let texts = text.lines().flat_map(|line| wrap(&clean(line), room));
        for (number, text) in texts.enumerate() {
            let head = match number {
                0 => format!("{age:>4} {sign} "),
                _ => " ".repeat(7),
            };
            lines.push(Line::from(vec![
                canvas.span(head, tone),
                canvas.span(text, Tone::Text),
            ]));
        }
    }
    if lines.is_empty() {
        lines.push(Line::from(canvas.span("No messages yet", Tone::Dim)));
    }
    boxed("Messages", &lines, scroll, area, canvas);
}

fn boxed(title: &str, lines: &[Line<'_>], scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let at = middle(
        area,
        90.min(area.width.saturating_sub(4)),
        area.height.saturating_sub(2),
    );
    let inside = indent(canvas.frame(at, title, Tone::Focus), 1);
    scrolled(lines, scroll, inside, canvas);
}
