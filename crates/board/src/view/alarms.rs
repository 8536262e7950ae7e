//! Draws the emergency stops in force and the open escalations, above everything else.

use super::canvas::{Canvas, row};
use super::{Hit, MIN_SIZE};
use crate::action::BoardAction;
use crate::board::Board;
use crate::facts::{EscalationFacts, StopFacts};
use crate::keys::{self, KeyMode};
use crate::text::{clean, cut, width};
use crate::theme::Tone;
use gt_core::escalation::Severity;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Maximum number of rows for stops, and for escalations.
const STOPS: usize = 2;
const ESCALATIONS: usize = 2;

/// Draws the rows and returns the area below them.
pub(super) fn draw(board: &Board, area: Rect, canvas: &mut Canvas<'_>) -> Rect {
    let (_, min_height) = MIN_SIZE;
    let room = usize::from(area.height.saturating_sub(min_height));
    let mut lines: Vec<(Line<'static>, BoardAction)> = Vec::new();
    for stop in board.facts.stops.iter().take(STOPS) {
        lines.push((stop_line(stop, area, canvas), BoardAction::EmergencyStop));
    }
    let open: Vec<&EscalationFacts> = board.facts.open_escalations().collect();
    for (number, it) in open.iter().take(ESCALATIONS).enumerate() {
        let more = match number + 1 == ESCALATIONS {
            true => open.len().saturating_sub(ESCALATIONS),
            false => 0,
        };
        lines.push((
            escalation_line(it, more, area, canvas),
            BoardAction::Escalations,
        ));
    }
    lines.truncate(room);
    for (y, (line, action)) in (0..).zip(&lines) {
        let at = row(area, y);
        canvas.paint(at, line.style);
        canvas.line(at, line);
        canvas.note(at, Hit::Key(*action));
    }
    let used = u16::try_from(lines.len()).unwrap_or(0);
    Rect {
        y: area.y + used,
        height: area.height - used,
        ..area
    }
}

fn stop_line(stop: &StopFacts, area: Rect, canvas: &mut Canvas<'_>) -> Line<'static> {
    let what = match &stop.rig {
        Some(rig) => format!("EMERGENCY STOP of {}", clean(rig)),
        None => "EMERGENCY STOP".to_owned(),
    };
    let age = stop.since.map(|since| format!(" {}", canvas.age(since)));
    let reason = stop.reason.as_deref().map(clean);
    let reason = reason.map(|reason| format!(": {reason}"));
    let text = format!(
        " ■ {what}{} by {}{}",
        age.unwrap_or_default(),
        clean(&stop.by),
        reason.unwrap_or_default(),
    );
    let key = keys::key_of(KeyMode::Board, BoardAction::EmergencyStop);
    let text = with_end(&text, &format!("{key} ends it"), area);
    Line::from(Span::raw(text)).style(canvas.theme.alarm_style())
}

fn escalation_line(
    it: &EscalationFacts,
    more: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) -> Line<'static> {
    let key = keys::key_of(KeyMode::Board, BoardAction::Escalations);
    let end = match more {
        0 => format!("{key} shows"),
        more => format!("+{more} more: {key} shows"),
    };
    let age = canvas.age(it.since);
    let head = format!(" ! {} {age} ", it.severity);
    let who = format!("{}: ", clean(&it.who));
    let message = it.message.lines().next().unwrap_or_default();
    let used = width(&head) + width(&who) + width(&end) + 2;
    let room = usize::from(area.width).saturating_sub(used);
    let message = cut(&clean(message), room);
    let gap = room - width(&message) + 1;
    Line::from(vec![
        canvas.span(head, tone(it.severity)),
        canvas.span(who, Tone::Strong),
        canvas.span(message, Tone::Text),
        canvas.span(format!("{:gap$}{end}", ""), Tone::Dim),
    ])
}

pub(super) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical | Severity::High => Tone::Bad,
        Severity::Medium => Tone::Asks,
        Severity::Low => Tone::Text,
    }
}

/// Returns the text, cut such that `end` fits at the right.
fn with_end(text: &str, end: &str, area: Rect) -> String {
    let room = usize::from(area.width).saturating_sub(width(end) + 2);
    let text = cut(text, room);
    let gap = room - width(&text) + 1;
    format!("{text}{:gap$}{end} ", "")
}
