//! Keys apply to the card that was under the cursor when they were pressed, even if cards move in
//! the meantime.

use super::*;
use crate::Tab;

/// Returns the town at a later time: one card is in another column, the others have changed places.
fn later() -> BoardFacts {
    let mut facts = town();
    facts.cards.reverse();
    for card in &mut facts.cards {
        if card.id == id("gt-00bsy") {
            session(card).state = State::Waiting;
            session(card).since = Some(NOW - 999_999);
        }
        if card.id == id("gt-00crs") {
            session(card).state = State::Busy;
        }
    }
    facts
}

/// Returns the town without one card.
fn without(facts: BoardFacts, gone: &str) -> BoardFacts {
    let mut facts = facts;
    facts.cards.retain(|card| card.id != id(gone));
    facts
}

#[test]
fn the_cursor_stays_on_its_card() {
    let mut stage = Stage::new(120, 40);
    stage.press("h");
    stage.assert_cursor("gt-00bsy");
    stage.happens(BoardEvent::Facts(later()));
    stage.assert_cursor("gt-00bsy");
    stage.assert_shows("▸Needs you");
}

#[test]
fn when_its_card_goes_it_is_on_the_neighbour() {
    let mut stage = Stage::new(120, 40);
    stage.press("j");
    stage.assert_cursor("gt-00ask");
    stage.happens(BoardEvent::Facts(without(town(), "gt-00ask")));
    stage.assert_cursor("gt-00brk");
    stage.happens(BoardEvent::Facts(without(
        without(town(), "gt-00ask"),
        "gt-00brk",
    )));
    stage.assert_cursor("gt-00crs");
    let mut facts = town();
    facts
        .cards
        .retain(|card| card.column() != gt_core::card::Column::NeedsYou);
    stage.happens(BoardEvent::Facts(facts));
    assert!(stage.board.cursor().is_some(), "a neighbouring column");
    stage.press("G");
    stage.happens(BoardEvent::Facts(BoardFacts::default()));
    assert_eq!(stage.board.cursor(), None);
    stage.happens(BoardEvent::Facts(town()));
    assert!(stage.board.cursor().is_some());
}

#[test]
fn an_action_goes_to_the_card_that_its_menu_was_opened_for() {
    for facts in [later(), without(later(), "gt-00ask")] {
        let mut stage = Stage::new(80, 24);
        stage.press("h ");
        stage.happens(BoardEvent::Facts(facts));
        let requests = stage.press("p");
        assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
    }
    // Also if the cursor had to move because the card is no longer shown.
    let mut stage = Stage::new(80, 24);
    stage.press("h ");
    stage.board.lens.project = Some("beads".to_owned());
    stage.board.arrange();
    stage.assert_cursor("gt-00wid");
    let requests = stage.press("p");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
}

#[test]
fn a_menu_for_a_card_that_is_gone_orders_nothing() {
    let mut stage = Stage::new(80, 24);
    stage.press("h ");
    stage.happens(BoardEvent::Facts(without(later(), "gt-00bsy")));
    let requests = stage.press("p");
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_shows("gt-00bsy: it is gone");
}

#[test]
fn neighbour_that_was_not_seen_there_is_not_meant() {
    // The card is removed, and the key is pressed before a frame shows this.
    let go = |keys: &str| {
        let mut stage = Stage::new(80, 24);
        stage.press("h");
        let facts = without(town(), "gt-00bsy");
        stage.board.handle(BoardEvent::Facts(facts), stage.now);
        stage.assert_cursor("gt-00hkd");
        let requests = stage.press(keys);
        (stage, commands(&requests))
    };
    let (stage, orders) = go(" c");
    assert_eq!(orders, Vec::<String>::new());
    stage.assert_shows("gt-00bsy: it is gone");
    let (stage, _) = go("<Enter>");
    stage.assert_shows("gt-00bsy  it is gone");
    // After a cursor movement, keys apply to the new card.
    let (_, orders) = go("jk c");
    assert_eq!(orders, ["run: gt work close gt-00hkd --json"]);
    // After a frame, keys apply to the card that it shows.
    let (mut stage, _) = go("");
    stage.draw();
    assert_eq!(
        commands(&stage.press(" c")),
        ["run: gt work close gt-00hkd --json"]
    );
}

#[test]
fn marks_on_cards_that_went_do_not_become_the_cursor() {
    let mut stage = Stage::new(80, 24);
    stage.press("hVj");
    stage
        .board
        .handle(BoardEvent::Facts(without(town(), "gt-00bsy")), stage.now);
    assert_eq!(commands(&stage.press(" c")), Vec::<String>::new());
    stage.assert_shows("gt-00bsy: it is gone");
}

#[test]
fn cleanup_that_was_not_shown_is_not_confirmed() {
    let mut stage = Stage::new(80, 24);
    stage.press("h d");
    let order = stage.board.orders;
    let result = Ok(vec!["delete everything".to_owned()]);
    stage
        .board
        .handle(BoardEvent::Foreseen { order, result }, stage.now);
    assert_eq!(commands(&stage.press("y")), Vec::<String>::new());
    assert_eq!(commands(&stage.press("y")).len(), 1);
}

#[test]
fn rows_of_a_filter_stay_where_they_are() {
    let mut stage = Stage::new(120, 40);
    stage.press("Fjjjj");
    stage.assert_shows("▸         [ ] crashed");
    let mut facts = town();
    facts.cards.retain(|card| card.id != id("gt-00bsy"));
    stage.board.handle(BoardEvent::Facts(facts), stage.now);
    stage.press(" ");
    stage.assert_shows("only crashed");
}

#[test]
fn a_question_is_about_what_it_was_asked_for() {
    let mut stage = Stage::new(80, 24);
    stage.press("h x");
    stage.assert_shows("Stop gt-00bsy?");
    stage.happens(BoardEvent::Facts(without(later(), "gt-00bsy")));
    let requests = stage.press("y");
    assert_eq!(commands(&requests), ["run: gt task stop gt-00bsy --json"]);
}

/// Requests a start, which the caller then fails. Returns the number of the command.
fn failed_start(stage: &mut Stage, key: &str) -> u64 {
    stage.board.select(&id("gt-00epc"));
    stage.press(&format!(" {key}"));
    stage.board.orders
}

#[test]
fn a_start_can_go_on_without_the_init_command_that_failed() {
    for (key, words) in [
        ("s", "--no-attach --json"),
        ("S", "--work --no-attach --json"),
        ("!", "--work --yolo --no-attach --json"),
    ] {
        let mut stage = Stage::new(80, 24);
        let order = failed_start(&mut stage, key);
        stage.happens(BoardEvent::Facts(later()));
        stage.board.select(&id("gt-00crs"));
        let result = Err(init_failed());
        stage.happens(BoardEvent::Outcome { order, result });
        stage.assert_mode(KeyMode::InitFailed);
        stage.assert_shows("Go on with gt-00epc?");
        stage.assert_shows("the init command `make` ended with exit code 2");
        assert_eq!(
            commands(&stage.press("y")),
            [format!(
                "run: gt task start gt-00epc {words} --continue-on-failure"
            )]
        );
        stage.assert_mode(KeyMode::Board);
    }
    for (key, wanted) in [
        ("a", vec!["hand over: gt task attach gt-00epc --skip"]),
        ("<Esc>", vec![]),
    ] {
        let mut stage = Stage::new(80, 24);
        let order = failed_start(&mut stage, "s");
        let result = Err(init_failed());
        stage.happens(BoardEvent::Outcome { order, result });
        assert_eq!(commands(&stage.press(key)), wanted);
        stage.assert_mode(KeyMode::Board);
    }
}

#[test]
fn whatever_needed_the_init_command_goes_on_by_its_own_command() {
    for (card, keys, wanted) in [
        (
            "gt-00psd",
            " R",
            "run: gt task resume gt-00psd --json --continue-on-failure",
        ),
        (
            "gt-00bsy",
            " rs",
            "run: gt dev start --json --continue-on-failure -- gt-00bsy",
        ),
        (
            "gt-00bsy",
            " u",
            "run: gt task update gt-00bsy --json --continue-on-failure",
        ),
    ] {
        let mut stage = Stage::new(80, 24);
        stage.board.select(&id(card));
        stage.press(keys);
        let (order, result) = (stage.board.orders, Err(init_failed()));
        stage.happens(BoardEvent::Outcome { order, result });
        stage.assert_mode(KeyMode::InitFailed);
        assert_eq!(commands(&stage.press("y")), [wanted]);
    }
}

#[test]
fn the_first_merge_of_a_rig_is_confirmed_in_an_overlay() {
    for (key, wanted) in [
        ("y", vec!["run: gt task merge gt-00bsy --json --yes"]),
        ("n", vec![]),
    ] {
        let mut stage = Stage::new(80, 24);
        stage.board.select(&id("gt-00bsy"));
        let merge = "run: gt task merge gt-00bsy --json";
        assert_eq!(commands(&stage.press(" m")), [merge]);
        let (order, result) = (stage.board.orders, Err(unconfirmed()));
        stage
            .board
            .handle(BoardEvent::Outcome { order, result }, stage.now);
        // A key that was pressed before the frame is not an answer.
        assert_eq!(commands(&stage.press("y")), [""; 0]);
        stage.assert_mode(KeyMode::Confirm);
        stage.assert_shows("Merge gt-00bsy?");
        stage.assert_shows("merge gt-00bsy with main of gastown");
        stage.assert_shows("long.git");
        assert_eq!(commands(&stage.press(key)), wanted);
        stage.assert_mode(KeyMode::Board);
    }
}

#[test]
fn overlay_that_opens_without_a_key_ignores_earlier_keys() {
    let mut stage = Stage::new(80, 24);
    let order = failed_start(&mut stage, "s");
    // The user types a message in the meantime.
    stage.board.select(&id("gt-00bsy"));
    stage.press(" n");
    let result = Err(init_failed());
    stage.happens(BoardEvent::Outcome { order, result });
    stage.assert_mode(KeyMode::Message);
    assert_eq!(
        commands(&stage.press("y<Enter>")),
        ["run: gt nudge task/gt-00bsy --stdin --json"]
    );
    stage.assert_mode(KeyMode::InitFailed);
    // Before a frame has shown the question, keys have no effect on it.
    let mut stage = Stage::new(80, 24);
    let order = failed_start(&mut stage, "s");
    let result = Err(init_failed());
    stage
        .board
        .handle(BoardEvent::Outcome { order, result }, stage.now);
    for key in ["y", "a", "<Esc>"] {
        let event = BoardEvent::Key(parse(key)[0]);
        assert_eq!(commands(&stage.board.handle(event, stage.now)), [""; 0]);
    }
    stage.draw();
    stage.assert_shows("Go on with gt-00epc?");
}

/// Returns a stage with the question whether to merge, and with the cursor elsewhere.
fn asked_to_merge() -> Stage {
    let mut stage = Stage::new(80, 24);
    let requests = stage.press("h a");
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_shows("↓ Branch Behind main");
    stage.assert_shows("5 commits behind");
    stage.happens(BoardEvent::Facts(later()));
    stage.board.select(&id("gt-00crs"));
    stage
}

#[test]
fn the_choice_to_merge_is_for_the_card_that_was_behind() {
    let there = "hand over: gt task attach gt-00bsy --skip";
    let mut stage = asked_to_merge();
    assert_eq!(commands(&stage.press("s")), [there]);
    stage.assert_mode(KeyMode::Board);
    let mut stage = asked_to_merge();
    assert_eq!(
        commands(&stage.press("m")),
        ["run: gt task update gt-00bsy --json"]
    );
    stage.assert_mode(KeyMode::Board);
    let order = stage.board.orders;
    let result = Ok("merged".to_owned());
    let requests = stage.happens(BoardEvent::Outcome { order, result });
    assert_eq!(commands(&requests), [there]);
    let mut stage = Stage::new(80, 24);
    let requests = stage.press("h a<Esc>");
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn merge_with_conflicts_is_reported_and_opens_nothing() {
    let mut stage = asked_to_merge();
    stage.press("m");
    let order = stage.board.orders;
    let result = Err("Conflicts detected. Claude Code started to resolve.".into());
    let requests = stage.happens(BoardEvent::Outcome { order, result });
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_shows("Conflicts detected. Claude Code");
}

#[test]
fn view_stays_while_a_person_types() {
    let mut stage = asked_to_merge();
    stage.press("m");
    let order = stage.board.orders;
    stage.press("/frm");
    let result = Ok("merged".to_owned());
    let requests = stage.happens(BoardEvent::Outcome { order, result });
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_shows("gt-00bsy: a attaches");
}

#[test]
fn a_cleanup_is_foreseen_then_done() {
    let mut stage = Stage::new(80, 24);
    let requests = stage.press("h d");
    assert_eq!(
        commands(&requests),
        ["foresee: gt task cleanup gt-00bsy --dry-run --json"]
    );
    let order = stage.board.orders;
    stage.assert_shows("Looking…");
    assert_eq!(
        commands(&stage.press("ycf")),
        Vec::<String>::new(),
        "its state is not known yet"
    );
    stage.happens(BoardEvent::Facts(later()));
    let result = Ok(vec![
        "remove the worktree".to_owned(),
        "delete the branch".to_owned(),
    ]);
    stage.happens(BoardEvent::Foreseen { order, result });
    stage.assert_shows("remove the worktree");
    assert_eq!(
        commands(&stage.press("f")),
        Vec::<String>::new(),
        "nothing is refused"
    );
    stage.happens(BoardEvent::Facts(without(later(), "gt-00ask")));
    let requests = stage.press("c");
    assert_eq!(
        commands(&requests),
        ["run: gt task cleanup gt-00bsy --yes --close --json"]
    );
}

#[test]
fn a_refused_cleanup_can_only_be_forced() {
    let mut stage = Stage::new(80, 24);
    stage.press("h d");
    let order = stage.board.orders;
    let result = Err("3 files are not committed".to_owned());
    stage.happens(BoardEvent::Foreseen { order, result });
    stage.assert_shows("refused: 3 files are not committed");
    assert_eq!(commands(&stage.press("yc")), Vec::<String>::new());
    let requests = stage.press("f");
    assert_eq!(
        commands(&requests),
        ["run: gt task cleanup gt-00bsy --yes --force --json"]
    );
}

#[test]
fn many_are_cleaned_up_with_one_question() {
    let mut stage = Stage::new(80, 24);
    let requests = stage.press("VjVhV d");
    assert_eq!(commands(&requests).len(), 3);
    let last = stage.board.orders;
    for order in last - 2..last {
        stage.happens(BoardEvent::Foreseen {
            order,
            result: Ok(vec!["all of it".to_owned()]),
        });
    }
    assert_eq!(
        commands(&stage.press("y")),
        Vec::<String>::new(),
        "one is not known"
    );
    stage.happens(BoardEvent::Foreseen {
        order: last,
        result: Err("dirty".to_owned()),
    });
    let requests = stage.press("y");
    assert_eq!(
        commands(&requests),
        [
            "run: gt task cleanup gt-00bsy --yes --json",
            "run: gt task cleanup gt-00ask --yes --json",
        ]
    );
}

/// Returns the number of the command that reads a question.
fn asked(requests: &[BoardRequest]) -> u64 {
    let found = requests.iter().find_map(|request| match request {
        BoardRequest::Ask(order) => Some(order.number),
        _ => None,
    });
    found.expect("a question is read")
}

#[test]
fn an_answer_goes_to_the_agent_and_the_question_that_were_shown() {
    let mut stage = Stage::new(80, 24);
    let order = asked(&stage.press("j y"));
    stage.assert_shows("Reading what it asks…");
    let result = Ok(question("f1-9"));
    stage.happens(BoardEvent::Asked { order, result });
    stage.assert_shows("rm -rf build");
    stage.assert_shows("1. Yes");
    stage.assert_shows("3. No");
    let mut facts = later();
    for card in &mut facts.cards {
        if card.session.is_some() {
            session(card).agent = "somebody/else".to_owned();
            session(card).reason = Some("asks something else".to_owned());
        }
    }
    stage.happens(BoardEvent::Facts(facts));
    let requests = stage.press("-2<Enter>");
    assert_eq!(
        commands(&requests),
        ["run: gt answer --json --expect f1-9 -- task/gt-00ask -2"]
    );
    // The result of an earlier command is not the question of this one.
    let order_again = asked(&stage.press(" y"));
    let result = Ok(question("f1-9"));
    stage.happens(BoardEvent::Asked { order, result });
    assert_eq!(commands(&stage.press("1<Enter>")), Vec::<String>::new());
    let result = Ok(question("f2-9"));
    stage.happens(BoardEvent::Asked {
        order: order_again,
        result,
    });
    stage.assert_shows("Enter sends it");
    assert_eq!(
        commands(&stage.press("<Enter>")),
        ["run: gt answer --json --expect f2-9 -- somebody/else 1"]
    );
}

#[test]
fn what_the_merge_window_asks_is_answered_there() {
    let mut facts = town();
    for card in &mut facts.cards {
        if card.id == id("gt-00ask") {
            session(card).state = State::Idle;
            session(card).reason = None;
            branch(card).ahead = 1;
            card.resolver = Some(resolver(State::Waiting, "merge asks: Bash(git add -A)"));
        }
    }
    let mut stage = Stage::with(120, 40, BoardTheme::Dark, facts.clone());
    stage.assert_shows("merge asks: Bash");
    let requests = stage.press("j y");
    assert_eq!(
        commands(&requests),
        ["ask: gt answer --json --window merge -- task/gt-00ask"]
    );
    let (order, result) = (asked(&requests), Ok(question("f1-9")));
    stage.happens(BoardEvent::Asked { order, result });
    stage.assert_shows("in its window merge");
    // The agent itself asks in the meantime: the answer still goes to the question that was shown.
    for card in &mut facts.cards {
        if card.id == id("gt-00ask") {
            session(card).state = State::Waiting;
        }
    }
    stage.happens(BoardEvent::Facts(facts));
    assert_eq!(
        commands(&stage.press("yes<Enter>")),
        ["run: gt answer --json --expect f1-9 --window merge -- task/gt-00ask yes"]
    );
    // The agent's own question then has priority, and the card shows it.
    stage.assert_shows_not("merge asks:");
    assert_eq!(
        commands(&stage.press(" y")),
        ["ask: gt answer --json -- task/gt-00ask"]
    );
}

#[test]
fn the_end_of_a_long_option_is_shown() {
    let mut stage = Stage::new(80, 24);
    let order = asked(&stage.press("j y"));
    let mut long = question("f1-9");
    long.options[1].1 = format!("Yes, and {}never ask again", "so on ".repeat(20));
    let result = Ok(long);
    stage.happens(BoardEvent::Asked { order, result });
    stage.assert_shows("never ask again");
    stage.assert_shows("3. No");
}

#[test]
fn question_that_was_not_shown_is_not_answered() {
    let mut stage = Stage::new(80, 24);
    let order = asked(&stage.press("j y"));
    assert_eq!(commands(&stage.press("1<Enter>")), Vec::<String>::new());
    stage.assert_mode(KeyMode::Write);
    // The question is known, but no frame has shown it yet.
    let result = Ok(question("f1-9"));
    stage
        .board
        .handle(BoardEvent::Asked { order, result }, stage.now);
    assert_eq!(commands(&stage.press("<Enter>")), Vec::<String>::new());
    assert_eq!(
        commands(&stage.press("<Enter>")),
        ["run: gt answer --json --expect f1-9 -- task/gt-00ask 1"]
    );
}

#[test]
fn a_question_that_cannot_be_read_is_not_answered() {
    let mut stage = Stage::new(80, 24);
    let order = asked(&stage.press("j y"));
    let result = Err("what task/gt-00ask asks cannot be read".to_owned());
    stage.happens(BoardEvent::Asked { order, result });
    stage.assert_shows("asks cannot be read");
    assert_eq!(commands(&stage.press("1<Enter>")), Vec::<String>::new());
    stage.assert_shows("a attaches, to answer there");
}

#[test]
fn many_are_answered_each_by_its_own_question() {
    let mut facts = town();
    for card in &mut facts.cards {
        if card.id == id("gt-00crs") {
            session(card).state = State::Waiting;
        }
    }
    let mut stage = Stage::with(120, 40, BoardTheme::Dark, facts);
    let requests = stage.press("* y");
    let orders = requests.iter().filter_map(|request| match request {
        BoardRequest::Ask(order) => Some(order.number),
        _ => None,
    });
    for order in orders.collect::<Vec<_>>() {
        let result = Ok(question(&format!("f{order}")));
        stage.happens(BoardEvent::Asked { order, result });
    }
    assert_eq!(
        commands(&stage.press("no<Enter>")),
        [
            "run: gt answer --json --expect f1 -- task/gt-00ask no",
            "run: gt answer --json --expect f2 -- task/gt-00crs no",
        ]
    );
}

#[test]
fn a_message_goes_by_standard_input_as_it_was_typed() {
    let mut stage = Stage::new(80, 24);
    stage.press("h n");
    stage.happens(BoardEvent::Paste(
        "--json; rm -rf /\n\u{1b}[31m 日本".to_owned(),
    ));
    let requests = stage.press("!<Enter>");
    assert_eq!(
        commands(&requests),
        ["run: gt nudge task/gt-00bsy --stdin --json"]
    );
    let Some(BoardRequest::Run(order)) = requests
        .iter()
        .find(|request| matches!(request, BoardRequest::Run(_)))
    else {
        panic!("no order");
    };
    assert_eq!(order.input.as_deref(), Some("--json; rm -rf /\n[31m 日本!"));
    stage.press(" n");
    let requests = stage.press("  <Enter>");
    assert_eq!(
        commands(&requests),
        Vec::<String>::new(),
        "nothing was typed"
    );
    stage.assert_mode(KeyMode::Message);
}

#[test]
fn an_open_card_has_the_keys_wherever_the_cursor_is() {
    let mut stage = Stage::new(80, 24);
    stage.press("h<Enter>");
    stage.happens(BoardEvent::Facts(later()));
    stage.board.select(&id("gt-00crs"));
    let requests = stage.press(" p");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
    stage.happens(BoardEvent::Facts(without(later(), "gt-00bsy")));
    stage.assert_shows("it is gone");
}

#[test]
fn a_label_leads_to_the_card_that_had_it() {
    let mut stage = Stage::new(120, 40);
    stage.press("g");
    let labels = match &stage.board.overlay {
        Some(crate::overlay::Overlay::Go { labels, .. }) => labels.clone(),
        other => panic!("{other:?}"),
    };
    let (label, _) = labels
        .iter()
        .find(|(_, card)| *card == id("gt-00don"))
        .expect("a label");
    stage.happens(BoardEvent::Facts(later()));
    stage.press(label);
    stage.assert_cursor("gt-00don");
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn many_cards_have_labels_of_two_letters() {
    let mut stage = Stage::with(200, 50, BoardTheme::Dark, crate::sample(200, 0));
    stage.press("g");
    let labels = match &stage.board.overlay {
        Some(crate::overlay::Overlay::Go { labels, .. }) => labels.clone(),
        other => panic!("{other:?}"),
    };
    assert!(labels.len() > 24, "{}", labels.len());
    let (label, card) = labels.last().cloned().expect("one");
    stage.press(&label[..1]);
    stage.assert_mode(KeyMode::Go);
    stage.press(&label[1..]);
    assert_eq!(stage.board.cursor(), Some(&card));
    stage.press("g1");
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn marked_cards_are_done_with_together_after_one_question() {
    let mut stage = Stage::new(120, 40);
    stage.press("hV");
    stage.press("jjV");
    stage.press("HV ");
    stage.assert_shows("3 cards");
    stage.press("p");
    stage.assert_shows("Pause gt-00bsy?");
    stage.assert_shows("left out: gt-00psd: it is paused");
    let requests = stage.press("y");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
}

#[test]
fn marks_go_with_their_cards() {
    let mut stage = Stage::new(120, 40);
    stage.press("hV");
    stage.happens(BoardEvent::Facts(later()));
    stage.assert_shows("◆ 1 marked");
    stage.press(" x");
    assert_eq!(
        commands(&stage.press("y")),
        ["run: gt task stop gt-00bsy --json"]
    );
    stage.happens(BoardEvent::Facts(without(later(), "gt-00bsy")));
    stage.assert_shows_not("marked");
}

#[test]
fn a_whole_column_is_marked_and_unmarked() {
    let mut stage = Stage::new(120, 40);
    stage.press("H*");
    stage.assert_shows("◆ 3 marked");
    let requests = stage.press(" s");
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_shows("Start 3 cards?");
    stage.press("n");
    stage.press("*");
    stage.assert_shows_not("marked");
    let requests = stage.press("* sy");
    assert_eq!(commands(&requests).len(), 3);
}

#[test]
fn the_palette_is_for_the_card_that_it_was_opened_for() {
    let mut stage = Stage::new(80, 24);
    stage.press("h:task pause");
    stage.happens(BoardEvent::Facts(later()));
    stage.board.select(&id("gt-00crs"));
    let requests = stage.press("<Enter>");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
    stage.press(":keep<Enter>");
    stage.press("<Esc>:diff<Enter>");
    assert!(
        stage
            .board
            .detail
            .as_ref()
            .is_some_and(|open| open.tab == Tab::Diff)
    );
}
