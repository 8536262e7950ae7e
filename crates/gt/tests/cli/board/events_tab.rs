//! The events tab of the board: events of a task appear while they happen.

use super::keys::{commit, commit_to_base, wait_state};
use super::terminal::Terminal;
use crate::env::login;
use crate::task::{folder, with_project};

/// Returns the line of the newest event of this type, without its age and time.
fn line(screen: &str, kind: &str) -> Option<String> {
    let lines = screen.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().skip(3).collect();
        let line = words.join(" ");
        line.starts_with(&format!("{kind} ")).then_some(line)
    });
    lines.into_iter().next()
}

#[test]
fn events_tab_shows_new_events_while_it_is_open() {
    let (env, id) = with_project("");
    let agent = format!("task/{id}");
    env.gt(&["task", "start", &id]).ok();
    let board = Terminal::open(&env, 150, 45);
    board.find(&id);
    board.wait_text("Needs you 1");
    board.press(&["Enter"]);
    board.wait_text("[1 Task]");
    board.press(&["4"]);
    board.wait_text("[4 Events]");
    let me = login();
    let wait_line = |kind: &str, expected: &str| {
        let expected = &expected.replace("ME", &me);
        board.wait(expected, |screen| {
            line(screen, kind).is_some_and(|line| line.starts_with(expected))
        });
    };
    wait_line("session", "session start gt began with demo");
    wait_line("task", "task start command by ME started it with demo");
    let prompt = "[[tool=touch made]]";
    env.gt(&["nudge", &agent, prompt, "--sender", "mayor"]).ok();
    wait_line("nudge", "nudge command by mayor sent it a message");
    wait_line("question", "question hook asks: Bash(touch made");
    env.gt(&["answer", &agent, "yes"]).ok();
    wait_line("answer", "answer command by ME answered it: option 1");
    wait_line("turn", "turn end hook ended its turn");
    env.gt(&["nudge", &agent, "[[delay=10m]]"]).ok();
    wait_state(&env, &id, "busy");
    board.act("p");
    wait_line("paused", "paused command by ME paused it");
    board.act("R");
    wait_line("resumed", "resumed command by ME resumed it");
    commit(&env, &folder(&env, &id), "both", "ours\n");
    commit_to_base(&env, "both", "theirs\n");
    board.act("u");
    wait_line(
        "update",
        "update conflict command by ME merged main into it, with conflicts in both",
    );
    // Events of other items are left out, and each event of this item appears once.
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&[
        "events",
        "emit",
        "deploy",
        "--payload",
        &format!("{{\"bead\": \"{id}\"}}"),
    ])
    .ok();
    wait_line("deploy", "deploy command by ME deploy");
    // A screen that is read while it is drawn shows a part of the previous frame.
    board.wait("each event once", |screen| {
        let count = |text: &str| screen.lines().filter(|line| line.contains(text)).count();
        let kinds = ["question", "answer", "paused", "resumed", "update conflict"];
        let once = kinds.iter().all(|kind| count(&format!(" {kind} ")) == 1);
        once && count("session start") == 1
    });
}
