//! Draws lists from which the user selects one row.

use super::middle;
use crate::action::{BoardAction, CardOperation};
use crate::board::Board;
use crate::filter::Trait;
use crate::keys::{self, Binding, KeyMode};
use crate::overlay::{self, Pick};
use crate::sort::Sort;
use crate::text::{clean, cut, fit, width};
use crate::theme::{self, Tone};
use crate::view::Hit;
use crate::view::canvas::{Canvas, indent, row};
use gt_core::card::CardServer;
use gt_core::work::WorkId;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Draws rows, scrolled such that the cursor is in view. The border below says how many are not.
pub(super) fn rows(lines: &[Line<'_>], cursor: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let height = usize::from(area.height);
    let first = (cursor + 1).saturating_sub(height);
    for (y, (number, line)) in (0..).zip(lines.iter().enumerate().skip(first).take(height)) {
        let at = row(area, y);
        if number == cursor {
            let style = canvas.theme.cursor_row();
            canvas.paint(at, style);
            let focus = canvas.theme.style(Tone::Focus);
            canvas.text(Rect { width: 1, ..at }, "▸", focus);
        }
        canvas.line(indent(at, 1), line);
        canvas.note(at, Hit::Row(number));
    }
    canvas.drawn.page = height.max(1);
    hidden_rows(
        first,
        lines.len().saturating_sub(first + height),
        area,
        canvas,
    );
}

/// Draws the numbers of rows above and below the area into the border below it, if there are any.
pub(super) fn hidden_rows(above: usize, below: usize, area: Rect, canvas: &mut Canvas<'_>) {
    if above + below == 0 {
        return;
    }
    let mark = Line::from(canvas.span(format!(" ↑{above} ↓{below} "), Tone::Dim));
    let border = Rect {
        y: area.bottom(),
        height: 1,
        ..area
    };
    canvas.right(border, &mark);
}

pub(super) fn height_of(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2)
}

/// Returns a title for the cards of the overlay.
fn bound_title(board: &Board, bound: &[WorkId]) -> String {
    match bound {
        [one] => match board.card(one).filter(|card| card.is_agent) {
            Some(agent) => clean(&agent.title),
            None => one.to_string(),
        },
        many => format!("{} cards", many.len()),
    }
}

pub(super) fn actions(
    board: &Board,
    bound: &[WorkId],
    (operations, cursor): (&[CardOperation], usize),
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let bindings: Vec<(&Binding, CardOperation)> = overlay::action_rows().collect();
    let mut lines = Vec::new();
    for operation in operations.iter().copied() {
        let Some((binding, _)) = bindings.iter().find(|(_, other)| *other == operation) else {
            continue;
        };
        let meant = board.resolve_operation(operation, bound);
        let why_not = board.reason_against_all(meant, bound);
        let (key, word) = match why_not {
            None => (Tone::Key, Tone::Text),
            Some(_) => (Tone::Dim, Tone::Dim),
        };
        let mut spans = vec![
            canvas.span(format!("{} ", binding.keys), key),
            canvas.span(fit(binding.help, 26), word),
        ];
        match why_not {
            Some(why) => spans.push(canvas.span(format!("({why})"), Tone::Dim)),
            None if meant != operation => spans.push(canvas.span("(it runs: attaches)", Tone::Dim)),
            None => {
                let doubt = board.warning_about(meant, bound);
                spans.extend(doubt.map(|doubt| canvas.span(format!("({doubt})"), Tone::Dim)));
            }
        }
        lines.push(Line::from(spans));
    }
    // The addresses of agents may be long.
    let widest = lines.iter().map(Line::width).max().unwrap_or_default();
    let wide = u16::try_from(widest + 4).unwrap_or(60).clamp(60, 80);
    let at = middle(area, wide, height_of(lines.len()), canvas);
    // A marked card may be elsewhere than the cursor.
    let is_marked = bound.iter().any(|id| board.marks.contains(id));
    let mark = if is_marked { "◆ " } else { "" };
    let title = format!("{mark}{}", bound_title(board, bound));
    let inside = canvas.frame(at, &title, Tone::Focus);
    rows(&lines, cursor, inside, canvas);
}

pub(super) fn filter(
    board: &Board,
    choices: &[Trait],
    cursor: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let mut lines = Vec::new();
    let mut group = "";
    for choice in choices {
        let is_chosen = board.lens.filter.wanted.contains(choice);
        let heading = if choice.group() == group {
            ""
        } else {
            choice.group()
        };
        group = choice.group();
        let (mark, tone) = match is_chosen {
            true => ("[x]", Tone::Focus),
            false => ("[ ]", Tone::Text),
        };
        lines.push(Line::from(vec![
            canvas.span(format!("{heading:<9}"), Tone::Dim),
            canvas.span(format!("{mark} {}", clean(&choice.value())), tone),
        ]));
    }
    let at = middle(
        area,
        40,
        height_of(lines.len()).min(area.height.saturating_sub(2)),
        canvas,
    );
    let inside = canvas.frame(at, "Show only", Tone::Focus);
    rows(&lines, cursor, inside, canvas);
    foot(
        KeyMode::Filter,
        &[BoardAction::Toggle, BoardAction::Clear, BoardAction::Back],
        at,
        canvas,
    );
}

pub(super) fn sort(board: &Board, cursor: usize, area: Rect, canvas: &mut Canvas<'_>) {
    let lines = Sort::ALL.map(|sort| {
        let action = BoardAction::SortBy(sort);
        let binding = keys::rows(KeyMode::Sort).find(|row| row.action == action);
        let is_chosen = board.lens.sort == sort;
        let mark = match (is_chosen, board.lens.reversed) {
            (false, _) => " ",
            (true, false) => "↓",
            (true, true) => "↑",
        };
        Line::from(vec![
            canvas.span(format!("{mark} "), Tone::Focus),
            canvas.span(
                format!("{} ", keys::key_of(KeyMode::Sort, action)),
                Tone::Key,
            ),
            canvas.span(binding.map_or("", |row| row.help), Tone::Text),
        ])
    });
    let at = middle(area, 50, height_of(lines.len()), canvas);
    let inside = canvas.frame(at, "Order", Tone::Focus);
    rows(&lines, cursor, inside, canvas);
}

/// Draws key hints in the lower border of a box.
pub(super) fn foot(mode: KeyMode, actions: &[BoardAction], area: Rect, canvas: &mut Canvas<'_>) {
    let mut words = Vec::new();
    for action in actions {
        if let Some(binding) = keys::rows(mode).find(|row| row.action == *action) {
            words.push(format!(
                "{} {}",
                keys::key_of(mode, *action),
                first_word(binding.help)
            ));
        }
    }
    let text = format!(" {} ", words.join(" · "));
    let style = canvas.theme.style(Tone::Dim);
    let edge = Rect {
        width: area.width.saturating_sub(2),
        ..indent(row(area, area.height.saturating_sub(1)), 1)
    };
    canvas.text(edge, &text, style);
}

fn first_word(help: &str) -> String {
    let word = help.split([' ', ',', ':']).next().unwrap_or_default();
    word.to_lowercase()
}

/// Draws an input line above the matching rows.
fn pick_box(
    pick: &Pick,
    title: &str,
    lines: &[Line<'_>],
    wanted: (u16, usize),
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let (wide, most) = wanted;
    let height = height_of(most + 1).min(area.height.saturating_sub(2));
    let at = middle(area, wide, height, canvas);
    let inside = canvas.frame(at, title, Tone::Focus);
    let line = row(inside, 0);
    let key = canvas.theme.style(Tone::Key);
    let x = canvas.text(line, "> ", key);
    let room = Rect {
        x,
        width: line.right().saturating_sub(x),
        ..line
    };
    let (shown, cursor) = pick.input.view(usize::from(room.width));
    let style = canvas.theme.style(Tone::Text);
    canvas.text(room, &shown, style);
    canvas.point_at(x + u16::try_from(cursor).unwrap_or(0), line.y);
    let below = Rect {
        y: inside.y + 1,
        height: inside.height.saturating_sub(1),
        ..inside
    };
    rows(lines, pick.cursor, below, canvas);
}

pub(super) fn palette(pick: &Pick, mode: KeyMode, area: Rect, canvas: &mut Canvas<'_>) {
    let commands = overlay::commands(mode);
    let lines: Vec<Line<'_>> = pick
        .found
        .iter()
        .map(|number| {
            let binding = commands[*number];
            let before = match binding.mode {
                KeyMode::Actions if !binding.keys.is_empty() => "Space ",
                _ => "",
            };
            let keys = format!("{before}{}", binding.keys);
            Line::from(vec![
                canvas.span(fit(&keys, 14), Tone::Key),
                canvas.span(format!(" {}", binding.help), Tone::Text),
                canvas.span(
                    format!("  {}", binding.command.unwrap_or_default()),
                    Tone::Dim,
                ),
            ])
        })
        .collect();
    pick_box(
        pick,
        "Commands",
        &lines,
        (76, commands.len().min(16)),
        area,
        canvas,
    );
}

pub(super) fn projects(board: &Board, pick: &Pick, area: Rect, canvas: &mut Canvas<'_>) {
    let lines: Vec<Line<'_>> =
        pick.found
            .iter()
            .map(|number| {
                let name = clean(pick.text(*number));
                let is_shown = match *number {
                    0 => board.lens.project.is_none(),
                    _ => board.lens.project.as_deref() == Some(pick.text(*number)),
                };
                let cards =
                    board.facts.cards.iter().filter(|card| {
                        *number == 0 || card.rig.as_deref() == Some(pick.text(*number))
                    });
                let mark = if is_shown { "●" } else { " " };
                Line::from(vec![
                    canvas.span(format!("{mark} "), Tone::Focus),
                    canvas.span(cut(&name, 40), Tone::Text),
                    canvas.span(format!(" {}", cards.count()), Tone::Dim),
                ])
            })
            .collect();
    let most = (board.facts.projects.len() + 1).min(16);
    pick_box(pick, "Projects", &lines, (50, most), area, canvas);
}

/// Draws the workers that the items can be given to.
pub(super) fn workers(
    board: &Board,
    bound: &[WorkId],
    pick: &Pick,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let lines: Vec<Line<'_>> = pick
        .found
        .iter()
        .map(|number| Line::from(canvas.span(clean(pick.text(*number)), Tone::Text)))
        .collect();
    let title = format!("Give {} to", bound_title(board, bound));
    pick_box(
        pick,
        &title,
        &lines,
        (60, pick.count().min(16)),
        area,
        canvas,
    );
}

pub(super) fn servers(
    board: &Board,
    bound: &[WorkId],
    (servers, cursor): (&[CardServer], usize),
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let mut lines = vec![Line::from(canvas.span("all servers", Tone::Text))];
    for server in servers {
        let (sign, word, tone) = theme::server(server.state);
        let port = server
            .port
            .map(|port| format!(" :{port}"))
            .unwrap_or_default();
        lines.push(Line::from(vec![
            canvas.span(format!("{sign} "), tone),
            canvas.span(fit(&clean(&server.name), 18), Tone::Text),
            canvas.span(format!(" {word}{port}"), tone),
        ]));
    }
    let title = format!("Dev servers of {}", bound_title(board, bound));
    let wide = u16::try_from(width(&title) + 6).unwrap_or(56).clamp(56, 80);
    let at = middle(area, wide, height_of(lines.len()), canvas);
    let inside = canvas.frame(at, &title, Tone::Focus);
    rows(&lines, cursor, inside, canvas);
    let operations: Vec<BoardAction> = keys::rows(KeyMode::Servers)
        .filter(|row| matches!(row.action, BoardAction::Server(_)))
        .map(|row| row.action)
        .collect();
    foot(KeyMode::Servers, &operations, at, canvas);
}
