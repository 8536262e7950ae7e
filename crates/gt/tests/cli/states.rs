//! What an agent is doing, by which witness: pauses, ends of work, and screens.

use crate::env::{PATIENCE, TestEnv};
use gt_core::Identity;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use gt_town::{Surroundings, Town, signal};
use std::io::Write;
use std::process::Stdio;

const MAX: &str = "gastown/crew/max";
const CONTAINER: &str = "gt-crew-max";

/// A crew worker that runs and stands at its prompt.
fn stage() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    env
}

/// The town as the engine has it.
fn engine(env: &TestEnv) -> (Town, Identity) {
    let socket = env.socket().display().to_string();
    let around = Surroundings {
        env: [("GT_TMUX_SOCKET".to_owned(), socket)].into(),
        gt: env!("CARGO_BIN_EXE_gt").into(),
        current_dir: env.town(),
        ..Surroundings::default()
    };
    let town = Town::open(&env.town(), around).unwrap();
    let max = Identity::from_address(MAX, town.registry()).unwrap();
    (town, max)
}

fn state(env: &TestEnv) -> String {
    env.agent(MAX)["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn await_state(env: &TestEnv, wanted: &str) -> serde_json::Value {
    wait_until(wanted, PATIENCE, || {
        let agent = env.agent(MAX);
        (agent["state"] == wanted).then_some(agent)
    })
}

/// What a hook of the agent's program would say.
#[track_caller]
fn hook(env: &TestEnv, event: &str, report: &str) {
    let mut command = env.gt_command(&["signal", event, "--session", CONTAINER, "--strict"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(report.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn type_prompt(env: &TestEnv, text: &str) {
    let keys = |keys: &[&str]| {
        let target = gt_tmux::SessionName::try_from(CONTAINER).unwrap();
        let words = keys.iter().map(|key| (*key).to_owned());
        env.tmux(Tmux::new("send-keys").target(target).args(words));
    };
    keys(&["-l", text]);
    keys(&["Enter"]);
}

#[test]
fn a_pause_outlasts_its_own_interrupt_and_ends_with_a_prompt() {
    let env = stage();
    let (town, max) = engine(&env);
    env.gt(&["nudge", MAX, "[[delay=60]]"]).ok();
    await_state(&env, "busy");
    let target = gt_tmux::SessionName::try_from(CONTAINER).unwrap();
    env.tmux(Tmux::new("send-keys").target(target).arg("Escape"));
    signal::mark_paused(&town, &max, "for \"lunch\"; #{pid} $(x) 'y'").unwrap();
    // What programs report when a turn is interrupted, and of what it had begun.
    let bash = r#"{"tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    for (event, report) in [
        ("stop", ""),
        ("interrupt", ""),
        ("tool-end", bash),
        ("tool-start", bash),
        ("permission", bash),
        ("notification", r#"{"notification_type": "idle_prompt"}"#),
    ] {
        hook(&env, event, report);
        assert_eq!(state(&env), "paused", "after {event}");
    }
    let agent = env.agent(MAX);
    assert_eq!(agent["state_source"], "gt");
    assert_eq!(agent["state_reason"], "for \"lunch\"; #{pid} $(x) 'y'");
    assert!(agent["state_since"].is_string(), "{agent}");
    assert!(env.gt(&["agents"]).ok().stdout.contains("paused"));
    // A message would set it going: it waits.
    let sent = env.json(&["nudge", MAX, "later"]);
    assert_eq!(sent["delivered"], "queue", "{sent}");
    assert_eq!(sent["reason"], "it is paused", "{sent}");
    hook(&env, "stop", "");
    assert_eq!(state(&env), "paused");
    env.gt(&["wait", MAX, "--timeout", "30"]).ok();
    type_prompt(&env, "[[delay=60]]");
    await_state(&env, "busy");
}

#[test]
fn what_a_tool_does_long_after_a_pause_ends_it_and_so_does_death() {
    let env = stage();
    let (town, max) = engine(&env);
    signal::mark_paused(&town, &max, "by hand").unwrap();
    let long_ago = (jiff::Timestamp::now().as_second() - 60).to_string();
    let target = || gt_tmux::SessionName::try_from(CONTAINER).unwrap();
    let backdate = || {
        let set = Tmux::new("set-option").target(target());
        env.tmux(set.args(["@gt_state_since", &long_ago]));
    };
    backdate();
    hook(&env, "stop", "");
    assert_eq!(state(&env), "paused");
    hook(&env, "tool-start", r#"{"tool_name": "Bash"}"#);
    let tags = env.format(CONTAINER, "#{@gt_state} #{@gt_state_source}");
    assert_eq!(tags, "busy hook");
    signal::mark_paused(&town, &max, "by hand").unwrap();
    crate::env::signal(env.pid(MAX), rustix::process::Signal::KILL);
    await_state(&env, "crashed");
}

#[test]
fn a_pause_is_taken_back_and_nothing_else_is() {
    let env = stage();
    let (town, max) = engine(&env);
    let tag = || env.format(CONTAINER, "#{@gt_state}");
    signal::mark_paused(&town, &max, "by hand").unwrap();
    assert_eq!(tag(), "paused");
    signal::clear_paused(&town, &max).unwrap();
    assert_eq!(tag(), "idle");
    hook(&env, "prompt", r#"{"prompt": "x"}"#);
    signal::clear_paused(&town, &max).unwrap();
    assert_eq!(tag(), "busy");
    let nobody = Identity::from_address("gastown/crew/nobody", town.registry()).unwrap();
    assert!(signal::mark_paused(&town, &nobody, "x").is_err());
    let nowhere = ["signal", "stop", "--session", "gt-crew-nobody", "--strict"];
    assert_ne!(env.gt(&nowhere).code, 0);
}
