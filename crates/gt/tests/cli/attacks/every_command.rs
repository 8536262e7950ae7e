//! Every command of `gt`, once: which of them write an event, and whether one of them runs a
//! program that an agent has planted.

use super::git_programs::{arm, plant_repository, planted_calls};
use crate::env::{Answer, TestEnv, login, run};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The commands in an order in which one town can run them. Placeholders in braces are filled in,
/// and a no-break space stands for a space inside an argument.
const COMMANDS: &[&str] = &[
    "rig add other {source}",
    "rig list",
    "rig status other",
    "rig park other",
    "rig unpark other",
    "rig dock other",
    "rig undock other",
    "rig start other",
    "rig restart other",
    "rig stop other",
    "rig remove other --force",
    "account add work --harness claude",
    "account list",
    "account use work --harness claude",
    "account remove work",
    "config list",
    "config get notify.on",
    "config set notify.desktop false",
    "config unset notify.desktop",
    "crew add ann --rig gastown",
    "crew start ann --rig gastown",
    "crew list",
    "crew restart ann --rig gastown",
    "crew stop ann --rig gastown",
    "crew rm ann --rig gastown --force",
    "agent new notes",
    "agent start notes",
    "agent reset notes",
    "agent stop notes",
    "agent rm notes --force",
    "mayor start",
    "mayor status",
    "mayor restart",
    "mayor stop",
    "deacon start",
    "deacon status",
    "deacon restart",
    "deacon stop",
    "boot start",
    "boot status",
    "boot restart",
    "boot stop",
    "witness start gastown",
    "witness status gastown",
    "witness restart gastown",
    "witness stop gastown",
    "refinery start gastown",
    "refinery status gastown",
    "refinery restart gastown",
    "refinery stop gastown",
    "start gastown/max gastown/joe",
    "wait gastown/max --timeout 30",
    "agents",
    "agents check",
    "agents env gastown/max",
    "agents menu --print",
    "status",
    "peek gastown/max",
    "nudge gastown/max hello",
    "broadcast hello --all",
    "keys gastown/max x",
    "interrupt gastown/max",
    "restart gastown/joe",
    "answer gastown/max",
    "dnd",
    "dnd on gastown/joe",
    "dnd until 18:30 gastown/max",
    "dnd off gastown/joe",
    "notify",
    "notify test",
    "mail send gastown/joe -s S -m M",
    "mail inbox --agent gastown/joe",
    "mail search S",
    "mail read {mail}",
    "mail reply {mail} -m M",
    "mail archive {mail} --agent gastown/joe",
    "escalate Help",
    "escalate list",
    "escalate show {escalation}",
    "escalate ack {escalation}",
    "escalate close {escalation} --reason R",
    "work create One --rig gastown",
    "work list",
    "work ready",
    "work search One",
    "work show {item}",
    "work tree {item}",
    "work update {item} --priority 1",
    "work dep add {item} {other}",
    "work dep remove {item} {other}",
    "work close {other}",
    "work reopen {other}",
    "work export",
    "work import {import}",
    "hook {item} --agent gastown/joe",
    "checkpoint write --agent gastown/joe --notes half",
    "checkpoint read --agent gastown/joe",
    "checkpoint clear --agent gastown/joe",
    "mol attach review --var change=x --agent gastown/joe",
    "mol status --agent gastown/joe",
    "mol step start read --agent gastown/joe",
    "mol step done read --agent gastown/joe",
    "mol detach --agent gastown/joe",
    "step start tests --session {session}",
    "step done tests --session {session}",
    "step list {session}",
    "unhook --agent gastown/joe",
    "prime --agent gastown/joe",
    "handoff gastown/joe --force -m more",
    "sling {task} gastown",
    "polecat list",
    "polecat show gastown/Toast",
    "done --agent gastown/polecats/Toast",
    "mq list",
    "mq status {merge}",
    "mq diff {merge}",
    "mq approve {merge}",
    "mq retry {merge}",
    "mq run gastown",
    "mq reject {merge} --reason R",
    "mq pull gastown",
    "polecat nuke gastown/Toast --force",
    "polecat gc --older-than 0s",
    "schedule add review --cron 0\u{a0}6\u{a0}*\u{a0}*\u{a0}1 --rig gastown --var change=x",
    "schedule list",
    "schedule pause",
    "schedule resume",
    "schedule run",
    "schedule remove review",
    "dog run Clean",
    "dog list",
    "task start {item}",
    "task list",
    "task show {item}",
    "task diff {item}",
    "task pause {item} --reason R",
    "task resume {item}",
    "task update {item}",
    "task abort-merge {item}",
    "task merge {item} --dry-run",
    "task merge {item} --yes",
    "task pr {item}",
    "dev list",
    "dev start gastown/max",
    "dev restart gastown/max",
    "dev stop gastown/max",
    "dev open gastown/max",
    "task stop {item}",
    "task cleanup {item} --yes --force",
    "sessions list",
    "sessions find --agent gastown/max",
    "sessions show {session}",
    "sessions chain {session}",
    "sessions stats",
    "sessions export",
    "sessions rebuild",
    "sessions archive --before 90d",
    "seance --rig gastown --recent 5",
    "costs",
    "budget",
    "budget raise day 20",
    "events --feed --since 2h",
    "events --since 1h",
    "events emit deployed",
    "events verify",
    "events stats",
    "events retention",
    "events prune",
    "web token create ci",
    "web token list",
    "web token revoke ci",
    "save",
    "restore",
    "estop --reason R",
    "thaw",
    "patrol",
    "patrol log",
    "patrol rules",
    "patrol wake",
    "project diff gastown",
    "project allow gastown",
    "project deny gastown",
    "role list",
    "role show crew",
    "role capabilities",
    "harness list",
    "harness show claude",
    "harness classify claude {screen}",
    "formula list",
    "formula show review",
    "daemon start",
    "daemon status",
    "daemon restart",
    "daemon logs",
    "daemon stop",
    "daemon unit",
    "doctor",
    "doctor --fix",
    "logs",
    "sync",
    "status-line --session gt-crew-max",
    "stop gastown/max",
    "up",
    "down",
    "completions bash",
];

/// Commands that are not called here, with the reason.
const NOT_CALLED: &[(&str, &str)] = &[
    ("init", "makes another town"),
    ("board", "needs a terminal"),
    ("attach", "needs a terminal"),
    ("watch", "runs until it is stopped"),
    ("daemon run", "runs until it is stopped"),
    ("dashboard", "opens a browser"),
    ("demo", "makes another town"),
    ("adopt", "needs a program that a person has started"),
    ("config edit", "needs an editor"),
    ("sessions replay", "needs a recording"),
    ("signal", "is for hooks"),
    ("task attach", "needs a terminal"),
    ("tmux-conf", "changes a file of the user, not of the town"),
];

/// Calls of commands that need a capability and change nothing in this test, with the reason.
const UNCHANGED: &[(&str, &str)] = &[
    ("answer", "there is no question"),
    ("dev open", "opens a page"),
    ("dev restart", "there is no dev server"),
    ("dev start", "there is no dev server"),
    ("dev stop", "there is no dev server"),
    ("dnd", "lists"),
    ("mail inbox", "lists"),
    ("mail search", "lists"),
    ("patrol", "no rule applies"),
    ("prime", "only its own agent is primed"),
    ("schedule run", "nothing is due"),
    ("sync", "the journal is up to date"),
    ("task abort-merge", "there is no merge"),
    ("task pr", "there is no GitHub repository"),
];

/// Returns the names of all commands, with hyphens, from the manual pages.
fn pages(env: &TestEnv) -> BTreeSet<String> {
    env.gt(&["man", "pages"]).ok();
    let pages = fs::read_dir(env.path("pages")).unwrap();
    let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let name = |page: String| Some(page.strip_suffix(".1")?.strip_prefix("gt-")?.to_owned());
    pages.filter_map(name).collect()
}

/// Returns whether each command of the table of capabilities needs one.
fn needs() -> BTreeMap<&'static str, bool> {
    let source = include_str!("../../../src/args/capabilities.rs");
    let (_, table) = source.split_once("const COMMANDS:").unwrap();
    let (table, _) = table.split_once("\n];").unwrap();
    let rows = table.split("(\"").skip(1);
    rows.map(|row| {
        let (name, need) = row.split_once("\", ").unwrap();
        (name, !need.starts_with("Nothing"))
    })
    .collect()
}

fn needs_capability(needs: &BTreeMap<&str, bool>, name: &str) -> bool {
    let words: Vec<&str> = name.split(' ').collect();
    let row = (1..=words.len())
        .rev()
        .find_map(|count| needs.get(words[..count].join(" ").as_str()));
    *row.unwrap_or_else(|| panic!("no row for {name}"))
}

/// Returns the words of a row that name the command.
fn name_of(row: &str, pages: &BTreeSet<String>) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let names = (1..=words.len().min(3)).rev();
    let mut names = names.map(|count| words[..count].join(" "));
    let found = names.find(|name| pages.contains(&name.replace(' ', "-")));
    found.unwrap_or_else(|| panic!("no command: {row}"))
}

#[test]
fn every_command_is_called_or_has_a_reason() {
    let pages = pages(&TestEnv::empty());
    let called = COMMANDS.iter().map(|row| name_of(row, &pages));
    let not = NOT_CALLED.iter().map(|(name, _)| (*name).to_owned());
    let known: BTreeSet<String> = called
        .chain(not)
        .map(|name| name.replace(' ', "-"))
        .collect();
    // A parent that can be called itself has a row, too; most only have subcommands.
    let is_parent = |name: &&String| {
        let start = format!("{name}-");
        pages.iter().any(|page| page.starts_with(&start))
    };
    let leaves = pages.iter().filter(|name| !is_parent(name));
    let missing: Vec<&String> = leaves.filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "add a row for {missing:?}");
}

/// A town in which the commands run.
struct Stage {
    env: TestEnv,
    values: BTreeMap<&'static str, String>,
}

impl Stage {
    fn new() -> Self {
        let env = TestEnv::with_crew(&["max", "joe"]);
        let validate = "[rigs.gastown.merge]\nvalidate = ['true']\nrepair_agents = false\n";
        env.add_settings(validate);
        env.add_settings("[budget]\nday = 100.0\n");
        let mut values = BTreeMap::new();
        let mut set = |name, value: String| values.insert(name, value);
        set("{source}", env.repository("other").display().to_string());
        for (name, title) in [
            ("{item}", "Paint"),
            ("{other}", "Wait"),
            ("{task}", "Build"),
        ] {
            set(name, env.create_item(title));
        }
        let import = env.path("import.jsonl");
        fs::write(&import, env.gt(&["work", "export"]).ok().stdout).unwrap();
        set("{import}", import.display().to_string());
        let screen = env.path("screen.txt");
        fs::write(&screen, "hello\n").unwrap();
        set("{screen}", screen.display().to_string());
        Stage { env, values }
    }

    /// Fills in the placeholders of a row. Ids of things that earlier rows made are looked up.
    fn words(&mut self, row: &str) -> Vec<String> {
        let lookups: [(&str, &[&str], &str); 4] = [
            ("{mail}", &["mail", "inbox", "--agent", "gastown/joe"], "id"),
            ("{escalation}", &["escalate", "list"], "id"),
            ("{merge}", &["mq", "list", "--all"], "id"),
            ("{session}", &["sessions", "list"], "id"),
        ];
        for (name, query, field) in lookups {
            if row.contains(name) && !self.values.contains_key(name) {
                let found = self.env.json(query);
                let value = first(&found, field);
                self.values.insert(name, value);
            }
        }
        let fill = |word: &str| match self.values.get(word) {
            Some(value) => value.clone(),
            None => word.replace('\u{a0}', " "),
        };
        row.split(' ').map(fill).collect()
    }

    fn call(&mut self, row: &str) -> Answer {
        let words = self.words(row);
        // The work of the polecat, without which there is nothing to submit.
        if row.starts_with("done") {
            let dir = crate::sling::folder(&self.env, "Toast");
            fs::write(dir.join("done.txt"), "done\n").unwrap();
            self.env.git(&dir, &[&HARMLESS[..], &["add", "."]].concat());
            let commit = ["commit", "--quiet", "-m", "Done"];
            self.env.git(&dir, &[&HARMLESS[..], &commit].concat());
        }
        let mut command = self.env.command("timeout");
        let command = command.args(["--kill-after=5", "60", env!("CARGO_BIN_EXE_gt")]);
        run(command.args(words))
    }
}

/// Options with which the test's own git runs nothing that is planted.
const HARMLESS: [&str; 16] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "filter.evil.clean=",
    "-c",
    "filter.evil.smudge=",
    "-c",
    "filter.evil.process=",
    "-c",
    "filter.included.clean=",
    "-c",
    "filter.included.smudge=",
    "-c",
    "filter.included.process=",
];

/// Returns a field of the first object that has it.
fn first(value: &Value, field: &str) -> String {
    match value {
        Value::Object(object) => match object.get(field) {
            Some(Value::String(text)) => text.clone(),
            _ => object
                .values()
                .map(|inner| first(inner, field))
                .find(|text| !text.is_empty())
                .unwrap_or_default(),
        },
        Value::Array(all) => all
            .iter()
            .map(|inner| first(inner, field))
            .find(|text| !text.is_empty())
            .unwrap_or_default(),
        _ => String::new(),
    }
}

#[test]
fn every_command_that_changes_something_writes_an_event() {
    let mut stage = Stage::new();
    let (needs, pages) = (needs(), pages(&stage.env));
    let mut silent = Vec::new();
    let mut before = 0;
    for row in COMMANDS {
        let answer = stage.call(row);
        let log = fs::read_to_string(stage.env.town().join(".events.jsonl")).unwrap();
        let events: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let name = name_of(row, &pages);
        let is_change = needs_capability(&needs, &name) || *row == "doctor --fix";
        let is_unchanged =
            UNCHANGED.iter().any(|(quiet, _)| *quiet == name) || row.ends_with("--dry-run");
        if is_change && !is_unchanged {
            let is_its = |event: &&Value| {
                event["command"] == format!("gt {name}").as_str()
                    && event["pid"].is_u64()
                    && (event["actor"] == login().as_str() || event["caller"] == login().as_str())
            };
            // A prune removes lines.
            let new = events.get(before.min(events.len())..).unwrap_or_default();
            let new = if name == "events prune" {
                &events[..]
            } else {
                new
            };
            if !new.iter().any(|event| is_its(&event)) {
                silent.push(format!("gt {row}: {} {}", answer.code, answer.stderr));
            }
        }
        before = events.len();
    }
    assert_eq!(silent, Vec::<String>::new(), "no event");
}

#[test]
fn no_command_runs_a_program_that_an_agent_has_planted() {
    let mut stage = Stage::new();
    let max = stage.env.town().join("gastown/crew/max");
    plant_repository(&stage.env, &max);
    arm(&stage.env, &max);
    let mut ran = Vec::new();
    for row in COMMANDS {
        stage.call(row);
        let calls = planted_calls(&stage.env);
        if !calls.is_empty() {
            ran.push(format!("gt {row}: {calls}"));
        }
    }
    assert_eq!(ran, Vec::<String>::new());
    // Git itself runs them. It may fail, because they do not do what it expects.
    let dir = stage.env.town().join("gastown/crew/max");
    let mut status = stage.env.command("git");
    status.arg("status").current_dir(dir).output().unwrap();
    assert_ne!(planted_calls(&stage.env), "");
}
