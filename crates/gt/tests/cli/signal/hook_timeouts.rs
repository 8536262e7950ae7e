//! Hooks finish within the timeouts of the programs that call them.

use crate::checkpoint::current_session;
use crate::env::{TestEnv, signal};
use crate::prime::{MAX, as_agent, await_rest, give_work};
use crate::stopwatch::Stopwatch;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::Signal;
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// Shortest timeout of any program for a hook whose output it reads.
const LIMIT: Duration = Duration::from_secs(3);
/// Timeout of Claude Code for a hook that only reports.
const REPORTING: Duration = Duration::from_secs(5);

fn crew_at_work() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    give_work(&env, "Mend the roof");
    env.gt(&["start", MAX]).ok();
    await_rest(&env);
    env
}

/// Runs a hook and checks its duration. Measures only the hook: the agent's environment was read
/// before.
fn in_time<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let watch = Stopwatch::start();
    let answer = call();
    let limit = if what == "signal" { REPORTING } else { LIMIT };
    watch.assert_within(what, limit);
    answer
}

/// Runs a hook as the agent of this session would.
fn hook(env: &TestEnv, session: &str, args: &[&str], report: &serde_json::Value) -> String {
    let path = env.path("report");
    std::fs::write(&path, report.to_string()).unwrap();
    let mut command = env.gt_command(args);
    command
        .env("GT_ROLE", MAX)
        .env("GT_ROOT", env.town())
        .env("GT_SESSION", "gt-crew-max")
        .env("GT_SESSION_UUID", session)
        .stdin(File::open(path).unwrap());
    in_time(&args.join(" "), || crate::env::run(&mut command))
        .ok()
        .stdout
}

/// Runs both hooks, and returns the output of the first.
fn both(env: &TestEnv, session: &str) -> String {
    let report = json!({"hook_event_name": "SessionStart", "session_id": "x"});
    let told = hook(env, session, &["prime", "--hook"], &report);
    let report = json!({"hook_event_name": "Stop", "session_id": "y"});
    assert_eq!(hook(env, session, &["signal"], &report), "");
    told
}

#[test]
fn locked_database_does_not_delay_a_hook() {
    let env = crew_at_work();
    let session = current_session(&env);
    for name in [".sessions/index.db", ".work/items.db"] {
        let path = env.town().join(name);
        let file = File::options().read(true).write(true).open(path).unwrap();
        fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
        let told = both(&env, &session);
        let words = "Do not take this for having no work";
        assert!(told.contains(words), "{name}: {told}");
    }
    assert!(both(&env, &session).contains("Mend the roof"));
}

#[test]
fn held_lock_does_not_delay_a_hook() {
    let env = crew_at_work();
    // A checkpoint that an earlier session left.
    let written = as_agent(&env, &["checkpoint", "write", "--json"], None);
    let mut left = written.ok().json();
    left["session_id"] = json!("00000000-0000-4000-8000-000000000000");
    let dir = env.town().join(".runtime/checkpoints");
    std::fs::write(dir.join("gastown.crew.max.json"), left.to_string()).unwrap();
    let session = current_session(&env);
    for name in [
        ".runtime/checkpoints/gastown.crew.max.lock",
        ".runtime/claims/gastown.crew.max.lock",
        ".runtime/locks/events.lock",
        ".sessions/index.lock",
    ] {
        let file = File::options().write(true).open(env.town().join(name));
        let file = file.unwrap_or_else(|error| panic!("{name}: {error}"));
        file.lock().unwrap();
        let told = both(&env, &session);
        assert!(told.contains("## What was in flight"), "{name}: {told}");
        assert!(!told.contains("could not say"), "{name}: {told}");
    }
}

#[test]
fn unresponsive_tmux_server_does_not_delay_a_hook() {
    struct Stopped(u32);
    impl Drop for Stopped {
        fn drop(&mut self) {
            signal(self.0, Signal::CONT);
        }
    }
    let env = crew_at_work();
    let session = current_session(&env);
    let server = env.format("gt-crew-max", "#{pid}").parse().unwrap();
    let stopped = Stopped(server);
    signal(server, Signal::STOP);
    let told = both(&env, &session);
    assert!(told.contains("Mend the roof"), "{told}");
    // The hook of a program that listens at a prompt queries tmux first, and still prints its text.
    let report = json!({"hook_event_name": "BeforeAgent", "session_id": "x", "prompt": "p"});
    let told = hook(&env, &session, &["prime", "--hook"], &report);
    assert!(told.contains("Mend the roof"), "{told}");
    drop(stopped);
    assert!(both(&env, &session).contains("Mend the roof"));
}

#[test]
fn open_standard_input_does_not_delay_a_hook() {
    let env = crew_at_work();
    let session = current_session(&env);
    let calls = [
        (vec!["prime", "--hook"], String::new()),
        (vec!["signal", "tool-start"], String::new()),
        (
            vec!["prime", "--hook"],
            json!({"hook_event_name": "SessionStart", "session_id": "x"}).to_string(),
        ),
        (
            vec!["signal"],
            json!({"hook_event_name": "Stop", "session_id": "y"}).to_string(),
        ),
    ];
    for (args, report) in calls {
        let mut command = env.gt_command(&args);
        command
            .env("GT_ROLE", MAX)
            .env("GT_ROOT", env.town())
            .env("GT_SESSION", "gt-crew-max")
            .env("GT_SESSION_UUID", &session)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let answer = in_time(args[0], || {
            let mut child = command.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(report.as_bytes()).unwrap();
            let answer = child.wait_with_output().unwrap();
            drop(stdin);
            answer
        });
        assert!(answer.status.success(), "{args:?}: {answer:?}");
        if args[0] == "prime" {
            let told = String::from_utf8(answer.stdout).unwrap();
            assert!(told.contains("Mend the roof"), "{args:?}: {told}");
        }
    }
    assert_eq!(env.agent(MAX)["state"], "idle", "the last report was noted");
}
