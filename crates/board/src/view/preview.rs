//! Draws the screen of the agent under the cursor, or the data of a card without one.

use super::canvas::{Canvas, indent, row};
use super::card;
use crate::board::Board;
use crate::text::{clean, wrap};
use crate::theme::{self, Tone};
use gt_core::card::{Card, Speaker};
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use std::ops::Range;

/// Minimum width for the facts of an item beside its description.
const BESIDE: u16 = 100;
/// Width of the facts beside a description.
const FACTS: u16 = 44;

/// Returns the number of rows that the content needs, with the title. `None` if the content is not
/// known yet.
pub(super) fn height(board: &Board, width: u16, canvas: &mut Canvas<'_>) -> Option<u16> {
    let card = board.cursor.as_ref().and_then(|id| board.card(id))?;
    let rows = match shows_screen(board, card) {
        true if board.screen.lines.is_empty() => return None,
        true => dense_rows(&board.screen.lines).len(),
        false => {
            let (left, right) = item_parts(board, card, width, canvas);
            left.len().max(right.len())
        }
    };
    Some(u16::try_from(rows + 1).unwrap_or(u16::MAX))
}

pub(super) fn draw(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(card) = board.cursor.as_ref().and_then(|id| board.card(id)) else {
        return;
    };
    canvas.rule(row(area, 0), Tone::Rule);
    let title = title(card, canvas);
    let room = Rect {
        width: area.width.saturating_sub(4),
        ..indent(row(area, 0), 2)
    };
    canvas.line(room, &title);
    let body = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    if shows_screen(board, card) {
        let lines = &board.screen.lines;
        draw_rows(lines, &dense_rows(lines), body, 0, canvas);
        return;
    }
    let (left, right) = item_parts(board, card, body.width, canvas);
    for (y, line) in (0..body.height).zip(left) {
        canvas.line(row(body, y), &line);
    }
    for (y, line) in (0..body.height).zip(right) {
        canvas.line(indent(row(body, y), FACTS), &line);
    }
}

/// Returns whether the preview shows a screen: that of the agent, or the last one of a lost agent.
fn shows_screen(board: &Board, card: &Card) -> bool {
    let is_kept = board.screen.raw.id.as_ref() == Some(&card.id) && !board.screen.lines.is_empty();
    card.session.is_some() || card.is_lost() && is_kept
}

/// Returns the facts of an item, and its description: beside them if there is room, otherwise above
/// them.
fn item_parts(
    board: &Board,
    card: &Card,
    width: u16,
    canvas: &mut Canvas<'_>,
) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    let facts = item_facts(card, canvas);
    let texts = board.described.as_ref().filter(|it| it.id == card.id);
    let Some(texts) = texts.filter(|it| !it.description.trim().is_empty()) else {
        return (facts, Vec::new());
    };
    let has_room = width >= BESIDE;
    let room = if has_room { width - FACTS } else { width };
    let lines = wrap(&texts.description, usize::from(room.saturating_sub(2)));
    let lines = lines.into_iter();
    let mut text: Vec<Line<'static>> = lines
        .map(|line| Line::from(canvas.span(format!(" {line}"), Tone::Text)))
        .collect();
    if has_room {
        return (facts, text);
    }
    text.extend(facts);
    (text, Vec::new())
}

fn title(card: &Card, canvas: &mut Canvas<'_>) -> Line<'static> {
    let mut spans = match card.is_agent {
        true => vec![canvas.span(format!(" {} ", clean(&card.title)), Tone::Strong)],
        false => vec![
            canvas.span(format!(" {} ", card.id), Tone::Dim),
            canvas.span(format!("{} ", clean(&card.title)), Tone::Strong),
        ],
    };
    if card.state().is_some() {
        let age = canvas.age(card.since());
        let (text, tone) = session_text(card, &age);
        spans.push(canvas.span(format!("{text} "), tone));
    }
    if let Speaker::Resolver(resolver) = card.speaker() {
        let window = format!("in its window {} ", clean(&resolver.window));
        spans.push(canvas.span(window, Tone::Asks));
    }
    Line::from(spans)
}

/// Returns the state of the agent, with its age and its source.
pub(super) fn session_text(card: &Card, age: &str) -> (String, Tone) {
    let sign = theme::state_sign(card.state());
    let (word, tone) = card::state_label(card);
    let source = card.session.as_ref().map(|it| it.source.as_str());
    let source = source.map_or_else(String::new, |source| format!(" ({source})"));
    (format!("{sign} {word} {age}{source}"), tone)
}

/// Draws the end of the screen, or the part `up` lines above it. Returns the scroll offset.
pub(super) fn screen(board: &Board, area: Rect, up: usize, canvas: &mut Canvas<'_>) -> usize {
    let rows: Vec<usize> = used_rows(&board.screen.lines).collect();
    draw_rows(&board.screen.lines, &rows, area, up, canvas)
}

fn draw_rows(
    lines: &[Line<'_>],
    rows: &[usize],
    area: Rect,
    up: usize,
    canvas: &mut Canvas<'_>,
) -> usize {
    if lines.is_empty() {
        let style = canvas.theme.style(Tone::Dim);
        canvas.text(indent(row(area, 0), 1), "No screen yet", style);
        return 0;
    }
    let height = usize::from(area.height);
    let up = up.min(rows.len().saturating_sub(height));
    let end = rows.len() - up;
    let start = end.saturating_sub(height);
    for (y, number) in (0..).zip(&rows[start..end]) {
        let theme = canvas.theme;
        let spans = lines[*number]
            .spans
            .iter()
            .map(|span| Span::styled(span.content.as_ref(), theme.captured_style(span.style)));
        canvas.cropped(row(area, y), &Line::from(spans.collect::<Vec<_>>()));
    }
    up
}

/// Returns the rows of a screen without the blank ones before and after its content.
fn used_rows(lines: &[Line<'_>]) -> Range<usize> {
    let end = lines.len() - lines.iter().rev().take_while(|line| is_blank(line)).count();
    let start = lines[..end]
        .iter()
        .take_while(|line| is_blank(line))
        .count();
    start..end
}

/// Returns the rows of a screen for the preview: of adjacent blank rows only the first, so that the
/// empty middle of a screen, such as that of a dead pane, does not take the place of its content.
fn dense_rows(lines: &[Line<'_>]) -> Vec<usize> {
    used_rows(lines)
        .filter(|number| !is_blank(&lines[*number]) || !is_blank(&lines[number - 1]))
        .collect()
}

fn is_blank(line: &Line<'_>) -> bool {
    line.spans.iter().all(|span| span.content.trim().is_empty())
}

/// Returns the facts of an item: its state, then one row for each fact.
pub(super) fn item_facts(card: &Card, canvas: &mut Canvas<'_>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut state = card::state(card, canvas);
    state.spans.insert(0, Span::raw(" "));
    lines.push(state);
    let ids = |ids: &[WorkId]| {
        let ids: Vec<&str> = ids.iter().map(WorkId::as_str).collect();
        ids.join(" ")
    };
    let branch = card.branch.as_ref();
    let facts = [
        ("project", card.rig.clone()),
        ("assignee", card.assignee.clone()),
        (
            "agent",
            card.session.as_ref().map(|session| session.agent.clone()),
        ),
        (
            "program",
            card.session
                .as_ref()
                .and_then(|session| session.harness.clone()),
        ),
        (
            "labels",
            (!card.labels.is_empty()).then(|| card.labels.join(" ")),
        ),
        ("part of", card.parent.as_ref().map(ToString::to_string)),
        (
            "blocked by",
            (!card.blocked_by.is_empty()).then(|| ids(&card.blocked_by)),
        ),
        (
            "branch",
            branch.map(|branch| format!("{} from {}", branch.name, branch.base)),
        ),
        (
            "conflicts",
            branch
                .filter(|branch| !branch.conflicts.is_empty())
                .map(|branch| branch.conflicts.join(" ")),
        ),
        ("merge", card.merge.map(|merge| merge.as_str().to_owned())),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            lines.push(Line::from(vec![
                canvas.span(format!(" {name:<11}"), Tone::Dim),
                canvas.span(clean(&value), Tone::Text),
            ]));
        }
    }
    for (name, chips) in [("work", card::work(card)), ("spent", card::spent(card))] {
        if !chips.is_empty() {
            let mut line = card::line_of(chips, canvas);
            let name = canvas.span(format!(" {name:<11}"), Tone::Dim);
            line.spans.insert(0, name);
            lines.push(line);
        }
    }
    lines
}
