//! Conversations that a restore resumes, and what happens to those that it cannot.

use super::done;
use crate::env::{TIMEOUT, TestEnv};
use crate::save::{by_hand, crash, files, history, pane, session, settings};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;

#[test]
fn saves_needed_by_a_restore_outlive_later_saves() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    settings(&env, "[save]\nauto = false\nkeep = 1");
    env.gt(&["start", "mayor", "gastown/max", "gastown/amy"])
        .ok();
    env.gt(&["save"]).ok();
    crash(&env);
    // tmux reports the start of a server in whole seconds; the next server must have another one.
    let second = || {
        std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_secs()
    };
    let then = second();
    wait_until("the next second", TIMEOUT, || {
        (second() > then).then_some(())
    });
    assert_snapshot!(env.snapshot(&["save"]), @"
    exit code: 0
    --- stdout
    Nothing runs, so no container was saved.
    ");
    assert_eq!(env.json(&["save"]), Value::Null);
    // A new agent and one of the lost agents are started.
    env.gt(&["start", "deacon", "gastown/amy"]).ok();
    let made = env.json(&["save"]);
    assert_eq!(made["containers"], 2, "{made}");
    assert_eq!(made["carried"], 2, "{made}");
    env.gt(&["sync"]).ok();
    let made = env.json(&["save"]);
    assert_eq!(made["carried"], 2, "{made}");
    assert_eq!(files(&env).len(), 1);
    let list = env.json(&["save", "--list"]);
    assert_eq!(list[0]["containers"], 4, "{list}");
    env.gt(&["stop", "gastown/amy"]).ok();
    let answer = env.json(&["restore"]);
    let mut told = done(&answer);
    told.sort_unstable();
    let expected = [
        ("deacon", false),
        ("gastown/crew/amy", false),
        ("gastown/crew/max", true),
        ("mayor", true),
    ];
    assert_eq!(told, expected);
    // A container that was closed by hand on its own server is not carried over.
    env.tmux(Tmux::new("kill-session").target(session("hq-mayor")));
    let made = env.json(&["save"]);
    assert_eq!(
        (&made["containers"], &made["carried"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn a_second_crash_before_any_save_loses_no_conversation() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    let first = env.json(&["restore"]);
    crash(&env);
    let second = env.json(&["restore"]);
    let (first, second) = (&first["agents"][0], &second["agents"][0]);
    assert_eq!(second["conversation_id"], first["conversation_id"]);
    let record = env.json(&["sessions", "show", second["session"].as_str().unwrap()]);
    assert_eq!(record["parent_id"], first["session"]);
    let chain = env.json(&["sessions", "chain", second["session"].as_str().unwrap()]);
    assert_eq!(chain["totals"]["lives"], 3, "{chain}");
}

#[test]
fn conversation_id_from_a_hook_is_known_after_a_crash() {
    let env = TestEnv::with_town();
    by_hand(&env);
    // Like Codex: the program chooses its id and reports it by hook.
    let preset = "[command]\nsession_id = []\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    env.gt(&["start", "mayor"]).ok();
    let id = wait_until("the hook has spoken", TIMEOUT, || {
        Some(env.format("hq-mayor", "#{@gt_harness_session}")).filter(|id| !id.is_empty())
    });
    let record = env.format("hq-mayor", "#{@gt_session}");
    wait_until("it is remembered", TIMEOUT, || {
        (env.json(&["sessions", "show", &record])["harness_session_id"] == *id).then_some(())
    });
    env.tmux(
        Tmux::new("set-option")
            .target(session("hq-mayor"))
            .args(["@gt_harness_session", ""]),
    );
    env.gt(&["save"]).ok();
    crash(&env);
    let answer = env.json(&["restore"]);
    assert_eq!(answer["agents"][0]["conversation_id"], *id, "{answer}");
}

#[test]
fn missing_conversation_starts_a_new_one() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    let mine = Tmux::new("split-window").args(["-d", "-h"]);
    env.tmux(mine.target(pane(&env, "hq-mayor")));
    env.gt(&["save"]).ok();
    crash(&env);
    fs::remove_dir_all(env.town().join(".runtime/demo")).unwrap();
    let answer = env.gt(&["restore", "--json"]).ok();
    assert_snapshot!(env.masked(&answer.stderr), @"warning: mayor: its conversation could not be resumed, so a new one was started: mayor ended at once: exit status 1");
    let agent = &answer.json()["agents"][0];
    assert_eq!(agent["conversation"], "new", "{agent}");
    assert_eq!(env.format("hq-mayor", "#{window_panes}"), "2");
    env.wait_screen("mayor", "[GAS TOWN] mayor <- gt");
    assert!(history(&env, "hq-mayor").contains("# gt: restored"));
    let record = agent["session"].as_str().unwrap();
    let chain = env.json(&["sessions", "chain", record]);
    assert_eq!(
        chain["totals"]["lives"], 3,
        "the failed attempt was a session too: {chain}"
    );
}

#[test]
fn a_restore_that_fails_leaves_the_conversation_to_the_next() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    let id = env.json(&["sessions", "list"])[0]["harness_session_id"].clone();
    assert!(id.is_string());
    crash(&env);
    // The program fails in every conversation: `gt` tries the old one and a new one.
    let preset = "[command]\nargs = ['demo-agent', '--fail-at-start', '3']\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    for _ in 0..2 {
        env.gt(&["restore"]).fails(1);
    }
    assert_eq!(env.json(&["sessions", "list"]).as_array().unwrap().len(), 5);
    fs::remove_file(env.town().join("harnesses/demo.toml")).unwrap();
    let answer = env.json(&["restore"]);
    assert_eq!(answer["agents"][0]["conversation_id"], id, "{answer}");
    let record = answer["agents"][0]["session"].as_str().unwrap();
    let chain = env.json(&["sessions", "chain", record]);
    assert_eq!(chain["totals"]["lives"], 6, "{chain}");
}

#[test]
fn failure_beside_an_agent_keeps_its_conversation() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    // The PID file cannot be written.
    let pids = env.town().join(".runtime/pids");
    fs::remove_dir_all(&pids).unwrap();
    fs::write(&pids, "").unwrap();
    let answer = env.gt(&["restore", "--json"]).fails(1);
    assert_eq!(answer.json()["agents"][0]["conversation"], "resume");
    let sessions = env.json(&["sessions", "list"]);
    assert_eq!(
        sessions.as_array().unwrap().len(),
        2,
        "no new one was begun"
    );
    fs::remove_file(&pids).unwrap();
    let answer = env.json(&["restore"]);
    assert_eq!(answer["agents"][0]["conversation"], "resume", "{answer}");
}
