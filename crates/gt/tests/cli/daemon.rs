//! `gt daemon`: one process per town, which survives its caller and is replaced after a kill.

use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use crate::save::files;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

fn status(env: &TestEnv) -> Value {
    let answer = env.gt(&["daemon", "status", "--json"]);
    serde_json::from_str(&answer.stdout).unwrap()
}

fn start(env: &TestEnv) -> u32 {
    env.gt(&["daemon", "start"]).ok();
    pid(&status(env))
}

fn pid(status: &Value) -> u32 {
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

fn await_end(pid: u32) {
    wait_until("the daemon has ended", TIMEOUT, || {
        (!is_alive(pid)).then_some(())
    });
}

#[test]
fn it_starts_once_and_stops() {
    let env = TestEnv::with_town();
    assert_snapshot!(env.snapshot(&["daemon", "status"]), @r"
    exit code: 1
    --- stdout
    No daemon runs. `gt daemon start` starts it.
    ");
    let first = start(&env);
    wait_until("the first sweep has run", TIMEOUT, || {
        (status(&env)["duties"]["upkeep"]["runs"] == 1).then_some(())
    });
    let second = env.gt(&["daemon", "start"]);
    assert_eq!(second.code, 4, "{}", second.stderr);
    let expected = format!("a daemon of this town runs already (process {first})");
    assert!(second.stderr.contains(&expected), "{}", second.stderr);
    assert_snapshot!(second.rendered(&env), @"
    exit code: 4
    --- stderr
    error: a daemon of this town runs already (process [PID])
    hint: `gt daemon status` shows it, `gt daemon restart` replaces it
    ");
    let here = env.gt(&["daemon", "run"]);
    assert_eq!(here.code, 4, "{}", here.stderr);
    let stopped = env.gt(&["daemon", "stop"]).ok();
    assert_eq!(
        stopped.stdout,
        format!("Stopped the daemon (process {first}).\n")
    );
    assert!(!is_alive(first));
    assert_snapshot!(env.snapshot(&["daemon", "stop"]), @r"
    exit code: 0
    --- stdout
    No daemon runs.
    ");
    assert_snapshot!(env.snapshot(&["daemon", "logs"]), @"
    exit code: 0
    --- stdout
    [TIME] [TIME]  info  daemon run: process [PID] started
    [TIME] [TIME]  info  daemon run: process [PID] ended; saved 0 containers
    ");
}

#[test]
fn sigterm_saves_the_containers_before_it_ends() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    let daemon = start(&env);
    wait_until("the first sweep has run", TIMEOUT, || {
        (status(&env)["duties"]["upkeep"]["runs"] == 1).then_some(())
    });
    for file in files(&env) {
        fs::remove_file(file).unwrap();
    }
    signal(daemon, Signal::TERM);
    await_end(daemon);
    let log = env.gt(&["daemon", "logs"]).ok().stdout;
    assert_snapshot!(env.masked(&log), @"
    [TIME] [TIME]  info  daemon run: process [PID] started
    [TIME] [TIME]  info  daemon run: process [PID] ended; saved 1 container
    ");
    // The save after the start of max may come late and add another one.
    assert!(!files(&env).is_empty(), "{log}");
    assert_eq!(env.running(), ["gastown/crew/max"], "agents outlive it");
}

#[test]
fn daemon_that_was_killed_is_started_again_by_the_timer_of_tmux() {
    let env = TestEnv::with_town();
    let first = start(&env);
    signal(first, Signal::KILL);
    await_end(first);
    // Threads of the process may hold its lock for a moment longer.
    wait_until("its lock is free", TIMEOUT, || {
        (status(&env)["running"] == false).then_some(())
    });
    assert_snapshot!(env.snapshot(&["daemon", "status"]), @r"
    exit code: 1
    --- stdout
    No daemon runs: the last one was killed. `gt daemon start` starts it.
    ");
    env.gt(&["internal", "save", "--timer"]).ok();
    let again = status(&env);
    assert_eq!(again["running"], true, "{again}");
    assert_ne!(pid(&again), first);
    // One that was stopped stays so.
    env.gt(&["daemon", "stop"]).ok();
    env.gt(&["internal", "save", "--timer"]).ok();
    assert_eq!(status(&env)["running"], false);
}

#[test]
fn up_starts_it_and_down_stops_it() {
    let env = TestEnv::with_town();
    env.gt(&["up", "--no-daemon"]).ok();
    assert_eq!(status(&env)["running"], false);
    for done in ["Started", "Restarted"] {
        let restarted = env.gt(&["daemon", "restart"]).ok().stdout;
        assert!(
            restarted.starts_with(&format!("{done} the daemon")),
            "{restarted}"
        );
    }
    env.gt(&["daemon", "stop"]).ok();
    let up = env.gt(&["up"]).ok().stdout;
    assert_snapshot!(env.masked(&up), @"
    Started the daemon (process [PID]).
    · mayor runs already
    · started on demand: deacon. `gt up --all-roles` starts them now.
    ");
    let daemon = pid(&status(&env));
    env.gt(&["up"]).ok();
    assert_eq!(pid(&status(&env)), daemon, "it is left alone");
    env.gt(&["down"]).ok();
    assert!(!is_alive(daemon));
}

#[test]
fn it_ends_when_its_town_is_removed() {
    let env = TestEnv::with_town();
    let daemon = start(&env);
    // Its duties write files meanwhile.
    wait_until("the town is removed", TIMEOUT, || {
        fs::remove_dir_all(env.town()).ok()
    });
    // A sweep; otherwise the next one is up to a minute away.
    signal(daemon, Signal::HUP);
    await_end(daemon);
}

#[test]
fn unit_names_this_binary_and_this_town() {
    let env = TestEnv::with_town();
    let unit = env.gt(&["daemon", "unit", "--for", "systemd"]).ok().stdout;
    let line = format!(
        "ExecStart=\"{}\" --town \"{}\" daemon run",
        env!("CARGO_BIN_EXE_gt"),
        env.town().display()
    );
    assert!(unit.lines().any(|found| found == line), "{unit}");
    let plist = env.gt(&["daemon", "unit", "--for", "launchd"]).ok().stdout;
    assert!(plist.starts_with("<?xml"), "{plist}");
}
