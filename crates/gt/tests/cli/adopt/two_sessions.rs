//! An adopted pane is in two tmux sessions. These tests make its person's session the one with the
//! newest activity, which tmux takes for a pane that is named alone.

use super::Desk;
use crate::attach::{terminal, wait_shown};
use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::{TestServer, wait_until};
use std::fs;

const GT: &str = env!("CARGO_BIN_EXE_gt");

/// Attaches a terminal to the person's session, after the container was made.
fn sit_down(env: &TestEnv, desk: &Desk<'_>) -> TestServer {
    let outer = TestServer::new();
    let socket = desk.socket.display();
    let attach = format!("tmux -S '{socket}' -f /dev/null attach-session -t =desk");
    terminal(env, &outer, &attach);
    wait_shown(&outer, "[desk]");
    outer
}

#[test]
fn hook_of_an_adopted_program_writes_the_receipt_of_a_message() {
    for socket in ["other", "own"] {
        let env = TestEnv::with_town();
        let socket = match socket {
            "own" => env.socket(),
            other => env.path(other),
        };
        let desk = Desk::open(&env, &socket);
        let pid = desk.start_program("")["pid"].to_string();
        env.json(&["adopt", &pid, "--name", "helper"]);
        let _person = sit_down(&env, &desk);
        env.kill_at_fault(&["nudge", "agent/helper", "exactly once"], "nudge.entered");
        let receipts = env.town().join(".runtime/nudges/agent.helper/done");
        wait_until("the receipt of the message", TIMEOUT, || {
            let mut all = fs::read_dir(&receipts).ok()?.flatten();
            let text = fs::read_to_string(all.next()?.path()).ok()?;
            text.contains("hook").then_some(())
        });
    }
}

#[test]
fn attach_leaves_the_persons_session_at_its_window() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    desk.tmux(&["new-window", "-t", "=desk:", "sh"]);
    env.json(&["adopt", &pid, "--name", "helper"]);
    let _person = sit_down(&env, &desk);
    let own = TestServer::new();
    terminal(&env, &own, &format!("'{GT}' attach helper"));
    wait_shown(&own, "? for shortcuts");
    let window = desk.tmux(&["display-message", "-p", "-t", "=desk:", "#{window_index}"]);
    assert_eq!(window, "1");
}

#[test]
fn dialog_of_an_adopted_program_in_a_shell_is_answered() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--name", "helper"]);
    let _person = sit_down(&env, &desk);
    let ask = "choose [[ask=Which colour?|red|blue]]";
    env.gt(&["nudge", "agent/helper", ask]).ok();
    let until = ["--until", "waiting", "--timeout", "30"];
    env.gt(&[&["wait", "agent/helper"], &until[..]].concat())
        .ok();
    env.gt(&["answer", "agent/helper", "blue"]).ok();
    env.gt(&["wait", "agent/helper", "--until", "idle", "--timeout", "30"])
        .ok();
    env.wait_screen("agent/helper", "blue");
}
