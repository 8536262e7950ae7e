//! A tmux server other than the one of a running agent, and invalid socket paths.

use crate::env::{Answer, TestEnv, run};
use std::time::{Duration, Instant};

fn on(env: &TestEnv, socket: &str, words: &[&str]) -> Answer {
    run(env.gt_command(words).env("GT_TMUX_SOCKET", socket))
}

#[test]
fn an_agent_of_another_server_is_neither_started_nor_forgotten() {
    let env = TestEnv::with_town();
    env.gt(&["start", "deacon"]).ok();
    let file = env.town().join(".runtime/pids/hq-deacon.pid");
    let before = std::fs::read_to_string(&file).unwrap();
    let other = env.path("other-server");
    let other = other.to_str().unwrap();
    let own = env.socket().display().to_string();
    let refused = on(&env, other, &["start", "deacon"]).fails(4).stderr;
    assert!(refused.contains(&own), "{refused}");
    let refused = on(&env, other, &["stop", "deacon"]).fails(3).stderr;
    assert!(refused.contains(&own), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(env.running(), ["deacon"]);
    env.gt(&["stop", "deacon"]).ok();
    assert!(!file.exists());
    // No process of the agent is left, so it may start on any server.
    on(&env, other, &["start", "deacon"]).ok();
    env.gt(&["start", "deacon"]).fails(4);
    on(&env, other, &["stop", "deacon"]).ok();
}

#[test]
fn a_start_that_fails_leaves_the_pid_file_of_a_start_before() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let file = env.town().join(".runtime/pids/hq-mayor.pid");
    let before = std::fs::read_to_string(&file).unwrap();
    env.gt(&["start", "mayor"]).fails(4);
    env.gt(&["start", "mayor", "--command", "exit 3"]).fails(4);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn an_impossible_socket_is_an_error_of_every_command() {
    let env = TestEnv::with_town();
    let long = format!("/tmp/{}", "x".repeat(200));
    let file = env.town().join("town.toml").display().to_string();
    for socket in ["/no/such/folder/socket", &long, &file] {
        for words in [
            &["agents"][..],
            &["start", "mayor"],
            &["stop", "mayor"],
            &["peek", "mayor"],
            &["nudge", "mayor", "hello"],
            &["status"],
            &["sync"],
            &["doctor"],
        ] {
            let answer = on(&env, socket, words);
            let said = format!("{}{}", answer.stdout, answer.stderr);
            assert_ne!(answer.code, 0, "{words:?} on {socket}: {said}");
            assert!(said.contains(socket), "{words:?} on {socket}: {said}");
            let is_empty = |line: &str| line.trim_end() == "caused by:";
            assert!(!said.lines().any(is_empty), "{words:?} on {socket}: {said}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_stopped_server_is_reported_within_five_seconds() {
    use crate::env::signal;
    use rustix::process::Signal;
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let server: u32 = env.format("hq-mayor", "#{pid}").parse().unwrap();
    signal(server, Signal::STOP);
    for words in [&["agents"][..], &["peek", "mayor"], &["doctor"]] {
        let began = Instant::now();
        let answer = env.gt(words);
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert_ne!(answer.code, 0, "{words:?}: {said}");
        assert!(said.contains("is stopped"), "{words:?}: {said}");
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{words:?}: {took:?}");
    }
    signal(server, Signal::CONT);
    env.gt(&["stop", "mayor"]).ok();
}

#[test]
fn doctor_finds_missing_sync_hooks_and_sets_them_again() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let sync = |words: &[&str]| {
        let answer = env.gt(words);
        let all: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        let found = all
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["check"] == "sync");
        found.unwrap_or_else(|| panic!("{all}")).clone()
    };
    assert_eq!(sync(&["doctor", "--json"])["status"], "ok");
    let unset = gt_tmux::Command::new("set-hook").args(["-gu", "session-closed"]);
    env.tmux(unset);
    let found = sync(&["doctor", "--json"]);
    assert_eq!(found["status"], "warning", "{found}");
    assert_eq!(found["fixable"], true);
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .contains("session-closed"),
        "{found}"
    );
    assert_eq!(sync(&["doctor", "--fix", "--json"])["status"], "ok");
    assert_eq!(sync(&["doctor", "--json"])["status"], "ok");
}

#[test]
#[cfg(target_os = "linux")]
fn stop_works_in_a_read_only_town() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let town = env.town().display().to_string();
    // Removes the lock files of the start, which a read-only town cannot create again.
    std::fs::remove_dir_all(env.town().join(".runtime/locks")).unwrap();
    let gt = env!("CARGO_BIN_EXE_gt");
    let script = format!(
        "mount --bind '{town}' '{town}' && mount -o remount,bind,ro '{town}' || exit 99
         exec '{gt}' stop mayor"
    );
    let Some(answer) = env.run_with_mounts(&script) else {
        return;
    };
    let said = answer.ok().stdout;
    assert!(said.contains("not recorded"), "{said}");
    assert!(env.running().is_empty());
}
