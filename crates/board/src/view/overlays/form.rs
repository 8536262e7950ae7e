//! Draws the form of an item, and texts of several lines.

use super::middle;
use crate::action::BoardAction;
use crate::form::{FieldContent, FieldName, FormField, FormPurpose, ItemForm};
use crate::input::TextInput;
use crate::keys::{self, KeyMode};
use crate::overlay::WritePurpose;
use crate::text::{clean, width, wrap};
use crate::theme::Tone;
use crate::view::canvas::{Canvas, indent, row};
use crate::view::{Hit, frame};
use ratatui::layout::Rect;
use ratatui::text::Line;

const WIDE: u16 = 76;
/// Width of the labels of the fields.
const LABEL: u16 = 13;
/// Minimum number of rows of the description.
const DESCRIPTION: usize = 4;
/// Maximum number of lines about the receivers of a text.
const MAX: usize = 6;
/// Minimum number of rows of a text.
const TEXT: usize = 3;

pub(super) fn form(form: &ItemForm, area: Rect, canvas: &mut Canvas<'_>) {
    let title = match &form.purpose {
        FormPurpose::Create => "New item".to_owned(),
        FormPurpose::Edit { id, .. } => format!("Edit {id}"),
    };
    let wide = WIDE.min(area.width);
    let room = usize::from(wide.saturating_sub(LABEL + 4));
    let mut lines: Vec<(usize, Line<'static>)> = Vec::new();
    // The line and the cell of the cursor.
    let mut cursor = (0, 0);
    for (number, field) in form.fields.iter().enumerate() {
        let first = lines.len();
        let (texts, at) = content(field, room);
        if number == form.at {
            cursor = (first + at.0, at.1);
        }
        for (place, text) in texts.into_iter().enumerate() {
            let label = if place == 0 { field.name.label() } else { "" };
            let tone = if number == form.at {
                Tone::Key
            } else {
                Tone::Dim
            };
            let mark = if number == form.at && place == 0 {
                "▸"
            } else {
                " "
            };
            let wide = usize::from(LABEL - 1);
            lines.push((
                number,
                Line::from(vec![
                    canvas.span(mark, Tone::Focus),
                    canvas.span(format!("{label:<wide$}"), tone),
                    canvas.span(text, Tone::Text),
                ]),
            ));
        }
    }
    if lines.is_empty() {
        lines.push((0, Line::from(canvas.span(" Reading…", Tone::Dim))));
    }
    let wanted = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let at = middle(
        area,
        wide,
        wanted.min(area.height.saturating_sub(2)),
        canvas,
    );
    let inside = indent(canvas.frame(at, &title, Tone::Focus), 1);
    let height = usize::from(inside.height);
    let first = (cursor.0 + 1).saturating_sub(height);
    for (y, (field, line)) in (0..).zip(lines.iter().skip(first).take(height)) {
        canvas.line(row(inside, y), line);
        canvas.note(row(inside, y), Hit::Row(*field));
    }
    if !form.fields.is_empty() {
        let x = inside.x + LABEL + u16::try_from(cursor.1).unwrap_or(0);
        let y = inside.y + u16::try_from(cursor.0 - first).unwrap_or(0);
        canvas.point_at(x, y);
    }
    let hints = [
        (BoardAction::Accept, "save"),
        (BoardAction::NextField, "next field"),
        (BoardAction::NewLine, "line break"),
        (BoardAction::Back, "cancel"),
    ];
    foot(KeyMode::Form, &hints, at, canvas);
}

/// Returns the rows of a field, and the row and the cell of its cursor.
fn content(field: &FormField, room: usize) -> (Vec<String>, (usize, usize)) {
    match &field.content {
        FieldContent::Choice { options, chosen } => {
            let text = format!("‹ {} ›", clean(&options[*chosen]));
            (vec![text], (0, 0))
        }
        FieldContent::Text(input) if field.name == FieldName::Description => {
            let (mut rows, cursor) = input.rows(room);
            while rows.len() < DESCRIPTION {
                rows.push(String::new());
            }
            (rows, cursor)
        }
        FieldContent::Text(input) => {
            let (shown, at) = input.view(room);
            (vec![shown], (0, at))
        }
    }
}

/// Draws the subject of a text, and the text below it.
pub(super) fn write(
    purpose: &WritePurpose,
    about: &[String],
    input: &TextInput,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let (title, hint) = match purpose {
        WritePurpose::Nudge(_) => ("Message", "It is typed when the agent is idle"),
        WritePurpose::Handoff(_) => (
            "Hand over",
            "Notes for the next session; may be empty. The item of a polecat is open again.",
        ),
        WritePurpose::Escalate(_) => ("Escalate", "It is raised until it is acknowledged"),
        WritePurpose::Reject(_) => ("Reject", "The reason; its item is open again"),
    };
    let wide = WIDE.min(area.width);
    let room = usize::from(wide.saturating_sub(6));
    let mut lines: Vec<Line<'_>> = about
        .iter()
        .take(MAX)
        .map(|text| Line::from(canvas.span(clean(text), Tone::Text)))
        .collect();
    if about.len() > MAX {
        let more = format!("and {} more", about.len() - MAX);
        lines.push(Line::from(canvas.span(more, Tone::Dim)));
    }
    for line in wrap(hint, room) {
        lines.push(Line::from(canvas.span(line, Tone::Dim)));
    }
    let (mut rows, cursor) = input.rows(room);
    while rows.len() < TEXT {
        rows.push(String::new());
    }
    let wanted = u16::try_from(lines.len() + rows.len() + 2).unwrap_or(u16::MAX);
    let at = middle(
        area,
        wide,
        wanted.min(area.height.saturating_sub(2)),
        canvas,
    );
    // At the top, or at the left, the box does not cover the agent's screen, unless it would cover
    // the card.
    let at = Rect {
        x: match area.width >= frame::WIDE {
            true => area.x,
            false => at.x,
        },
        y: area.y + 1,
        ..at
    };
    let at = canvas.beside_subject(at, area);
    let inside = indent(canvas.frame(at, title, Tone::Asks), 1);
    // The text gets the rows that are left, at least one.
    let above = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let above = above.min(inside.height.saturating_sub(1));
    for (y, line) in (0..above).zip(&lines) {
        canvas.line(row(inside, y), line);
    }
    let body = Rect {
        y: inside.y + above,
        height: inside.height - above,
        ..inside
    };
    let height = usize::from(body.height);
    let first = (cursor.0 + 1).saturating_sub(height);
    let key = canvas.theme.style(Tone::Key);
    let style = canvas.theme.style(Tone::Text);
    for (y, text) in (0..).zip(rows.iter().skip(first).take(height)) {
        let line = row(body, y);
        if y == 0 {
            canvas.text(line, ">", key);
        }
        canvas.text(indent(line, 2), text, style);
    }
    let x = body.x + 2 + u16::try_from(cursor.1).unwrap_or(0);
    let y = body.y + u16::try_from(cursor.0 - first).unwrap_or(0);
    canvas.point_at(x, y);
    let hints = [
        (BoardAction::Accept, "send"),
        (BoardAction::NewLine, "line break"),
        (BoardAction::Back, "cancel"),
    ];
    foot(KeyMode::Message, &hints, at, canvas);
}

/// Draws key hints in the lower border of a box.
fn foot(mode: KeyMode, hints: &[(BoardAction, &str)], area: Rect, canvas: &mut Canvas<'_>) {
    let mut x = area.x + 1;
    let y = area.bottom().saturating_sub(1);
    for (action, word) in hints {
        let text = format!(" {} {word} ", keys::key_of(mode, *action));
        let wide = u16::try_from(width(&text)).unwrap_or(u16::MAX);
        if x.saturating_add(wide) >= area.right() {
            break;
        }
        let at = Rect {
            x,
            y,
            width: wide,
            height: 1,
        };
        let style = canvas.theme.style(Tone::Dim);
        canvas.text(at, &text, style);
        canvas.note(at, Hit::Choice(*action));
        x += wide;
    }
}
