//! Draws the board view: a header, columns and preview, a footer.

use super::canvas::{Canvas, row};
use super::{Hit, card, columns, preview};
use crate::action::{BoardAction, CardOperation};
use crate::board::Board;
use crate::keys::{self, KeyMode};
use crate::overlay::Overlay;
use crate::text::{clean, width};
use crate::theme::{self, Tone};
use gt_core::card::{Card, Column};
use gt_core::plural::counted;
use gt_core::state::State;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Minimum width for a preview beside the columns; otherwise it is below them.
pub(super) const WIDE: u16 = 160;
/// Minimum height for a preview below the columns.
const TALL: u16 = 20;

pub(super) fn draw(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    let body = Rect {
        y: area.y + 1,
        height: area.height - 2,
        ..area
    };
    let (left, aside) = split(board, body, canvas);
    let in_view = columns::draw(board, left, canvas);
    if let Some(aside) = aside {
        preview::draw(board, aside, canvas);
    }
    header(board, row(area, 0), &in_view, canvas);
    footer(board, row(area, area.height - 1), canvas);
}

fn split(board: &Board, body: Rect, canvas: &mut Canvas<'_>) -> (Rect, Option<Rect>) {
    if !board.preview || board.cursor.is_none() {
        return (body, None);
    }
    if body.width >= WIDE {
        let width = (body.width * 2 / 5).clamp(60, 110);
        let left = Rect {
            width: body.width - width - 1,
            ..body
        };
        let aside = Rect {
            x: body.right() - width,
            width,
            ..body
        };
        return (left, Some(aside));
    }
    if body.height + 2 < TALL {
        return (body, None);
    }
    // While the content is not known, the height stays.
    let most = body.height * 2 / 5;
    let wanted = preview::height(board, body.width, canvas).or(board.drawn.preview_height);
    let height = wanted.map_or(most, |wanted| wanted.min(most));
    canvas.drawn.preview_height = Some(height);
    let above = Rect {
        height: body.height - height,
        ..body
    };
    let below = Rect {
        y: body.bottom() - height,
        height,
        ..body
    };
    (above, Some(below))
}

/// Draws the town and the selection; at the right the columns that are out of view.
fn header(board: &Board, area: Rect, in_view: &[Column], canvas: &mut Canvas<'_>) {
    let lens = &board.lens;
    let project = lens.project.as_deref().unwrap_or("all projects");
    let mut spans = vec![
        canvas.span(format!(" {}", clean(&board.facts.town)), Tone::Strong),
        canvas.span(format!(" · {}", clean(project)), Tone::Text),
    ];
    let shown = board.lists.shown();
    let count = match shown == board.lists.all {
        true if shown == 0 => String::new(),
        true => format!(" · {}", counted(shown, "card")),
        false => format!(" · {shown} of {}", board.lists.all),
    };
    spans.push(canvas.span(count, Tone::Dim));
    if !board.marks.is_empty() {
        spans.push(canvas.span(format!(" · ◆ {} marked", board.marks.len()), Tone::Marked));
    }
    if !lens.query.is_empty() {
        spans.push(canvas.span(format!(" · /{}", clean(&lens.query)), Tone::Key));
    }
    if !lens.filter.is_empty() {
        let words = clean(&lens.filter.describe());
        spans.push(canvas.span(format!(" · only {words}"), Tone::Key));
    }
    if lens.sort != crate::sort::Sort::Usual || lens.reversed {
        let turned = if lens.reversed { " reversed" } else { "" };
        let word = format!(" · by {}{turned}", lens.sort.as_str());
        spans.push(canvas.span(word, Tone::Dim));
    }
    let counts = state_counts(board);
    if !counts.is_empty() {
        spans.push(canvas.span(" ·", Tone::Dim));
    }
    for (sign, count, tone) in counts {
        spans.push(canvas.span(format!(" {sign}{count}"), tone));
    }
    if let Some(cost) = spent_today(board) {
        spans.push(canvas.span(format!(" · {} today", card::dollars(cost)), Tone::Dim));
    }
    let left: usize = spans.iter().map(|span| width(&span.content)).sum();
    let room = usize::from(area.width).saturating_sub(left);
    let hidden = hidden_columns(board, in_view, room);
    let taken = width_of(&hidden);
    let taken = u16::try_from(taken).unwrap_or(area.width).min(area.width);
    let room = Rect {
        width: area.width - taken,
        ..area
    };
    canvas.line(room, &Line::from(spans));
    let mut x = room.right();
    for (text, column) in hidden {
        let width = u16::try_from(width(&text)).unwrap_or(0);
        let at = Rect { x, width, ..area };
        let style = canvas.theme.style(Tone::Dim);
        canvas.text(at, &text, style);
        canvas.note(at, Hit::Column(column));
        x = x.saturating_add(width + 1);
    }
}

/// Returns the cost of today's sessions in the selected project, if there is any.
fn spent_today(board: &Board) -> Option<f64> {
    /// Smaller amounts would be shown as zero.
    const MIN_SHOWN: f64 = 0.005;
    let spent = board.facts.spent_today.as_ref()?;
    let cost = match &board.lens.project {
        Some(project) => spent.by_project.get(project).copied()?,
        None => spent.all,
    };
    (cost >= MIN_SHOWN).then_some(cost)
}

/// Returns how many agents of the selected project are in each state, what needs a look first.
fn state_counts(board: &Board) -> Vec<(&'static str, usize, Tone)> {
    const ORDER: [State; 6] = [
        State::Waiting,
        State::Error,
        State::Crashed,
        State::Limited,
        State::Busy,
        State::Idle,
    ];
    let project = board.lens.project.as_ref();
    let is_shown = |card: &&Card| project.is_none() || card.rig.as_ref() == project;
    let mut counts = [0; ORDER.len()];
    for card in board.facts.cards.iter().filter(is_shown) {
        let state = match card.asking_program() {
            Some(_) => Some(State::Waiting),
            None => card.state(),
        };
        if let Some(place) = ORDER.iter().position(|it| Some(*it) == state) {
            counts[place] += 1;
        }
    }
    let rows = ORDER
        .into_iter()
        .zip(counts)
        .filter(|(_, count)| *count > 0);
    rows.map(|(state, count)| {
        (
            theme::state_sign(Some(state)),
            count,
            theme::tone(Some(state)),
        )
    })
    .collect()
}

/// Returns the columns that are not drawn: those beyond the sides, and those without cards. If they
/// do not fit into `room` cells, columns without cards are left out, the least important first.
fn hidden_columns(board: &Board, in_view: &[Column], room: usize) -> Vec<(String, Column)> {
    const LEAST_IMPORTANT: [Column; 5] = [
        Column::Done,
        Column::Open,
        Column::Review,
        Column::InProgress,
        Column::NeedsYou,
    ];
    let first = in_view.first().copied().unwrap_or(Column::Open);
    let is_empty = |column: Column| board.lists.column(column).is_empty();
    let label = |column: Column| {
        let title = column.title();
        match board.lists.column(column).len() {
            0 => format!("{title} 0"),
            count if column < first => format!("‹ {title} {count}"),
            count => format!("{title} {count} ›"),
        }
    };
    let columns = Column::ALL.into_iter();
    let mut hidden: Vec<(String, Column)> = columns
        .filter(|column| !in_view.contains(column))
        .map(|column| (label(column), column))
        .collect();
    for column in LEAST_IMPORTANT {
        if width_of(&hidden) > room && is_empty(column) {
            hidden.retain(|(_, other)| *other != column);
        }
    }
    hidden
}

/// Returns the width of texts with a blank after each.
fn width_of(texts: &[(String, Column)]) -> usize {
    texts.iter().map(|(text, _)| width(text) + 1).sum()
}

fn footer(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    if let Some(Overlay::Search { input }) = &board.overlay {
        let key = canvas.theme.style(Tone::Key);
        let x = canvas.text(area, "/", key);
        let room = Rect {
            x,
            width: area.right() - x,
            ..area
        };
        let (shown, at) = input.view(usize::from(room.width));
        let style = canvas.theme.style(Tone::Text);
        canvas.text(room, &shown, style);
        canvas.point_at(x + u16::try_from(at).unwrap_or(0), area.y);
        return;
    }
    let card = board.cursor.as_ref().and_then(|id| board.card(id));
    let asks = card.is_some_and(|card| card.asking_program().is_some());
    let answer = asks.then_some((BoardAction::Card(CardOperation::Answer), "answer"));
    let usual = [
        (BoardAction::Actions, "actions"),
        (BoardAction::Open, "open"),
        (BoardAction::Search, "search"),
        (BoardAction::Go, "go to"),
        (BoardAction::Palette, "commands"),
        (BoardAction::Help, "help"),
        (BoardAction::Quit, "quit"),
    ];
    let words: Vec<(BoardAction, &str)> = answer.into_iter().chain(usual).collect();
    let end = hints(KeyMode::Board, &words, area, canvas);
    warnings(
        board,
        Rect {
            x: end,
            width: area.right().saturating_sub(end),
            ..area
        },
        canvas,
    );
}

fn warnings(board: &Board, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(first) = board.facts.warnings.first() else {
        return;
    };
    let more = board.facts.warnings.len() - 1;
    let mut text = format!("! {}", clean(first));
    if more > 0 {
        text.push_str(&format!(" (+{more})"));
    }
    let room = usize::from(area.width.saturating_sub(2));
    let text = crate::text::cut(&text, room);
    let line = Line::from(canvas.span(text, Tone::Bad));
    canvas.right(area, &line);
}

/// Draws key hints, which can be clicked. Returns the column at which they end.
pub(super) fn hints(
    mode: KeyMode,
    hints: &[(BoardAction, &str)],
    area: Rect,
    canvas: &mut Canvas<'_>,
) -> u16 {
    let mut x = area.x;
    for (action, word) in hints {
        let key = keys::key_of(mode, *action);
        let wide = u16::try_from(width(key) + width(word) + 3).unwrap_or(u16::MAX);
        if x.saturating_add(wide) > area.right() {
            break;
        }
        let at = Rect {
            x,
            width: wide,
            ..area
        };
        let spans = vec![
            canvas.span(format!(" {key}"), Tone::Key),
            canvas.span(format!(" {word} "), Tone::Dim),
        ];
        x = canvas.line(at, &Line::from(spans));
        canvas.note(at, Hit::Key(*action));
    }
    x
}
