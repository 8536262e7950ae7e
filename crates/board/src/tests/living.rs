//! Events without keys: data, screens, time, outcomes.

use super::views::screen_of;
use super::*;
use crate::{AgentScreen, Detail, Tab};
use gt_core::card::{BackgroundState, BackgroundTask};

fn at(stage: &mut Stage, seconds: i64) {
    stage.now = Moment::from_millis(NOW * 1000 + seconds * 1000);
}

#[test]
fn what_changes_nothing_is_not_drawn() {
    let mut stage = Stage::new(80, 24);
    let screen = screen_of(id("gt-00crs"));
    stage.happens(BoardEvent::Screen(screen.clone()));
    for event in [
        BoardEvent::Facts(town()),
        BoardEvent::Screen(screen),
        BoardEvent::Screen(screen_of(id("gt-00ask"))),
        BoardEvent::Tick,
        BoardEvent::Outcome {
            order: 77,
            result: Ok("late".to_owned()),
        },
        BoardEvent::Foreseen {
            order: 77,
            result: Ok(Vec::new()),
        },
        BoardEvent::Detail {
            id: id("gt-00crs"),
            tab: Tab::Diff,
            detail: Detail::Failed("x".to_owned()),
        },
        BoardEvent::Paste("j".to_owned()),
        BoardEvent::Key(KeyEvent::new(KeyCode::F(9), KeyModifiers::NONE)),
        BoardEvent::Key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::ALT)),
    ] {
        let requests = stage.board.handle(event.clone(), stage.now);
        assert!(!stage.board.is_dirty(), "{event:?}");
        assert_eq!(requests, [], "{event:?}");
    }
    stage.board.handle(
        BoardEvent::Resize {
            width: 90,
            height: 30,
        },
        stage.now,
    );
    assert!(stage.board.is_dirty());
}

#[test]
fn it_wakes_when_an_age_in_view_changes_and_not_before() {
    let mut facts = town();
    facts.cards.retain(|card| card.id == id("gt-00bsy"));
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    stage.assert_shows("working 3m");
    // The agent has been busy for 200 seconds.
    assert_eq!(stage.board.wake_at(), Some(Moment::from_seconds(NOW + 40)));
    at(&mut stage, 39);
    stage.board.handle(BoardEvent::Tick, stage.now);
    assert!(!stage.board.is_dirty());
    at(&mut stage, 40);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows("working 4m");
    assert_eq!(stage.board.wake_at(), Some(Moment::from_seconds(NOW + 100)));
}

#[test]
fn an_order_is_told_begun_and_ended_and_what_is_said_goes_by_itself() {
    let mut stage = Stage::new(80, 24);
    let requests = stage.press("h p");
    let [BoardRequest::Run(order)] = requests
        .iter()
        .filter(|request| matches!(request, BoardRequest::Run(_)))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{requests:?}");
    };
    stage.assert_shows("Pausing gt-00bsy…");
    stage.assert_shows("gt-00bsy ⋯");
    at(&mut stage, 1000);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows("Pausing gt-00bsy…");
    stage.happens(BoardEvent::Outcome {
        order: order.number,
        result: Ok("Paused gt-00bsy.".to_owned()),
    });
    stage.assert_shows("✓ Paused gt-00bsy.");
    stage.assert_shows_not("Pausing");
    stage.assert_shows_not("⋯");
    let until = stage.board.wake_at().expect("a moment");
    assert!(until <= stage.now.plus_millis(4000));
    stage.now = stage.now.plus_millis(4000);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows_not("Paused gt-00bsy.");
    // The message is in the log.
    stage.press("!");
    stage.assert_shows("✓ Paused gt-00bsy.");
}

#[test]
fn a_failure_stays_longer_and_names_what_failed() {
    let mut stage = Stage::new(80, 24);
    let requests = stage.press("h p");
    let order = requests.iter().find_map(|request| match request {
        BoardRequest::Run(order) => Some(order.number),
        _ => None,
    });
    let order = order.expect("an order");
    let result = Err("the agent does not answer\nhint: gt peek task/gt-00bsy".into());
    stage.happens(BoardEvent::Outcome { order, result });
    stage.assert_shows("✗ Pausing gt-00bsy: the agent does not answer");
    stage.assert_shows("hint: gt peek");
    stage.now = stage.now.plus_millis(4001);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows("hint: gt peek");
    stage.now = stage.now.plus_millis(4000);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows_not("hint: gt peek");
}

#[test]
fn an_attach_that_ends_well_needs_no_words() {
    let mut stage = Stage::new(80, 24);
    let requests = stage.press(" a");
    assert_eq!(
        commands(&requests),
        ["check: gt task attach gt-00crs --dry-run --json"]
    );
    let requests = stage.happens(BoardEvent::BehindRead {
        order: 1,
        result: Ok(crate::BehindFacts::default()),
    });
    assert_eq!(
        commands(&requests),
        ["hand over: gt task attach gt-00crs --skip"]
    );
    stage.happens(BoardEvent::Outcome {
        order: 2,
        result: Ok(String::new()),
    });
    assert_eq!(stage.board.toasts.shown(), []);
}

#[test]
fn many_orders_are_few_words() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, crate::sample(60, 0));
    let requests = stage.press("H* sy");
    let count = commands(&requests).len();
    assert!(count > 20, "{count}");
    stage.assert_shows(&format!("and {} more", count - 4));
}

#[test]
fn the_screen_in_view_is_asked_for_once() {
    let look = |requests: Vec<BoardRequest>| -> Vec<Option<String>> {
        let looks = requests.into_iter().filter_map(|request| match request {
            BoardRequest::Look(id) => Some(id.map(|id| id.to_string())),
            _ => None,
        });
        looks.collect()
    };
    let some = |id: &str| vec![Some(id.to_owned())];
    let mut stage = Stage::new(80, 24);
    assert_eq!(look(stage.press("j")), some("gt-00ask"));
    assert_eq!(look(stage.happens(BoardEvent::Facts(town()))), []);
    // The next card has no session.
    assert_eq!(look(stage.press("j")), [None]);
    assert_eq!(look(stage.press("j")), []);
    assert_eq!(look(stage.press("k")), some("gt-00ask"));
    assert_eq!(look(stage.press("v")), [None]);
    assert_eq!(look(stage.press("v")), some("gt-00ask"));
    assert_eq!(look(stage.press("<Enter>")), [None]);
    assert_eq!(look(stage.press("2")), some("gt-00ask"));
    // The screen of another item is not shown.
    let late = AgentScreen {
        id: Some(id("gt-00crs")),
        lines: vec!["late".to_owned()],
    };
    stage.happens(BoardEvent::Screen(late));
    stage.assert_shows("No screen yet");
    stage.happens(BoardEvent::Screen(screen_of(id("gt-00ask"))));
    stage.assert_shows("cargo test");
}

#[test]
fn details_are_asked_for_by_tab_and_no_more_when_closed() {
    let mut stage = Stage::new(80, 24);
    let shows = |requests: Vec<BoardRequest>| -> Vec<BoardRequest> {
        requests
            .into_iter()
            .filter(|request| matches!(request, BoardRequest::Show { .. } | BoardRequest::Unshow))
            .collect()
    };
    let show = |tab| BoardRequest::Show {
        id: id("gt-00crs"),
        tab,
    };
    assert_eq!(shows(stage.press("<Enter>")), [show(Tab::Task)]);
    assert_eq!(shows(stage.press("<Tab>")), [show(Tab::Terminal)]);
    assert_eq!(
        shows(stage.press("<BackTab><BackTab>")),
        [show(Tab::Task), show(Tab::Chain)]
    );
    assert_eq!(shows(stage.press("6")), []);
    assert_eq!(shows(stage.press("q")), [BoardRequest::Unshow]);
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn what_could_not_be_had_is_said() {
    let mut stage = Stage::new(80, 24);
    stage.press("<Enter>3");
    let detail = Detail::Failed("git: no such branch".to_owned());
    stage.happens(BoardEvent::Detail {
        id: id("gt-00crs"),
        tab: Tab::Diff,
        detail,
    });
    stage.assert_shows("git: no such branch");
}

#[test]
fn a_search_finds_as_one_types() {
    let mut stage = Stage::new(120, 40);
    stage.press("/form");
    stage.assert_cursor("gt-00epc");
    stage.assert_shows("2 of 12");
    stage.press("<Down>");
    stage.assert_cursor("gt-00blk");
    stage.press("<Down><Enter>");
    stage.assert_mode(KeyMode::Board);
    stage.assert_shows("2 of 12 · /form");
    stage.press("n");
    stage.assert_cursor("gt-00blk");
    stage.press("N");
    stage.assert_cursor("gt-00epc");
    stage.press("<Esc>");
    stage.assert_shows_not("of 12");
    stage.assert_cursor("gt-00epc");
    // By label, by id, by words in any case; Esc while typing shows all cards again.
    for (query, found) in [
        ("cleanup", "gt-00blk"),
        ("00wid", "gt-00wid"),
        ("LOGIN", "gt-00bsy"),
        ("日本", "gt-00wid"),
    ] {
        stage.press("/");
        stage.happens(BoardEvent::Paste(query.to_lowercase()));
        stage.assert_cursor(found);
        stage.press("<Esc>");
    }
    stage.assert_shows_not("of 12");
}

#[test]
fn filters_of_one_kind_add_up_and_of_several_narrow() {
    let mut stage = Stage::new(120, 40);
    let choose = |stage: &mut Stage, word: &str| {
        stage.press("F");
        let Some(crate::overlay::Overlay::Filter { choices, .. }) = &stage.board.overlay else {
            panic!("no filter");
        };
        let row = choices.iter().position(|choice| choice.value() == word);
        stage.press(&"j".repeat(row.expect("a choice")));
        stage.press(" <Esc>");
    };
    choose(&mut stage, "busy");
    stage.assert_shows("1 of 12 · only busy");
    choose(&mut stage, "paused");
    stage.assert_shows("2 of 12 · only busy paused");
    choose(&mut stage, "P1");
    stage.assert_shows("1 of 12 · only busy paused P1");
    stage.assert_cursor("gt-00bsy");
    stage.press("Fc<Esc>");
    stage.assert_shows_not("of 12");
    choose(&mut stage, "mine");
    stage.assert_shows("1 of 12 · only mine");
    stage.assert_cursor("gt-00wid");
    stage.press("<Esc>");
    choose(&mut stage, "blocked");
    stage.assert_cursor("gt-00blk");
    stage.press("<Esc>");
    choose(&mut stage, "codex");
    stage.assert_cursor("gt-00crs");
}

#[test]
fn columns_are_ordered_as_asked() {
    let order = |stage: &Stage, column| -> Vec<String> {
        let list = stage.board.lists.column(column).iter();
        list.map(|number| stage.board.facts.cards[*number].id.to_string())
            .collect()
    };
    use gt_core::card::Column::{NeedsYou, Open};
    let mut stage = Stage::new(120, 40);
    assert_eq!(
        order(&stage, NeedsYou),
        ["gt-00crs", "gt-00ask", "gt-00brk"],
        "the oldest first"
    );
    assert_eq!(
        order(&stage, Open),
        ["gt-00epc", "gt-00blk", "gt-00wid"],
        "by priority"
    );
    stage.press("oi");
    assert_eq!(
        order(&stage, NeedsYou),
        ["gt-00ask", "gt-00brk", "gt-00crs"]
    );
    stage.press("oi");
    assert_eq!(
        order(&stage, NeedsYou),
        ["gt-00crs", "gt-00brk", "gt-00ask"],
        "reversed"
    );
    stage.press("os");
    assert_eq!(
        order(&stage, NeedsYou),
        ["gt-00ask", "gt-00crs", "gt-00brk"],
        "what asks first"
    );
    stage.press("ou");
    stage.assert_shows("by updated");
    assert_eq!(order(&stage, NeedsYou)[0], "gt-00brk");
    stage.press("oo");
    assert_eq!(
        order(&stage, NeedsYou),
        ["gt-00crs", "gt-00ask", "gt-00brk"]
    );
}

#[test]
fn another_project_shows_other_cards() {
    let mut stage = Stage::new(120, 40);
    stage.press("pbea<Enter>");
    stage.assert_shows("hello · beads · 2");
    stage.assert_shows_not("gt-00bsy");
    stage.press("p<Enter>");
    stage.assert_shows("hello · all projects · 12");
}

#[test]
fn a_frame_does_not_look_at_cards_that_it_does_not_show() {
    // The record of a frame is as large for a large town as for a small one.
    let notes = |items| {
        let mut stage = Stage::with(120, 40, BoardTheme::Dark, crate::sample(items, items / 5));
        stage.press("jjkk");
        stage.board.drawn.cards().len()
    };
    let (small, large) = (notes(100), notes(5000));
    assert!(large <= small + 5, "{small} {large}");
    assert!(large > 10);
}

#[test]
fn a_board_of_many_ages_sleeps_between_them() {
    let mut facts = town();
    facts.cards = (0..40)
        .map(|number| {
            let card = card(&format!("gt-{number:05}"), "x");
            working(card, State::Busy, 60 + number)
        })
        .collect();
    let mut stage = Stage::with(200, 50, BoardTheme::Dark, facts);
    let mut frames = 0;
    while let Some(next) = stage.board.wake_at() {
        if next > Moment::from_seconds(NOW + 60) {
            break;
        }
        assert!(next > stage.now);
        stage.now = next;
        stage.happens(BoardEvent::Tick);
        frames += 1;
    }
    assert!((1..=6).contains(&frames), "{frames}");
    stage.assert_shows_not("busy 1m");
}

#[test]
fn failed_background_task_has_a_sign_on_its_card() {
    let mut facts = town();
    let task = |name: &str, state| BackgroundTask {
        name: name.to_owned(),
        state,
        exit_code: None,
        signal: None,
    };
    for card in &mut facts.cards {
        if card.id == id("gt-00don") {
            card.background = vec![
                task("watch", BackgroundState::Running),
                task("build", BackgroundState::Failed),
            ];
        }
    }
    let stage = Stage::with(120, 40, BoardTheme::Dark, facts);
    stage.assert_shows("✗ build failed");
    stage.assert_shows_not("watch");
}

#[test]
fn card_of_a_limited_agent_counts_down_to_its_reset() {
    let mut facts = town();
    for card in &mut facts.cards {
        if card.id == id("gt-00don") {
            let session = card.session.as_mut().unwrap();
            session.state = State::Limited;
            session.resets_at = Some(NOW + 7_300);
        }
    }
    let mut stage = Stage::with(120, 40, BoardTheme::Dark, facts);
    stage.assert_shows("resets in 2h");
    stage.now = Moment::from_seconds(NOW + 7_200);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows("resets in 1m");
    stage.now = Moment::from_seconds(NOW + 7_300);
    stage.happens(BoardEvent::Tick);
    stage.assert_shows_not("resets in");
}

#[test]
fn conflicts_with_a_resolver_need_no_person() {
    let mut facts = town();
    for card in &mut facts.cards {
        if card.id == id("gt-00don") {
            branch(card).merging = true;
            branch(card).conflicts = vec!["src/a.rs".to_owned()];
        }
    }
    let mut stage = Stage::with(120, 40, BoardTheme::Dark, facts.clone());
    stage.assert_shows("Needs you 4");
    stage.assert_shows("✗ 1 conflict");
    stage.assert_shows_not("resolving");
    for card in &mut facts.cards {
        if card.id == id("gt-00don") {
            branch(card).resolver = true;
        }
    }
    stage.happens(BoardEvent::Facts(facts.clone()));
    stage.assert_shows("Needs you 3");
    stage.assert_shows("resolving 1 conflict");
    stage.assert_shows_not("✗ 1 conflict");
    for card in &mut facts.cards {
        if card.id == id("gt-00don") {
            card.resolver = Some(resolver(State::Error, "merge failed: API Error 500"));
        }
    }
    stage.happens(BoardEvent::Facts(facts));
    stage.assert_shows("Needs you 4");
    stage.assert_shows("merge failed: API");
}

#[test]
fn another_size_is_another_frame() {
    let mut stage = Stage::new(120, 40);
    for (width, height) in [(80, 24), (20, 5), (200, 50), (80, 24)] {
        stage.terminal.backend_mut().resize(width, height);
        stage.happens(BoardEvent::Resize { width, height });
        let fresh = Stage::new(width, height);
        assert_eq!(stage.screen(), fresh.screen(), "{width}x{height}");
    }
}
