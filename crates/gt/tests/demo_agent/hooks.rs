//! Hooks, and resumed sessions.

use crate::stage::{ID, Stage, json_lines};
use serde_json::Value;
use serde_json::json;
use std::fs;

#[test]
fn hooks_fire_in_order_with_what_claude_code_sends() {
    let stage = Stage::empty();
    stage.start(&["--settings", &stage.settings(), "--session-id", ID]);
    stage.wait_ready();
    stage.say("do [[tool=echo out]][[text=all done]]");
    stage.wait_for(" ❯ 1. Yes");
    stage.wait_hook("PermissionRequest");
    stage.keys(&["Enter"]);
    stage.wait_hook("Stop");
    stage.wait_ready();
    stage.say("[[error=500]]");
    stage.wait_for("● API Error: 500 Internal server error");
    stage.wait_hook("StopFailure");
    stage.wait_ready();
    stage.keys(&["C-d"]);
    assert_eq!(stage.status(), "0");

    let expected = [
        json!({"hook_event_name": "SessionStart", "source": "startup"}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "do [[tool=echo out]][[text=all done]]"}),
        json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "echo out"}}),
        json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "echo out"}}),
        json!({"hook_event_name": "PostToolUse", "tool_response": {"stdout": "out\n", "stderr": ""}}),
        json!({"hook_event_name": "Stop", "last_assistant_message": "all done"}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "[[error=500]]"}),
        json!({"hook_event_name": "StopFailure", "error": "server_error"}),
        json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}),
    ];
    let hooks = stage.hooks();
    assert_eq!(hooks.len(), expected.len(), "{:?}", stage.hook_names());
    let transcript = stage.path(&format!(".gt-demo/sessions/{ID}.jsonl"));
    for (hook, expected) in hooks.iter().zip(&expected) {
        for (field, value) in expected.as_object().expect("fields") {
            assert_eq!(&hook[field], value, "{hook}");
        }
        assert_eq!(hook["session_id"], ID);
        assert_eq!(hook["cwd"], stage.folder.path().to_str().expect("text"));
        assert_eq!(hook["transcript_path"], transcript.to_str().expect("text"));
    }
    let kinds: Vec<Value> = json_lines(&transcript)
        .iter()
        .map(|line| line["type"].clone())
        .collect();
    assert_eq!(kinds, ["session", "user", "assistant", "user"]);
}

#[test]
fn hooks_add_context_and_never_block() {
    let stage = Stage::empty();
    let one = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {
        "SessionStart": one("echo you are toast; echo second line"),
        "UserPromptSubmit": one("echo broken >&2; exit 2"),
        "Stop": one("/no/such/program"),
    }});
    let settings = stage.write("settings.json", &settings.to_string());
    stage.start(&["--settings", &settings]);
    stage.wait_ready();
    stage.wait_for("  ⎿  you are toast\n     second line\n");
    stage.say("hello");
    stage.wait_for("  ⎿  warning: UserPromptSubmit hook: exit code 2 broken\n● You said: hello\n");
    stage.wait_for("  ⎿  warning: Stop hook: exit code 127");
    stage.wait_ready();
}

#[test]
fn clear_starts_a_session_with_a_new_id() {
    let stage = Stage::empty();
    stage.start(&["--settings", &stage.settings(), "--session-id", ID]);
    stage.wait_ready();
    stage.say("hello");
    stage.wait_for("● You said: hello");
    stage.wait_ready();
    stage.say("/clear");
    stage.wait_until("the new session", |_| stage.hooks().len() == 5);
    stage.wait_until("an empty screen", |screen| !screen.contains("hello"));
    let hooks = stage.hooks();
    assert_eq!(
        (&hooks[3]["reason"], &hooks[3]["session_id"]),
        (&json!("clear"), &json!(ID))
    );
    assert_eq!(hooks[4]["source"], "clear");
    assert_ne!(hooks[4]["session_id"], ID);
}

#[test]
fn a_session_is_resumed_and_forked() {
    let stage = Stage::empty();
    stage.start(&["--session-id", ID]);
    stage.wait_ready();
    stage.say("remember me");
    stage.wait_for("● You said: remember me");
    stage.wait_ready();
    stage.say("/exit");
    assert_eq!(stage.status(), "0");

    for (args, source) in [
        (&["--resume", ID][..], "resume"),
        (&["--continue"], "resume"),
        (&["--resume", ID, "--fork-session"], "fork"),
    ] {
        let settings = stage.settings();
        stage.start(&[args, &["--settings", &settings]].concat());
        stage.wait_ready();
        stage.wait_for("> remember me\n● You said: remember me\n");
        let start = stage.wait_hook("SessionStart");
        assert_eq!(start["source"], source);
        assert_eq!(start["session_id"] == ID, source == "resume");
        stage.say("/quit");
        assert_eq!(stage.status(), "0");
        fs::remove_file(stage.path("hooks")).expect("removes");
    }
}

#[test]
fn sessions_that_cannot_be_opened() {
    let stage = Stage::empty();
    assert_eq!(stage.pipe(&["--session-id", ID], "").status.code(), Some(0));
    let unknown = "99999999-89ab-7def-8123-456789abcdef";
    for (args, problem) in [
        (
            &["--session-id", ID][..],
            format!("session id {ID} is already in use"),
        ),
        (
            &["--resume", unknown],
            format!("no conversation found with session id {unknown}"),
        ),
    ] {
        let output = stage.pipe(args, "");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!("error: {problem}\n")
        );
        assert_eq!(output.status.code(), Some(1));
    }
}
