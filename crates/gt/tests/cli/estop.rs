//! `gt estop` and `gt thaw`.

use crate::env::{Answer, TIMEOUT, TestEnv};
use crate::mq::{finish, repository, status};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::json;
use std::fs;

const MAX: &str = "gastown/crew/max";
const AMY: &str = "gastown/crew/amy";

/// Starts max with a turn that is longer than the test.
fn with_busy_max() -> TestEnv {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["nudge", MAX, "[[delay=10m]]"]).ok();
    wait_until("max is busy", TIMEOUT, || {
        (env.agent(MAX)["state"] == "busy").then_some(())
    });
    env
}

#[test]
fn running_turns_are_interrupted_and_go_on_after_the_thaw() {
    let env = with_busy_max();
    let pid = env.pid(MAX);
    let stopped = env.json(&["estop", "--reason", "wrong branch"]);
    assert_eq!(stopped["stop"]["interrupted"], json!([MAX]), "{stopped}");
    assert_eq!(stopped["stop"]["reason"], "wrong branch");
    env.wait_screen(MAX, "Interrupted");
    assert_eq!(env.pid(MAX), pid);
    let shown = env.gt(&["status"]).ok().stdout;
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("■ The town is stopped by "), "{shown}");
    assert_eq!(env.json(&["status"])["stops"][0]["reason"], "wrong branch");
    // Nothing is started, handed over, slung or restored.
    for words in [
        &["crew", "start", "amy"][..],
        &["handoff", MAX],
        &["start", "mayor"],
    ] {
        let refused = env.gt(words).fails(4);
        assert!(
            refused.stderr.contains("the town is stopped"),
            "{words:?} {refused:?}"
        );
        assert!(refused.stderr.contains("gt thaw"), "{words:?} {refused:?}");
    }
    let item = env.json(&["work", "create", "Later"])["id"].clone();
    env.gt(&["sling", item.as_str().unwrap()]).fails(4);
    assert_eq!(env.json(&["polecat", "list"]), json!([]));
    // Hooks of the agent keep working.
    let by_max =
        |words: &[&str]| Answer::of(env.gt_command(words).env("GT_ROLE", MAX).output().unwrap());
    by_max(&["prime"]).ok();
    // Messages wait, also urgent ones.
    let sent = env.json(&["nudge", MAX, "hello", "--priority", "urgent"]);
    assert_eq!(sent["deliverer"], "thaw", "{sent}");
    assert_eq!(sent["delivered"], "queue");
    // A second stop changes nothing.
    let again = env.json(&["estop"]);
    assert_eq!(again["stop"], stopped["stop"]);
    let thawed = env.json(&["thaw"]);
    assert_eq!(thawed["told"], json!([MAX]), "{thawed}");
    env.wait_screen(MAX, "The emergency stop is over.");
    env.wait_screen(MAX, "hello");
    env.gt(&["crew", "start", "amy"]).ok();
    env.gt(&["thaw"]).fails(4);
    let events = env.json(&["events", "--type", "estop,thaw"]);
    let kinds = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| &event["type"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["estop", "thaw"], "{events}");
}

#[test]
fn sling_by_title_creates_no_item_during_a_stop() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["estop"]).ok();
    for words in [
        &["sling", "Fix the bug", "gastown"][..],
        &["sling", "Fix the bug", MAX],
    ] {
        assert_eq!(env.gt(words).code, 4, "{words:?}");
    }
    assert_eq!(env.json(&["work", "list", "--all"]), json!([]));
}

#[test]
fn base_does_not_move_during_a_stop() {
    let env = TestEnv::with_crew(&["max"]);
    let (item, merge) = finish(&env, "max", "a.txt", "a\n");
    env.gt(&["estop", "--rig", "gastown"]).ok();
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 4
    --- stdout
    0 merged, 0 not.
    --- stderr
    error: the rig gastown is stopped by [USER]
    hint: `gt thaw --rig gastown` ends the emergency stop
    ");
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    env.gt(&["thaw", "--rig", "gastown"]).ok();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &item), "closed");
}

#[test]
fn stop_during_validation_keeps_the_base() {
    let env = TestEnv::with_crew(&["max"]);
    let (_, merge) = finish(&env, "max", "a.txt", "a\n");
    let gate = env.path("gate");
    let hold = format!("mq.validated={}", gate.display());
    let mut run = env
        .gt_command(&["mq", "run"])
        .env("GT_HOLD", hold)
        .spawn()
        .unwrap();
    wait_until("the branch is validated", TIMEOUT, || {
        gate.with_extension("reached").exists().then_some(())
    });
    env.gt(&["estop"]).ok();
    fs::write(&gate, "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(4));
    let entry = env.json(&["mq", "status", &merge]);
    assert_eq!(entry["status"], "queued", "{entry}");
    let files = env.git(&repository(&env), &["ls-tree", "--name-only", "main"]);
    assert!(!files.contains("a.txt"), "{files}");
}

#[test]
fn killed_stop_still_stops() {
    for point in gt_town::workflow::estop::FAULT_POINTS {
        let env = with_busy_max();
        env.kill_at_fault(&["estop"], point);
        env.gt(&["start", AMY]).fails(4);
        // The next call interrupts what the killed one did not.
        let stopped = env.json(&["estop"]);
        assert_eq!(
            stopped["stop"]["interrupted"],
            json!([MAX]),
            "{point}: {stopped}"
        );
        env.gt(&["thaw"]).ok();
        env.gt(&["start", AMY]).ok();
    }
}

#[test]
fn estop_prints() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["estop", "--rig", "gastown", "--reason", "fire"]), @"
    exit code: 0
    --- stdout
    ■ The rig gastown is stopped by [USER]: fire.
      interrupted: no agent was in a turn
      `gt thaw --rig gastown` ends it.
    ");
    assert_snapshot!(env.snapshot(&["thaw"]), @"
    exit code: 4
    --- stderr
    error: the town is not stopped
    hint: the rig gastown is: `gt thaw --rig gastown`
    ");
    assert_snapshot!(env.snapshot(&["thaw", "--rig", "gastown"]), @"
    exit code: 0
    --- stdout
    ✓ The emergency stop of gastown is over.
    ");
    assert_snapshot!(env.snapshot(&["estop", "--rig", "nowhere"]), @r#"
    exit code: 3
    --- stderr
    error: there is no rig called "nowhere"
    hint: the rigs of this town: gastown
    "#);
}
