//! `gt logs`, `--verbose` and `GT_LOG`.

use crate::env::{TIMEOUT, TestEnv, run};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

fn entries(env: &TestEnv, args: &[&str]) -> Vec<(String, String, String)> {
    let shown = env.json(&[&["logs"], args].concat());
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entry = |entry: &Value| {
        (
            text(entry, "level"),
            text(entry, "command"),
            text(entry, "message"),
        )
    };
    shown.as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn errors_of_calls_whose_output_is_discarded_are_shown() {
    let mut env = TestEnv::with_town();
    assert_eq!(env.gt(&["logs"]).ok().stdout, "No warnings or errors.\n");
    // The error of a person's own command is on its stderr, and not in the log.
    env.gt(&["peek", "nope"]).fails(3);
    assert_eq!(entries(&env, &[]), []);
    env.gt(&["signal", "nope"]).ok();
    env.gt(&["respawn", "gone", "--pane", "x"]).fails(2);
    env.set("GT_CALLER", "gt");
    env.gt(&["nudge", "--drain", "nope"]).fails(3);
    let all = entries(&env, &[]);
    let told: Vec<_> = all
        .iter()
        .map(|(level, command, _)| (level.as_str(), command.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("error", "signal"),
            ("error", "internal respawn"),
            ("error", "internal deliver")
        ]
    );
    assert_eq!(all[0].2, "there is no event \"nope\"");
    assert_eq!(entries(&env, &["-n", "1"]), all[2..]);
    assert_eq!(entries(&env, &["--since", "1h"]), all);
    assert_snapshot!(env.snapshot(&["logs", "-n", "1"]), @r#"
    exit code: 0
    --- stdout
    [TIME] [TIME]  error  internal deliver: there is no agent "nope"
    "#);
    let path = env.town().join(".runtime/gt.log");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_snapshot!(env.doctor_findings(&[]), @r#"
    exit code: 0
    ! hooks: 3 warnings in the log of the last hour, the newest of `gt internal deliver`: there is no agent "nope"
      hint: `gt logs` shows them
    "#);
}

#[test]
fn log_of_the_previous_version_and_of_a_damaged_town_is_shown() {
    let env = TestEnv::with_town();
    let old = "2026-01-17T12:00:00.5Z sync: the index is locked\n";
    fs::write(env.town().join(".runtime/hooks.log"), old).unwrap();
    fs::write(env.town().join("town.toml"), "[[").unwrap();
    env.gt(&["signal", "stop"]).ok();
    let all = entries(&env, &[]);
    assert_eq!(all[0].2, "the index is locked");
    assert!(all[1].2.contains("town.toml"), "{all:?}");
    assert_eq!(entries(&env, &["--since", "1h"]).len(), 1);
}

#[test]
fn follow_shows_new_entries_and_ends_with_its_reader() {
    let env = TestEnv::with_town();
    env.gt(&["signal", "before"]).ok();
    let mut follower = env.spawn(&["logs", "--follow", "--json"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    };
    assert_eq!(next()["message"], "there is no event \"before\"");
    env.gt(&["signal", "after"]).ok();
    assert_eq!(next()["message"], "there is no event \"after\"");
    drop(lines);
    let status = wait_until("its end", TIMEOUT, || follower.try_wait().unwrap());
    assert!(status.success());
}

#[test]
fn verbose_and_gt_log_print_steps_on_stderr() {
    let mut env = TestEnv::with_town();
    assert_eq!(env.gt(&["agents"]).ok().stderr, "");
    assert_snapshot!(env.snapshot(&["agents", "--verbose"]), @"
    exit code: 0
    --- stdout
    No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.
    --- stderr
    DEBUG gt_town::base::town: town ~/gt, tmux server ~/s
    DEBUG gt_tmux::server: tmux list-panes: no tmux server is running on ~/s
    ");
    env.set("GT_LOG", "warn,gt_tmux=debug");
    assert_snapshot!(env.snapshot(&["agents"]), @"
    exit code: 0
    --- stdout
    No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.
    --- stderr
    DEBUG gt_tmux::server: tmux list-panes: no tmux server is running on ~/s
    ");
    // A callback has no stderr that is read.
    let answer = env.gt(&["status-line"]).ok();
    assert_eq!(answer.stderr, "");
    let all = entries(&env, &[]);
    assert!(
        all.iter()
            .all(|(level, command, _)| level == "debug" && command == "status-line")
    );
    assert!(!all.is_empty());
    env.set("GT_LOG", "loud");
    assert_snapshot!(env.snapshot(&["agents"]), @r#"
    exit code: 0
    --- stdout
    No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.
    --- stderr
    warning: GT_LOG="loud" is ignored: it is not error, warn, info, debug, trace, or MODULE=LEVEL,…
    "#);
}

#[test]
fn variable_of_gt_that_is_not_utf8_is_an_error() {
    let env = TestEnv::with_town();
    let mut command = env.gt_command(&["agents"]);
    command.env("GT_ROOT", std::ffi::OsStr::from_bytes(b"/\xff"));
    assert_snapshot!(run(&mut command).rendered(&env), @"
    exit code: 5
    --- stderr
    error: the variable GT_ROOT is not UTF-8
    hint: set GT_ROOT to other text, or unset it
    ");
    let mut command = env.gt_command(&["agents", "--verbose"]);
    command.env("LESSOPEN", std::ffi::OsStr::from_bytes(b"\xff"));
    assert_snapshot!(run(&mut command).rendered(&env), @"
    exit code: 0
    --- stdout
    No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.
    --- stderr
     INFO gt::context: the variable LESSOPEN is not UTF-8, and is not passed on
    DEBUG gt_town::base::town: town ~/gt, tmux server ~/s
    DEBUG gt_tmux::server: tmux list-panes: no tmux server is running on ~/s
    ");
}
