//! Adoptions that run concurrently, fail, or are killed between two steps.

use super::{Desk, GT};
use crate::env::{Answer, TIMEOUT, TestEnv};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use std::fs;

/// Steps after which an adoption is killed, and whether the program is an agent by then.
const STEPS: &[(&str, bool)] = &[
    ("adopt.noted", false),
    ("adopt.contained", true),
    ("adopt.recorded", true),
    ("adopt.hooked", true),
];

fn notes(env: &TestEnv) -> usize {
    fs::read_dir(env.town().join(".runtime/adopted")).map_or(0, |all| all.flatten().count())
}

/// Checks that nothing of an adoption is left on the person's side.
fn check_nothing_is_left(env: &TestEnv, desk: &Desk<'_>, step: &str) {
    assert_eq!(env.running(), Vec::<String>::new(), "{step}");
    assert_eq!(desk.sessions(), ["desk"], "{step}");
    assert!(!desk.settings().exists(), "{step}: no hook is left");
    assert_eq!(notes(env), 0, "{step}");
}

#[test]
fn adoption_that_is_killed_leaves_an_agent_or_nothing() {
    for (step, is_agent) in STEPS {
        let env = TestEnv::with_town();
        let desk = Desk::open(&env, &env.path("other"));
        let pid = desk.start_program("")["pid"].to_string();
        env.kill_at_fault(&["adopt", &pid, "--name", "helper"], step);
        env.gt(&["sync"]).ok();
        if *is_agent {
            let nudged = env.json(&["nudge", "agent/helper", "hello there"]);
            assert_eq!(nudged["delivered"], "agent", "{step}: {nudged}");
        } else {
            check_nothing_is_left(&env, &desk, step);
            env.json(&["adopt", &pid, "--name", "helper"]);
        }
        env.gt(&["stop", "agent/helper"]).ok();
        check_nothing_is_left(&env, &desk, step);
    }
}

#[test]
fn stop_that_is_killed_after_it_removed_the_hooks_is_completed_by_a_sync() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    env.json(&["adopt", &pid, "--name", "helper"]);
    assert!(desk.settings().exists());
    env.kill_at_fault(&["stop", "agent/helper"], "adopt.unhooked");
    assert!(!desk.settings().exists());
    assert_eq!(notes(&env), 1, "the note is removed last");
    env.gt(&["sync"]).ok();
    check_nothing_is_left(&env, &desk, "adopt.unhooked");
}

#[test]
fn second_of_two_concurrent_adoptions_of_a_pane_is_refused() {
    let env = TestEnv::with_town();
    let desk = Desk::open(&env, &env.path("other"));
    let pid = desk.start_program("")["pid"].to_string();
    let gate = env.path("gate");
    let mut slow = env.gt_command(&["adopt", &pid, "--name", "slow"]);
    slow.env("GT_HOLD", format!("adopt.chosen={}", gate.display()));
    slow.stdout(std::process::Stdio::piped());
    slow.stderr(std::process::Stdio::piped());
    let slow = slow.spawn().unwrap();
    let reached = gate.with_extension("reached");
    wait_until("the first has chosen the program", TIMEOUT, || {
        reached.exists().then_some(())
    });
    env.json(&["adopt", &pid, "--name", "fast"]);
    fs::write(&gate, "").unwrap();
    let refused = Answer::of(slow.wait_with_output().unwrap()).fails(4);
    let why = "already the agent agent/fast";
    assert!(refused.stderr.contains(why), "{refused:?}");
    assert_eq!(env.running(), ["agent/fast"]);
    assert_eq!(desk.sessions(), ["agent_fast", "desk"]);
    assert_eq!(notes(&env), 1);
}

#[test]
fn adoption_that_fails_leaves_the_persons_session_as_it_was() {
    let env = TestEnv::with_town();
    let folder = env.home().to_str().unwrap();
    let new = Tmux::new("new-session").args(["-d", "-s", "agent_helper", "-c", folder]);
    env.tmux(new.args(["--", GT, "demo-agent"]));
    env.wait_screen("agent/helper", "? for shortcuts");
    // Nothing can be written to a journal that is a folder.
    let journal = env.town().join(".sessions/index.jsonl");
    let _ = fs::remove_file(&journal);
    fs::create_dir_all(journal.join("in the way")).unwrap();
    // Other tests have sessions of this name on their servers.
    let socket = env.socket();
    let adopt = [
        "adopt",
        "agent_helper",
        "--socket",
        socket.to_str().unwrap(),
    ];
    let refused = env.gt(&adopt);
    assert_ne!(refused.code, 0, "{refused:?}");
    let tags = "#{@gt_agent}#{@gt_town}#{@gt_adopted}#{@gt_session}#{@gt_pane}";
    assert_eq!(env.format("agent_helper", tags), "");
    assert_eq!(notes(&env), 0);
    fs::remove_dir_all(&journal).unwrap();
    env.json(&adopt);
}
