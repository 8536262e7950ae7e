//! `gt prime` after a crash, a handoff or a compaction of the previous session.

use crate::checkpoint::{age, current_session};
use crate::env::{TIMEOUT, TestEnv, run, signal};
use crate::prime::{MAX, as_agent, await_rest, give_work, state};
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::json;

fn kill(env: &TestEnv) {
    signal(env.pid(MAX), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(MAX)["state"] == "crashed").then_some(())
    });
}

/// Disables the save timer, so that only the test writes checkpoints.
fn crew_at_work() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    let path = env.town().join("town.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{text}\n[save]\nauto = false\n")).unwrap();
    give_work(&env, "Mend the roof");
    start(&env);
    env
}

fn start(env: &TestEnv) {
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    env.wait_screen(MAX, "Begin now");
}

fn note(env: &TestEnv, notes: &str) {
    as_agent(env, &["checkpoint", "write", "--notes", notes], None).ok();
}

#[test]
fn handoff_that_stopped_after_its_marker_hides_no_crash() {
    let env = crew_at_work();
    env.kill_at_fault(
        &["handoff", MAX, "--force", "-m", "The north side is open."],
        "handoff.marked",
    );
    note(&env, "hours later");
    kill(&env);
    start(&env);
    let screen = env.gt(&["peek", MAX]).ok().stdout;
    for words in [
        "## What was in flight",
        "Your previous session ended by a crash",
        "It noted: hours later",
        "The north side is open.",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains("The handoff is DONE"), "{screen}");
    assert_eq!(state(&env), "crash-recovery");
}

#[test]
fn leftovers_are_not_shown_after_a_clean_session() {
    let env = crew_at_work();
    note(&env, "half the tiles are on");
    kill(&env);
    start(&env);
    assert_eq!(state(&env), "crash-recovery");
    wait_until("it is told", TIMEOUT, || {
        let read = env.json(&["checkpoint", "read", "--agent", MAX]);
        (read["told_to"] == current_session(&env)).then_some(())
    });
    env.gt(&["handoff", MAX, "--force", "-m", "Go on"]).ok();
    env.wait_screen(MAX, "The handoff is DONE");
    assert_eq!(state(&env), "autonomous");
    // A later crash without a checkpoint does not show the old notes, either.
    kill(&env);
    start(&env);
    assert_eq!(state(&env), "crash-recovery");
    let told = as_agent(&env, &["prime"], None).ok().stdout;
    assert!(told.contains("It left no checkpoint"), "{told}");
    assert!(!told.contains("half the tiles are on"), "{told}");
    // The old checkpoint does not prevent a new one.
    age(&env);
    env.gt(&["save", "--auto", "--timer"]).ok();
    let read = env.json(&["checkpoint", "read", "--agent", MAX]);
    assert_eq!(read["session_id"], current_session(&env), "{read}");
}

#[test]
fn session_cleared_after_a_cancelled_compaction_gets_the_full_prime() {
    let env = crew_at_work();
    as_agent(&env, &["handoff", "--auto", "--reason", "compaction"], None).ok();
    let report = json!({"source": "clear", "hook_event_name": "SessionStart"});
    let told = as_agent(&env, &["prime", "--hook"], Some(&report)).ok();
    assert!(told.stdout.contains("## Your role"), "{}", told.stdout);
    let report = json!({"source": "resume", "hook_event_name": "SessionStart"});
    let told = as_agent(&env, &["prime", "--hook"], Some(&report)).ok();
    let words = "Conversation resumed. Continue your previous task.";
    assert!(told.stdout.contains(words), "{}", told.stdout);
}

#[test]
fn late_report_of_an_earlier_session_does_not_count_for_the_next() {
    let env = crew_at_work();
    let report = |session: &str, event: &str, conversation: &str| {
        let report = json!({"hook_event_name": event, "session_id": conversation});
        let mut command = env.gt_command(&["signal", "--strict"]);
        command
            .env("GT_ROLE", MAX)
            .env("GT_SESSION", "gt-crew-max")
            .env("GT_SESSION_UUID", session);
        let stdin = env.path("report");
        std::fs::write(&stdin, report.to_string()).unwrap();
        run(command.stdin(std::fs::File::open(stdin).unwrap())).ok();
    };
    await_rest(&env);
    let earlier = current_session(&env);
    report(&earlier, "UserPromptSubmit", "OLD");
    let tags = || env.format("gt-crew-max", "#{@gt_state} #{@gt_harness_session}");
    assert_eq!(tags(), "busy OLD");
    env.gt(&["handoff", MAX, "--force", "-m", "Go on"]).ok();
    env.wait_screen(MAX, "The handoff is DONE");
    await_rest(&env);
    let now = current_session(&env);
    report(&now, "UserPromptSubmit", "NEW");
    for event in ["SessionEnd", "Stop", "PreToolUse"] {
        report(&earlier, event, "OLD");
        assert_eq!(tags(), "busy NEW", "{event}");
    }
    let known = env.json(&["sessions", "show", &now]);
    assert_eq!(known["harness_session_id"], "NEW");
    report(&now, "Stop", "NEW");
    assert_eq!(tags(), "idle NEW");
}
