//! Draws the help, generated from the table of keys, and the message log.

use super::{middle, scrolled};
use crate::action::{BoardAction, CardOperation};
use crate::board::Board;
use crate::keys::{self, Binding, KeyMode};
use crate::overlay::Overlay;
use crate::text::{clean, fit, wrap};
use crate::theme::Tone;
use crate::view::canvas::{Canvas, indent, row};
use crate::view::toasts;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// The keys that the help shows at first.
const IMPORTANT: [BoardAction; 17] = [
    BoardAction::Down,
    BoardAction::Up,
    BoardAction::Left,
    BoardAction::Right,
    BoardAction::NextNeedy,
    BoardAction::Card(CardOperation::Answer),
    BoardAction::Actions,
    BoardAction::Open,
    BoardAction::CreateOrNextMatch,
    BoardAction::Search,
    BoardAction::Filter,
    BoardAction::Palette,
    BoardAction::Escalations,
    BoardAction::MergeQueue,
    BoardAction::EmergencyStop,
    BoardAction::Help,
    BoardAction::Quit,
];

pub(super) fn help(overlay: &Overlay, scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let Overlay::Help {
        first,
        shows_all,
        search,
        is_typing,
        ..
    } = overlay
    else {
        return;
    };
    let query = search.text().trim().to_lowercase();
    let is_short = !shows_all && query.is_empty();
    let matches = |binding: &&Binding| match is_short {
        true => *first != KeyMode::Board || IMPORTANT.contains(&binding.action),
        false => is_match(binding, &query),
    };
    let others = KeyMode::ALL
        .into_iter()
        .filter(|mode| mode != first && !is_short);
    let mut lines = Vec::new();
    for mode in std::iter::once(*first).chain(others) {
        let shown: Vec<&Binding> = keys::rows(mode)
            .filter(|row| !row.keys.is_empty())
            .filter(matches)
            .collect();
        if shown.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(canvas.span(mode.title(), Tone::Focus)));
        lines.extend(shown.into_iter().map(|binding| key_line(binding, canvas)));
    }
    if lines.is_empty() {
        lines.push(Line::from(canvas.span("No key matches", Tone::Dim)));
    }
    let at = boxed("Keys", &lines, scroll, area, canvas);
    let edge = Rect {
        width: at.width.saturating_sub(2),
        ..indent(row(at, at.height.saturating_sub(1)), 1)
    };
    if *is_typing || !query.is_empty() {
        let key = canvas.theme.style(Tone::Key);
        let x = canvas.text(edge, " /", key);
        let style = canvas.theme.style(Tone::Text);
        let (shown, cursor) = search.view(20);
        canvas.text(indent(edge, x - edge.x), &format!("{shown} "), style);
        if *is_typing {
            canvas.point_at(x + u16::try_from(cursor).unwrap_or(0), edge.y);
        }
    } else {
        let key = |action| keys::key_of(KeyMode::Read, action);
        let which = if *shows_all { "fewer" } else { "all keys" };
        let hint = format!(
            " {} search · {} {which} · {} close ",
            key(BoardAction::Search),
            key(BoardAction::NextTab),
            key(BoardAction::Back)
        );
        let style = canvas.theme.style(Tone::Dim);
        canvas.text(edge, &hint, style);
    }
}

/// Returns whether a row of the table contains all words of the search.
fn is_match(binding: &Binding, query: &str) -> bool {
    let command = binding.command.unwrap_or_default();
    let text = format!("{} {} {command}", binding.keys, binding.help).to_lowercase();
    query.split_whitespace().all(|word| text.contains(word))
}

fn key_line(binding: &Binding, canvas: &Canvas<'_>) -> Line<'static> {
    Line::from(vec![
        canvas.span(format!("  {} ", fit(binding.keys, 18)), Tone::Key),
        canvas.span(binding.help, Tone::Text),
        canvas.span(
            format!("  {}", binding.command.unwrap_or_default()),
            Tone::Dim,
        ),
    ])
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

/// Draws the lines in a box that is no higher than necessary. Returns the box.
fn boxed(
    title: &str,
    lines: &[Line<'_>],
    scroll: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) -> Rect {
    let most = area.height.saturating_sub(2);
    let wanted = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let wide = 90.min(area.width.saturating_sub(4));
    let at = middle(area, wide, wanted.min(most), canvas);
    let inside = indent(canvas.frame(at, title, Tone::Focus), 1);
    scrolled(lines, scroll, inside, canvas);
    at
}
