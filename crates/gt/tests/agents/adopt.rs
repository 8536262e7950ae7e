//! `gt adopt` of programs that a person started without `gt` and its hooks.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::wait_until;
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// Programs whose conversations `gt` finds in the programs' own files.
const PROGRAMS: &[&str] = &["claude", "codex"];

fn agent(stage: &Stage) -> Value {
    let all: Value = serde_json::from_str(&stage.ok(&["agents", "--json"])).unwrap();
    let all = all.as_array().unwrap().iter();
    let mut own = all.filter(|it| it["agent"] == "agent/helper");
    own.next().cloned().unwrap_or_default()
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn it_is_adopted_while_it_runs() {
    each("adopt", |stage| {
        let harness = stage.program().harness;
        if !PROGRAMS.contains(&harness) {
            return;
        }
        let adopted = adopt(stage, Stage::start_bare);
        assert_eq!(adopted["harness"], harness, "{adopted}");
        let is_claude = harness == "claude";
        // Codex creates its conversation at the first prompt, and does not reload hooks while it
        // runs.
        assert_eq!(adopted["conversation"].is_string(), is_claude, "{adopted}");
        assert_eq!(adopted["hooks"].is_string(), is_claude, "{adopted}");
        let nudge = [
            "nudge",
            "helper",
            "hello from gt",
            "--timeout",
            "60",
            "--json",
        ];
        let nudged: Value = serde_json::from_str(&stage.ok(&nudge)).unwrap();
        assert_eq!(nudged["delivered"], "agent", "{nudged}");
        stage.wait_prompt("hello from gt");
        wait_until("it is idle again", TIMEOUT, || {
            let seen = agent(stage);
            let by_hooks = seen["state_source"] == "hook" || !is_claude;
            if seen["state"] == "idle" && !by_hooks {
                // Claude Code reloads its settings within a few seconds, so a later turn reports by
                // hook.
                stage.ok(&["nudge", "helper", "once more", "--timeout", "60"]);
            }
            (seen["state"] == "idle" && by_hooks).then_some(())
        });
        if is_claude {
            let hooks = adopted["hooks"].as_str().unwrap().to_owned();
            // `/clear` begins a new conversation in the same process.
            stage.ok(&["nudge", "helper", "/clear", "--command", "--timeout", "60"]);
            wait_until("its new conversation is known", TIMEOUT, || {
                let session = adopted["session"].as_str().unwrap();
                let known = stage.ok(&["sessions", "show", session, "--json"]);
                let known: Value = serde_json::from_str(&known).unwrap();
                (known["harness_session_id"] != adopted["conversation"]).then_some(())
            });
            stage.ok(&["stop", "helper"]);
            assert!(!std::path::Path::new(&hooks).exists(), "no hook is left");
        } else {
            // Codex has a conversation after its first prompt.
            stage.ok(&["sync"]);
            let session = adopted["session"].as_str().unwrap();
            let known = stage.ok(&["sessions", "show", session, "--json"]);
            let known: Value = serde_json::from_str(&known).unwrap();
            assert!(known["harness_session_id"].is_string(), "{known}");
            stage.ok(&["stop", "helper"]);
        }
        stage.nothing_is_left();
    });
}

/// Starts the program without `gt`, adopts it at its prompt, and waits until it is idle.
fn adopt(stage: &Stage, start: impl Fn(&Stage, &[String])) -> Value {
    // Starts and stops the program once through `gt`, so that it has asked its first-run questions.
    stage.start(&["--no-prompt"]);
    stage.ok(&["stop", "gastown/max"]);
    let preset = gt_core::harness::resolve(stage.program().harness, None).unwrap();
    start(stage, &preset.value.command.trust_folder);
    let ready = |text: &str| text.contains("❯") || text.contains("› Ask Codex");
    wait_until("its prompt", TIMEOUT, || {
        ready(&stage.bare_screen()).then_some(())
    });
    if stage.program().harness == "claude" {
        // It writes its conversation's id down a moment after its prompt.
        wait_until("its conversation is known", TIMEOUT, || {
            let listed: Value = serde_json::from_str(&stage.ok(&["adopt", "--json"])).unwrap();
            let mut found = listed.as_array().into_iter().flatten();
            found.any(|it| it["conversation"].is_string()).then_some(())
        });
    }
    let socket = stage.path("s").display().to_string();
    let adopt = [
        "adopt", "bare", "--socket", &socket, "--name", "helper", "--json",
    ];
    let adopted = serde_json::from_str(&stage.ok(&adopt)).unwrap();
    stage.ok(&["wait", "helper", "--until", "idle", "--timeout", "60"]);
    adopted
}

/// Starts the program in a shell, adopts it there, and gives it one prompt.
fn adopt_in_shell(stage: &Stage) -> Value {
    let adopted = adopt(stage, Stage::start_in_shell);
    stage.ok(&["nudge", "helper", "hello from gt", "--timeout", "60"]);
    stage.wait_prompt("hello from gt");
    wait_until("it is idle again", TIMEOUT, || {
        (agent(stage)["state"] == "idle").then_some(())
    });
    // Records the conversation that Codex created at the prompt.
    stage.ok(&["sync"]);
    adopted
}

/// Waits until the end of the session is recorded, and returns the session. `gt sync` records the
/// end.
fn ended(stage: &Stage, adopted: &Value) -> Value {
    wait_until("its end is recorded", TIMEOUT, || {
        stage.ok(&["sync"]);
        let listed = agent(stage);
        let id = adopted["session"].as_str().unwrap();
        let known = stage.ok(&["sessions", "show", id, "--json"]);
        let known: Value = serde_json::from_str(&known).unwrap();
        (known["status"] == "stopped" && listed.is_null()).then_some(known)
    })
}

fn for_promised(what: &str, check: impl Fn(&Stage)) {
    each(what, |stage| {
        if PROGRAMS.contains(&stage.program().harness) {
            check(stage);
        }
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn adopted_program_that_exits_is_recorded_as_exited() {
    for_promised("adopted exit", |stage| {
        let adopted = adopt_in_shell(stage);
        stage.type_bare(&["-l", "/exit"]);
        // Before its menu of commands is open, the program takes Enter for a part of the text.
        wait_until("it is in the line and in the menu", TIMEOUT, || {
            (stage.bare_screen().matches("/exit").count() > 1).then_some(())
        });
        stage.type_bare(&["Enter"]);
        let known = ended(stage, &adopted);
        assert_eq!(
            known["outcome"],
            "exited",
            "{known}\n{}",
            stage.bare_screen()
        );
        stage.stop_bare();
        stage.nothing_is_left();
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn adopted_program_that_is_killed_is_recorded_as_a_crash() {
    for_promised("adopted crash", |stage| {
        let adopted = adopt_in_shell(stage);
        let pid = i32::try_from(adopted["pid"].as_i64().unwrap()).unwrap();
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        let known = ended(stage, &adopted);
        assert_eq!(
            known["outcome"],
            "crash",
            "{known}\n{}",
            stage.bare_screen()
        );
        stage.stop_bare();
        stage.nothing_is_left();
    });
}
