//! The layout: columns, spacing, preview, dialogs and messages.

use super::views::view;
use super::*;
use crate::{AgentScreen, Detail, Tab};
use ratatui::style::Color;

fn only(ids: &[&str]) -> BoardFacts {
    let mut facts = town();
    facts.cards.retain(|card| ids.contains(&card.id.as_str()));
    facts
}

fn rows_of(screen: &str, text: &str) -> Vec<usize> {
    let rows = screen.lines().enumerate();
    rows.filter(|(_, line)| line.contains(text))
        .map(|(row, _)| row)
        .collect()
}

#[test]
fn columns_without_cards_take_no_room() {
    let facts = only(&["gt-00bsy", "gt-00don"]);
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    stage.assert_shows("Open 0 Needs you 0 Done 0");
    stage.assert_shows("▸In progress 1                          │ Review 1");
    stage.press("l");
    stage.assert_cursor("gt-00don");
    stage.press("/zzz");
    stage.assert_shows("No card fits");
}

#[test]
fn cards_have_space_between_them_only_if_all_fit_with_it() {
    for (height, distance) in [(24, 4), (10, 3)] {
        let screen = Stage::new(80, height).screen();
        let row = |id: &str| rows_of(&screen, id)[0];
        assert_eq!(row("gt-00don") - row("gt-00que"), distance, "{screen}");
    }
}

#[test]
fn title_has_two_rows_where_all_cards_fit() {
    let mut facts = only(&["gt-00hkd"]);
    let title = "Measure a frame with five hundred items and a hundred agents of all kinds, on a slow machine";
    facts.cards[0].title = title.to_owned();
    let stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    stage.assert_shows(
        "▌  Measure a frame with five hundred items and a hundred agents of all kinds, on",
    );
    stage.assert_shows("▌  a slow machine");
}

#[test]
fn cards_say_what_the_agent_does_and_how_it_ended() {
    let mut facts = town();
    let reasons = [
        ("gt-00bsy", "Bash(cargo test)"),
        ("gt-00psd", "paused by a person"),
        ("gt-00ask", "asks: Bash(rm -rf build)"),
        ("gt-00don", "finished its turn"),
    ];
    for card in &mut facts.cards {
        for (id, reason) in reasons {
            if card.id.as_str() == id {
                session(card).reason = Some(reason.to_owned());
            }
        }
        if card.id.as_str() == "gt-00hkd" {
            card.stopped_since = Some(NOW - 600);
        }
        if card.id.as_str() == "gt-00crs" {
            card.session = None;
            card.lost = true;
            card.lost_since = Some(NOW - 7_200);
        }
    }
    let stage = Stage::with(200, 50, BoardTheme::Dark, facts);
    for text in [
        "working 3m ⇄: cargo",
        "paused 1h: by a ",
        "waiting 5m: Bash(rm",
        "done 16m ",
        "■ gt-00hkd",
        "stopped 10m",
        "lost 2h: its tmux",
    ] {
        stage.assert_shows(text);
    }
    stage.assert_shows_not("finished its turn");
}

#[test]
fn long_reason_has_two_rows_at_most() {
    let mut facts = only(&["gt-00ask"]);
    let words = "API Error: 500 the server is overloaded, try again later ".repeat(5);
    session(&mut facts.cards[0]).state = State::Error;
    session(&mut facts.cards[0]).reason = Some(words);
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    stage.press("v");
    let screen = stage.screen();
    let first = rows_of(&screen, "error 5m: API Error: 500")[0];
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[first + 1].ends_with('…'), "{screen}");
    assert!(!lines[first + 2].contains("API"), "{screen}");
}

#[test]
fn preview_needs_no_more_rows_than_its_content() {
    let stage = view("", 80, 24, BoardTheme::Dark, only(&["gt-00ask"]));
    let screen = stage.screen();
    let lines: Vec<&str> = screen.lines().collect();
    let title = rows_of(&screen, "── gt-00ask")[0];
    assert!(lines[title + 1].starts_with("● Bash"), "{screen}");
    assert_eq!(title, 24 - 1 - 7, "{screen}");
    // While the next screen is not known, the height stays.
    let mut stage = view(
        "",
        80,
        24,
        BoardTheme::Dark,
        only(&["gt-00ask", "gt-00crs"]),
    );
    let before = rows_of(&stage.screen(), "── gt-00crs")[0];
    stage.press("j");
    assert_eq!(rows_of(&stage.screen(), "── gt-00ask")[0], before);
}

#[test]
fn preview_of_a_dead_pane_has_its_last_output() {
    let mut stage = view("", 80, 24, BoardTheme::Dark, only(&["gt-00crs"]));
    let mut lines = vec![String::new(); 40];
    lines[0] = "error: out of memory".to_owned();
    lines[39] = "Pane is dead (signal 9)".to_owned();
    let id = stage.board.cursor().cloned();
    stage.happens(BoardEvent::Screen(AgentScreen { id, lines }));
    stage.assert_shows("error: out of memory\n\nPane is dead (signal 9)");
}

#[test]
fn preview_shows_the_description_of_an_open_item() {
    for (width, height) in [(80, 24), (120, 40)] {
        let mut stage = Stage::with(width, height, BoardTheme::Dark, town());
        let requests = stage.press("H");
        let (id, tab) = (id("gt-00epc"), Tab::Task);
        let show = BoardRequest::Show {
            id: id.clone(),
            tab,
        };
        assert!(requests.contains(&show), "{requests:?}");
        let detail = Detail::Task {
            description: "The old format has no version.".to_owned(),
            notes: String::new(),
        };
        stage.happens(BoardEvent::Detail { id, tab, detail });
        stage.assert_shows("The old format has no version.");
        // The detail view requests its own tab; the board then asks again.
        let requests = stage.press("<Enter>3<Esc>");
        assert_eq!(requests.last(), Some(&show));
        // A card with an agent needs no description.
        assert!(stage.press("L h").contains(&BoardRequest::Unshow) || width > 0);
        stage.assert_shows_not("The old format");
    }
}

#[test]
fn last_output_of_a_lost_agent_stays() {
    let mut stage = view("", 80, 24, BoardTheme::Dark, only(&["gt-00ask"]));
    stage.assert_shows("test result: ok");
    // Its pane is gone first.
    stage.happens(BoardEvent::Screen(AgentScreen {
        id: Some(id("gt-00ask")),
        lines: Vec::new(),
    }));
    stage.assert_shows("test result: ok");
    let mut facts = only(&["gt-00ask"]);
    facts.cards[0].session = None;
    facts.cards[0].lost = true;
    facts.cards[0].lost_since = Some(NOW - 60);
    stage.happens(BoardEvent::Facts(facts));
    stage.assert_shows("lost 1m");
    stage.assert_shows("test result: ok");
}

#[test]
fn dialogs_leave_their_card_visible_and_dim_the_rest() {
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        for keys in [" ", " x", " d", " n", "j y"] {
            let stage = view(&format!("h{keys}"), width, height, BoardTheme::Dark, town());
            let id = stage.board.cursor().expect("a card").to_string();
            let screen = stage.screen();
            assert!(screen.contains(&format!("{id} P")), "{keys}\n{screen}");
            let buffer = stage.terminal.backend().buffer();
            let cell = &buffer[(1, 0)];
            assert_eq!((cell.symbol(), cell.fg), ("h", Color::Indexed(240)));
        }
    }
}

#[test]
fn action_menu_lists_available_actions_first() {
    let mut stage = Stage::new(120, 40);
    stage.press("H ");
    let screen = stage.screen();
    let row = |text: &str| rows_of(&screen, text)[0];
    assert!(row("Start and work ") < row("Pause "), "{screen}");
    assert!(row("Close the item") < row("Attach "), "{screen}");
    // The rows keep their places while the menu is open.
    let mut facts = town();
    facts.cards.retain(|card| card.id != id("gt-00epc"));
    stage.happens(BoardEvent::Facts(facts));
    let after = stage.screen();
    assert_eq!(
        rows_of(&after, "Start and work ")[0],
        row("Start and work ")
    );
}

#[test]
fn messages_are_boxes() {
    let mut stage = Stage::new(80, 24);
    stage.press("h p");
    let screen = stage.screen();
    let row = rows_of(&screen, "⋯ Pausing gt-00bsy")[0];
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[row].trim_end().ends_with('│'), "{screen}");
    assert!(
        lines[row - 1].ends_with('┐') && lines[row + 1].ends_with('┘'),
        "{screen}"
    );
}

#[test]
fn view_of_the_last_board_is_restored() {
    let mut before = Stage::new(80, 24);
    before.press("toioiF<Down><Space><Esc>vH");
    let saved = before.board.saved_view();
    assert_eq!(saved.theme(), Some(BoardTheme::Light));
    let mut board = Board::new(BoardTheme::Light);
    board.restore_view(&saved);
    board.handle(BoardEvent::Facts(town()), Moment::from_seconds(NOW));
    assert_eq!(board.saved_view(), saved);
    assert_eq!(board.cursor(), before.board.cursor());
    // A card that is gone: the cursor is in its column.
    let mut gone = saved.clone();
    gone.card = Some("gt-99999".to_owned());
    gone.filter = vec!["is:nonsense".to_owned()];
    gone.sort = "by colour".to_owned();
    let mut board = Board::new(BoardTheme::Light);
    board.restore_view(&gone);
    board.handle(BoardEvent::Facts(town()), Moment::from_seconds(NOW));
    assert_eq!(board.saved_view().column, saved.column);
    assert_eq!(board.saved_view().sort, "usual");
    assert_eq!(board.saved_view().filter, [""; 0]);
}
