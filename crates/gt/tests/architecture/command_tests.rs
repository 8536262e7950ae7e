//! Every core command has its whole-binary tests in a file of its name.

use super::{crates, files};
use std::fs;

/// Commands whose tests are in `tests/cli/NAME.rs`.
const COMMANDS: &[&str] = &[
    "account",
    "adopt",
    "agent",
    "agents",
    "answer",
    "attach",
    "board",
    "broadcast",
    "checkpoint",
    "completions",
    "crew",
    "demo",
    "dev",
    "doctor",
    "dog",
    "done",
    "events",
    "handoff",
    "harness",
    "hook",
    "init",
    "krc",
    "mail",
    "mol",
    "mq",
    "notify",
    "nudge",
    "peek",
    "polecat",
    "prime",
    "record",
    "respawn",
    "restore",
    "rig",
    "role",
    "save",
    "schedule",
    "seance",
    "sessions",
    "signal",
    "sling",
    "start",
    "stop",
    "sync",
    "task",
    "up",
    "wait",
    "watch",
    "work",
];

/// Subcommands of `gt task` whose tests are in `tests/cli/task/NAME.rs`.
const TASK_COMMANDS: &[&str] = &["cleanup", "merge", "pause", "start", "update"];

/// Pronouns that hide the actor.
const VAGUE: &[&str] = &["nobody", "somebody", "anybody", "everybody", "whoever"];

#[test]
fn each_core_command_has_a_test_file() {
    let gt = crates().join("gt");
    for name in COMMANDS {
        let command = gt.join(format!("src/commands/{name}.rs"));
        assert!(command.exists(), "{name} is not a command");
        let tests = gt.join(format!("tests/cli/{name}.rs"));
        let mut texts = vec![fs::read_to_string(&tests).unwrap_or_default()];
        let topics = tests.with_extension("");
        if topics.is_dir() {
            let topics = files(&topics);
            texts.extend(topics.iter().map(|path| fs::read_to_string(path).unwrap()));
        }
        let call = format!("\"{name}");
        let is_tested = texts
            .iter()
            .any(|text| text.contains("#[test]") && text.contains(&call));
        assert!(tests.exists() && is_tested, "tests/cli/{name}.rs");
    }
    for name in TASK_COMMANDS {
        let tests = gt.join(format!("tests/cli/task/{name}.rs"));
        let text = fs::read_to_string(&tests).unwrap_or_default();
        assert!(text.contains("#[test]"), "tests/cli/task/{name}.rs");
    }
}

#[test]
fn test_names_name_their_subject() {
    let mut findings = Vec::new();
    for path in files(&crates().join("gt/tests/cli")) {
        let text = fs::read_to_string(&path).unwrap();
        for item in text.split("#[test]").skip(1) {
            let name = item.split_once("fn ").unwrap().1;
            let name = name.split('(').next().unwrap();
            if name.split('_').any(|word| VAGUE.contains(&word)) {
                findings.push(name.to_owned());
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
}
