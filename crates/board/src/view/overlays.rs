//! Draws overlays. Each is a box of rows, except the jump labels, which are drawn on the cards, and
//! the search, which uses the last line.

mod alarms;
mod form;
mod help;
mod menus;
mod questions;
mod queue;

use super::canvas::{Canvas, indent, row};
use crate::board::Board;
use crate::overlay::Overlay;
use crate::theme::Tone;
use menus::{hidden_rows, rows};
use ratatui::layout::Rect;
use ratatui::text::Line;

pub(super) fn draw(board: &Board, overlay: &Overlay, area: Rect, canvas: &mut Canvas<'_>) {
    match overlay {
        Overlay::Go { .. } | Overlay::Search { .. } => {}
        Overlay::Actions {
            bound,
            rows,
            cursor,
        } => menus::actions(board, bound, (rows, *cursor), area, canvas),
        Overlay::Filter { choices, cursor } => {
            menus::filter(board, choices, *cursor, area, canvas);
        }
        Overlay::Sort { cursor } => menus::sort(board, *cursor, area, canvas),
        Overlay::Palette { pick, mode, .. } => menus::palette(pick, *mode, area, canvas),
        Overlay::Projects { pick } => menus::projects(board, pick, area, canvas),
        Overlay::Servers {
            bound,
            servers,
            cursor,
        } => {
            menus::servers(board, bound, (servers, *cursor), area, canvas);
        }
        Overlay::MergeChoice { base, behind, .. } => {
            questions::merge_choice(base, *behind, area, canvas);
        }
        Overlay::Cleanup { items, scroll } => questions::cleanup(items, *scroll, area, canvas),
        Overlay::InitFailed { id, why, .. } => questions::init_failed(id, why, area, canvas),
        Overlay::Confirm {
            question,
            lines,
            scroll,
            ..
        } => {
            questions::confirm(question, lines, *scroll, area, canvas);
        }
        Overlay::Escalations { at, .. } => alarms::escalations(board, at.as_ref(), area, canvas),
        Overlay::EmergencyStop { scopes, cursor } => {
            alarms::emergency_stop(board, scopes, *cursor, area, canvas);
        }
        Overlay::Answer {
            items,
            input,
            scroll,
        } => questions::answer(board, items, (input, *scroll), area, canvas),
        Overlay::Write {
            purpose,
            about,
            input,
            ..
        } => form::write(purpose, about, input, area, canvas),
        Overlay::Form { form } => form::form(form, area, canvas),
        Overlay::Workers { bound, pick, .. } => menus::workers(board, bound, pick, area, canvas),
        Overlay::MergeQueue { at, .. } => queue::merge_queue(board, at.as_ref(), area, canvas),
        Overlay::ResumeFirst { id, .. } => questions::resume_first(board, id, area, canvas),
        Overlay::Restore { agents, scroll, .. } => {
            questions::restore(agents, *scroll, area, canvas);
        }
        Overlay::Comment {
            place,
            quoted,
            input,
            ..
        } => questions::comment(place, quoted, input, area, canvas),
        Overlay::Help { scroll, .. } => help::help(overlay, *scroll, area, canvas),
        Overlay::Log { scroll } => help::log(board, *scroll, area, canvas),
    }
}

/// Returns a rectangle of this size, limited to the area: in its middle, or beside the card that
/// the overlay is about.
fn middle(area: Rect, width: u16, height: u16, canvas: &Canvas<'_>) -> Rect {
    let width = width.min(area.width);
    let height = height.min(area.height);
    let centred = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    canvas.beside_subject(centred, area)
}

/// A box with a list, and below it the selected entry in full.
struct ListBox<'a> {
    title: &'a str,
    tone: Tone,
    width: u16,
    /// Maximum number of entries in view.
    most: u16,
    lines: &'a [Line<'a>],
    cursor: Option<usize>,
    below: &'a [Line<'a>],
}

impl ListBox<'_> {
    /// Draws the box and returns its frame.
    fn draw(&self, area: Rect, canvas: &mut Canvas<'_>) -> Rect {
        let count = |lines: &[Line<'_>]| u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let listed = count(self.lines).min(self.most);
        let height = count(self.below).saturating_add(listed + 3);
        let height = height.min(area.height.saturating_sub(2));
        let frame = middle(area, self.width, height, canvas);
        let inside = canvas.frame(frame, self.title, self.tone);
        // The text gets at least half of the box.
        let listed = listed.min(inside.height / 2).max(1);
        let list = Rect {
            height: listed.min(inside.height),
            ..inside
        };
        let rule = row(inside, listed);
        canvas.rule(rule, Tone::Rule);
        rows(self.lines, self.cursor.unwrap_or_default(), list, canvas);
        let body = indent(
            Rect {
                y: rule.y + 1,
                height: inside.height.saturating_sub(listed + 1),
                ..inside
            },
            1,
        );
        for (y, line) in (0..body.height).zip(self.below) {
            canvas.line(row(body, y), line);
        }
        frame
    }
}

/// Draws the lines in view, and records the scroll offset.
fn scrolled(lines: &[Line<'_>], scroll: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let height = usize::from(area.height);
    let scroll = scroll.min(lines.len().saturating_sub(height));
    for (y, line) in (0..).zip(lines.iter().skip(scroll).take(height)) {
        canvas.line(row(area, y), line);
    }
    canvas.drawn.overlay_scroll = scroll;
    canvas.drawn.page = height.max(1);
    let below = lines.len().saturating_sub(scroll + height);
    hidden_rows(scroll, below, area, canvas);
}
