//! Draws confirmations and questions.

use super::{middle, scrolled};
use crate::action::BoardAction;
use crate::board::Board;
use crate::diff::DiffPlace;
use crate::input::TextInput;
use crate::keys::{self, KeyMode};
use crate::overlay::{AskedItem, Cleaning};
use crate::text::{clean, width, wrap};
use crate::theme::Tone;
use crate::view::canvas::{Canvas, indent, row};
use crate::view::{Hit, frame};
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Draws the choice for a branch that is behind its base. The wording is that of the specification.
pub(super) fn merge_choice(base: &str, behind: u32, area: Rect, canvas: &mut Canvas<'_>) {
    let base = clean(base);
    let commits = if behind == 1 { "commit" } else { "commits" };
    let key = |action| keys::key_of(KeyMode::MergeChoice, action);
    let texts = [
        (format!("↓ Branch Behind {base}"), None),
        (String::new(), None),
        (format!("{behind} {commits} behind"), None),
        (
            format!("Merge {base} into your branch before attaching?"),
            None,
        ),
        (String::new(), None),
        (
            format!(
                "{}: Merge & Attach (pull latest {base})",
                key(BoardAction::MergeAndAttach)
            ),
            Some(BoardAction::MergeAndAttach),
        ),
        (
            format!(
                "{}: Skip & Attach (attach without merge)",
                key(BoardAction::SkipAndAttach)
            ),
            Some(BoardAction::SkipAndAttach),
        ),
        (
            format!("{}: Cancel", key(BoardAction::Back)),
            Some(BoardAction::Back),
        ),
    ];
    let widest = texts.iter().map(|(text, _)| width(text)).max().unwrap_or(0);
    let wide = u16::try_from(widest + 4).unwrap_or(u16::MAX).clamp(51, 78);
    let at = middle(area, wide, 10, canvas);
    let inside = indent(canvas.frame(at, "", Tone::Asks), 1);
    for (y, (text, action)) in (0..).zip(&texts) {
        let tone = if y == 0 { Tone::Asks } else { Tone::Text };
        let style = canvas.theme.style(tone);
        canvas.text(row(inside, y), text, style);
        if let Some(action) = action {
            canvas.note(row(inside, y), Hit::Choice(*action));
        }
    }
}

pub(super) fn cleanup(items: &[Cleaning], scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let wide = 72.min(area.width);
    let room = usize::from(wide.saturating_sub(6));
    let mut lines = Vec::new();
    for item in items {
        lines.push(Line::from(canvas.span(item.id.to_string(), Tone::Strong)));
        let (texts, tone) = match &item.foreseen {
            None => (vec!["Looking…".to_owned()], Tone::Dim),
            Some(Ok(texts)) => (texts.clone(), Tone::Text),
            Some(Err(why)) => (vec![format!("refused: {why}")], Tone::Bad),
        };
        for text in texts {
            for line in wrap(&text, room) {
                lines.push(Line::from(canvas.span(format!("  {line}"), tone)));
            }
        }
    }
    let are_known = items.iter().all(|item| item.foreseen.is_some());
    let some = |good: bool| {
        are_known
            && items
                .iter()
                .any(|item| matches!(&item.foreseen, Some(seen) if seen.is_ok() == good))
    };
    let actions = [
        (BoardAction::Yes, some(true)),
        (BoardAction::YesAndClose, some(true)),
        (BoardAction::Force, some(false)),
        (BoardAction::Back, true),
    ];
    let title = match items {
        [one] => format!("Clean up {}?", one.id),
        many => format!("Clean up {} cards?", many.len()),
    };
    question(
        KeyMode::Cleanup,
        &title,
        &lines,
        &actions,
        scroll,
        (wide, area),
        canvas,
    );
}

pub(super) fn confirm(
    text: &str,
    about: &[String],
    scroll: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let wide = 72.min(area.width);
    let room = usize::from(wide.saturating_sub(4));
    let lines: Vec<Line<'_>> = about
        .iter()
        .flat_map(|text| match width(&clean(text)) > room {
            true => wrap(text, room),
            false => vec![clean(text)],
        })
        .map(|line| Line::from(canvas.span(line, Tone::Text)))
        .collect();
    let actions = [(BoardAction::Yes, true), (BoardAction::Back, true)];
    question(
        KeyMode::Confirm,
        text,
        &lines,
        &actions,
        scroll,
        (wide, area),
        canvas,
    );
}

/// Draws the question after a failed init command, for any operation that needs a container.
pub(super) fn init_failed(id: &WorkId, why: &str, area: Rect, canvas: &mut Canvas<'_>) {
    let wide = 72.min(area.width);
    let room = usize::from(wide.saturating_sub(4));
    // The other lines are hints, which the keys below replace.
    let why = why.lines().next().unwrap_or_default();
    let lines: Vec<Line<'_>> = wrap(why, room)
        .into_iter()
        .map(|line| Line::from(canvas.span(line, Tone::Bad)))
        .collect();
    let actions = [
        BoardAction::Yes,
        BoardAction::SkipAndAttach,
        BoardAction::Back,
    ]
    .map(|action| (action, true));
    let title = format!("Go on with {id}?");
    question(
        KeyMode::InitFailed,
        &title,
        &lines,
        &actions,
        0,
        (wide, area),
        canvas,
    );
}

/// Draws the subject and the keys below it. Keys that have no effect now are dimmed.
fn question(
    mode: KeyMode,
    title: &str,
    lines: &[Line<'_>],
    actions: &[(BoardAction, bool)],
    scroll: usize,
    (wide, area): (u16, Rect),
    canvas: &mut Canvas<'_>,
) {
    let wanted = u16::try_from(lines.len() + actions.len() + 3).unwrap_or(u16::MAX);
    let at = middle(
        area,
        wide,
        wanted.min(area.height.saturating_sub(2)),
        canvas,
    );
    let inside = indent(canvas.frame(at, &clean(title), Tone::Asks), 1);
    let keys_height = u16::try_from(actions.len()).unwrap_or(0);
    let body = Rect {
        height: inside.height.saturating_sub(keys_height + 1),
        ..inside
    };
    scrolled(lines, scroll, body, canvas);
    let first = inside.height.saturating_sub(keys_height);
    for (y, (action, counts)) in (first..).zip(actions) {
        let binding = keys::rows(mode).find(|row| row.action == *action);
        let help = binding.map_or("", |row| row.help);
        let (key, word) = match counts {
            true => (Tone::Key, Tone::Text),
            false => (Tone::Dim, Tone::Dim),
        };
        let line = Line::from(vec![
            canvas.span(format!("{:<4}", keys::key_of(mode, *action)), key),
            canvas.span(help, word),
        ]);
        let at = row(inside, y);
        canvas.line(at, &line);
        canvas.note(at, Hit::Choice(*action));
    }
}

/// Draws the questions as they were read, and an input line for the answer.
pub(super) fn answer(
    board: &Board,
    items: &[AskedItem],
    (input, scroll): (&TextInput, usize),
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let room = usize::from(TYPED_WIDTH.min(area.width).saturating_sub(6));
    let mut lines = Vec::new();
    for item in items {
        let is_agent = board.card(&item.id).is_some_and(|card| card.is_agent);
        let mut head = match is_agent {
            true => clean(&item.agent),
            false => format!("{}  {}", item.id, clean(&item.agent)),
        };
        if let Some(window) = &item.window {
            head.push_str(&format!(" in its window {}", clean(window)));
        }
        lines.push(Line::from(canvas.span(head, Tone::Strong)));
        match &item.question {
            None => lines.push(Line::from(
                canvas.span("  Reading what it asks…", Tone::Dim),
            )),
            Some(Err(why)) => {
                for line in wrap(why, room) {
                    lines.push(Line::from(canvas.span(format!("  {line}"), Tone::Bad)));
                }
                let instead = "  Nothing is answered: a attaches, to answer there";
                lines.push(Line::from(canvas.span(instead, Tone::Dim)));
            }
            Some(Ok(question)) => {
                for line in wrap(&question.text, room) {
                    lines.push(Line::from(canvas.span(format!("  {line}"), Tone::Text)));
                }
                for (label, option) in &question.options {
                    // Options are shown in full: the end may say for how long they approve.
                    let mut label = format!("  {} ", clean(label));
                    for line in wrap(option, room.saturating_sub(width(&label))) {
                        let beneath = " ".repeat(width(&label));
                        lines.push(Line::from(vec![
                            canvas.span(std::mem::replace(&mut label, beneath), Tone::Key),
                            canvas.span(line, Tone::Text),
                        ]));
                    }
                }
            }
        }
    }
    let is_known = |item: &AskedItem| matches!(item.question, Some(Ok(_)));
    let can_be_sent =
        items.iter().all(|item| item.question.is_some()) && items.iter().any(is_known);
    let hint = match (can_be_sent, input.text().is_empty()) {
        (true, true) => "The number of an option answers; words of it are sent with Enter",
        // A number that was typed before the question was shown answers nothing by itself.
        (true, false) => "Enter sends it",
        (false, _) => "",
    };
    typed("Answer", &lines, scroll, hint, input, area, canvas);
}

/// Draws the offer to resume the conversation of an item, before it is started anew.
pub(super) fn resume_first(board: &Board, id: &WorkId, area: Rect, canvas: &mut Canvas<'_>) {
    let wide = 72.min(area.width);
    let room = usize::from(wide.saturating_sub(4));
    let title = board.card(id).map_or("", |card| card.title.as_str());
    let mut texts = wrap(&clean(title), room);
    texts.push(String::new());
    texts.extend(wrap(
        "Its agent worked on it before, and its conversation can be resumed.",
        room,
    ));
    let lines: Vec<Line<'_>> = texts
        .into_iter()
        .map(|line| Line::from(canvas.span(line, Tone::Text)))
        .collect();
    let actions = [
        BoardAction::ResumeConversation,
        BoardAction::StartAnew,
        BoardAction::Back,
    ]
    .map(|action| (action, true));
    let title = format!("Resume {id}?");
    question(
        KeyMode::ResumeFirst,
        &title,
        &lines,
        &actions,
        0,
        (wide, area),
        canvas,
    );
}

/// Draws the offer to restore the agents that were lost with their tmux server.
pub(super) fn restore(agents: &[String], scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let title = match agents.len() {
        1 => "1 agent was lost with its tmux server. Restore it?".to_owned(),
        count => format!("{count} agents were lost with their tmux server. Restore all?"),
    };
    confirm(&title, agents, scroll, area, canvas);
}

/// Draws the line of the diff and an input line for the comment.
pub(super) fn comment(
    place: &DiffPlace,
    quoted: &str,
    input: &TextInput,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let room = usize::from(TYPED_WIDTH.min(area.width).saturating_sub(6));
    let lines: Vec<Line<'_>> = wrap(quoted.trim_start(), room)
        .into_iter()
        .map(|line| Line::from(canvas.span(format!("│ {line}"), Tone::Dim)))
        .collect();
    let title = format!("Comment on {}", clean(&place.to_string()));
    let hint = "Enter keeps it; s sends all comments together. Empty: no comment";
    typed(&title, &lines, 0, hint, input, area, canvas);
}

const TYPED_WIDTH: u16 = 76;

/// Draws the subject, a hint and an input line below it.
fn typed(
    title: &str,
    lines: &[Line<'_>],
    scroll: usize,
    hint: &str,
    input: &TextInput,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let wanted = u16::try_from(lines.len() + 4).unwrap_or(u16::MAX);
    let height = wanted.min(area.height.saturating_sub(2));
    let width = TYPED_WIDTH.min(area.width);
    let at = Rect {
        x: area.x + (area.width - width) / 2,
        width,
        height,
        ..area
    };
    // At the top, or at the left, the box does not cover the agent's question.
    let at = Rect {
        x: if area.width >= frame::WIDE {
            area.x
        } else {
            at.x
        },
        y: area.y + 1,
        ..at
    };
    let at = canvas.beside_subject(at, area);
    let inside = indent(canvas.frame(at, title, Tone::Asks), 1);
    let body = Rect {
        height: inside.height.saturating_sub(2),
        ..inside
    };
    scrolled(lines, scroll, body, canvas);
    let style = canvas.theme.style(Tone::Dim);
    canvas.text(row(inside, inside.height.saturating_sub(2)), hint, style);
    let line = row(inside, inside.height.saturating_sub(1));
    let key = canvas.theme.style(Tone::Key);
    let x = canvas.text(line, "> ", key);
    let room = Rect {
        x,
        width: line.right().saturating_sub(x),
        ..line
    };
    let (shown, cursor) = input.view(usize::from(room.width));
    let style = canvas.theme.style(Tone::Text);
    canvas.text(room, &shown, style);
    canvas.point_at(x + u16::try_from(cursor).unwrap_or(0), line.y);
}
