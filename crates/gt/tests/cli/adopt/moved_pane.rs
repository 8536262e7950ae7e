//! A person moves the pane of an adopted agent.

use super::Desk;
use crate::env::{TIMEOUT, TestEnv};
use crate::sessions;
use gt_tmux::testing::wait_until;
use serde_json::json;
use std::path::Path;

/// Adopts a program, moves its pane, and checks that it is still the same agent.
fn check_moved(env: &TestEnv, socket: &Path, beside: bool, moves: &[&[&str]]) {
    let desk = Desk::open(env, socket);
    let candidate = desk.start_program("");
    let (pid, pane) = (candidate["pid"].to_string(), candidate["pane"].clone());
    let pane = pane.as_str().unwrap();
    if beside {
        desk.tmux(&["split-window", "-d", "-t", "=desk:", "sh"]);
    }
    let adopted = env.json(&["adopt", &pid, "--name", "helper"]);
    for words in moves {
        let words: Vec<&str> = words
            .iter()
            .map(|word| if *word == "PANE" { pane } else { word })
            .collect();
        desk.tmux(&words);
    }
    let agent = env.agent("agent/helper");
    assert_eq!(agent["pid"].to_string(), pid, "{agent}");
    assert_eq!(agent["session"], adopted["session"], "{agent}");
    assert_eq!(agent["pane"], pane, "{agent}");
    assert_eq!(agent["health"], "healthy", "{agent}");
    // The container shows the pane, and each of its windows once.
    let shown = desk.tmux(&[
        "list-panes",
        "-s",
        "-t",
        "=agent_helper",
        "-F",
        "#{pane_id}",
    ]);
    let times = shown.lines().filter(|line| *line == pane).count();
    assert_eq!(times, 1, "{shown}");
    let nudged = env.json(&["nudge", "agent/helper", "hello there"]);
    assert_eq!(nudged["delivered"], "agent", "{nudged}");
    env.wait_screen("agent/helper", "You said: hello there");
    wait_until("a hook has told the state", TIMEOUT, || {
        let agent = env.agent("agent/helper");
        (agent["state"] == "idle" && agent["state_source"] == "hook").then_some(())
    });
    env.gt(&["sync"]).ok();
    let known = &sessions::list_sessions(env, &["--agent", "agent/helper"])[0];
    assert_eq!(known["id"], adopted["session"], "{known}");
    assert_eq!(known["status"], "running", "{known}");
    env.gt(&["stop", "agent/helper"]).ok();
    let known = &sessions::list_sessions(env, &["--agent", "agent/helper"])[0];
    assert_eq!(known["outcome"], json!("stopped"), "{known}");
    let left = desk.sessions();
    assert!(!left.contains(&"agent_helper".to_owned()), "{left:?}");
}

#[test]
fn pane_that_is_broken_out_of_its_window_stays_the_agents() {
    let env = TestEnv::with_town();
    let moves: [&[&str]; 1] = [&["break-pane", "-d", "-s", "PANE", "-t", "=desk:"]];
    check_moved(&env, &env.socket(), true, &moves);
}

#[test]
fn pane_that_is_joined_to_another_window_stays_the_agents() {
    let env = TestEnv::with_town();
    // The container ends with its only window.
    let moves: [&[&str]; 2] = [
        &["new-session", "-d", "-s", "table", "sh"],
        &["join-pane", "-d", "-s", "PANE", "-t", "=table:"],
    ];
    check_moved(&env, &env.path("other"), false, &moves);
}

#[test]
fn renamed_sessions_stay_the_agents() {
    let env = TestEnv::with_town();
    let moves: [&[&str]; 1] = [&["rename-session", "-t", "=desk", "table"]];
    check_moved(&env, &env.path("other"), false, &moves);
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--name", "helper"]);
    desk.tmux(&["rename-session", "-t", "=agent_helper", "mine"]);
    env.gt(&["sync"]).ok();
    let agent = env.agent("agent/helper");
    assert_eq!(agent["container"], "mine", "{agent}");
    env.gt(&["peek", "agent/helper"]).ok();
    env.gt(&["stop", "agent/helper"]).ok();
    assert_eq!(desk.sessions(), ["desk"]);
}

#[test]
fn container_that_its_person_closes_releases_the_agent() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--name", "helper"]);
    desk.tmux(&["kill-session", "-t", "=agent_helper"]);
    env.gt(&["sync"]).ok();
    assert_eq!(env.running(), Vec::<String>::new());
    assert_eq!(desk.sessions(), ["desk"], "it is not made again");
    let known = &sessions::list_sessions(&env, &["--agent", "agent/helper"])[0];
    assert_eq!(known["outcome"], "killed", "{known}");
    // The program continues and can be adopted again.
    assert_eq!(desk.candidates()[0]["pid"].to_string(), pid);
}
