//! Turns that a person interrupts: `gt` sends no notice of their end, and the state does not stay
//! at busy or waiting.

use crate::each;
use crate::stage::{Stage, TIMEOUT};
use gt_tmux::testing::{wait_until, wait_until_or};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

const MAX: &str = "gastown/max";

/// Programs with hooks whose dialogs and turns Escape cancels.
const PROGRAMS: &[&str] = &["claude", "codex"];

fn with_notes(stage: &Stage) {
    let path = stage.path("gt/town.toml");
    let notes = stage.path("notes");
    let line = r#"echo "$GT_NOTIFY_EVENT" >> "#;
    let command = format!("\n[notify]\ncommand = '''{line}{}'''\n", notes.display());
    let text = fs::read_to_string(&path).unwrap() + &command;
    fs::write(path, text).unwrap();
}

fn notes(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.path("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn await_state(stage: &Stage, wanted: &str) -> Value {
    let reached = || {
        let all: Value = serde_json::from_str(&stage.ok(&["agents", "--json"])).unwrap();
        (all[0]["state"] == wanted).then(|| all[0].clone())
    };
    wait_until_or(wanted, TIMEOUT, reached, || {
        let agents = stage.ok(&["agents", "--json"]);
        format!("{agents}\n{}", stage.plain_screen())
    })
}

/// Presses Escape until the dialog closes. Claude Code ignores a key that arrives in the same
/// instant as its dialog appears.
fn refuse(stage: &Stage) {
    let is_asking = || stage.plain_screen().contains("1. Yes");
    wait_until("its dialog", TIMEOUT, || is_asking().then_some(()));
    let mut pressed: Option<Instant> = None;
    wait_until("no dialog any more", TIMEOUT, || {
        let is_over = !is_asking();
        if !is_over && pressed.is_none_or(|at| at.elapsed() > Duration::from_secs(2)) {
            stage.type_by_hand(&["Escape"]);
            pressed = Some(Instant::now());
        }
        is_over.then_some(())
    });
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn interrupt_is_detected_and_does_not_end_the_session() {
    each("interrupt", |stage| {
        if !PROGRAMS.contains(&stage.program().harness) {
            return;
        }
        with_notes(stage);
        stage.start(&["--no-prompt", "--ask-permissions"]);
        let mut watch = stage.spawn(&["watch", "--json"]);
        stage.nudge(stage.program().ask);
        await_state(stage, "waiting");
        refuse(stage);
        let stopped = await_state(stage, "idle");
        assert_eq!(stopped["state_reason"], "its turn was interrupted");
        assert!(stopped["state_since"].is_string(), "{stopped}");
        assert!(!stage.was_approved());
        // Interrupts a running turn, too.
        stage.nudge("Take your time. [[delay=60]]");
        await_state(stage, "busy");
        stage.ok(&["wait", MAX, "--until", "busy", "--timeout", "60"]);
        stage.type_by_hand(&["Escape"]);
        await_state(stage, "idle");
        assert_eq!(notes(stage), ["waiting"]);
        // A turn that completes produces a notice.
        stage.ok(&["keys", MAX, "C-u"]);
        stage.nudge("And now?");
        let told = wait_until("its end is told", TIMEOUT, || {
            Some(notes(stage)).filter(|told| told.len() > 1)
        });
        assert_eq!(told, ["waiting", "done"]);
        watch.kill().unwrap();
        watch.wait().unwrap();
    });
}
