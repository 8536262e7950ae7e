//! A key applies to the snapshot that the board showed: its question, its agent, its conflicts.

use super::terminal::Terminal;
use super::{card, create, wait_card};
use crate::env::{TIMEOUT, TestEnv};
use crate::task::{folder, with_project};
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

#[test]
fn answer_applies_to_the_question_that_was_shown() {
    let (env, id) = with_project("");
    let agent = format!("task/{id}");
    let prompt = "[[tool=touch made-first]] [[tool=touch made-second]]";
    env.gt(&["task", "start", &id, "--prompt", prompt]).ok();
    let asks = |about: &str| {
        wait_until(about, TIMEOUT, || {
            let asked = env.gt(&["answer", &agent, "--json"]);
            let asked: Value = serde_json::from_str(&asked.stdout).ok()?;
            asked["question"].as_str()?.contains(about).then_some(())
        });
    };
    asks("made-first");
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.wait_text("Needs you 1");
    board.act("y");
    board.wait_text("The number of an option");
    // Another process answers first, and the agent asks its next question.
    env.gt(&["answer", &agent, "yes"]).ok();
    asks("made-second");
    board.write("1");
    // The toast may wrap inside of the sentence.
    board.wait("a refusal", |screen| {
        screen.contains("asks another") || screen.contains("another question")
    });
    asks("made-second");
    let made = |name: &str| folder(&env, &id).join(name).exists();
    assert!(made("made-first") && !made("made-second"));
    board.act("y");
    board.wait_text("The number of an option");
    board.write("1");
    board.until("what was approved", || made("made-second"));
}

#[test]
fn agent_without_an_item_is_on_the_board_and_is_answered_by_two_keys() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "gastown/crew/max"]).ok();
    let agents = || -> Value {
        let printed = env.gt(&["board", "--json"]).ok().stdout.clone();
        let document: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(document["cards"], json!([]));
        document["agents"][0].clone()
    };
    assert_eq!(agents()["title"], "gastown/crew/max");
    assert_eq!(agents()["column"], "in_progress");
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("gastown/crew/max");
    env.gt(&["nudge", "gastown/crew/max", "[[ask=Which one?|red|blue]]"])
        .ok();
    board.wait_text("Needs you 1");
    assert_eq!(agents()["column"], "needs_you");
    board.press(&["Tab"]);
    board.wait_text("y answer");
    board.press(&["y"]);
    board.wait_text("The number of an option");
    board.write("2");
    board.wait_text("Needs you 0");
    assert!(
        env.gt(&["peek", "gastown/crew/max"])
            .ok()
            .stdout
            .contains("blue")
    );
}

#[test]
fn an_item_on_the_hook_of_crew_is_no_task() {
    let env = TestEnv::with_crew(&["max"]);
    let id = create(&env, "Fix it");
    env.gt(&["sling", &id, "gastown/crew/max"]).ok();
    wait_card(&env, &id, "with crew", |card| {
        card["holder"] == "gastown/crew/max" && card["session"]["agent"] == "gastown/crew/max"
    });
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.wait_text("Needs you 1");
    board.act("p");
    board.wait_text(&format!("{id}: its agent is gastown/crew/max"));
    board.press(&["Escape"]);
    board.wait("no menu", |screen| !screen.contains("Start and work"));
    board.act("x");
    board.wait_text(&format!("Stop {id}?"));
    board.press(&["y"]);
    board.until("its container to be gone", || {
        !env.sessions().contains(&"gt-crew-max".to_owned())
    });
    // The card names the holder of the item without a running session, too.
    wait_card(&env, &id, "without a session", |card| {
        card["session"].is_null() && card["holder"] == "gastown/crew/max"
    });
    board.act("s");
    board.wait_text(&format!("{id}: on the hook of gastown/crew/max"));
}

#[test]
fn moving_on_and_back_shows_the_screen_again() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id, "--prompt", "[[text=here I am]]"])
        .ok();
    crate::task::create(&env);
    let board = Terminal::open(&env, 150, 45);
    board.wait_text("here I am");
    for _ in 0..20 {
        // Moves to the other card and back, in one write.
        board.write("hlhl");
        board.wait_text("here I am");
    }
}

#[test]
fn lost_agent_needs_attention_and_stopped_agent_does_not() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id, "--prompt", "[[delay=10m]]"])
        .ok();
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.wait_text("In progress 1");
    env.tmux(Tmux::new("kill-server"));
    board.wait_text("1 agent was lost with its tmux server. Restore it?");
    board.press(&["n"]);
    board.wait("that it is lost", |screen| {
        screen.contains("Needs you 1") && screen.contains("its tmux session is gone")
    });
    let shown = card(&env, &id);
    assert_eq!(shown["lost"], true, "{shown}");
    assert!(shown["session"].is_null(), "{shown}");
    board.act("R");
    wait_card(&env, &id, "back", |card| {
        card["lost"] == false && !card["session"].is_null()
    });
    board.wait("it again", |screen| {
        !screen.contains("its tmux session is gone")
    });
    env.gt(&["task", "stop", &id]).ok();
    wait_card(&env, &id, "stopped", |card| {
        card["lost"] == false && card["session"].is_null() && card["column"] == "in_progress"
    });
    board.wait_text("In progress 1");
}

/// Opens a board on a task whose merge is in conflict, and returns it with the task's folder. The
/// resolver's prompt contains the file names, and the demo agent obeys the directives in them.
fn in_conflict<'e>(env: &'e TestEnv, id: &str, name: &str) -> (Terminal<'e>, PathBuf) {
    let dir = folder(env, id);
    for (at, text) in [(&dir, "ours\n"), (&env.path("source-gastown"), "theirs\n")] {
        fs::write(at.join(name), text).unwrap();
        env.git(at, &["add", "."]);
        env.git(at, &["commit", "--quiet", "-m", "Change"]);
    }
    let board = Terminal::open(env, 150, 45);
    board.find(id);
    board.wait_text("Review 1");
    env.gt(&["task", "update", id]).fails(1);
    (board, dir)
}

#[test]
fn conflict_resolver_is_shown() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    // The resolver works for longer than the test.
    let (board, _) = in_conflict(&env, &id, "[[delay=10m]]");
    board.wait_text("resolving");
    let shown = card(&env, &id);
    assert_eq!(shown["branch"]["resolver"], true);
    // Times are RFC 3339 strings, and missing values are left out instead of null.
    for time in [&shown["created_at"], &shown["session"]["since"]] {
        let time = time.as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    }
    let fields = shown.as_object().unwrap();
    assert!(fields.values().all(|value| !value.is_null()), "{shown}");
    board.wait_text("Needs you 0");
    // The resolver's pane is killed while the conflicts remain.
    let container = SessionName::try_from(format!("{id}-az").as_str()).unwrap();
    let merge = Tmux::new("list-windows")
        .target(container)
        .args(["-F", "#{window_name} #{pane_id}"]);
    let windows = env.tmux(merge);
    let pane = windows
        .lines()
        .find_map(|line| line.strip_prefix("merge "))
        .unwrap_or_else(|| panic!("{windows}"));
    let pane: gt_tmux::PaneId = pane.parse().unwrap();
    env.tmux(Tmux::new("kill-pane").target(pane));
    wait_card(&env, &id, "alone with its conflicts", |card| {
        card["branch"]["resolver"] == false && card["column"] == "needs_you"
    });
    board.wait("the card without a session", |screen| {
        screen.contains("Needs you 1") && !screen.contains("resolving")
    });
}

#[test]
fn question_of_the_merge_window_is_answered_from_the_board() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    let merge = "git -c user.name=t -c user.email=t@t commit -qam merged";
    let (board, dir) = in_conflict(&env, &id, &format!("[[tool=touch made; {merge}]]"));
    board.wait("its question", |screen| {
        screen.contains("Needs you 1") && screen.contains("merge asks: ")
    });
    // The preview shows the resolver's screen, not the prompt of the task's agent.
    board.wait("its screen", |screen| {
        screen.contains("in its window merge") && screen.contains("Do you want to proceed?")
    });
    board.act("y");
    board.wait_text("in its window merge");
    board.wait_text("The number of an option");
    board.write("yes");
    board.press(&["Enter"]);
    board.until("what was approved", || dir.join("made").exists());
    board.wait("its place again", |screen| {
        screen.contains("Review 1") && !screen.contains("merge asks: ")
    });
    let told = env.json(&["events", "--about", &id, "--type", "question,answer"]);
    let told: Vec<(&Value, &Value, &Value)> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["type"], &it["payload"]["via"], &it["payload"]["window"]))
        .collect();
    let (merge, screen, command) = (json!("merge"), json!("screen"), json!("command"));
    let expected = [
        (&json!("question"), &screen, &merge),
        (&json!("answer"), &command, &merge),
    ];
    assert_eq!(told, expected);
}
