//! How a session of a real program ends, and what `gt` does then.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_model::fingerprint;
use gt_tmux::testing::wait_until;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// Programs for which `gt` documents how a session ends.
const PROMISED: &[&str] = &["claude", "codex"];

/// Limit for what tmux's hooks report. The timers of tmux that would notice it as well run later.
const AT_ONCE: Duration = Duration::from_secs(5);

fn promised(what: &str, check: impl Fn(&Stage)) {
    each(what, |stage| {
        if PROMISED.contains(&stage.program().harness) {
            check(stage);
        }
    });
}

/// Returns the sessions of the agent, newest first.
fn sessions(stage: &Stage) -> Vec<Value> {
    let text = stage.ok(&["sessions", "list", "--json"]);
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn await_sessions(stage: &Stage, number: usize) -> Vec<Value> {
    wait_until(&format!("session {number}"), TIMEOUT, || {
        let all = sessions(stage);
        (all.len() == number && all[0]["status"] == "running").then_some(all)
    })
}

#[track_caller]
fn await_outcome(stage: &Stage, id: &Value, outcome: &str) {
    wait_until(&format!("the outcome {outcome}"), TIMEOUT, || {
        let all = sessions(stage);
        let found = all.iter().find(|session| session["id"] == *id);
        found
            .is_some_and(|it| it["outcome"] == outcome)
            .then_some(())
    });
}

/// Sends a signal to the process of the agent's pane.
fn signal(stage: &Stage, signal: Signal) {
    let pid = stage.tag("pane_pid").parse().unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Returns whether tmux has no child except the agent and the process that waits for its death.
fn only_awaits(stage: &Stage) -> bool {
    let agent = stage.tag("pane_pid");
    let server = stage.tag("pid");
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    children
        .split_whitespace()
        .filter(|child| **child != *agent)
        .all(|child| {
            fs::read(format!("/proc/{child}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains("await-death"))
        })
}

/// Types `/exit` by keys, without `gt`.
fn exit(stage: &Stage) {
    let pid = stage.tag("pane_pid");
    stage.type_command("/exit");
    stage.enter_until("the program has left", || {
        stage.tag("pane_dead") == "1" || stage.tag("pane_pid") != pid
    });
}

/// Checks that the model last saw these prompts in one conversation. `None` matches any text.
#[track_caller]
fn same_conversation(stage: &Stage, prompts: &[Option<&str>]) {
    let got = stage.wait_history(prompts.len());
    assert_eq!(got.len(), prompts.len(), "{}", stage.screen());
    for (print, prompt) in got.iter().zip(prompts) {
        if let Some(prompt) = prompt {
            assert_eq!(*print, fingerprint(prompt), "{prompt}\n{}", stage.screen());
        }
    }
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn respawn_after_a_kill_resumes_the_conversation() {
    promised("crash", |stage| {
        stage.start(&["--no-prompt"]);
        stage.nudge("the first words");
        stage.arrived(&["the first words".to_owned()]);
        stage.wait_written("the first words");
        let first = sessions(stage)[0].clone();
        signal(stage, Signal::KILL);
        let all = await_sessions(stage, 2);
        await_outcome(stage, &first["id"], "crash");
        assert_eq!(all[0]["parent_id"], first["id"], "{all:?}");
        stage.wait_prompt("Your program crashed (killed by signal 9)");
        same_conversation(stage, &[Some("the first words"), None]);
        stage.nudge("the second words");
        same_conversation(
            stage,
            &[Some("the first words"), None, Some("the second words")],
        );
        let last = sessions(stage)[0].clone();
        assert_eq!(
            last["harness_session_id"],
            sessions(stage)[1]["harness_session_id"]
        );
        stage.ok(&["stop", "gastown/max"]);
        stage.nothing_is_left();
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn kill_without_respawn_is_recorded_without_another_command() {
    promised("crash of a role that is not respawned", |stage| {
        stage.write("gt/roles/crew.toml", "[start]\nauto_respawn = false\n");
        stage.start(&["--no-prompt"]);
        stage.nudge("the first words");
        stage.arrived(&["the first words".to_owned()]);
        stage.wait_written("the first words");
        let first = sessions(stage)[0].clone();
        // tmux 3.3a notices the death of a pane's process only when another of its children ends.
        wait_until("tmux runs no other process", TIMEOUT, || {
            only_awaits(stage).then_some(())
        });
        signal(stage, Signal::KILL);
        // `gt sessions list` does not ask tmux, so only tmux's own hook can record the death.
        let before = Instant::now();
        await_outcome(stage, &first["id"], "crash");
        assert!(before.elapsed() < AT_ONCE, "{:?}", before.elapsed());
        stage.ok(&["stop", "gastown/max"]);
        stage.nothing_is_left();
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn slash_exit_is_recorded_as_exited() {
    promised("clean exit", |stage| {
        stage.start(&["--no-prompt"]);
        stage.nudge("the first words");
        stage.arrived(&["the first words".to_owned()]);
        stage.wait_written("the first words");
        let first = sessions(stage)[0].clone();
        exit(stage);
        await_outcome(stage, &first["id"], "exited");
        // A crew worker is not respawned after an exit; its next start is a separate session.
        wait_until("it is not wanted back", TIMEOUT, || {
            stage.tag("@gt_auto_respawn").is_empty().then_some(())
        });
        assert_eq!(sessions(stage).len(), 1);
        stage.ok(&["stop", "gastown/max"]);

        // A role with `on_exit = "restart"` resumes its conversation and gets no crash message.
        stage.write("gt/roles/crew.toml", "[start]\non_exit = \"restart\"\n");
        stage.start(&["--no-prompt"]);
        stage.nudge("the other words");
        stage.arrived(&["the other words".to_owned()]);
        stage.wait_written("the other words");
        let second = sessions(stage)[0].clone();
        exit(stage);
        await_sessions(stage, 3);
        await_outcome(stage, &second["id"], "exited");
        stage.wait_prompt("Your program exited.");
        same_conversation(stage, &[Some("the other words"), None]);
        assert!(
            stage
                .requests()
                .iter()
                .all(|request| !request.prompt.contains("crashed")),
        );
        stage.ok(&["stop", "gastown/max"]);
        stage.nothing_is_left();
    });
}
