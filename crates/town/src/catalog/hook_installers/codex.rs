//! Hooks of Codex: it takes them on its command line, in addition to those in the user's file.
//!
//! It asks a person to review unknown hooks, because a repository may contain some. A review is
//! stored as a hash of the hook, which can be given on the command line too: so exactly our own
//! hooks are trusted, and all others are still reviewed. The format of the hash is internal to the
//! program: if a version changes it, the review appears and a person has to answer it. Measured on
//! 0.166.0.

use super::{Wiring, compact_line, prime_line, shell_line};
use crate::Town;
use gt_core::role::OnCompact;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The events, and their names in the record of a review.
const EVENTS: &[(&str, &str)] = &[
    ("SessionStart", "session_start"),
    ("UserPromptSubmit", "user_prompt_submit"),
    ("PreToolUse", "pre_tool_use"),
    ("PermissionRequest", "permission_request"),
    ("PostToolUse", "post_tool_use"),
    ("PreCompact", "pre_compact"),
    ("Stop", "stop"),
    ("Interrupt", "interrupt"),
    ("SessionEnd", "session_end"),
];
/// Timeout of a hook. The program lowers higher values for some events and hashes the result.
const TIMEOUT_SECONDS: u32 = 3;
/// Collecting the state takes longer.
const COMPACT_SECONDS: u32 = 30;
/// The path by which the program names its command line as a settings file.
const COMMAND_LINE: &str = "/<session-flags>/config.toml";

/// One hook of an event.
struct CodexHook {
    command: String,
    seconds: u32,
}

pub(super) fn wire(town: &Town, on_compact: OnCompact) -> Wiring {
    let quick = |command| CodexHook {
        command,
        seconds: TIMEOUT_SECONDS,
    };
    Wiring {
        args: args(|event| match event {
            "SessionStart" => vec![quick(prime_line(town))],
            "PreCompact" => {
                let handoff = compact_line(town, on_compact).map(|command| CodexHook {
                    command,
                    seconds: COMPACT_SECONDS,
                });
                [Some(quick(shell_line(town))), handoff]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            _ => vec![quick(shell_line(town))],
        }),
        env: Vec::new(),
    }
}

fn args(hooks: impl Fn(&str) -> Vec<CodexHook>) -> Vec<String> {
    let (mut settings, mut reviewed) = (Vec::new(), Vec::new());
    for (event, label) in EVENTS {
        let mut groups = Vec::new();
        // One group per hook: the review record names a hook by both indexes.
        for (group, CodexHook { command, seconds }) in hooks(event).into_iter().enumerate() {
            let hash = hash(label, &command, seconds);
            reviewed.push(format!(
                "\"{COMMAND_LINE}:{label}:{group}:0\"={{trusted_hash=\"{hash}\"}}"
            ));
            let quoted = toml::Value::from(command);
            groups.push(format!(
                "{{hooks=[{{type=\"command\",command={quoted},timeout={seconds}}}]}}"
            ));
        }
        settings.push(format!("hooks.{event}=[{}]", groups.join(",")));
    }
    settings.push(format!("hooks.state={{{}}}", reviewed.join(",")));
    settings
        .into_iter()
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

/// Returns the hash of a hook: of its compact JSON with sorted keys.
fn hash(label: &str, command: &str, seconds: u32) -> String {
    let hook = json!({
        "async": false,
        "command": command,
        "timeout": seconds,
        "type": "command",
    });
    let text = json!({"event_name": label, "hooks": [hook]}).to_string();
    let mut hash = "sha256:".to_owned();
    for byte in Sha256::digest(text) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_the_program_records() {
        assert_eq!(
            hash("session_start", "/tmp/hooks-lab/hook.sh gt SessionStart", 3),
            "sha256:e1805d4f8ceb3ee617db08290f8ef4608a2eee883fb690abd1d8e456a32f9fe5"
        );
    }

    #[test]
    fn nothing_in_a_path_leaves_its_quotes() {
        let args = args(|_| {
            vec![CodexHook {
                command: "'/a \"b\\c'\\''d/gt' signal".to_owned(),
                seconds: 3,
            }]
        });
        assert_eq!(args.len(), 2 * (EVENTS.len() + 1));
        let (_, value) = args[1].split_once('=').unwrap();
        let read: toml::Table = toml::from_str(&format!("x = {value}")).unwrap();
        let command = &read["x"][0]["hooks"][0]["command"];
        assert_eq!(command.as_str(), Some("'/a \"b\\c'\\''d/gt' signal"));
    }
}
