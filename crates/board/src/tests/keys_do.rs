//! Every row of the table of keys has an effect, and the documented one.

use super::views::{detail, view};
use super::*;
use crate::action::{BoardAction, CardOperation};
use crate::keys::{self, TABLE};
use crate::{Detail, Tab};
use ratatui::buffer::Buffer;

/// Returns the keys that open a mode in which this action has an effect.
fn way(mode: KeyMode, action: BoardAction) -> &'static str {
    match (mode, action) {
        (KeyMode::Board, BoardAction::Up | BoardAction::PageUp | BoardAction::Top) => "jj",
        (KeyMode::Board, BoardAction::FirstColumn) => "",
        (KeyMode::Board, BoardAction::NextNeedy) => "h",
        (KeyMode::Board, BoardAction::Back) => "V",
        (KeyMode::Board, _) => "",
        (KeyMode::Actions, BoardAction::Card(operation)) => way_of_operation(operation),
        (KeyMode::Actions, _) => "h ",
        (KeyMode::Detail, BoardAction::Up | BoardAction::PageUp | BoardAction::Top) => {
            "h<Enter>3jj"
        }
        (KeyMode::Detail, BoardAction::Left) => "h<Enter>3l",
        (KeyMode::Detail, BoardAction::PreviousFile | BoardAction::PreviousHunk) => "h<Enter>3]",
        (KeyMode::Detail, BoardAction::Tab(Tab::Diff)) => "h<Enter>",
        (KeyMode::Detail, BoardAction::PreviousCard) => "hj<Enter>",
        (KeyMode::Detail, _) => "h<Enter>3",
        (KeyMode::Go, BoardAction::Top) => "jg",
        (KeyMode::Go, _) => "g",
        (KeyMode::Search, BoardAction::Right | BoardAction::Delete | BoardAction::Bottom) => {
            "/t<Left>"
        }
        (KeyMode::Search, _) => "/t",
        (KeyMode::Filter, BoardAction::Clear) => "F ",
        (KeyMode::Filter, _) => "F",
        (KeyMode::Sort, _) => "o",
        (KeyMode::Pick, BoardAction::Right | BoardAction::Delete | BoardAction::Bottom) => {
            ":t<Left>"
        }
        (KeyMode::Pick, _) => ":t",
        (KeyMode::Servers, _) => "h r",
        (KeyMode::MergeChoice, _) => "h a",
        (KeyMode::Cleanup, BoardAction::Force) => "h d",
        (KeyMode::Cleanup, _) => "j d",
        // The overlay opens without a key, after a failed start.
        (KeyMode::InitFailed, _) => "H s",
        (KeyMode::Escalations, _) => "E",
        (KeyMode::EmergencyStop, _) => "X",
        (KeyMode::Confirm, _) => "h x",
        (KeyMode::Write, BoardAction::Right | BoardAction::Delete | BoardAction::Bottom) => {
            "j yt<Left>"
        }
        (KeyMode::Write, BoardAction::Up) => "j y<Down><Down>",
        (KeyMode::Write, BoardAction::Down) => "j y",
        (KeyMode::Write, _) => "j yt",
        (KeyMode::Message, BoardAction::Right | BoardAction::Delete | BoardAction::Bottom) => {
            "h nt<Left>"
        }
        (KeyMode::Message, BoardAction::Up) => "h na<C-j>b",
        (KeyMode::Message, BoardAction::Down) => "h na<C-j>b<Up>",
        (KeyMode::Message, _) => "h nt",
        (KeyMode::Form, BoardAction::Right | BoardAction::Delete | BoardAction::Bottom) => {
            "nt<Left>"
        }
        (KeyMode::Form, BoardAction::NewLine) => "n<Tab>",
        (KeyMode::Form, _) => "nt",
        (KeyMode::MergeQueue, _) => "Q",
        (KeyMode::ResumeFirst, _) => "H s",
        (KeyMode::Read, BoardAction::Up | BoardAction::PageUp | BoardAction::Top) => "?<Tab>jj",
        (KeyMode::Read, _) => "?<Tab>",
    }
}

/// Returns the keys that open the menu of a card for which the operation is possible.
fn way_of_operation(operation: CardOperation) -> &'static str {
    match operation {
        CardOperation::Start
        | CardOperation::StartWork
        | CardOperation::StartYolo
        | CardOperation::Sling
        | CardOperation::Close => "H ",
        CardOperation::Resume | CardOperation::ResumeKeepWip => "hG ",
        CardOperation::AbortMerge => "G ",
        CardOperation::Answer => "j ",
        _ => "h ",
    }
}

/// Returns the visible state of a stage.
fn seen(stage: &Stage) -> (Buffer, KeyMode, Option<WorkId>, String) {
    let state = format!("{:?} {:?}", stage.board.overlay, stage.board.lens);
    (
        stage.terminal.backend().buffer().clone(),
        stage.board.mode(),
        stage.board.cursor().cloned(),
        state,
    )
}

/// Returns a stage in the mode. Details and cleanups are long enough to scroll.
fn ready(mode: KeyMode, action: BoardAction) -> Stage {
    let mut facts = town();
    facts.merges = queue::merges();
    for card in &mut facts.cards {
        card.resumable = mode == KeyMode::ResumeFirst;
    }
    let mut stage = view("", 80, 24, BoardTheme::Dark, facts);
    for key in parse(way(mode, action)) {
        for request in stage.happens(BoardEvent::Key(key)) {
            match request {
                BoardRequest::Show { id, tab: Tab::Diff } => {
                    let lines = "+long line\n".repeat(50);
                    let hunk = format!("diff --git a/x b/x\n@@ -0,0 +1,50 @@\n{lines}");
                    let detail = Detail::Diff {
                        text: hunk.repeat(3),
                    };
                    stage.happens(BoardEvent::Detail {
                        id,
                        tab: Tab::Diff,
                        detail,
                    });
                }
                BoardRequest::Foresee(order) => {
                    let result = match action {
                        BoardAction::Force => Err("dirty".to_owned()),
                        _ => Ok(vec!["a line".to_owned(); 60]),
                    };
                    stage.happens(BoardEvent::Foreseen {
                        order: order.number,
                        result,
                    });
                }
                BoardRequest::Run(order) if mode == KeyMode::InitFailed => {
                    let (order, result) = (order.number, Err(init_failed()));
                    stage.happens(BoardEvent::Outcome { order, result });
                }
                BoardRequest::Ask(order) => {
                    let mut asked = question("1-2");
                    asked.text = "a line\n".repeat(60);
                    let (order, result) = (order.number, Ok(asked));
                    stage.happens(BoardEvent::Asked { order, result });
                }
                _ => {}
            }
        }
    }
    if mode == KeyMode::Confirm {
        // Simulates a confirmation for many marked cards.
        if let Some(crate::overlay::Overlay::Confirm { lines, .. }) = &mut stage.board.overlay {
            lines.extend((0..60).map(|number| number.to_string()));
        }
        stage.draw();
    }
    if matches!(action, BoardAction::Up) && matches!(mode, KeyMode::Confirm | KeyMode::Cleanup) {
        stage.press("jj");
    }
    stage
}

#[test]
fn every_key_of_the_table_has_an_effect() {
    for row in TABLE {
        for key in row.keys() {
            let mut stage = ready(row.mode, row.action);
            stage.assert_mode(row.mode);
            let before = seen(&stage);
            let requests = stage.happens(BoardEvent::Key(key.event()));
            let after = seen(&stage);
            let has_effect = before != after || !requests.is_empty();
            assert!(
                has_effect,
                "{:?} {key}: {}\n{}",
                row.mode,
                row.help,
                stage.screen()
            );
        }
    }
}

#[test]
fn ctrl_c_quits_from_everywhere() {
    for mode in KeyMode::ALL {
        let mut stage = ready(mode, BoardAction::Quit);
        stage.assert_mode(mode);
        assert_eq!(stage.press("<C-c>"), [BoardRequest::Quit], "{mode:?}");
    }
}

#[test]
fn escape_leads_back_to_the_board_from_everywhere() {
    for mode in KeyMode::ALL {
        let mut stage = ready(mode, BoardAction::Quit);
        stage.press("<Esc>");
        stage.assert_mode(KeyMode::Board);
    }
}

#[test]
fn each_action_is_the_command_of_the_table() {
    let cases: &[(CardOperation, &str, &str)] = &[
        (
            CardOperation::Start,
            "s",
            "run: gt task start gt-00epc --no-attach --json",
        ),
        (
            CardOperation::StartWork,
            "S",
            "run: gt task start gt-00epc --work --no-attach --json",
        ),
        (
            CardOperation::StartYolo,
            "!",
            "run: gt task start gt-00epc --work --yolo --no-attach --json",
        ),
        (
            CardOperation::Attach,
            "as",
            "hand over: gt task attach gt-00bsy --skip",
        ),
        (
            CardOperation::Update,
            "u",
            "run: gt task update gt-00bsy --json",
        ),
        (
            CardOperation::Pause,
            "p",
            "run: gt task pause gt-00bsy --json",
        ),
        (
            CardOperation::Resume,
            "R",
            "run: gt task resume gt-00psd --json",
        ),
        (
            CardOperation::Stop,
            "xy",
            "run: gt task stop gt-00bsy --json",
        ),
        (
            CardOperation::Cleanup,
            "d",
            "foresee: gt task cleanup gt-00bsy --dry-run --json",
        ),
        (
            CardOperation::Servers,
            "rs",
            "run: gt dev start --json -- gt-00bsy",
        ),
        (
            CardOperation::Servers,
            "rjjo",
            "run: gt dev open --json -- gt-00bsy api",
        ),
        (
            CardOperation::Servers,
            "rjx",
            "run: gt dev stop --json -- gt-00bsy web",
        ),
        (
            CardOperation::Servers,
            "rjr",
            "run: gt dev restart --json -- gt-00bsy web",
        ),
        (
            CardOperation::Merge,
            "m",
            "run: gt task merge gt-00bsy --json",
        ),
        (
            CardOperation::AbortMerge,
            "My",
            "run: gt task abort-merge gt-00brk --json",
        ),
        (
            CardOperation::PullRequest,
            "P",
            "run: gt task pr gt-00bsy --json",
        ),
        (
            CardOperation::Answer,
            "y",
            "ask: gt answer --json -- task/gt-00ask",
        ),
        (
            CardOperation::Nudge,
            "nhi<Enter>",
            "run: gt nudge task/gt-00bsy --stdin --json",
        ),
        (
            CardOperation::Interrupt,
            "i",
            "run: gt interrupt --json -- task/gt-00bsy",
        ),
        (
            CardOperation::Handoff,
            "hhi<Enter>",
            "run: gt handoff --collect --json --stdin -- task/gt-00bsy",
        ),
        (
            CardOperation::Handoff,
            "h<Enter>",
            "run: gt handoff --collect --json -- task/gt-00bsy",
        ),
        (
            CardOperation::Sling,
            "g<Enter>",
            "run: gt sling --json -- gt-00epc",
        ),
        (
            CardOperation::Edit,
            "e",
            "read: gt work show gt-00bsy --json",
        ),
        (
            CardOperation::Escalate,
            "Ehelp<Enter>",
            "run: gt escalate --stdin --item gt-00bsy --json",
        ),
        (
            CardOperation::Close,
            "c",
            "run: gt work close gt-00epc --json",
        ),
    ];
    for (operation, keys, command) in cases {
        let mut stage = view(
            way_of_operation(*operation),
            80,
            24,
            BoardTheme::Dark,
            town(),
        );
        let requests = stage.press(keys);
        assert_eq!(commands(&requests), [*command], "{operation:?}");
    }
    // All operations have a case, except the diff, which is a view.
    for row in keys::rows(KeyMode::Actions) {
        if let BoardAction::Card(operation) = row.action
            && !row.keys.is_empty()
        {
            let is_there = cases.iter().any(|(other, ..)| *other == operation);
            assert!(
                is_there || operation == CardOperation::Diff,
                "{operation:?}"
            );
        }
    }
    let mut stage = view("h ", 80, 24, BoardTheme::Dark, town());
    let requests = stage.press("f");
    assert!(
        requests.contains(&BoardRequest::Show {
            id: id("gt-00bsy"),
            tab: Tab::Diff
        }),
        "{requests:?}"
    );
    let mut stage = view("hG", 80, 24, BoardTheme::Dark, town());
    let requests = stage.press(":keep the commit<Enter>");
    assert_eq!(
        commands(&requests),
        ["run: gt task resume gt-00psd --keep-wip --json"]
    );
}

#[test]
fn what_cannot_be_done_says_why_and_leaves_the_menu_open() {
    let mut stage = Stage::new(80, 24);
    stage.press("H ");
    let requests = stage.press("a");
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_mode(KeyMode::Actions);
    stage.assert_shows("gt-00epc: it has no session");
}

#[test]
fn a_merge_is_aborted_only_where_one_is_under_way() {
    // The item is in the merge queue, and there is no merge in its worktree.
    let mut stage = Stage::new(120, 40);
    stage.board.select(&id("gt-00que"));
    let requests = stage.press(" M");
    assert_eq!(commands(&requests), Vec::<String>::new());
    stage.assert_mode(KeyMode::Actions);
    stage.assert_shows("gt-00que: no merge is under way");
}

#[test]
fn what_runs_is_not_started_but_gone_to() {
    for key in ["s", "S", "!"] {
        // The branch is behind its base, so the merge choice opens first, as with `a`.
        let mut stage = Stage::new(80, 24);
        assert_eq!(
            commands(&stage.press(&format!("h {key}"))),
            Vec::<String>::new()
        );
        stage.assert_mode(KeyMode::MergeChoice);
        assert_eq!(
            commands(&stage.press("s")),
            ["hand over: gt task attach gt-00bsy --skip"]
        );
        let mut stage = Stage::new(80, 24);
        assert_eq!(
            commands(&stage.press(&format!("j {key}"))),
            ["check: gt task attach gt-00ask --dry-run --json"]
        );
    }
    // Impossible actions come last, below the edge of a small terminal.
    let mut stage = Stage::new(120, 40);
    stage.press("h ");
    stage.assert_shows("s Start                     (it runs: attaches)");
    // A start of several cards never attaches, and a paused task has to be resumed.
    let mut stage = Stage::new(80, 24);
    stage.press("hV");
    stage.board.select(&id("gt-00epc"));
    stage.press("V s");
    stage.assert_shows("left out: gt-00bsy: it runs: a attaches");
    let mut stage = Stage::new(80, 24);
    stage.press("hG s");
    stage.assert_shows("it is paused: R resumes");
}

#[test]
fn what_another_agent_holds_is_no_task() {
    let mut facts = town();
    for card in &mut facts.cards {
        if card.id == id("gt-00ask") {
            card.holder = Some("gastown/crew/max".to_owned());
            session(card).agent = "gastown/crew/max".to_owned();
            branch(card).behind = 3;
            branch(card).ahead = 1;
            branch(card).merging = true;
        }
    }
    let held = || Stage::with(80, 24, BoardTheme::Dark, facts.clone());
    for (keys, command) in [
        ("a", "hand over: gt attach -- gastown/crew/max"),
        ("xy", "run: gt stop --json -- gastown/crew/max"),
        ("y", "ask: gt answer --json -- gastown/crew/max"),
        (
            "nhi<Enter>",
            "run: gt nudge gastown/crew/max --stdin --json",
        ),
        ("rs", "run: gt dev start --json -- gt-00ask"),
        ("m", "run: gt task merge gt-00ask --json"),
        ("P", "run: gt task pr gt-00ask --json"),
        ("c", "run: gt work close gt-00ask --json"),
    ] {
        let mut stage = held();
        stage.press("j ");
        assert_eq!(commands(&stage.press(keys)), [command], "{keys}");
    }
    for (keys, why) in [
        ("sS!g", "on the hook of gastown/crew/max"),
        ("upMd", "its agent is gastown/crew/max"),
    ] {
        for key in keys.chars() {
            let mut stage = held();
            stage.press("j ");
            let requests = stage.press(&key.to_string());
            assert_eq!(commands(&requests), Vec::<String>::new(), "{key}");
            stage.assert_mode(KeyMode::Actions);
            stage.assert_shows(&format!("gt-00ask: {why}"));
        }
    }
    let mut stage = Stage::with(120, 40, BoardTheme::Dark, facts.clone());
    stage.press("j ");
    stage.assert_shows("u Update from its base      (its agent is gastown/crew/max)");
}

#[test]
fn rows_of_the_menu_are_walked_and_taken() {
    let mut stage = Stage::new(80, 24);
    stage.press("h ");
    // Attach and update come before it.
    stage.press("<Down><Down>");
    let requests = stage.press("<Enter>");
    assert_eq!(commands(&requests), ["run: gt task pause gt-00bsy --json"]);
}

#[test]
fn moves_go_where_they_say() {
    let mut stage = Stage::new(120, 40);
    for (keys, cursor) in [
        ("", "gt-00crs"),
        ("j", "gt-00ask"),
        ("<Down>", "gt-00brk"),
        ("j", "gt-00brk"),
        ("k", "gt-00ask"),
        ("G", "gt-00brk"),
        ("gg", "gt-00crs"),
        ("ge", "gt-00brk"),
        ("<Home>", "gt-00crs"),
        ("<PageDown>", "gt-00brk"),
        ("<PageUp>", "gt-00crs"),
        ("h", "gt-00bsy"),
        ("j", "gt-00hkd"),
        ("l", "gt-00crs"),
        // The cursor returns to the card that it left.
        ("h", "gt-00hkd"),
        ("<Left>", "gt-00epc"),
        ("h", "gt-00epc"),
        ("L", "gt-00cld"),
        ("]", "gt-00cld"),
        ("H", "gt-00epc"),
        ("<Right>", "gt-00hkd"),
        ("<Tab>", "gt-00ask"),
        ("k<Tab>", "gt-00ask"),
    ] {
        stage.press(keys);
        let found = stage.board.cursor().map(WorkId::as_str);
        assert_eq!(found, Some(cursor), "after {keys}\n{}", stage.screen());
    }
}

#[test]
fn the_diff_is_scrolled_by_files_and_to_the_side() {
    let mut stage = view("h f", 80, 12, BoardTheme::Dark, town());
    let cursor_line = |stage: &Stage| {
        let screen = stage.screen();
        let line = screen.lines().find(|line| line.starts_with('▌'));
        line.unwrap_or_default().to_owned()
    };
    for (key, line) in [
        ("]", "▌b +1 −1"),
        ("[", "▌src/a.rs +1 −1"),
        ("}", "▌@@ -1,3 +1,3 @@ fn main"),
        ("}", "▌@@ -1 +1 @@"),
        ("{", "▌@@ -1,3 +1,3 @@ fn main"),
        ("j", "▌   1  fn main() {"),
        ("l", "▌   1  ) {"),
        // The end of the widest line stays in view.
        ("lllh", "▌   1  ) {"),
        ("h", "▌   1  fn main() {"),
        ("jj", "▌   2 +        new(\"日本\");"),
        ("G", "▌   1 +y"),
        ("g", "▌src/a.rs +1 −1"),
    ] {
        stage.press(key);
        assert_eq!(cursor_line(&stage), line, "{key}\n{}", stage.screen());
    }
}

#[test]
fn comments_on_the_diff_are_sent_together() {
    let mut stage = view("h f", 80, 24, BoardTheme::Dark, town());
    stage.press("c");
    stage.assert_shows("Move to a line of a file");
    assert_eq!(commands(&stage.press("s")), [""; 0]);
    stage.assert_shows("There are no comments yet");
    stage.press("jjjc");
    stage.assert_shows("Comment on src/a.rs:2 (removed line)");
    stage.press("Keep it<Enter>");
    stage.assert_shows("» Keep it");
    stage.press("jcNot this<Enter>");
    // A comment can be changed, and removed.
    stage.press("c<C-u>Call it later<Enter>jcx<Enter>c<C-u><Enter>");
    stage.assert_shows("» 2 comments");
    let requests = stage.press("s");
    let [BoardRequest::Run(order)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(order.words, ["nudge", "task/gt-00bsy", "--stdin", "--json"]);
    let message = order.input.as_deref().expect("a message");
    assert!(message.contains("src/a.rs:2 (removed line)\n>         old();\nKeep it"));
    assert!(message.contains("src/a.rs:2\n>         new(\"日本\");\nCall it later"));
    assert!(!message.contains("Not this"));
    // They are sent once; after a failure they can be sent again.
    assert_eq!(commands(&stage.press("s")), [""; 0]);
    let order = order.number;
    let result = Err("it is busy".into());
    stage.happens(BoardEvent::Outcome { order, result });
    let requests = stage.press("s");
    let [BoardRequest::Run(again)] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    let (order, result) = (again.number, Ok("Delivered.".to_owned()));
    stage.happens(BoardEvent::Outcome { order, result });
    stage.assert_shows_not("»");
}

#[test]
fn comments_for_an_agent_that_does_not_run_are_kept() {
    let mut facts = town();
    let crashed = facts
        .cards
        .iter_mut()
        .find(|card| card.id == id("gt-00bsy"));
    session(crashed.expect("a card")).state = State::Exited;
    let mut stage = view("", 80, 24, BoardTheme::Dark, facts);
    stage.board.select(&id("gt-00bsy"));
    stage.press(" f");
    let detail = detail(Tab::Diff).expect("a tab");
    let (id, tab) = (id("gt-00bsy"), Tab::Diff);
    stage.happens(BoardEvent::Detail { id, tab, detail });
    stage.press("jjcWhy?<Enter>");
    assert_eq!(commands(&stage.press("s")), [""; 0]);
    stage.assert_shows("The comments are kept: its agent does not run");
    // They survive the view.
    stage.press("<Esc>");
    assert_eq!(stage.board.comments.len(), 1);
}

#[test]
fn the_help_names_every_key() {
    let mut stage = Stage::with(100, 50, BoardTheme::Dark, town());
    stage.press("?<Tab>");
    let mut all = String::new();
    for _ in 0..10 {
        all.push_str(&stage.screen());
        stage.press("<PageDown>");
    }
    for row in TABLE.iter().filter(|row| !row.keys.is_empty()) {
        assert!(all.contains(row.help), "{}", row.help);
        assert!(all.contains(row.keys), "{}", row.keys);
    }
}

#[test]
fn help_begins_short_and_is_searched() {
    let mut stage = Stage::with(100, 50, BoardTheme::Dark, town());
    stage.press("?");
    stage.assert_shows("The oldest question");
    stage.assert_shows_not("Draw anew");
    stage.press("/drawer");
    stage.assert_mode(KeyMode::Search);
    stage.assert_shows("No key matches");
    stage.press("<C-u>draw");
    stage.assert_shows("Draw anew");
    stage.assert_shows_not("The oldest question");
    // Esc ends the search, then the help.
    stage.press("<Enter>");
    stage.assert_mode(KeyMode::Read);
    stage.press("<Esc>");
    stage.assert_shows("The oldest question");
    stage.press("<Esc>");
    stage.assert_mode(KeyMode::Board);
}
