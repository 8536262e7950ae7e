//! Draws the list of escalations, and the confirmation of an emergency stop.

use super::menus::{foot, height_of, rows};
use super::{ListBox, middle};
use crate::action::{BoardAction, EscalationOperation};
use crate::board::Board;
use crate::facts::EscalationFacts;
use crate::keys::{self, KeyMode};
use crate::text::{clean, cut, fit, width, wrap};
use crate::theme::Tone;
use crate::view::Hit;
use crate::view::alarms::tone;
use crate::view::canvas::{Canvas, indent, row};
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Maximum number of rows of the list.
const LISTED: u16 = 10;

/// Draws the list, and the selected escalation in full below it.
pub(super) fn escalations(board: &Board, at: Option<&WorkId>, area: Rect, canvas: &mut Canvas<'_>) {
    let all = &board.facts.escalations;
    let wide = 100.min(area.width.saturating_sub(4));
    let room = usize::from(wide.saturating_sub(4));
    let selected = all.iter().find(|it| Some(&it.id) == at);
    let below = selected.map_or_else(Vec::new, |it| in_full(it, room, canvas));
    let lines: Vec<Line<'_>> = all.iter().map(|it| listed(it, room, canvas)).collect();
    let title = match board.facts.open_escalations().count() {
        0 if all.is_empty() => "Escalations: none is open".to_owned(),
        0 => "Escalations".to_owned(),
        open => format!("Escalations: {open} not acknowledged"),
    };
    let frame = ListBox {
        title: &title,
        tone: Tone::Bad,
        width: wide,
        most: LISTED,
        lines: &lines,
        cursor: all.iter().position(|it| Some(&it.id) == at),
        below: &below,
    }
    .draw(area, canvas);
    if all.is_empty() {
        foot(KeyMode::Escalations, &[BoardAction::Back], frame, canvas);
        return;
    }
    let actions = [
        BoardAction::Escalation(EscalationOperation::Acknowledge),
        BoardAction::Escalation(EscalationOperation::Close),
        BoardAction::Open,
        BoardAction::Back,
    ];
    foot(KeyMode::Escalations, &actions, frame, canvas);
}

fn listed(it: &EscalationFacts, room: usize, canvas: &mut Canvas<'_>) -> Line<'static> {
    let age = canvas.age(it.since);
    let (mark, tone) = match it.is_acknowledged {
        true => ("✓", Tone::Dim),
        false => ("!", tone(it.severity)),
    };
    let head = format!("{mark} {:<8} {age:>4} ", it.severity.as_str());
    let who = format!("{} ", clean(&it.who));
    let message = it.message.lines().next().unwrap_or_default();
    let rest = room.saturating_sub(width(&head) + width(&who));
    let text = if it.is_acknowledged {
        Tone::Dim
    } else {
        Tone::Text
    };
    Line::from(vec![
        canvas.span(head, tone),
        canvas.span(
            who,
            if it.is_acknowledged {
                Tone::Dim
            } else {
                Tone::Strong
            },
        ),
        canvas.span(cut(&clean(message), rest), text),
    ])
}

/// Returns the whole escalation, line by line.
fn in_full(it: &EscalationFacts, room: usize, canvas: &mut Canvas<'_>) -> Vec<Line<'static>> {
    let age = canvas.age(it.since);
    let mut facts = vec![format!("{} · {} · {age}", it.id, clean(&it.who))];
    facts.extend(it.item.as_ref().map(|item| format!("about {item}")));
    if it.count > 1 {
        facts.push(format!("occurred {} times", it.count));
    }
    if it.is_acknowledged {
        facts.push("acknowledged".to_owned());
    }
    let mut lines = vec![Line::from(canvas.span(facts.join(" · "), Tone::Dim))];
    for paragraph in it.message.lines() {
        let texts = wrap(&clean(paragraph), room);
        lines.extend(
            texts
                .into_iter()
                .map(|text| Line::from(canvas.span(text, Tone::Text))),
        );
    }
    lines
}

/// Draws the scopes, the effect for the selected one, and the keys.
pub(super) fn emergency_stop(
    board: &Board,
    scopes: &[(Option<String>, bool)],
    cursor: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    const WIDE: u16 = 64;
    let lines: Vec<Line<'_>> = scopes
        .iter()
        .map(|(rig, is_stopped)| {
            let name = rig
                .as_deref()
                .map_or_else(|| "the whole town".to_owned(), clean);
            let (sign, word, tone) = match is_stopped {
                true => ("■", "stopped", Tone::Bad),
                false => ("●", "not stopped", Tone::Good),
            };
            Line::from(vec![
                canvas.span(format!("{sign} "), tone),
                canvas.span(fit(&name, 30), Tone::Text),
                canvas.span(format!(" {word}"), Tone::Dim),
            ])
        })
        .collect();
    let is_stopped = scopes
        .get(cursor)
        .is_some_and(|(_, is_stopped)| *is_stopped);
    let rig = scopes.get(cursor).and_then(|(rig, _)| rig.as_deref());
    let effect = match is_stopped {
        true => [
            "Starts, messages and merges go on. Agents that were",
            "interrupted are told to continue.",
        ],
        false => [
            "Interrupts the turns of its agents, and blocks starts,",
            "messages and merges until the stop is ended.",
        ],
    };
    let listed = height_of(lines.len()).saturating_sub(2);
    let height = listed.saturating_add(7).min(area.height.saturating_sub(2));
    let frame = middle(area, WIDE, height, canvas);
    let inside = canvas.frame(frame, "Emergency stop", Tone::Bad);
    let list = Rect {
        height: listed.min(inside.height.saturating_sub(5)),
        ..inside
    };
    rows(&lines, cursor, list, canvas);
    let below = indent(
        Rect {
            y: list.bottom(),
            height: inside.height.saturating_sub(list.height),
            ..inside
        },
        1,
    );
    let style = canvas.theme.style(Tone::Text);
    for (y, text) in (0..).zip(effect) {
        canvas.text(row(below, y), text, style);
    }
    let name = rig.map_or_else(|| "the town".to_owned(), clean);
    let choices = [
        match is_stopped {
            true => (BoardAction::Yes, format!("End the stop of {name}")),
            false => (BoardAction::Yes, format!("Stop {name}")),
        },
        (BoardAction::Back, "Do nothing".to_owned()),
    ];
    for (y, (action, word)) in (3..).zip(choices) {
        let at = row(below, y);
        let key = keys::key_of(KeyMode::EmergencyStop, action);
        let line = Line::from(vec![
            canvas.span(format!("{key:<4}"), Tone::Key),
            canvas.span(word, Tone::Strong),
        ]);
        canvas.line(at, &line);
        canvas.note(at, Hit::Choice(action));
    }
    // Agents of the town belong to no rig; a stop of the town covers them too.
    let covered = board.facts.stop_of(None).is_some() && rig.is_some() && !is_stopped;
    if covered {
        let style = canvas.theme.style(Tone::Dim);
        canvas.text(row(below, 2), "The whole town is stopped already.", style);
    }
}
