//! Draws the merge queue.

use super::ListBox;
use super::menus::foot;
use crate::action::{BoardAction, MergeOperation};
use crate::board::Board;
use crate::facts::MergeFacts;
use crate::keys::KeyMode;
use crate::text::{clean, cut, fit, width, wrap};
use crate::theme::Tone;
use crate::view::canvas::Canvas;
use gt_core::merge::{MergeStatus, list_some};
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Maximum number of rows of the list.
const LISTED: u16 = 12;

/// Draws the entries with their states, and the selected one in full below them.
pub(super) fn merge_queue(board: &Board, at: Option<&WorkId>, area: Rect, canvas: &mut Canvas<'_>) {
    let all = &board.facts.merges;
    let wide = 100.min(area.width.saturating_sub(4));
    let room = usize::from(wide.saturating_sub(4));
    let lines: Vec<Line<'_>> = all
        .iter()
        .map(|it| listed(board, it, room, canvas))
        .collect();
    let selected = all.iter().find(|it| Some(&it.id) == at);
    let below = selected.map_or_else(Vec::new, |it| in_full(it, room, canvas));
    let title = match all.len() {
        0 => "Merge queue: nothing waits to be merged".to_owned(),
        1 => "Merge queue: 1 entry".to_owned(),
        count => format!("Merge queue: {count} entries"),
    };
    let frame = ListBox {
        title: &title,
        tone: Tone::Focus,
        width: wide,
        most: LISTED,
        lines: &lines,
        cursor: all.iter().position(|it| Some(&it.id) == at),
        below: &below,
    }
    .draw(area, canvas);
    if all.is_empty() {
        foot(KeyMode::MergeQueue, &[BoardAction::Back], frame, canvas);
        return;
    }
    let operation = match selected.map(|it| it.status) {
        Some(MergeStatus::Held) => MergeOperation::Approve,
        _ => MergeOperation::Retry,
    };
    let actions = [
        BoardAction::Merge(operation),
        BoardAction::Merge(MergeOperation::Reject),
        BoardAction::Merge(MergeOperation::Run),
        BoardAction::Open,
        BoardAction::Back,
    ];
    foot(KeyMode::MergeQueue, &actions, frame, canvas);
}

fn sign(status: MergeStatus) -> (&'static str, Tone) {
    match status {
        MergeStatus::Merging => ("●", Tone::Good),
        MergeStatus::Merged => ("✓", Tone::Good),
        MergeStatus::Held => ("?", Tone::Bad),
        MergeStatus::Conflict | MergeStatus::Failed => ("✗", Tone::Bad),
        MergeStatus::Queued | MergeStatus::Rejected | MergeStatus::Withdrawn => ("·", Tone::Text),
    }
}

fn listed(board: &Board, it: &MergeFacts, room: usize, canvas: &mut Canvas<'_>) -> Line<'static> {
    let age = canvas.age(it.since);
    let (sign, tone) = sign(it.status);
    let head = format!("{sign} {} {age:>4} ", fit(it.status.as_str(), 9));
    let title = board.card(&it.item).map_or("", |card| card.title.as_str());
    let item = format!("{} ", it.item);
    let rest = room.saturating_sub(width(&head) + width(&item));
    Line::from(vec![
        canvas.span(head, tone),
        canvas.span(item, Tone::Strong),
        canvas.span(cut(&clean(title), rest), Tone::Text),
    ])
}

/// Returns the whole entry, line by line.
fn in_full(it: &MergeFacts, room: usize, canvas: &mut Canvas<'_>) -> Vec<Line<'static>> {
    let attempts = match it.attempts {
        0 => String::new(),
        1 => " · 1 attempt".to_owned(),
        count => format!(" · {count} attempts"),
    };
    let mut texts = vec![(
        format!("{} · {} · {}{attempts}", it.id, it.rig, it.worker),
        Tone::Dim,
    )];
    texts.push((format!("branch {}", it.branch), Tone::Text));
    if let Some(reason) = &it.reason {
        texts.push((reason.clone(), Tone::Bad));
    }
    if !it.files.is_empty() {
        texts.push((format!("files: {}", list_some(&it.files)), Tone::Text));
    }
    if let Some(repair) = &it.repair {
        texts.push((format!("{repair} repairs it"), Tone::Text));
    }
    let mut lines = Vec::new();
    for (text, tone) in texts {
        for line in wrap(&text, room) {
            lines.push(Line::from(canvas.span(line, tone)));
        }
    }
    lines
}
