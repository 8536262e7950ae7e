//! `gt adopt` of programs that a person has started, without `gt` and its hooks.

use crate::each;
use crate::stage::{PATIENCE, Stage};
use gt_tmux::testing::wait_until;
use serde_json::Value;

/// Programs whose conversations are found in their own files.
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
        // Its first questions are answered once, by a start of the usual kind.
        stage.start(&["--no-prompt"]);
        stage.ok(&["stop", "gastown/max"]);
        let preset = gt_core::harness::resolve(harness, None).unwrap().value;
        stage.start_bare(&preset.command.trust_folder);
        let ready = |text: &str| text.contains("❯") || text.contains("› Ask Codex");
        wait_until("its prompt", PATIENCE, || {
            ready(&stage.bare_screen()).then_some(())
        });
        let socket = stage.path("s").display().to_string();
        let adopt = [
            "adopt", "bare", "--socket", &socket, "--name", "helper", "--json",
        ];
        let adopted: Value = serde_json::from_str(&stage.ok(&adopt)).unwrap();
        assert_eq!(adopted["harness"], harness, "{adopted}");
        let is_claude = harness == "claude";
        // Codex has no conversation before its first prompt, and reads no hooks while it runs.
        assert_eq!(adopted["conversation"].is_string(), is_claude, "{adopted}");
        assert_eq!(adopted["hooks"].is_string(), is_claude, "{adopted}");
        stage.ok(&["wait", "helper", "--until", "idle", "--timeout", "60"]);
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
        wait_until("it is idle again", PATIENCE, || {
            let seen = agent(stage);
            let by_hooks = seen["state_source"] == "hook" || !is_claude;
            if seen["state"] == "idle" && !by_hooks {
                // It reads its settings again within some seconds: the next turn tells.
                stage.ok(&["nudge", "helper", "once more", "--timeout", "60"]);
            }
            (seen["state"] == "idle" && by_hooks).then_some(())
        });
        if is_claude {
            let hooks = adopted["hooks"].as_str().unwrap().to_owned();
            // A conversation that begins in the same program is noticed.
            stage.ok(&["nudge", "helper", "/clear", "--timeout", "60"]);
            wait_until("its new conversation is known", PATIENCE, || {
                let life = adopted["session"].as_str().unwrap();
                let known = stage.ok(&["sessions", "show", life, "--json"]);
                let known: Value = serde_json::from_str(&known).unwrap();
                (known["harness_session_id"] != adopted["conversation"]).then_some(())
            });
            stage.ok(&["stop", "helper"]);
            assert!(!std::path::Path::new(&hooks).exists(), "no hook is left");
        } else {
            // By now it has one.
            stage.ok(&["sync"]);
            let life = adopted["session"].as_str().unwrap();
            let known = stage.ok(&["sessions", "show", life, "--json"]);
            let known: Value = serde_json::from_str(&known).unwrap();
            assert!(known["harness_session_id"].is_string(), "{known}");
            stage.ok(&["stop", "helper"]);
        }
        stage.nothing_is_left();
    });
}
