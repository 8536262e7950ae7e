//! `gt signal`: reports of hooks set the state of an agent and confirm messages.

mod hook_timeouts;

use crate::env::{TIMEOUT, TestEnv, run};
use crate::nudge::stage;
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn hooks_report_the_state_and_confirm_messages() {
    let env = stage(&["max"]);
    env.gt(&["nudge", "gastown/max", "[[delay=2]]"]).ok();
    let agent = wait_until("the hook says busy", TIMEOUT, || {
        let agent = env.agent("gastown/crew/max");
        (agent["state_source"] == "hook" && agent["state"] == "busy").then_some(agent)
    });
    assert_eq!(agent["state_reason"], "took a prompt");
    assert!(agent["state_since"].is_string());
    env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
    env.gt(&["nudge", "gastown/max", "[[tool=touch x]]"]).ok();
    wait_until("the hook says what it asks", TIMEOUT, || {
        let agent = env.agent("gastown/crew/max");
        (agent["state"] == "waiting" && agent["state_reason"] == "asks: Bash(touch x)")
            .then_some(())
    });
    let container = SessionName::try_from("gt-crew-max").unwrap();
    let tag = env.tmux(
        Tmux::new("show-options")
            .arg("-v")
            .target(container)
            .arg("@gt_last_prompt"),
    );
    assert!(tag.ends_with("-16"), "{tag}");
    assert!(!env.town().join(".runtime/gt.log").exists());
}

#[test]
fn signal_never_delays_an_agent() {
    let env = TestEnv::with_town();
    // Without a container, a known event or valid JSON the command succeeds silently.
    for args in [
        &["signal"][..],
        &["signal", "nope"],
        &["signal", "stop", "--session", "gone"],
    ] {
        let answer = env.gt(args).ok();
        assert_eq!(
            (answer.stdout.as_str(), answer.stderr.as_str()),
            ("", ""),
            "{args:?}"
        );
    }
    assert!(env.town().join(".runtime/gt.log").exists());
    env.gt(&["signal", "nope", "--strict"]).fails(2);
}

#[test]
fn conversation_is_captured_from_claude_session_id() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    let session = env.agent("gastown/crew/max")["session"].clone();
    let conversation = || env.format("gt-crew-max", "#{@gt_harness_session}");
    let as_agent = |variable: &str, id: &str, words: &[&str]| {
        let mut command = env.gt_command(words);
        command
            .env("GT_SESSION", "gt-crew-max")
            .env("GT_ROLE", "gastown/crew/max")
            .env("GT_SESSION_UUID", session.as_str().unwrap())
            .env(variable, id);
        run(&mut command).ok()
    };
    // The conversation id comes from the environment: of a hook whose report lacks it, and of `gt
    // prime` run by the agent.
    as_agent(
        "CLAUDE_SESSION_ID",
        "one",
        &["signal", "prompt", "--strict"],
    );
    assert_eq!(conversation(), "one");
    as_agent("CLAUDE_CODE_SESSION_ID", "two", &["prime"]);
    assert_eq!(conversation(), "two");
    let known = &crate::sessions::list_sessions(&env, &["--limit", "1"])[0];
    assert_eq!(known["harness_session_id"], "two", "{known}");
    // A person's `gt prime --agent` does not set the agent's conversation.
    let mut looked = env.gt_command(&["prime", "--agent", "gastown/max"]);
    run(looked.env("CLAUDE_SESSION_ID", "three")).ok();
    assert_eq!(conversation(), "two");
}

#[test]
fn session_end_after_the_tmux_server_died_is_no_failed_hook() {
    let env = TestEnv::with_crew(&["max"]);
    let report = |event: &str| {
        let mut command = env.gt_command(&["signal", event]);
        run(command.env("GT_SESSION", "gt-crew-max")).ok()
    };
    let status = || {
        let checks = env.json(&["doctor"]);
        let mut checks = checks.as_array().unwrap().iter();
        let hooks = checks.find(|it| it["check"] == "hooks").unwrap();
        hooks["status"].as_str().unwrap().to_owned()
    };
    report("session-end");
    assert_eq!(status(), "ok");
    // Every other event implies a container, so a missing one is a failure.
    report("stop");
    assert_eq!(status(), "warning");
}

#[test]
fn signal_prints_nothing_for_a_hook_and_errors_in_strict_mode() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    assert_snapshot!(env.snapshot(&["signal", "stop", "--session", "gt-crew-max"]), @"
    exit code: 0
    ");
    assert_snapshot!(env.snapshot(&["signal", "unknown-event", "--session", "gt-crew-max", "--strict"]), @r#"
    exit code: 2
    --- stderr
    error: there is no event "unknown-event"
    hint: session-start, prompt, tool-start, permission, notification, tool-end, stop, stop-failure, compact, interrupt, done, session-end
    "#);
}

#[test]
fn agent_is_told_to_continue_when_its_usage_limit_has_ended() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let message = "You've hit your limit · reset in 2 seconds";
    let report = json!({"error": "rate_limit", "last_assistant_message": message});
    crate::notify::hook(&env, "stop-failure", &report);
    assert_eq!(env.agent("mayor")["state"], "limited");
    wait_until("tmux has it told", TIMEOUT, || {
        let screen = env.gt(&["peek", "mayor"]).ok().stdout;
        screen.contains("The usage limit has ended").then_some(())
    });
    wait_until("it is idle again", TIMEOUT, || {
        (env.agent("mayor")["state"] == "idle").then_some(())
    });
    let resumed = env.json(&["events", "--type", "resumed"]);
    assert_eq!(resumed.as_array().unwrap().len(), 1, "{resumed}");
}
