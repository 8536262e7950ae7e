//! The state of a card in words: what its agent does, for how long, and why.

use super::Shape;
use crate::text::{clean, cut, width, wrap_after};
use crate::theme::{self, Tone};
use crate::view::canvas::Canvas;
use crate::{Moment, age};
use gt_core::card::{AskingProgram, Card};
use gt_core::state::{self, Reason, State};
use gt_core::work::WorkId;
use ratatui::text::{Line, Span};

/// A text and its tone.
type Piece = (String, Tone);

/// Maximum number of rows of one reason.
const REASON_ROWS: usize = 2;
/// Indentation of all rows of a card except the first, in cells.
const INDENT: usize = 2;

/// A reason for the state. The first one follows the state after a colon.
struct Note {
    text: String,
    tone: Tone,
    is_reason: bool,
}

/// Returns the rows of a card about its state.
pub(super) fn rows(card: &Card, shape: Shape) -> Vec<Vec<Piece>> {
    flow(card, shape.width.saturating_sub(INDENT), shape.now)
}

/// Returns the state with its age and its reasons as one line.
pub(in crate::view) fn line(card: &Card, canvas: &mut Canvas<'_>) -> Line<'static> {
    schedule(card, canvas);
    let rows = flow(card, usize::MAX / 2, canvas.now);
    let pieces = rows.into_iter().flatten();
    let spans = pieces.map(|(text, tone)| canvas.span(text, tone));
    Line::from(spans.collect::<Vec<Span<'static>>>())
}

/// Schedules a frame for the moment at which a row becomes outdated.
pub(super) fn schedule(card: &Card, canvas: &mut Canvas<'_>) {
    canvas.age(card.since());
    if let Some((_, changes)) = reset(card, canvas.now) {
        canvas.draw_again_at(changes);
    }
}

/// Arranges the state and its reasons in rows of `room` cells.
fn flow(card: &Card, room: usize, now: Moment) -> Vec<Vec<Piece>> {
    let (age, _) = age::label(card.since(), now);
    let (word, tone) = label(card);
    let mut row = vec![(word, tone), (format!(" {age}"), Tone::Text)];
    if card.session.as_ref().is_some_and(|it| it.attached) {
        row.push((" ⇄".to_owned(), Tone::Focus));
    }
    let mut used: usize = row.iter().map(|(text, _)| width(text)).sum();
    let mut rows = Vec::new();
    for note in notes(card, now) {
        let between = if note.is_reason { ": " } else { " · " };
        // Only a reason is broken after the state: the others are short and have their own row.
        let start = used + width(between);
        let fits = start + width(&note.text) <= room;
        let mut lines = match note.is_reason || fits {
            true => wrap_after(start, &note.text, room),
            false => wrap_after(room, &note.text, room),
        };
        let is_beside = lines.first().is_some_and(|first| !first.is_empty());
        if !is_beside {
            lines.remove(0);
        }
        if lines.len() > REASON_ROWS {
            let rest = lines.split_off(REASON_ROWS - 1).join(" ");
            lines.push(cut(&rest, room));
        }
        for (number, line) in lines.into_iter().enumerate() {
            match number == 0 && is_beside {
                true => {
                    used += width(between) + width(&line);
                    row.push((between.to_owned(), Tone::Dim));
                }
                false => {
                    used = width(&line);
                    rows.push(std::mem::take(&mut row));
                }
            }
            row.push((line, note.tone));
        }
    }
    rows.push(row);
    rows
}

/// Returns the word for the state of the agent, or else of the item.
pub(in crate::view) fn label(card: &Card) -> Piece {
    let background = card.session.as_ref().map_or(0, |it| it.background);
    match card.state() {
        Some(_) if card.is_lost() => ("lost".to_owned(), Tone::Bad),
        Some(State::Busy) => ("working".to_owned(), Tone::Busy),
        Some(state) => (state::label(state, background), theme::tone(Some(state))),
        None => (card.status.as_str().replace('_', " "), Tone::Dim),
    }
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

fn notes(card: &Card, now: Moment) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut add = |text: String, tone, is_reason| {
        notes.push(Note {
            text,
            tone,
            is_reason,
        });
    };
    if card.is_lost() {
        add("its tmux session is gone".to_owned(), Tone::Dim, true);
    } else if let Some(reason) = reason(card) {
        add(reason, Tone::Dim, true);
    }
    if let Some((text, tone)) = resolver_note(card) {
        add(text, tone, false);
    }
    if let Some(merge) = card.merge {
        let tone = if merge.is_broken() {
            Tone::Bad
        } else {
            Tone::Text
        };
        add(format!("merge {}", merge.as_str()), tone, false);
    }
    if !card.blocked_by.is_empty() {
        let ids: Vec<&str> = card.blocked_by.iter().map(WorkId::as_str).collect();
        add(format!("blocked by {}", ids.join(" ")), Tone::Asks, false);
    }
    if let Some((reset, _)) = reset(card, now) {
        add(reset, Tone::Text, false);
    }
    notes
}

/// Returns the reason for the agent's state in the words of its program. `None` if it says no more
/// than the state itself.
fn reason(card: &Card) -> Option<String> {
    let text = card.session.as_ref()?.reason.as_deref()?;
    let is_plain = matches!(
        Reason::from(text),
        Reason::Finished | Reason::TookPrompt | Reason::FirstPrompt | Reason::Works
    );
    let text = clean(text);
    let state = card.state()?;
    let text = match state {
        State::Busy => command_of(&text),
        // The state says so already.
        State::Waiting => text.trim().trim_start_matches("asks: "),
        _ => text.trim(),
    };
    let text = text
        .strip_prefix(state.as_str())
        .unwrap_or(text)
        .trim_start();
    (!is_plain && !text.is_empty()).then(|| text.to_owned())
}

/// The tools with which programs run a command.
const SHELLS: [&str; 5] = ["Bash", "shell", "bash", "run_shell_command", "exec_command"];

/// Returns the command of a tool call that runs one; any other text as it is.
fn command_of(text: &str) -> &str {
    let call = text
        .trim()
        .strip_suffix(')')
        .and_then(|it| it.split_once('('));
    match call {
        Some((tool, command)) if SHELLS.contains(&tool) => command.trim(),
        _ => text.trim(),
    }
}

/// Returns the need of the agent that resolves conflicts, unless the card's own agent asks first.
fn resolver_note(card: &Card) -> Option<Piece> {
    let resolver = card.resolver_needs_you()?;
    let tone = match resolver.state {
        State::Waiting if card.asking_program() == Some(AskingProgram::Agent) => return None,
        State::Waiting => Tone::Asks,
        _ => Tone::Bad,
    };
    let reason = resolver.reason.as_deref().map(clean);
    reason.map(|reason| (reason, tone))
}

#[cfg(test)]
mod tests {
    use super::command_of;

    #[test]
    fn command_is_taken_out_of_the_call_of_a_shell_only() {
        for (text, expected) in [
            ("Bash(cargo test)", "cargo test"),
            ("run_shell_command( ls (x) )", "ls (x)"),
            ("Edit(src/a.rs)", "Edit(src/a.rs)"),
            ("compacts its context", "compacts its context"),
            ("Bash", "Bash"),
            ("Bash(cut off", "Bash(cut off"),
        ] {
            assert_eq!(command_of(text), expected);
        }
    }
}
