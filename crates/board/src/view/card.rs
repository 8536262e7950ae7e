//! Draws one card.

use super::canvas::{Canvas, indent, row};
use crate::board::Board;
use crate::overlay::Overlay;
use crate::text::{clean, cut, width, wrap};
use crate::theme::{self, Tone};
use crate::{Moment, age};
use gt_core::card::{
    AskingProgram, BackgroundState, BackgroundTask, Branch, Card, CardServer, PartCount,
    ServerState,
};
use gt_core::state::{self, State};
use gt_core::usage::Usage;
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// The available space for the cards of a column.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) width: usize,
    pub(super) title_rows: usize,
    pub(super) now: Moment,
}

/// Indentation of all rows except the first, in cells.
const INDENT: usize = 2;

/// Returns the number of rows of a card.
pub(super) fn height(card: &Card, shape: Shape) -> u16 {
    let rows = 2
        + title(card, shape).len()
        + notes_below(card, shape).len()
        + flow(chips(card, shape), shape).len();
    u16::try_from(rows).unwrap_or(u16::MAX)
}

fn title(card: &Card, shape: Shape) -> Vec<String> {
    // The address of an agent is in the first row.
    if card.is_agent {
        return Vec::new();
    }
    let room = shape.width.saturating_sub(INDENT).max(1);
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
    let notes = notes_below(card, shape);
    let line = match notes.is_empty() {
        true => state(card, canvas),
        false => Line::from(standing(card, canvas)),
    };
    canvas.line(row(below, y), &line);
    y += 1;
    for (text, tone) in notes {
        let style = canvas.theme.style(tone);
        canvas.text(row(below, y), &text, style);
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

/// Returns the state of the agent or of the item, with its age and its reasons.
pub(super) fn state(card: &Card, canvas: &mut Canvas<'_>) -> Line<'static> {
    let mut spans = standing(card, canvas);
    for (text, tone) in notes(card, canvas.now) {
        spans.push(canvas.span(format!("{BETWEEN}{text}"), tone));
    }
    Line::from(spans)
}

const BETWEEN: &str = " · ";

/// Returns the word for the state, and its age.
fn standing(card: &Card, canvas: &mut Canvas<'_>) -> Vec<Span<'static>> {
    let age = canvas.age(card.since());
    let (word, tone) = state_label(card);
    let mut spans = vec![
        canvas.span(word, tone),
        canvas.span(format!(" {age}"), Tone::Text),
    ];
    if is_attached(card) {
        spans.push(canvas.span(" ⇄", Tone::Focus));
    }
    if let Some((_, changes)) = reset(card, canvas.now) {
        canvas.draw_again_at(changes);
    }
    spans
}

/// Returns the text about the end of the usage limit, and the moment at which it changes.
fn reset(card: &Card, now: Moment) -> Option<(String, Moment)> {
    let session = card.session.as_ref()?;
    let (left, changes) = age::time_left(session.resets_at?, now)?;
    let verb = if session.continues {
        "continues"
    } else {
        "resets"
    };
    Some((format!("{verb} in {left}"), changes))
}

fn state_label(card: &Card) -> (String, Tone) {
    match card.state() {
        Some(state) => {
            let background = card
                .session
                .as_ref()
                .map_or(0, |session| session.background);
            (state::label(state, background), theme::tone(Some(state)))
        }
        None => (card.status.as_str().replace('_', " "), Tone::Dim),
    }
}

fn is_attached(card: &Card) -> bool {
    card.session
        .as_ref()
        .is_some_and(|session| session.attached)
}

/// Returns the reasons for the state.
fn notes(card: &Card, now: Moment) -> Vec<Chip> {
    let mut notes = Vec::new();
    if let Some(merge) = card.merge {
        let tone = if merge.is_broken() {
            Tone::Bad
        } else {
            Tone::Text
        };
        notes.push((format!("merge {}", merge.as_str()), tone));
    }
    if !card.blocked_by.is_empty() {
        let ids: Vec<&str> = card.blocked_by.iter().map(WorkId::as_str).collect();
        notes.push((format!("blocked by {}", ids.join(" ")), Tone::Asks));
    }
    notes.extend(resolver_note(card));
    if card.lost {
        notes.push(("its container is gone".to_owned(), Tone::Bad));
    }
    if let Some((reset, _)) = reset(card, now) {
        notes.push((reset, Tone::Text));
    }
    let session = card.session.as_ref();
    if let Some(reason) = session.and_then(|session| session.reason.as_deref()) {
        let reason = clean(reason);
        if !reason.trim().is_empty() {
            notes.push((reason, Tone::Dim));
        }
    }
    notes
}

/// Returns the need of the agent that resolves conflicts, unless the card's own agent asks first.
fn resolver_note(card: &Card) -> Option<Chip> {
    let resolver = card.resolver_needs_you()?;
    let tone = match resolver.state {
        State::Waiting if card.asking_program() == Some(AskingProgram::Agent) => return None,
        State::Waiting => Tone::Asks,
        _ => Tone::Bad,
    };
    let reason = resolver.reason.as_deref().map(clean);
    reason.map(|reason| (reason, tone))
}

/// Returns the notes if they do not fit beside the state; each then has a separate row.
fn notes_below(card: &Card, shape: Shape) -> Vec<Chip> {
    let notes = notes(card, shape.now);
    let (age, _) = age::label(card.since(), shape.now);
    let standing = width(&state_label(card).0) + 1 + age.len() + 2 * usize::from(is_attached(card));
    let beside: usize = notes
        .iter()
        .map(|(text, _)| width(BETWEEN) + width(text))
        .sum();
    match standing + beside <= shape.width.saturating_sub(INDENT) {
        true => Vec::new(),
        false => notes,
    }
}

/// Returns the state of the branch, the servers and the background tasks.
pub(super) fn work(card: &Card) -> Vec<Chip> {
    let mut chips = card.branch.as_ref().map(branch_chips).unwrap_or_default();
    // Servers that were not started appear only in the action menu.
    let is_shown = |server: &&CardServer| server.state != ServerState::Stopped;
    chips.extend(card.servers.iter().filter(is_shown).map(server_chip));
    let has_failed = |task: &&BackgroundTask| task.state == BackgroundState::Failed;
    chips.extend(
        card.background
            .iter()
            .filter(has_failed)
            .map(background_chip),
    );
    chips
}

fn branch_chips(branch: &Branch) -> Vec<Chip> {
    let mut parts: Vec<(String, Tone)> = Vec::new();
    parts.extend(merge_chip(branch));
    if branch.ahead > 0 {
        parts.push((format!("↑{}", branch.ahead), Tone::Good));
    }
    if branch.behind > 0 {
        parts.push((format!("↓{}", branch.behind), Tone::Asks));
    }
    if branch.dirty > 0 {
        parts.push((format!("~{}", branch.dirty), Tone::Paused));
    }
    if branch.added > 0 {
        parts.push((format!("+{}", branch.added), Tone::Good));
    }
    if branch.removed > 0 {
        parts.push((format!("−{}", branch.removed), Tone::Bad));
    }
    parts
}

/// Returns the state of a merge in the worktree.
fn merge_chip(branch: &Branch) -> Option<Chip> {
    let conflicts = match branch.conflicts.len() {
        0 if branch.merging => return Some(("merging".to_owned(), Tone::Bad)),
        0 => return None,
        1 => "1 conflict".to_owned(),
        count => format!("{count} conflicts"),
    };
    Some(match branch.resolver {
        true => (format!("resolving {conflicts}"), Tone::Busy),
        false => (format!("✗ {conflicts}"), Tone::Bad),
    })
}

fn background_chip(task: &BackgroundTask) -> Chip {
    (format!("✗ {} failed", clean(&task.name)), Tone::Bad)
}

/// Returns the port of a running server; otherwise its sign with the port or the name.
fn server_chip(server: &CardServer) -> Chip {
    let (sign, _, tone) = theme::server(server.state);
    let text = match (server.state, server.port) {
        (ServerState::Running, Some(port)) => format!(":{port}"),
        (_, Some(port)) => format!("{sign}:{port}"),
        (_, None) => format!("{sign}{}", clean(&server.name)),
    };
    (text, tone)
}

/// Returns the progress of the parts, and the usage.
pub(super) fn spent(card: &Card) -> Vec<Chip> {
    let mut chips = Vec::new();
    if let Some(parts) = card.parts {
        let text = format!("{} {}/{}", progress(parts), parts.closed, parts.all);
        chips.push((text, Tone::Good));
    }
    if let Some(usage) = &card.usage {
        chips.push((usage_text(usage), Tone::Dim));
    }
    chips
}

/// Draws a progress bar of five cells. It is full only if all parts are closed, and empty only if
/// none is.
fn progress(parts: PartCount) -> String {
    const CELLS: u32 = 5;
    let full = match parts {
        PartCount { all: 0, .. } | PartCount { closed: 0, .. } => 0,
        PartCount { closed, all } if closed >= all => CELLS,
        PartCount { closed, all } => (u64::from(closed) * u64::from(CELLS) / u64::from(all))
            .clamp(1, u64::from(CELLS - 1)) as u32,
    };
    let cells = (0..CELLS).map(|cell| if cell < full { '▰' } else { '▱' });
    cells.collect()
}

fn usage_text(usage: &Usage) -> String {
    spent_text(usage.tokens(), usage.cost_usd)
}

/// Formats tokens and their cost. The unit distinguishes the number from others.
pub(super) fn spent_text(tokens: u64, cost_usd: Option<f64>) -> String {
    let tokens = format!("{} tok", short_number(tokens));
    match cost_usd {
        Some(cost) => format!("{tokens} {}", dollars(cost)),
        None => tokens,
    }
}

fn dollars(cost: f64) -> String {
    format!("${cost:.2}")
}

/// Formats a number with at most three digits and a letter for its unit.
fn short_number(number: u64) -> String {
    let scaled = |unit: u64, letter: char| {
        let tenths = number / (unit / 10);
        match tenths {
            ..100 => format!("{}.{}{letter}", tenths / 10, tenths % 10),
            _ => format!("{}{letter}", tenths / 10),
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => scaled(1_000, 'k'),
        1_000_000..1_000_000_000 => scaled(1_000_000, 'M'),
        _ => scaled(1_000_000_000, 'G'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (12_345, "12k"),
            (999_999, "999k"),
            (1_250_000, "1.2M"),
            (u64::MAX, "18446744073G"),
        ] {
            assert_eq!(short_number(number), text);
        }
    }

    #[test]
    fn tokens_are_called_tokens() {
        assert_eq!(spent_text(177, None), "177 tok");
        assert_eq!(spent_text(1_250, Some(0.031)), "1.2k tok $0.03");
    }

    #[test]
    fn a_bar_is_full_only_when_all_is_done() {
        for (closed, all, bar) in [
            (0, 0, "▱▱▱▱▱"),
            (0, 9, "▱▱▱▱▱"),
            (1, 900, "▰▱▱▱▱"),
            (899, 900, "▰▰▰▰▱"),
            (9, 9, "▰▰▰▰▰"),
        ] {
            assert_eq!(progress(PartCount { closed, all }), bar);
        }
    }
}
