//! A town that an older version made, with agents that run throughout the update.
//!
//! `tests/fixtures/older_town/README.md` describes the fixture.

mod unpack;

use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use crate::save::{crash, history, session};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use unpack::OlderTown;

const MAX: &str = "gastown/crew/max";
const TOAST: &str = "gastown/polecats/Toast";

/// Removes fields of all objects of a document.
fn without(mut value: Value, fields: &[&str]) -> Value {
    match &mut value {
        Value::Array(values) => {
            for value in values {
                *value = without(value.take(), fields);
            }
        }
        Value::Object(map) => {
            map.retain(|name, _| !fields.contains(&name.as_str()));
            for value in map.values_mut() {
                *value = without(value.take(), fields);
            }
        }
        _ => {}
    }
    value
}

/// Returns one field of each object of a list.
fn column(list: &Value, field: &str) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|entry| entry[field].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the ids of all work items, mails, merges and sessions.
fn all_ids(env: &TestEnv) -> BTreeSet<String> {
    let database = rusqlite::Connection::open(env.town().join(".work/items.db")).unwrap();
    let mut all = BTreeSet::new();
    for table in [
        "SELECT id FROM items",
        "SELECT item FROM letters",
        "SELECT id FROM merges",
    ] {
        let mut statement = database.prepare(table).unwrap();
        let ids = statement.query_map([], |row| row.get::<_, String>(0));
        all.extend(ids.unwrap().map(|id| format!("{table}: {}", id.unwrap())));
    }
    let sessions = env.json(&["sessions", "list", "--limit", "1000"]);
    all.extend(column(&sessions, "id"));
    all
}

/// Runs a command in the environment of a container, as hooks do, and returns its exit code.
fn callback(env: &TestEnv, container: &str, args: &[&str], input: &str) -> i32 {
    let mut command = env.gt_command(args);
    let shown = Tmux::new("show-environment").target(session(container));
    for line in env.tmux(shown).lines() {
        if let Some((name, value)) = line.split_once('=') {
            command.env(name, value);
        }
    }
    let mut child = command
        .current_dir(env.town())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // A command that reads no input may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait().unwrap().code().unwrap()
}

#[test]
fn an_older_town_answers_as_before_while_its_agents_run() {
    let older = OlderTown::unpack();
    let env = &older.env;
    for (name, changing) in [
        ("sessions", &["usage"][..]),
        ("chain", &["usage", "seconds", "tokens"]),
        ("stats", &["seconds", "tokens"]),
        ("work", &[]),
        ("mail", &["stale"]),
        ("mq", &[]),
        ("hook", &[]),
        ("molecule", &[]),
        ("checkpoint", &["stale"]),
        ("accounts", &[]),
        ("saves", &["bytes"]),
    ] {
        let (args, answer) = older.expected(name);
        let now = without(env.json(&args), changing);
        assert_eq!(now, without(answer, changing), "gt {args:?}");
    }
    let changing = [
        "created_at",
        "keepalive_age_seconds",
        "never_asks",
        "sandbox",
        "state_reason",
        "state_since",
        "state_source",
    ];
    for name in ["agents", "tasks"] {
        let (args, answer) = older.expected(name);
        let now = without(env.json(&args), &changing);
        assert_eq!(now, without(answer, &changing), "gt {args:?}");
    }
    env.gt(&["agents", "check"]).ok();

    let (args, answer) = older.expected("events");
    let before = answer.as_array().unwrap();
    let now = env.json(&[&args, &["--limit", "10000"][..]].concat());
    assert_eq!(&now.as_array().unwrap()[..before.len()], before);

    let (args, answer) = older.expected("prime");
    let now = env.json(&args);
    assert_eq!(
        column(&now["sections"], "name"),
        column(&answer["sections"], "name")
    );
    let told = env.gt(&args).ok().stdout;
    for fact in [
        "Mend the roof",
        "The north side is open.",
        "Design: Mend the roof",
    ] {
        assert!(told.contains(fact), "{fact}: {told}");
    }

    let (args, answer) = older.expected("doctor");
    let errors = |findings: &Value| {
        let mut findings = findings.as_array().unwrap().clone();
        findings.retain(|finding| finding["status"] == "error");
        findings
    };
    let now = env.gt(&[&args, &["--json"][..]].concat()).json();
    assert_eq!(errors(&now), errors(&answer));
}

#[test]
fn an_older_town_loses_nothing_when_its_agents_are_used() {
    let older = OlderTown::unpack();
    let env = &older.env;
    let before = all_ids(env);
    let pids: Vec<u32> = [MAX, TOAST, "mayor"].map(|agent| env.pid(agent)).to_vec();

    env.gt(&["nudge", TOAST, "Are you still there?"]).ok();
    env.wait_screen(TOAST, "You said: Are you still there?");
    // The end of the turn delivers what the older version left in the queue.
    env.gt(&["answer", "mayor", "green"]).ok();
    env.wait_screen("mayor", "You said: The paint is here.");
    let waiting = env.town().join(".runtime/nudges/mayor/new");
    wait_until("the queue is empty", TIMEOUT, || {
        let mut left = std::fs::read_dir(&waiting).unwrap();
        left.next().is_none().then_some(())
    });
    for pid in pids {
        assert!(is_alive(pid), "no agent was restarted");
    }

    env.gt(&[
        "handoff",
        MAX,
        "--force",
        "-s",
        "Roof",
        "-m",
        "The south side is next.",
    ])
    .ok();
    env.wait_screen(MAX, "The south side is next.");
    let newest = &env.json(&["sessions", "list", "--agent", MAX])[0]["id"];
    let chain = env.json(&["sessions", "chain", newest.as_str().unwrap()]);
    let (_, older_chain) = older.expected("chain");
    let ids = column(&chain["sessions"], "id");
    assert_eq!(ids[..2], column(&older_chain["sessions"], "id"));
    assert_eq!(ids.len(), 3);
    assert_eq!(
        env.json(&["hook", "--agent", MAX])["title"],
        "Mend the roof"
    );

    env.gt(&["stop", TOAST]).ok();
    let stopped = &env.json(&["sessions", "list", "--agent", TOAST])[0];
    assert_eq!(stopped["outcome"], "stopped");
    env.gt(&["mq", "run", "gastown"]).ok();
    let (args, _) = older.expected("mq");
    assert_eq!(column(&env.json(&args), "status"), ["merged", "merged"]);

    let after = all_ids(env);
    assert!(before.is_subset(&after), "{:?}", before.difference(&after));
}

#[test]
fn an_older_town_comes_back_from_its_own_save() {
    let older = OlderTown::unpack();
    let env = &older.env;
    let (before, running) = (all_ids(env), env.running());
    crash(env);
    let planned = env.json(&["restore", "--dry-run"]);
    let names = |answer: &Value| column(&answer["agents"], "agent");
    assert_eq!(
        BTreeSet::from_iter(names(&planned)),
        BTreeSet::from_iter(running.clone())
    );
    assert_eq!(env.running(), Vec::<String>::new());

    let restored = env.json(&["restore"]);
    for agent in restored["agents"].as_array().unwrap() {
        assert_eq!(agent["restored"], true, "{agent}");
        assert_eq!(agent["conversation"], "resume", "{agent}");
    }
    assert_eq!(env.running(), running);
    env.gt(&["agents", "check"]).ok();
    let text = history(env, "gt-crew-max");
    let (above, _) = text.split_once("# gt: restored from the save of").unwrap();
    assert!(above.contains("The north side is open."), "{text}");
    let after = all_ids(env);
    assert!(before.is_subset(&after), "{:?}", before.difference(&after));
    let sessions = |ids: &BTreeSet<String>| ids.iter().filter(|id| !id.contains(' ')).count();
    assert_eq!(sessions(&after), sessions(&before) + running.len());
}

#[test]
fn the_callbacks_of_an_older_town_are_accepted() {
    let older = OlderTown::unpack();
    let env = &older.env;
    // The older pane-died hook starts an agent again that has died.
    let pid = env.pid(MAX);
    signal(pid, Signal::KILL);
    wait_until("it was started again", TIMEOUT, || {
        let agent = env.agent(MAX);
        (agent["pid"] != pid && agent["state"] == "idle").then_some(())
    });

    let max = env.agent(MAX);
    let session = max["session"].as_str().unwrap();
    let event = |name: &str| {
        serde_json::json!({"hook_event_name": name, "session_id": session}).to_string()
    };
    let before = all_ids(env);
    let mut process = env.command("true").spawn().unwrap();
    let ended = process.id().to_string();
    process.wait().unwrap();
    // Hooks of the agent program, as in .runtime/hooks/claude.json.
    for name in [
        "UserPromptSubmit",
        "PreToolUse",
        "Notification",
        "Stop",
        "PreCompact",
    ] {
        let code = callback(env, "gt-crew-max", &["signal"], &event(name));
        assert_eq!(code, 0, "signal {name}");
    }
    for (args, input) in [
        (&["prime", "--hook"][..], "SessionStart"),
        (
            &["handoff", "--auto", "--reason", "compaction"],
            "PreCompact",
        ),
        // Hooks, timers and the status line of tmux, and detached processes.
        (&["sync", "--hook"], ""),
        (&["sync", "--settle", session], ""),
        (&["sync", "--ended", &ended], ""),
        (&["status-line", "--session=gt-crew-max"], ""),
        (&["respawn", "gt-crew-max", "--pane", "%0"], ""),
        (&["respawn", "gt-crew-max", "--due", "--pane", "%0"], ""),
        (&["nudge", "--drain", MAX], ""),
        (&["save", "--auto", "--timer"], ""),
        (&["mq", "run", "gastown", "--background"], ""),
    ] {
        let input = match input {
            "" => String::new(),
            name => event(name),
        };
        assert_eq!(callback(env, "gt-crew-max", args, &input), 0, "{args:?}");
    }
    for args in [
        &["cycle", "next", "--session", "gt-crew-max", "--client", "c"][..],
        &["agents", "menu", "--client", "c"],
        &["status", "--popup", "c"],
    ] {
        let usage = 2;
        assert_ne!(callback(env, "gt-crew-max", args, ""), usage, "{args:?}");
    }
    assert_eq!(env.agent(MAX)["session"], session, "it runs as before");
    let after = all_ids(env);
    assert!(before.is_subset(&after), "{:?}", before.difference(&after));
}
