//! Draws the screen of the agent under the cursor, or the data of a card without one.

use super::canvas::{Canvas, indent, row};
use super::card;
use crate::board::Board;
use crate::text::{clean, wrap};
use crate::theme::{self, Tone};
use gt_core::card::{Card, CardAgent, Speaker};
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

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
    if card.session.is_some() {
        screen(board, body, 0, canvas);
    } else {
        let mut lines = item_lines(card, usize::from(body.width), canvas);
        lines.truncate(usize::from(body.height));
        for (y, line) in (0..).zip(lines) {
            canvas.line(row(body, y), &line);
        }
    }
}

fn title(card: &Card, canvas: &mut Canvas<'_>) -> Line<'static> {
    let mut spans = match card.is_agent {
        true => vec![canvas.span(format!(" {} ", clean(&card.title)), Tone::Strong)],
        false => vec![
            canvas.span(format!(" {} ", card.id), Tone::Strong),
            canvas.span(format!("{} ", clean(&card.title)), Tone::Text),
        ],
    };
    if let Some(session) = &card.session {
        let age = canvas.age(card.since());
        let tail = session_text(session, &age);
        let tone = theme::tone(Some(session.state));
        spans.insert(1, canvas.span(format!("{tail} "), tone));
    }
    if let Speaker::Resolver(resolver) = card.speaker() {
        let window = format!("in its window {} ", clean(&resolver.window));
        spans.insert(1, canvas.span(window, Tone::Asks));
    }
    Line::from(spans)
}

/// Returns the state of the agent, with its age and its source.
pub(super) fn session_text(session: &CardAgent, age: &str) -> String {
    let source = session.source.as_str();
    let sign = theme::state_sign(Some(session.state));
    format!("{sign} {} {age} ({source})", session.state.as_str())
}

/// Draws the end of the screen, or the part `up` lines above it. Returns the scroll offset.
pub(super) fn screen(board: &Board, area: Rect, up: usize, canvas: &mut Canvas<'_>) -> usize {
    let lines = &board.screen.lines;
    if lines.is_empty() {
        let style = canvas.theme.style(Tone::Dim);
        canvas.text(indent(row(area, 0), 1), "No screen yet", style);
        return 0;
    }
    let is_blank = |line: &Line<'_>| line.spans.iter().all(|span| span.content.trim().is_empty());
    let end = lines.len() - lines.iter().rev().take_while(|line| is_blank(line)).count();
    let height = usize::from(area.height);
    let up = up.min(end.saturating_sub(height));
    let end = end - up;
    let start = end.saturating_sub(height);
    for (y, line) in (0..).zip(&lines[start..end]) {
        let theme = canvas.theme;
        let spans = line
            .spans
            .iter()
            .map(|span| Span::styled(span.content.as_ref(), theme.captured_style(span.style)));
        canvas.cropped(row(area, y), &Line::from(spans.collect::<Vec<_>>()));
    }
    up
}

/// Returns the data of an item without an agent.
pub(super) fn item_lines(card: &Card, width: usize, canvas: &mut Canvas<'_>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for text in wrap(&clean(&card.title), width.saturating_sub(2)) {
        lines.push(Line::from(canvas.span(format!(" {text}"), Tone::Strong)));
    }
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
