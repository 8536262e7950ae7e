//! Listings in narrow and wide terminals.

use crate::env::TestEnv;
use crate::help::at_width;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

const TITLE: &str = "Write the whole of the manual, with examples for every command of the tool";

/// Makes a town with entries in all lists.
fn town() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    env.add_settings("[schedule]\nstart_spacing = '0s'\n");
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["wait", "max", "--until", "idle", "--timeout", "30"])
        .ok();
    env.gt(&["nudge", "max", TITLE]).ok();
    env.gt(&["sling", &env.create_item(TITLE)]).ok();
    let toast = env.town().join("gastown/polecats/Toast");
    std::fs::write(toast.join("new"), "").unwrap();
    env.git(&toast, &["add", "."]);
    env.git(&toast, &["commit", "-qm", "Add a file"]);
    env.gt(&["schedule", "pause"]).ok();
    env.gt(&["sling", &env.create_item(TITLE)]).ok();
    env.gt(&["escalate", "--severity", "high", TITLE]).ok();
    env.gt(&["mail", "send", "max", "-s", TITLE, "-m", TITLE])
        .ok();
    env.gt(&["dnd", "on", "max"]).ok();
    env.gt(&[
        "schedule",
        "add",
        "review",
        "--cron",
        "0 3 * * *",
        "--rig",
        "gastown",
        "--var",
        "change=main",
    ])
    .ok();
    env.gt(&["save"]).ok();
    env
}

const LISTINGS: &[&[&str]] = &[
    &["account", "list"],
    &["agents"],
    &["agents", "--wide"],
    &["agents", "check"],
    &["agents", "env", "max"],
    &["budget"],
    &["config", "list"],
    &["costs"],
    &["costs", "--by", "agent"],
    &["crew", "list"],
    &["daemon", "status"],
    &["dev", "list"],
    &["dnd"],
    &["dog", "list"],
    &["escalate", "list"],
    &["events"],
    &["events", "--feed"],
    &["formula", "list"],
    &["harness", "list"],
    &["harness", "show", "claude"],
    &["events", "retention"],
    &["events", "stats"],
    &["mail", "inbox", "--all", "--agent", "max"],
    &["mq", "list", "--all"],
    &["nudge", "--list", "max"],
    &["patrol", "rules"],
    &["polecat", "list"],
    &["rig", "list"],
    &["rig", "status", "gastown"],
    &["role", "capabilities"],
    &["role", "list"],
    &["role", "show", "crew"],
    &["save", "--list"],
    &["schedule", "list"],
    &["seance"],
    &["sessions", "list"],
    &["sessions", "stats"],
    &["status"],
    &["step", "list", "SESSION"],
    &["task", "list"],
    &["web", "token", "list"],
    &["work", "list"],
    &["work", "ready"],
];

/// Commands with tables that depend on the machine: programs in other tmux servers.
const NOT_LISTED: &[&str] = &["adopt"];

/// Runs every listing at three widths. Counts, orders and cut paths differ between runs, so there is
/// no snapshot.
#[test]
fn listings_at_three_widths() {
    let env = town();
    let session = env.agent("gastown/crew/max")["session"]
        .as_str()
        .unwrap()
        .to_owned();
    env.gt(&["step", "start", "build", "--session", &session])
        .ok();
    let mut wide = Vec::new();
    for columns in [60, 80, 140] {
        for args in LISTINGS {
            let session = |arg: &&'static str| match *arg {
                "SESSION" => session.clone(),
                arg => arg.to_owned(),
            };
            let given: Vec<String> = args.iter().map(session).collect();
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            let answer = at_width(&env, columns, &given);
            let too_wide = answer.stdout.lines().filter(|line| line.width() > columns);
            wide.extend(too_wide.map(|line| format!("at {columns}: {args:?}: {line}")));
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn every_command_with_a_table_is_listed() {
    let commands = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let (mut folders, mut missing) = (vec![commands.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&commands).unwrap().iter().next().unwrap();
            let name = Path::new(name).file_stem().unwrap().to_str().unwrap();
            let has_table = std::fs::read_to_string(&path)
                .unwrap()
                .contains("Table::new(");
            let is_listed = NOT_LISTED.contains(&name)
                || LISTINGS
                    .iter()
                    .any(|args| args[0].replace('-', "_") == name);
            if has_table && !is_listed {
                missing.push(path);
            }
        }
    }
    assert!(missing.is_empty(), "add a line to LISTINGS: {missing:?}");
}
