//! Creating, editing and assigning items, texts of several lines, and starts that offer a resume.

use super::*;
use crate::{BehindFacts, ItemFields};
use insta::assert_snapshot;

/// Returns the arguments and the standard input of the commands among the requests.
fn with_input(requests: &[BoardRequest]) -> Vec<(String, Option<String>)> {
    let orders = requests.iter().filter_map(|request| match request {
        BoardRequest::Run(order) => Some(order),
        _ => None,
    });
    orders
        .map(|order| (order.words.join(" "), order.input.clone()))
        .collect()
}

fn item() -> ItemFields {
    ItemFields {
        title: "Fix the login flow".to_owned(),
        description: "It fails.\nAlways.\n".to_owned(),
        priority: 1,
        kind: "bug".to_owned(),
        labels: vec!["ui".to_owned(), "auth".to_owned()],
        blockers: vec!["gt-00epc".to_owned()],
    }
}

/// Opens the form of a card, with the item that its command reads.
fn editing() -> Stage {
    let mut stage = Stage::new(80, 24);
    stage.press("h e");
    let (order, result) = (stage.board.orders, Ok(item()));
    stage.happens(BoardEvent::ItemRead { order, result });
    stage
}

#[test]
fn item_is_created_by_its_title_and_enter() {
    let mut stage = Stage::with(
        80,
        24,
        BoardTheme::Dark,
        BoardFacts {
            town: "hello".to_owned(),
            projects: vec!["gastown".to_owned()],
            ..BoardFacts::default()
        },
    );
    stage.assert_shows("n creates one");
    let requests = stage.press("nMake it<Enter>");
    assert_eq!(
        commands(&requests),
        ["run: gt work create --json --rig=gastown --type=task --priority=2 -- Make it"]
    );
    // The new card gets the cursor as soon as it is there.
    let (order, result) = (stage.board.orders, Ok("gt-00new".to_owned()));
    stage.happens(BoardEvent::Outcome { order, result });
    stage.assert_shows("Made gt-00new");
    let mut facts = town();
    facts.cards.push(card("gt-00new", "Make it"));
    stage.happens(BoardEvent::Facts(facts));
    stage.assert_cursor("gt-00new");
}

#[test]
fn all_fields_of_a_new_item_reach_the_command() {
    let mut stage = Stage::new(80, 24);
    stage.press("nFix --it<Tab>");
    stage.happens(BoardEvent::Paste("One\r\nTwo".to_owned()));
    stage.press("<C-j>three<Tab>b<Tab>0<Tab>f<Tab>ui, -x<Tab>gt-00epc gt-00blk");
    assert_snapshot!("new_item", stage.screen());
    let requests = stage.press("<Enter>");
    assert_eq!(
        with_input(&requests),
        [(
            "work create --json --rig=beads --type=feature --priority=0 --label=ui --label=-x \
             --dep=gt-00epc --dep=gt-00blk --description=- -- Fix --it"
                .to_owned(),
            Some("One\nTwo\nthree".to_owned())
        )]
    );
}

#[test]
fn n_is_the_next_match_only_during_a_search() {
    let mut stage = Stage::new(120, 40);
    stage.press("/the<Enter>");
    let first = stage.board.cursor().cloned();
    stage.press("n");
    stage.assert_mode(KeyMode::Board);
    assert_ne!(stage.board.cursor().cloned(), first);
    stage.press("+");
    stage.assert_mode(KeyMode::Form);
    stage.press("<Esc><Esc>n");
    stage.assert_mode(KeyMode::Form);
}

#[test]
fn form_of_a_failed_creation_opens_again_with_its_text() {
    let mut stage = Stage::new(80, 24);
    stage.press("nMake it<Tab>Because.<Enter>");
    stage.assert_mode(KeyMode::Board);
    let (order, result) = (stage.board.orders, Err("gt-x is unknown".into()));
    stage
        .board
        .handle(BoardEvent::Outcome { order, result }, stage.now);
    // No frame has shown it yet, so a key is not meant for it.
    assert_eq!(commands(&stage.press("<Enter>")), Vec::<String>::new());
    stage.assert_mode(KeyMode::Form);
    stage.assert_shows("Make it");
    stage.assert_shows("Because.");
    assert_eq!(with_input(&stage.press("<Enter>")).len(), 1);
}

#[test]
fn item_without_a_title_is_not_created() {
    let mut stage = Stage::new(80, 24);
    assert_eq!(commands(&stage.press("n  <Enter>")), Vec::<String>::new());
    stage.assert_mode(KeyMode::Form);
    stage.assert_shows("An item needs a title");
}

#[test]
fn keys_pressed_before_the_item_is_read_are_kept() {
    let mut stage = Stage::new(80, 24);
    stage.press("h e!<Tab>");
    stage.happens(BoardEvent::Paste("More".to_owned()));
    let early = stage.press("<Tab><Enter>");
    assert_eq!(commands(&early), Vec::<String>::new());
    let (order, result) = (stage.board.orders, Ok(item()));
    let requests = stage.happens(BoardEvent::ItemRead { order, result });
    let [(words, input)] = &with_input(&requests)[..] else {
        panic!("{requests:?}");
    };
    assert!(
        words.ends_with("--json --title=Fix the login flow! --description=-"),
        "{words}"
    );
    assert_eq!(input.as_deref(), Some("It fails.\nAlways.\nMore"));
    stage.assert_mode(KeyMode::Board);
}

#[test]
fn only_changed_fields_are_sent() {
    let mut stage = editing();
    assert_snapshot!("edit_item", stage.screen());
    assert_eq!(commands(&stage.press("<Enter>")), Vec::<String>::new());
    stage.assert_shows("Nothing was changed");
    let mut stage = editing();
    let requests = stage.press("!<Tab>More.<Tab>3<Tab><Tab><C-u>ui new<Enter>");
    assert_eq!(
        with_input(&requests),
        [(
            "work update gt-00bsy --json --title=Fix the login flow! --priority=3 \
             --add-label=new --remove-label=auth --description=-"
                .to_owned(),
            Some("It fails.\nAlways.\nMore.".to_owned())
        )]
    );
    let mut stage = editing();
    stage.press("<BackTab><C-u>gt-00blk");
    assert_eq!(
        commands(&stage.press("<Enter>")),
        [
            "run: gt work dep add --json -- gt-00bsy gt-00blk",
            "run: gt work dep remove --json -- gt-00bsy gt-00epc",
        ]
    );
}

#[test]
fn form_waits_for_its_item() {
    let mut stage = Stage::new(80, 24);
    stage.press("h e");
    stage.assert_shows("Reading…");
    assert_eq!(commands(&stage.press("x<Enter>")), Vec::<String>::new());
    let (order, result) = (stage.board.orders, Err("it is gone".to_owned()));
    stage.happens(BoardEvent::ItemRead { order, result });
    stage.assert_mode(KeyMode::Board);
    stage.assert_shows("gt-00bsy cannot be read: it is gone");
}

#[test]
fn pasted_line_breaks_of_a_message_are_kept() {
    let mut stage = Stage::new(80, 24);
    stage.press("h nfirst");
    stage.happens(BoardEvent::Paste("\rsecond\r\n\tthird".to_owned()));
    stage.happens(BoardEvent::Key(KeyEvent::new(
        KeyCode::Enter,
        KeyModifiers::ALT,
    )));
    stage.press("fourth");
    assert_snapshot!("message_of_several_lines", stage.screen());
    let requests = stage.press("<Enter>");
    assert_eq!(
        with_input(&requests),
        [(
            "nudge task/gt-00bsy --stdin --json".to_owned(),
            Some("first\nsecond\n\tthird\nfourth".to_owned())
        )]
    );
    // A message that could not be sent is not lost.
    let (order, result) = (stage.board.orders, Err("no tmux".into()));
    stage.happens(BoardEvent::Outcome { order, result });
    stage.assert_mode(KeyMode::Message);
    stage.assert_shows("fourth");
}

#[test]
fn item_is_given_to_a_polecat_or_to_the_crew_of_its_rig() {
    let mut facts = town();
    facts.crew = ["gastown/crew/max", "gastown/crew/joe", "beads/crew/zoe"]
        .map(str::to_owned)
        .to_vec();
    let mut mayor = working(card("gt-00max", "gastown/crew/max"), State::Idle, 60);
    mayor.is_agent = true;
    mayor.holder = Some("gastown/crew/max".to_owned());
    facts.cards.push(mayor);
    let mut stage = Stage::with(80, 24, BoardTheme::Dark, facts);
    stage.press("H g");
    stage.assert_shows("A polecat of gastown");
    stage.assert_shows("gastown/crew/max (idle)");
    stage.assert_shows("gastown/crew/joe (does not run)");
    stage.assert_shows_not("zoe");
    let requests = stage.press("joe<Enter>");
    assert_eq!(
        commands(&requests),
        ["run: gt sling --json -- gt-00epc gastown/crew/joe"]
    );
}

#[test]
fn start_of_an_item_with_a_conversation_offers_to_resume_it() {
    let resumable = || {
        let mut facts = town();
        for card in &mut facts.cards {
            card.resumable = card.id == id("gt-00epc");
        }
        Stage::with(80, 24, BoardTheme::Dark, facts)
    };
    for (start, choice, command) in [
        ("s", "<Enter>", "task resume gt-00epc --json"),
        ("S", "R", "task resume gt-00epc --json"),
        ("s", "s", "task start gt-00epc --no-attach --json"),
        (
            "!",
            "s",
            "task start gt-00epc --work --yolo --no-attach --json",
        ),
    ] {
        let mut stage = resumable();
        let requests = stage.press(&format!("H {start}"));
        assert_eq!(commands(&requests), Vec::<String>::new());
        stage.assert_mode(KeyMode::ResumeFirst);
        stage.assert_shows("Resume gt-00epc?");
        assert_eq!(
            commands(&stage.press(choice)),
            [format!("run: gt {command}")]
        );
    }
}

#[test]
fn branch_is_checked_before_the_terminal_is_handed_over() {
    let check = |behind: BehindFacts, keys: &str| {
        let mut stage = Stage::new(80, 24);
        assert_eq!(
            commands(&stage.press("j a")),
            ["check: gt task attach gt-00ask --dry-run --json"]
        );
        stage.assert_shows("Attaching to gt-00ask…");
        stage.press(keys);
        let (order, result) = (stage.board.orders, Ok(behind));
        let requests = stage.happens(BoardEvent::BehindRead { order, result });
        (stage, commands(&requests))
    };
    let (stage, requests) = check(BehindFacts::default(), "");
    assert_eq!(requests, ["hand over: gt task attach gt-00ask --skip"]);
    stage.assert_shows_not("Attaching to");
    let behind = BehindFacts {
        base: "main".to_owned(),
        behind: 2,
        merging: false,
    };
    let (mut stage, requests) = check(behind.clone(), "");
    assert_eq!(requests, Vec::<String>::new());
    stage.assert_shows("2 commits behind");
    assert_eq!(
        commands(&stage.press("m")),
        ["run: gt task update gt-00ask --json"]
    );
    // A second merge is not started.
    let merging = BehindFacts {
        merging: true,
        ..behind
    };
    let (_, requests) = check(merging, "");
    assert_eq!(requests, ["hand over: gt task attach gt-00ask --skip"]);
    // The terminal is not taken from a person who types.
    let (stage, requests) = check(BehindFacts::default(), "nMake");
    assert_eq!(requests, Vec::<String>::new());
    stage.assert_mode(KeyMode::Form);
    let mut stage = Stage::new(80, 24);
    stage.press("j a");
    let (order, result) = (stage.board.orders, Err("it is not running".into()));
    stage.happens(BoardEvent::BehindRead { order, result });
    stage.assert_shows("Attaching to gt-00ask: it is not running");
}
