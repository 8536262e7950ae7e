//! Codex takes hooks on its command line, beside those of the user's file.
//!
//! It asks a person to review hooks that it has not seen, because a repository may
//! bring some. A review is recorded as a hash of the hook, and the record can be
//! given on the command line too: so exactly our own hooks are trusted, and those of
//! anybody else are reviewed as ever. The record's form is the program's own matter:
//! if a version changes it, the review comes up and is left to a person. Measured on
//! 0.166.0.

use super::{Wiring, prime_line, shell_line};
use crate::Town;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The events, and what they are called in the record of a review.
const EVENTS: &[(&str, &str)] = &[
    ("SessionStart", "session_start"),
    ("UserPromptSubmit", "user_prompt_submit"),
    ("PreToolUse", "pre_tool_use"),
    ("PermissionRequest", "permission_request"),
    ("PostToolUse", "post_tool_use"),
    ("Stop", "stop"),
    ("Interrupt", "interrupt"),
    ("SessionEnd", "session_end"),
];
/// Some events are cut down to this, and the hash is made of what is left.
const TIMEOUT_SECONDS: u32 = 3;
/// The name under which the program knows its command line as a settings file.
const COMMAND_LINE: &str = "/<session-flags>/config.toml";

pub(super) fn wire(town: &Town) -> Wiring {
    Wiring {
        args: args(|event| match event {
            "SessionStart" => prime_line(town),
            _ => shell_line(town),
        }),
        env: Vec::new(),
    }
}

fn args(command: impl Fn(&str) -> String) -> Vec<String> {
    let mut settings: Vec<String> = EVENTS
        .iter()
        .map(|(event, _)| {
            let quoted = toml::Value::from(command(event)).to_string();
            let hook = format!("{{type=\"command\",command={quoted},timeout={TIMEOUT_SECONDS}}}");
            format!("hooks.{event}=[{{hooks=[{hook}]}}]")
        })
        .collect();
    let reviewed: Vec<String> = EVENTS
        .iter()
        .map(|(event, label)| {
            let hash = hash(label, &command(event));
            format!("\"{COMMAND_LINE}:{label}:0:0\"={{trusted_hash=\"{hash}\"}}")
        })
        .collect();
    settings.push(format!("hooks.state={{{}}}", reviewed.join(",")));
    settings
        .into_iter()
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

/// The hash of one hook: of its JSON without blanks, with sorted keys.
fn hash(label: &str, command: &str) -> String {
    let hook = json!({
        "async": false,
        "command": command,
        "timeout": TIMEOUT_SECONDS,
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
            hash("session_start", "/tmp/hooks-lab/hook.sh gt SessionStart"),
            "sha256:e1805d4f8ceb3ee617db08290f8ef4608a2eee883fb690abd1d8e456a32f9fe5"
        );
    }

    #[test]
    fn nothing_in_a_path_leaves_its_quotes() {
        let args = args(|_| "'/a \"b\\c'\\''d/gt' signal".to_owned());
        assert_eq!(args.len(), 2 * (EVENTS.len() + 1));
        let (_, value) = args[1].split_once('=').unwrap();
        let read: toml::Table = toml::from_str(&format!("x = {value}")).unwrap();
        let command = &read["x"][0]["hooks"][0]["command"];
        assert_eq!(command.as_str(), Some("'/a \"b\\c'\\''d/gt' signal"));
    }
}
