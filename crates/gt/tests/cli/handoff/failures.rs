//! Handoffs that fail or are not what they seem: `gt` reports the truth and loses no message.

use crate::env::{TIMEOUT, TestEnv, run, signal};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const MAX: &str = "gastown/crew/max";

fn with_max() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env
}

/// Runs a command as the agent does, in this pane.
fn as_max(env: &TestEnv, args: &[&str], pane: &str) -> crate::env::Answer {
    let mut command = env.gt_command(args);
    run(command.env("GT_ROLE", MAX).env("TMUX_PANE", pane))
}

fn mail(env: &TestEnv) -> Value {
    env.json(&["hook", "--agent", MAX])
}

#[test]
fn handoff_of_an_unknown_item_is_refused() {
    let env = with_max();
    let words = ["handoff", "gt-zzzzz", "--force", "-m", "important"];
    for more in [&[][..], &["--dry-run"]] {
        let refused = as_max(&env, &[&words[..], more].concat(), "%0").fails(3);
        assert_eq!(refused.stdout, "", "{refused:?}");
    }
    assert_eq!(list_sessions(&env, &["--agent", MAX]).len(), 1);
}

#[test]
fn dead_agent_does_not_hand_over() {
    let env = TestEnv::with_crew(&["max"]);
    let role = env.town().join("roles/crew.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(role, "[start]\nauto_respawn = false\n").unwrap();
    env.gt(&["start", MAX]).ok();
    signal(env.pid(MAX), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.format("gt-crew-max", "#{pane_dead}") == "1").then_some(())
    });
    assert_snapshot!(env.snapshot(&["handoff", MAX, "--force", "-m", "x"]), @"
    exit code: 3
    --- stderr
    error: gastown/crew/max is not running, so it has nothing to hand over
    hint: `gt start gastown/crew/max` starts it
    ");
    env.gt(&["sync"]).ok();
    assert_eq!(list_sessions(&env, &[])[0]["outcome"], "crash");
}

#[test]
fn handoff_from_another_pane_reports_its_result() {
    let env = with_max();
    let told = as_max(&env, &["handoff", "--force", "-m", "x", "--json"], "%99").ok();
    assert_eq!(told.json()["successor"], env.agent(MAX)["session"]);
    assert_eq!(list_sessions(&env, &["--agent", MAX]).len(), 2);
    // From the agent's own pane a surviving process performs the handoff.
    let pane = env.agent(MAX)["pane"].as_str().unwrap().to_owned();
    as_max(&env, &["handoff", "--force", "-m", "y"], &pane).ok();
    assert_eq!(list_sessions(&env, &["--agent", MAX]).len(), 3);
}

#[test]
fn handoff_text_survives_compactions() {
    let env = with_max();
    env.gt(&["handoff", MAX, "--force", "-m", "The north side is open."])
        .ok();
    for _ in 0..2 {
        env.gt(&["handoff", MAX, "--auto", "--reason", "compaction"])
            .ok();
        let text = mail(&env)["description"].as_str().unwrap().to_owned();
        assert!(text.contains("State at the handoff"), "{text}");
        assert_eq!(text.matches("The north side is open.").count(), 1, "{text}");
    }
}

#[test]
fn a_cycle_that_comes_too_soon_before_a_compaction_saves_the_state() {
    let env = with_max();
    env.gt(&["handoff", MAX, "--cycle"]).fails(4);
    assert_snapshot!(env.snapshot(&["handoff", MAX, "--cycle", "--reason", "compaction"]), @"
    exit code: 0
    --- stdout
    The state of gastown/crew/max is saved in hq-[ID].
    --- stderr
    warning: gastown/crew/max started [N] s ago; one handoff per [N] s is allowed: only its state is saved
    ");
    assert_eq!(list_sessions(&env, &["--agent", MAX]).len(), 1);
    assert_eq!(mail(&env)["title"], "Handoff: compaction");
    // Failures go to a log: the program that runs the hook shows them to no person.
    env.gt(&["handoff", "amy", "--auto", "--reason", "compaction"])
        .fails(3);
    let log = fs::read_to_string(env.town().join(".runtime/gt.log")).unwrap();
    assert!(log.contains("amy"), "{log}");
}

#[test]
fn impossible_handoff_leaves_no_marker() {
    let env = with_max();
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(preset, "[command]\nprogram = 'not-there'\n").unwrap();
    assert_snapshot!(env.snapshot(&["handoff", MAX, "--force", "-m", "x"]), @"
    exit code: 5
    --- stderr
    error: the harness demo needs not-there, which is not on the PATH
    hint: `gt harness list` shows what is installed
    hint: `--harness NAME` hands over to another program
    ");
    let pane = env.agent(MAX)["pane"].as_str().unwrap().to_owned();
    let refused = as_max(&env, &["handoff", "--force", "-m", "x"], &pane).fails(5);
    assert_snapshot!(refused.rendered(&env), @"
    exit code: 5
    --- stderr
    error: the harness demo needs not-there, which is not on the PATH
    hint: `gt harness list` shows what is installed
    hint: `--harness NAME` hands over to another program
    ");
    assert_eq!(mail(&env), Value::Null, "nothing is on its hook");
    let marker = env.town().join(".runtime/handoffs");
    let left = fs::read_dir(marker).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(list_sessions(&env, &["--status", "running"]).len(), 1);
}

#[test]
fn handoff_with_harness_starts_another_program_with_a_new_conversation() {
    let env = with_max();
    let preset = env.town().join("harnesses/other.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    let demo = include_str!("../../../../core/src/presets/demo.toml");
    fs::write(&preset, demo.replace("name = \"demo\"", "name = \"other\"")).unwrap();
    env.gt(&["handoff", MAX, "--force", "--harness", "no-such"])
        .fails(3);
    let args = ["handoff", MAX, "--force", "--harness", "other", "--json"];
    let before = env.agent(MAX)["session"].clone();
    env.gt(&args).ok();
    assert_eq!(env.agent(MAX)["harness"], "other");
    // In the agent's own pane tmux performs the handoff, from the marker.
    let pane = env.agent(MAX)["pane"].as_str().unwrap().to_owned();
    let words = ["handoff", "--force", "--cycle", "--harness", "demo"];
    as_max(&env, &words, &pane).ok();
    assert_eq!(env.agent(MAX)["harness"], "demo");
    let sessions = list_sessions(&env, &["--agent", MAX]);
    assert_eq!(sessions.len(), 3);
    assert_eq!(sessions[2]["id"], before);
    assert_ne!(
        sessions[0]["harness_session_id"],
        sessions[1]["harness_session_id"]
    );
}

#[test]
fn session_that_never_started_is_not_shown_as_running() {
    let env = with_max();
    env.kill_at_fault(
        &["handoff", MAX, "--force", "-m", "Go on"],
        "handoff.recorded",
    );
    env.gt(&["handoff", MAX, "--force", "-m", "Go on"]).ok();
    let running = list_sessions(&env, &["--status", "running"]);
    assert_eq!(running.len(), 1, "{running:?}");
    assert_eq!(running[0]["id"], env.agent(MAX)["session"]);
}
