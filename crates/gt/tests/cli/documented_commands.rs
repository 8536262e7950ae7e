//! Every command that the source documents show.
//!
//! A row is a documented command line with names filled in, and its caller. docs/corrections.md
//! lists the commands that differ here, and a test checks that list.

use crate::env::{Answer, TestEnv, run};
use std::path::PathBuf;

/// Caller of a command.
#[derive(Clone, Copy)]
enum By {
    /// A person, in any folder.
    Person,
    /// The crew worker max, in its folder and with its environment.
    Max,
    /// The polecat Toast, in its folder and with its environment.
    Toast,
}
use By::{Max, Person, Toast};

/// Commands in an order in which one town can run them, with placeholders such as `{item}`, and the
/// exit code.
const COMMANDS: &[(By, &str, i32)] = &[
    // session-container.md
    (Person, "gt crew start max", 0),
    (Person, "gt sling gastown {item}", 0),
    (
        Person,
        "gt nudge gastown/Toast Check\u{a0}your\u{a0}hook",
        0,
    ),
    (Person, "gt peek gastown/Toast", 0),
    (Person, "gt peek gastown/Toast 20", 0),
    (Person, "gt agents", 0),
    (Person, "gt agents check", 0),
    (Person, "gt agents menu --print", 0),
    (Person, "gt status-line --session=gt-crew-max", 0),
    // lifecycle-contract.md
    (Person, "gt crew start --all", 0),
    (Person, "gt sling {second} gastown", 0),
    (Person, "gt rig start gastown", 0),
    (Person, "gt witness start", 4), // the previous line started it
    (Max, "gt prime", 0),
    (Max, "gt prime --hook", 0),
    (Max, "gt hook", 0),
    (Max, "gt mail inbox", 0),
    (
        Max,
        "gt checkpoint write --notes half\u{a0}way --molecule m-1 --step s-1",
        0,
    ),
    (Max, "gt checkpoint write", 0),
    (Max, "gt handoff --auto --reason compaction", 0),
    (
        Person,
        "gt handoff gastown/max --cycle --reason compaction",
        0,
    ),
    (Max, "gt handoff", 0),
    // Only one crew worker runs, so its role identifies it.
    (Person, "gt handoff crew", 0),
    (Person, "gt handoff mayor", 0),
    (Person, "gt handoff mayor --watch", 2), // needs a terminal
    (Person, "gt handoff gastown/max --force --dry-run", 0),
    (Max, "gt handoff {third} --force --dry-run", 0),
    (Max, "gt handoff --collect --force --dry-run", 0),
    (Max, "gt handoff {third}", 0),
    (Max, "gt done", 0),
    (Toast, "gt done --status DEFERRED", 0),
    (Person, "gt seance", 0),
    (Person, "gt seance --role crew --rig gastown --recent 20", 0),
    (Person, "gt seance --talk {session} --prompt hello", 0),
    (Person, "gt krc", 0),
    (Person, "gt krc stats", 0),
    (Person, "gt krc prune --auto", 0),
    // session-first-class.md
    (Person, "gt sessions list", 0),
    (
        Person,
        "gt sessions list --agent=gastown/crew/max --rig=gastown --since=1h",
        0,
    ),
    (Person, "gt sessions show {session}", 0),
    (Person, "gt sessions chain {item}", 0),
    (
        Person,
        "gt sessions find --agent=gastown/polecats/Toast --since=24h",
        0,
    ),
    // tmux-sqlite-sync.md
    (Person, "gt sync", 0),
    (Person, "gt sync --verbose", 0),
    // Stops and removals, last.
    (Person, "gt crew stop max", 0),
    (Person, "gt witness stop gastown", 0),
    (Person, "gt polecat nuke gastown/Nux", 0),
    (Person, "gt down", 0),
];

/// Documented commands that differ here; docs/corrections.md lists each in its original form.
const CORRECTED: &[&str] = &[
    "tsx apps/daemon/scripts/sync-sessions.ts",
    "VERBOSE=1 tsx …",
    "DATABASE_PATH=/tmp/test.sqlite tsx …",
    "gt sessions",
    "gt handoff crew",
    "gt handoff --watch",
    "gt peek <rig/agent> [n]",
    "claude -p '{prompt}'",
    "bd close {bead-id}",
    "bd sync",
    "tmux kill-session -t {session}",
    "triggerResurrectSave()",
    "Space+p",
];

struct Stage {
    env: TestEnv,
    names: Vec<(&'static str, String)>,
}

impl Stage {
    fn run(&self, by: By, line: &str) -> Answer {
        let filled = self
            .names
            .iter()
            .fold(line.to_owned(), |line, (name, value)| {
                line.replace(name, value)
            });
        let words: Vec<String> = filled
            .split(' ')
            .skip(1)
            .map(|word| word.replace('\u{a0}', " "))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = self.env.gt_command(&words);
        let agent = match by {
            Person => None,
            Max => Some(("gastown/crew/max", "gastown/crew/max")),
            Toast => Some(("gastown/polecats/Toast", "gastown/polecats/Toast")),
        };
        if let Some((address, folder)) = agent {
            command
                .current_dir(self.env.town().join(folder))
                .env("GT_ROLE", address);
        }
        run(&mut command)
    }
}

#[test]
fn documented_commands_run_as_written() {
    let env = TestEnv::with_crew(&["max"]);
    // By default a session may hand over at most once a minute.
    env.add_settings("[handoff]\ncooldown = \"0s\"\n");
    env.gt(&["start", "mayor"]).ok();
    let item = |title: &str| {
        let made = env.json(&["work", "create", title, "--rig", "gastown"]);
        made["id"].as_str().unwrap().to_owned()
    };
    let names = vec![
        ("{item}", item("first")),
        ("{second}", item("second")),
        ("{third}", item("third")),
    ];
    let mut stage = Stage { env, names };
    let mut failures = Vec::new();
    for (by, line, code) in COMMANDS {
        if line.contains("{session}") && stage.names.len() == 3 {
            let all = stage.env.json(&["sessions", "list", "--role", "crew"]);
            let id = all[0]["id"].as_str().unwrap().to_owned();
            stage.names.push(("{session}", id));
        }
        let answer = stage.run(*by, line);
        if answer.code != *code {
            failures.push(format!("{line}: {answer:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn handoff_by_role_is_refused_where_several_run() {
    let env = TestEnv::with_crew(&["max", "joe"]);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["crew", "start", "joe"]).ok();
    let refused = env.gt(&["handoff", "crew", "--dry-run"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let told = &refused.stderr;
    assert!(told.contains("max") && told.contains("joe"), "{told}");
}

#[test]
fn other_commands_of_the_documents_are_in_the_corrections() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/corrections.md");
    let text = std::fs::read_to_string(path).unwrap();
    let missing: Vec<&&str> = CORRECTED
        .iter()
        .filter(|command| !text.contains(&format!("`{command}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
