//! Listings in narrow and wide terminals.

mod layout;

use crate::env::{TestEnv, run};
use insta::assert_snapshot;
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
    env.gt(&["dnd", "on", "max"]).ok();
    env.gt(&["mail", "send", "max", "-s", TITLE, "-m", TITLE])
        .ok();
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
    for agent in ["max", "Toast", "Nux"] {
        env.gt(&["wait", agent, "--until", "idle", "--timeout", "30"])
            .ok();
    }
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
    &["config", "list", "notify"],
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

/// Listings whose widths are checked without a snapshot, and the reasons.
const WITHOUT_SNAPSHOT: &[(&[&str], &str)] = &[
    (&["config", "list"], "long; a part is listed as well"),
    (&["costs", "--by", "agent"], "sorted by amounts that differ"),
    (&["dnd"], "the login is as wide as its name"),
    (&["events"], "events of several processes"),
    (&["events", "--feed"], "events of several processes"),
    (&["events", "retention"], "long, and the same in all towns"),
    (&["events", "stats"], "counts of events differ"),
    (&["harness", "list"], "the paths of programs"),
    (&["harness", "show", "claude"], "long; status.rs shows demo"),
    (
        &["nudge", "--list", "max"],
        "the login is as wide as its name",
    ),
    (&["rig", "list"], "the path of the repository"),
    (&["rig", "status", "gastown"], "the paths of the rig"),
    (&["save", "--list"], "the number and sizes of saves differ"),
    (&["schedule", "list"], "the login is as wide as its name"),
    (&["status"], "the paths of the town; status.rs shows it"),
];

/// Runs every listing at three widths. Each line fits. The snapshots show the columns as they are
/// printed.
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
        let mut shown = String::new();
        for args in LISTINGS {
            let given = args.iter().map(|arg| match *arg {
                "SESSION" => &session,
                arg => arg,
            });
            let mut command = env.gt_command(&given.collect::<Vec<_>>());
            let answer = run(command.env("COLUMNS", columns.to_string()));
            let too_wide = answer.stdout.lines().filter(|line| line.width() > columns);
            wide.extend(too_wide.map(|line| format!("at {columns}: {args:?}: {line}")));
            if !WITHOUT_SNAPSHOT.iter().any(|(other, _)| other == args) {
                let masked = layout::masked(&env, &answer.stdout);
                shown += &format!("$ gt {}\n{masked}\n\n", args.join(" "));
            }
        }
        assert_snapshot!(format!("listings_at_{columns}"), shown);
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
