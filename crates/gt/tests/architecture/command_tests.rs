//! Every command has its whole-binary tests in a file of its name.

use super::{crates, files};
use std::fs;

/// Commands whose tests are in the file of a related command.
const RELATED: &[(&str, &str)] = &[
    ("down", "stop"),
    ("formula", "mol"),
    ("keys", "nudge"),
    ("menu", "attach"),
    ("status_line", "agents"),
    ("step", "events"),
    ("tmux_conf", "sync"),
];

/// Files without a command that a person types: `gt` alone (tested in `help.rs`), subcommands of
/// `gt internal`, and code that several commands share.
const NO_COMMANDS: &[&str] = &[
    "await_death",
    "no_command",
    "container_init",
    "cycle",
    "egress_bridge",
    "engine",
    "hook_report",
    "ids",
    "init_step",
    "page",
    "replay",
    "run_agent",
    "single",
    "start_flags",
    "stdin",
    "words",
];

/// Subcommands of `gt task` whose tests are in `tests/cli/task/NAME.rs`.
const TASK_COMMANDS: &[&str] = &["cleanup", "merge", "pause", "start", "update"];

/// Pronouns that hide the actor.
const VAGUE: &[&str] = &["nobody", "somebody", "anybody", "everybody", "whoever"];

#[test]
fn each_command_has_a_test_file() {
    let gt = crates().join("gt");
    let known = |name: &str| gt.join(format!("src/commands/{name}.rs")).exists();
    for name in RELATED.iter().map(|(name, _)| name).chain(NO_COMMANDS) {
        assert!(known(name), "{name} is not in src/commands");
    }
    let mut tested = 0;
    for entry in fs::read_dir(gt.join("src/commands")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() || NO_COMMANDS.contains(&name) {
            continue;
        }
        let related = RELATED.iter().find(|(related, _)| *related == name);
        let file = related.map_or(name, |(_, file)| file);
        let tests = gt.join(format!("tests/cli/{file}.rs"));
        let mut texts = vec![fs::read_to_string(&tests).unwrap_or_default()];
        let topics = tests.with_extension("");
        if topics.is_dir() {
            let topics = files(&topics);
            texts.extend(topics.iter().map(|path| fs::read_to_string(path).unwrap()));
        }
        let call = format!("\"{}", name.replace('_', "-"));
        let is_tested = texts
            .iter()
            .any(|text| text.contains("#[test]") && text.contains(&call));
        assert!(tests.exists() && is_tested, "tests/cli/{file}.rs");
        tested += 1;
    }
    assert!(tested > 50, "{tested}");
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
