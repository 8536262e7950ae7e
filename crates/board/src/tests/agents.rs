//! Agents without an item, and questions of agents.

use super::views::{SIZES, view};
use super::*;

fn agent(container: &str, address: &str, role: &str, state: State, since: i64) -> Card {
    let mut card = working(card("gt-00xxx", address), state, since);
    card.id = WorkId::of_container(container);
    card.is_agent = true;
    card.kind = role.to_owned();
    card.priority = 4;
    card.holder = Some(address.to_owned());
    card.branch = None;
    session(&mut card).agent = address.to_owned();
    session(&mut card).container = container.to_owned();
    card
}

fn with_agents() -> BoardFacts {
    let mut facts = town();
    let mut mayor = agent("hq-mayor", "mayor", "mayor", State::Waiting, 2_000);
    mayor.rig = None;
    session(&mut mayor).reason = Some("asks: which branch?".to_owned());
    let crew = agent("gt-crew-max", "gastown/crew/max", "crew", State::Idle, 500);
    let mut closed = working(
        card("gt-00fin", "Finished, but it asks"),
        State::Waiting,
        60,
    );
    closed.status = ItemStatus::Closed;
    facts.cards.extend([mayor, crew, closed]);
    facts
}

#[test]
fn agents_without_an_item_at_every_size() {
    let mut all = String::new();
    for (width, height) in SIZES {
        let stage = view("j", width, height, BoardTheme::Dark, with_agents());
        all.push_str(&format!("--- {width}x{height}\n{}", stage.screen()));
    }
    insta::assert_snapshot!("agents", all);
}

#[test]
fn tab_goes_to_the_oldest_question_and_then_to_the_next() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, with_agents());
    stage.press("H<Tab>");
    stage.assert_cursor("hq-mayor");
    stage.press("<Tab>");
    stage.assert_cursor("gt-00ask");
    stage.press("<Tab>");
    stage.assert_cursor("gt-00fin");
    stage.press("<Tab>");
    stage.assert_cursor("hq-mayor");
    // From a card that needs you and asks nothing, too.
    stage.press("k");
    stage.assert_cursor("gt-00crs");
    stage.press("<Tab>");
    stage.assert_cursor("hq-mayor");
    // Another order of the column does not change that of the questions.
    stage.press("oiH<Tab>");
    stage.assert_cursor("hq-mayor");
}

#[test]
fn without_questions_tab_goes_round_the_cards_that_need_you() {
    let mut facts = with_agents();
    facts.cards.retain(|card| card.asking_program().is_none());
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    for cursor in ["gt-00crs", "gt-00brk", "gt-00crs"] {
        stage.press(if cursor == "gt-00brk" {
            "<Tab>"
        } else {
            "H<Tab>"
        });
        stage.assert_cursor(cursor);
    }
}

#[test]
fn agent_without_an_item_has_the_actions_of_an_agent() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, with_agents());
    stage.press("H<Tab>");
    for (keys, command) in [
        (" a", "hand over: gt attach -- mayor"),
        (" xy", "run: gt stop --json -- mayor"),
        (" nGo on<Enter>", "run: gt nudge mayor --stdin --json"),
        ("y", "ask: gt answer --json -- mayor"),
    ] {
        assert_eq!(commands(&stage.press(keys)), [command], "{keys}");
        stage.press("<Esc>");
    }
    for key in [
        "s", "S", "!", "u", "p", "R", "d", "r", "m", "M", "f", "P", "c",
    ] {
        stage.press(" ");
        assert_eq!(commands(&stage.press(key)), [""; 0], "{key}");
        stage.assert_shows("it is an agent without an item");
        stage.press("<Esc>");
    }
}

#[test]
fn footer_offers_the_answer_only_for_a_question() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, with_agents());
    stage.press("H<Tab>");
    stage.assert_shows(" y answer  Space actions");
    stage.press("h");
    stage.assert_shows_not("y answer");
}

#[test]
fn one_key_answers_a_question_that_was_shown() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, with_agents());
    stage.press("H<Tab>");
    stage.press("y");
    // The question is not known yet.
    assert_eq!(commands(&stage.press("1")), [""; 0]);
    stage.press("<Backspace>");
    let result = Ok(question("1-2"));
    stage.happens(BoardEvent::Asked { order: 1, result });
    stage.assert_shows("2. Yes, and don't ask again for rm");
    assert_eq!(
        commands(&stage.press("2")),
        ["run: gt answer --json --expect 1-2 -- mayor 2"]
    );
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn digit_is_text_if_it_begins_several_labels_or_follows_text() {
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, with_agents());
    stage.press("H<Tab>y");
    let mut asked = question("1-2");
    asked.options.push(("10.".to_owned(), "Later".to_owned()));
    let result = Ok(asked);
    stage.happens(BoardEvent::Asked { order: 1, result });
    assert_eq!(commands(&stage.press("1")), [""; 0]);
    assert_eq!(
        commands(&stage.press("0<Enter>")),
        ["run: gt answer --json --expect 1-2 -- mayor 10"]
    );
    stage.press("y");
    let result = Ok(question("3-4"));
    stage.happens(BoardEvent::Asked { order: 3, result });
    assert_eq!(commands(&stage.press("x2")), [""; 0]);
    // Pasted text is never sent by itself.
    stage.press("<C-u>");
    let requests = stage.happens(BoardEvent::Paste("2".to_owned()));
    assert_eq!(commands(&requests), [""; 0]);
    stage.assert_mode(KeyMode::Write);
}
