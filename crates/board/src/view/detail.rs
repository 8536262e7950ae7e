//! Draws one card in full: its tabs and their contents.

use super::canvas::{Canvas, indent, row};
use super::frame::hints;
use super::{Hit, card, diff, preview};
use crate::action::{BoardAction, CardOperation};
use crate::age;
use crate::board::{Board, OpenCard};
use crate::facts::{ChainSession, Detail, Happening, Tab, WindowFacts};
use crate::keys::KeyMode;
use crate::text::{self, clean, fit, width};
use crate::theme::{self, Tone};
use gt_core::card::{Card, CardServer};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

pub(super) fn draw(board: &Board, open: &OpenCard, area: Rect, canvas: &mut Canvas<'_>) {
    header(board, open, row(area, 0), canvas);
    tabs(open, row(area, 1), canvas);
    canvas.rule(row(area, 2), Tone::Rule);
    let body = Rect {
        y: area.y + 3,
        height: area.height.saturating_sub(4),
        ..area
    };
    canvas.drawn.page = usize::from(body.height.saturating_sub(1)).max(1);
    canvas.drawn.scroll = tab(board, open, body, canvas);
    let last = row(area, area.height - 1);
    let asks = (board.card(&open.id)).is_some_and(|card| card.asking_program().is_some());
    let answer = asks.then_some((BoardAction::Card(CardOperation::Answer), "answer"));
    let usual = [
        (BoardAction::NextTab, "next tab"),
        (BoardAction::Actions, "actions"),
        (BoardAction::NextCard, "next card"),
        (BoardAction::Help, "help"),
        (BoardAction::Back, "back"),
    ];
    let comment = (open.tab == Tab::Diff).then_some((BoardAction::Comment, "comment"));
    let sends = comment.filter(|_| board.comments.contains_key(&open.id));
    let send = sends.map(|_| (BoardAction::SendComments, "send"));
    let first = answer.into_iter().chain(comment).chain(send);
    let words: Vec<(BoardAction, &str)> = first.chain(usual).collect();
    hints(KeyMode::Detail, &words, last, canvas);
}

fn header(board: &Board, open: &OpenCard, area: Rect, canvas: &mut Canvas<'_>) {
    let mut spans = Vec::new();
    let card = board.card(&open.id);
    let title = |card: &Card| clean(&card.title);
    match card {
        Some(card) if card.is_agent => {
            spans.push(canvas.span(format!(" {}", title(card)), Tone::Strong));
            spans.push(canvas.span(format!(" {}", clean(&card.kind)), Tone::Dim));
        }
        Some(card) => {
            let kind = clean(&card.kind);
            let head = format!(" {} P{} {kind}", open.id, card.priority);
            spans.push(canvas.span(head, Tone::Dim));
        }
        None => {
            spans.push(canvas.span(format!(" {}", open.id), Tone::Dim));
            spans.push(canvas.span("  it is gone", Tone::Bad));
        }
    }
    if let Some(card) = card.filter(|card| card.state().is_some()) {
        let age = canvas.age(card.since());
        let (text, tone) = preview::session_text(card, &age);
        spans.push(canvas.span(format!("  {text}"), tone));
    }
    if let Some(card) = card.filter(|card| !card.is_agent) {
        spans.push(canvas.span(format!("  {}", title(card)), Tone::Strong));
    }
    canvas.line(area, &Line::from(spans));
}

fn tabs(open: &OpenCard, area: Rect, canvas: &mut Canvas<'_>) {
    let mut x = area.x;
    for (number, tab) in (1..).zip(Tab::ALL) {
        let is_open = tab == open.tab;
        let text = match is_open {
            true => format!("[{number} {}]", tab.title()),
            false => format!(" {number} {} ", tab.title()),
        };
        let wide = u16::try_from(width(&text)).unwrap_or(0);
        let at = Rect {
            x,
            width: wide.min(area.right().saturating_sub(x)),
            ..area
        };
        let tone = if is_open { Tone::Focus } else { Tone::Dim };
        let style = canvas.theme.style(tone);
        canvas.text(at, &text, style);
        canvas.note(at, Hit::Tab(tab));
        x = x.saturating_add(wide).min(area.right());
    }
}

/// Draws the open tab. Returns its scroll offset.
fn tab(board: &Board, open: &OpenCard, area: Rect, canvas: &mut Canvas<'_>) -> usize {
    let scroll = open.scroll.get(&open.tab).copied().unwrap_or_default();
    if open.tab == Tab::Terminal {
        let has_session = board
            .card(&open.id)
            .is_some_and(|card| card.session.is_some());
        if !has_session {
            say(area, "It has no session", Tone::Dim, canvas);
            return 0;
        }
        return preview::screen(board, area, scroll, canvas);
    }
    match open.known.get(&open.tab) {
        None => {
            if open.tab == Tab::Task {
                return task(board, open, None, area, scroll, canvas);
            }
            say(area, "…", Tone::Dim, canvas);
            0
        }
        Some(Detail::Failed(why)) => {
            let lines = text::wrap(why, usize::from(area.width.saturating_sub(2)));
            page(area, lines.len(), scroll, canvas, |number, canvas| {
                Line::from(canvas.span(format!(" {}", lines[number]), Tone::Bad))
            })
        }
        Some(Detail::Task { description, notes }) => task(
            board,
            open,
            Some((description, notes)),
            area,
            scroll,
            canvas,
        ),
        Some(Detail::Diff { .. }) if open.diff.rows.is_empty() => {
            say(area, "No changes", Tone::Dim, canvas);
            0
        }
        Some(Detail::Diff { .. }) => diff::draw(board, open, area, scroll, canvas),
        Some(Detail::Events(events)) => happenings(events, area, scroll, canvas),
        Some(Detail::Windows { windows, servers }) => {
            window_list(windows, servers, area, scroll, canvas)
        }
        Some(Detail::Chain(sessions)) => chain(sessions, area, scroll, canvas),
    }
}

fn say(area: Rect, text: &str, tone: Tone, canvas: &mut Canvas<'_>) {
    let style = canvas.theme.style(tone);
    canvas.text(indent(row(area, 0), 1), text, style);
}

/// Draws the rows in view; only these are created. Returns the scroll offset.
fn page(
    area: Rect,
    rows: usize,
    scroll: usize,
    canvas: &mut Canvas<'_>,
    line: impl Fn(usize, &mut Canvas<'_>) -> Line<'static>,
) -> usize {
    let height = usize::from(area.height);
    let scroll = scroll.min(rows.saturating_sub(height));
    for (y, number) in (0..).zip(scroll..rows.min(scroll + height)) {
        let line = line(number, canvas);
        canvas.line(row(area, y), &line);
    }
    if rows > height {
        let end = (scroll + height).min(rows);
        let mark = Line::from(canvas.span(format!(" {end}/{rows} "), Tone::Dim));
        let above = Rect {
            y: area.y.saturating_sub(1),
            height: 1,
            ..area
        };
        canvas.right(above, &mark);
    }
    scroll
}

/// Minimum width for the facts beside the description.
const BESIDE: u16 = 100;
/// Width of the facts beside the description.
const FACTS: u16 = 46;

/// Draws the task: title, description and notes, with the facts beside them or below the title.
fn task(
    board: &Board,
    open: &OpenCard,
    texts: Option<(&String, &String)>,
    area: Rect,
    scroll: usize,
    canvas: &mut Canvas<'_>,
) -> usize {
    let card = board.card(&open.id);
    let facts = card.map_or_else(Vec::new, |card| preview::item_facts(card, canvas));
    let is_beside = area.width >= BESIDE;
    let left = match is_beside {
        true => Rect {
            width: area.width - FACTS - 1,
            ..area
        },
        false => area,
    };
    let room = usize::from(left.width.saturating_sub(2));
    let mut lines = Vec::new();
    for text in card.map_or_else(Vec::new, |card| text::wrap(&clean(&card.title), room)) {
        lines.push(Line::from(canvas.span(format!(" {text}"), Tone::Strong)));
    }
    if is_beside {
        let aside = indent(area, left.width);
        for y in 0..area.height {
            let style = canvas.theme.style(Tone::Rule);
            canvas.text(row(aside, y), "│", style);
        }
        for (y, line) in (0..area.height).zip(facts) {
            canvas.line(indent(row(aside, y), 1), &line);
        }
    } else {
        lines.extend(facts);
    }
    if let Some((description, notes)) = texts {
        for (name, text) in [("", description), ("Notes", notes)] {
            if text.trim().is_empty() {
                continue;
            }
            lines.push(Line::default());
            if !name.is_empty() {
                lines.push(Line::from(canvas.span(format!(" {name}"), Tone::Strong)));
            }
            for line in text::wrap(text, room) {
                lines.push(Line::from(canvas.span(format!(" {line}"), Tone::Text)));
            }
        }
    }
    page(left, lines.len(), scroll, canvas, |number, _| {
        lines[number].clone()
    })
}

fn happenings(events: &[Happening], area: Rect, scroll: usize, canvas: &mut Canvas<'_>) -> usize {
    if events.is_empty() {
        say(area, "Nothing has happened", Tone::Dim, canvas);
        return 0;
    }
    // A narrow terminal has no room for the clock, and little for names.
    const NARROW: u16 = 100;
    let (clock, kind, source) = match area.width < NARROW {
        true => (0, 17, 16),
        false => (14, 22, 26),
    };
    page(area, events.len(), scroll, canvas, |number, canvas| {
        let event = &events[number];
        let age = canvas.age(event.at);
        let mut spans = vec![canvas.span(format!(" {age:>4} "), Tone::Dim)];
        if clock > 0 {
            spans.push(canvas.span(fit(&clean(&event.clock), clock), Tone::Dim));
            spans.push(Span::raw(" "));
        }
        spans.push(canvas.span(fit(&clean(&event.kind), kind), Tone::Focus));
        let source = fit(&clean(&event.source), source);
        spans.push(canvas.span(format!(" {source} "), Tone::Dim));
        spans.push(canvas.span(clean(&event.text), Tone::Text));
        Line::from(spans)
    })
}

fn window_list(
    windows: &[WindowFacts],
    servers: &[CardServer],
    area: Rect,
    scroll: usize,
    canvas: &mut Canvas<'_>,
) -> usize {
    let mut lines = vec![Line::from(canvas.span(" Windows", Tone::Strong))];
    for window in windows {
        let (sign, word, tone) = match (window.running, window.exit_code) {
            (true, _) => ("●", "running".to_owned(), Tone::Good),
            (false, Some(0)) => ("□", "ended".to_owned(), Tone::Dim),
            (false, Some(code)) => ("✗", format!("ended with {code}"), Tone::Bad),
            (false, None) => ("✗", "ended".to_owned(), Tone::Bad),
        };
        lines.push(entry(sign, &window.name, &word, tone, canvas));
    }
    if windows.is_empty() {
        lines.push(Line::from(canvas.span("   none", Tone::Dim)));
    }
    lines.push(Line::default());
    lines.push(Line::from(canvas.span(" Servers", Tone::Strong)));
    for server in servers {
        let (sign, word, tone) = theme::server(server.state);
        let mut word = match server.port {
            Some(port) => format!("{word} on port {port}"),
            None => word.to_owned(),
        };
        if let Some(reason) = &server.reason {
            let age = server.since.map(|since| format!(" {}", canvas.age(since)));
            word += &format!("{}: {}", age.unwrap_or_default(), clean(reason));
        }
        lines.push(entry(sign, &server.name, &word, tone, canvas));
    }
    if servers.is_empty() {
        lines.push(Line::from(canvas.span("   none", Tone::Dim)));
    }
    page(area, lines.len(), scroll, canvas, |number, _| {
        lines[number].clone()
    })
}

fn entry(sign: &str, name: &str, word: &str, tone: Tone, canvas: &Canvas<'_>) -> Line<'static> {
    Line::from(vec![
        canvas.span(format!("  {sign} "), tone),
        Span::raw(fit(&clean(name), 20)),
        canvas.span(format!(" {word}"), tone),
    ])
}

fn chain(sessions: &[ChainSession], area: Rect, scroll: usize, canvas: &mut Canvas<'_>) -> usize {
    if sessions.is_empty() {
        say(area, "No sessions yet", Tone::Dim, canvas);
        return 0;
    }
    page(area, sessions.len(), scroll, canvas, |number, canvas| {
        let session = &sessions[number];
        let began = canvas.age(session.started_at);
        let lasted = match session.ended_at {
            Some(end) => format!("for {}", age::span(end.saturating_sub(session.started_at))),
            None => "still".to_owned(),
        };
        let tone = if session.ended_at.is_none() {
            Tone::Busy
        } else {
            Tone::Text
        };
        let spent = card::spent_text(session.tokens, session.cost_usd);
        Line::from(vec![
            canvas.span(format!(" {began:>4} ago {lasted:<8} "), Tone::Dim),
            canvas.span(fit(&clean(&session.status), 11), tone),
            canvas.span(format!(" {spent:<16} "), Tone::Text),
            canvas.span(clean(&session.agent), Tone::Text),
            canvas.span(format!("  {}", clean(&session.id)), Tone::Dim),
        ])
    })
}
