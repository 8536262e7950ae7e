//! Starts of many agents, and concurrent starts and stops of one.

use crate::env::{TIMEOUT, TestEnv, processes_of, repetitions};
use gt_tmux::testing::wait_until;
use std::process::Child;

const NAMES: usize = 50;

#[test]
fn fifty_agents_start_with_one_command_and_stop_with_one() {
    let names: Vec<String> = (0..NAMES).map(|n| format!("w{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    let answer = env.gt(&["crew", "start", "--all"]).ok();
    assert_eq!(answer.stdout.lines().count(), NAMES, "{}", answer.stdout);
    assert_eq!(env.running().len(), NAMES);
    env.gt(&["agents", "check"]).ok();
    let answer = env.gt(&["crew", "stop", "--all", "--json"]).ok().json();
    assert_eq!(answer.as_array().unwrap().len(), NAMES);
    assert!(
        answer
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["stopped"] == true && row["killed"] == 0)
    );
    assert_eq!(env.sessions(), Vec::<String>::new());
    assert_eq!(env.running(), Vec::<String>::new());
    wait_until("no process of ours is left", TIMEOUT, || {
        processes_of(env.home()).is_empty().then_some(())
    });
    let pids = std::fs::read_dir(env.town().join(".runtime/pids")).unwrap();
    assert_eq!(pids.count(), 0, "no PID file is left");
}

#[test]
fn one_of_two_concurrent_starts_wins() {
    let env = TestEnv::with_crew(&["max"]);
    for round in 0..repetitions(100, 10) {
        let args = ["crew", "start", "max", "--no-prompt"];
        let racers: Vec<Child> = (0..2).map(|_| env.spawn(&args)).collect();
        let codes: Vec<i32> = racers
            .into_iter()
            .map(|racer| {
                let output = racer.wait_with_output().unwrap();
                let code = output.status.code().unwrap();
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(code == 0 || text.contains("hint:"), "round {round}: {text}");
                code
            })
            .collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        assert_eq!(
            sorted,
            [0, 4],
            "round {round}: one started, one met a conflict"
        );
        assert_eq!(env.sessions(), ["gt-crew-max"], "round {round}");
        env.gt(&["stop", "--force", "gastown/crew/max"]).ok();
    }
}

#[test]
fn concurrent_start_and_stop_end_started_or_stopped() {
    let env = TestEnv::with_crew(&["max"]);
    for round in 0..10 {
        let start = env.spawn(&["crew", "start", "max"]);
        let stop = env.spawn(&["stop", "gastown/crew/max"]);
        let started = start.wait_with_output().unwrap().status.code();
        let stopped = stop.wait_with_output().unwrap().status.code();
        let running = env.running().len();
        match (started, stopped) {
            (Some(0), Some(0)) => assert_eq!(running, 0, "round {round}"),
            (Some(0), Some(3)) => assert_eq!(running, 1, "round {round}"),
            // The stop held the lock when the start began.
            (Some(4), Some(3)) => assert_eq!(running, 0, "round {round}"),
            other => panic!("round {round}: {other:?}"),
        }
        if running == 1 {
            env.gt(&["stop", "--force", "gastown/crew/max"]).ok();
        }
        wait_until(
            &format!("no process is left of round {round}"),
            TIMEOUT,
            || processes_of(env.home()).is_empty().then_some(()),
        );
    }
}
