//! Tests of the mouse.

use super::*;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

/// Returns the position of a text.
fn find(stage: &Stage, text: &str) -> (u16, u16) {
    let screen = stage.screen();
    for (y, line) in screen.lines().enumerate() {
        if let Some(at) = line.find(text) {
            let x = crate::text::width(&line[..at]);
            return (x as u16, y as u16);
        }
    }
    panic!("{text:?} is not in\n{screen}");
}

fn mouse(stage: &mut Stage, kind: MouseEventKind, text: &str) -> Vec<BoardRequest> {
    let (column, row) = find(stage, text);
    let modifiers = KeyModifiers::NONE;
    stage.happens(BoardEvent::Mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers,
    }))
}

const CLICK: MouseEventKind = MouseEventKind::Down(MouseButton::Left);

#[test]
fn a_click_selects_and_a_second_one_opens() {
    let mut stage = Stage::new(120, 40);
    mouse(&mut stage, CLICK, "Measure a frame");
    stage.assert_cursor("gt-00hkd");
    stage.now = stage.now.plus_millis(1000);
    mouse(&mut stage, CLICK, "Measure a frame");
    stage.assert_mode(KeyMode::Board);
    stage.now = stage.now.plus_millis(200);
    mouse(&mut stage, CLICK, "Measure a frame");
    stage.assert_mode(KeyMode::Detail);
    mouse(&mut stage, CLICK, "5 Windows");
    stage.assert_shows("[5 Windows]");
    mouse(&mut stage, CLICK, "q back");
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn two_clicks_on_two_cards_open_none() {
    let mut stage = Stage::new(120, 40);
    mouse(&mut stage, CLICK, "Measure a frame");
    mouse(&mut stage, CLICK, "Write the manual");
    stage.assert_mode(KeyMode::Board);
    stage.assert_cursor("gt-00psd");
}

#[test]
fn titles_of_columns_are_clicked_in_view_or_not() {
    let mut stage = Stage::new(80, 24);
    mouse(&mut stage, CLICK, "Review 2");
    stage.assert_cursor("gt-00que");
    mouse(&mut stage, CLICK, "‹ Open 3");
    stage.assert_cursor("gt-00epc");
}

#[test]
fn rows_of_menus_are_clicked() {
    let mut stage = Stage::new(80, 24);
    stage.press("h ");
    let requests = mouse(&mut stage, CLICK, "p Pause");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
    stage.press("o");
    mouse(&mut stage, CLICK, "By id");
    stage.assert_shows("by id");
    stage.press("F");
    mouse(&mut stage, CLICK, "[ ] busy");
    stage.assert_shows("only busy");
    stage.press("<Esc><Esc>p");
    mouse(&mut stage, CLICK, "gastown 10");
    stage.assert_shows("hello · gastown");
    mouse(&mut stage, CLICK, "Fix the login");
    stage.press(" x");
    let requests = mouse(&mut stage, CLICK, "y   Yes");
    assert_eq!(commands(&requests), ["run: gt task stop gt-00bsy --json"]);
}

#[test]
fn a_click_beside_a_menu_closes_it_and_does_nothing_else() {
    let mut stage = Stage::new(80, 24);
    stage.press(" ");
    let (column, row) = (0, 3);
    stage.happens(BoardEvent::Mouse(MouseEvent {
        kind: CLICK,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    }));
    stage.assert_mode(KeyMode::Board);
    stage.assert_cursor("gt-00crs");
}

#[test]
fn the_other_button_opens_the_menu_of_its_card() {
    let mut stage = Stage::new(120, 40);
    mouse(
        &mut stage,
        MouseEventKind::Down(MouseButton::Right),
        "Fix the login",
    );
    stage.assert_mode(KeyMode::Actions);
    let requests = stage.press("p");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
}

#[test]
fn a_click_is_for_the_card_that_was_seen_there() {
    let mut stage = Stage::new(120, 40);
    let at = find(&stage, "Measure a frame");
    // The data changes, but no frame shows it yet.
    let mut facts = town();
    facts.cards.retain(|card| card.id != id("gt-00bsy"));
    stage.board.handle(BoardEvent::Facts(facts), stage.now);
    let (column, row) = at;
    let modifiers = KeyModifiers::NONE;
    stage.happens(BoardEvent::Mouse(MouseEvent {
        kind: CLICK,
        column,
        row,
        modifiers,
    }));
    stage.assert_cursor("gt-00hkd");
}

#[test]
fn the_wheel_scrolls_what_is_under_it() {
    let mut stage = Stage::with(120, 40, BoardTheme::Dark, crate::sample(200, 0));
    stage.press("H");
    let cursor = stage.board.cursor().cloned();
    let column = stage.board.column;
    for _ in 0..8 {
        mouse(&mut stage, MouseEventKind::ScrollDown, "▸Open");
    }
    assert_eq!(stage.board.cursor().cloned(), cursor, "the cursor stays");
    assert_eq!(stage.board.drawn.first[column as usize], 8);
    stage.assert_shows("↑8");
    mouse(&mut stage, MouseEventKind::ScrollUp, "▸Open");
    assert_eq!(stage.board.drawn.first[column as usize], 7);
    // A key scrolls back to the cursor.
    stage.press("j");
    stage.assert_shows_not("↑7");
    stage.press("?");
    mouse(&mut stage, MouseEventKind::ScrollDown, "The next card");
    stage.assert_shows("↑1 ");
}

#[test]
fn a_card_that_was_found_is_clicked_while_the_search_is_typed() {
    let mut stage = Stage::new(120, 40);
    stage.press("/form");
    mouse(&mut stage, CLICK, "Drop the old");
    stage.assert_cursor("gt-00blk");
    stage.assert_mode(KeyMode::Board);
    stage.assert_shows("2 of 12");
    stage.press("g");
    mouse(&mut stage, CLICK, "Move the store");
    stage.assert_cursor("gt-00epc");
    stage.assert_mode(KeyMode::Board);
}
