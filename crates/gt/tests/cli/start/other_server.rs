//! A tmux server other than the one of a running agent, and invalid socket paths.

use crate::env::{Answer, TestEnv, run};
use crate::stopwatch::Stopwatch;
use std::time::Duration;

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
        let watch = Stopwatch::start();
        let answer = env.gt(words);
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert_ne!(answer.code, 0, "{words:?}: {said}");
        assert!(said.contains("is stopped"), "{words:?}: {said}");
        watch.assert_within(words[0], Duration::from_secs(5));
    }
    signal(server, Signal::CONT);
    env.gt(&["stop", "mayor"]).ok();
}
