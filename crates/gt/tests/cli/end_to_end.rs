//! End-to-end contract, from a work item to merged work, through several sessions of one agent.

use crate::env::{TIMEOUT, TestEnv, repetitions, signal};
use crate::sessions::list_sessions;
use gt_tmux::testing::wait_until;
use gt_town::base::lock::FileLock;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const MAX: &str = "gastown/crew/max";

/// Makes the agent itself run a command, as its model would.
fn let_it_run(env: &TestEnv, command: &str) {
    env.gt(&["nudge", MAX, &format!("[[tool={command}]]")]).ok();
}

fn await_session(env: &TestEnv, number: usize) -> Value {
    wait_until("the next session", TIMEOUT, || {
        let all = list_sessions(env, &["--agent", MAX]);
        (all.len() == number && all[0]["status"] == "running").then(|| all[0].clone())
    })
}

#[test]
fn item_is_merged_after_a_handoff_and_a_crash() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&[
        "work",
        "create",
        "Write a poem",
        "-d",
        "Four lines.",
        "--rig",
        "gastown",
    ]);
    let id = item["id"].as_str().unwrap();

    let slung = env.json(&["sling", id, MAX]);
    assert_eq!(slung["agent"], MAX, "{slung}");
    env.wait_screen(MAX, "Begin now");
    let first = await_session(&env, 1);
    assert_eq!(first["work_unit"], id);
    let state = |env: &TestEnv, session: &Value| {
        let mut command = env.gt_command(&["prime", "--state", "--json"]);
        command
            .env("GT_ROLE", MAX)
            .env("GT_SESSION_UUID", session["id"].as_str().unwrap());
        crate::env::run(&mut command).ok().json()["state"].clone()
    };
    assert_eq!(state(&env, &first), "autonomous");

    let dir = env.town().join("gastown/crew/max");
    for (name, value) in [("user.name", "max"), ("user.email", "max@localhost")] {
        env.git(&dir, &["config", name, value]);
    }
    fs::write(dir.join("poem.txt"), "one\ntwo\n").unwrap();
    let_it_run(&env, "git add -A && git commit -q -m 'Half a poem'");
    let_it_run(&env, "gt checkpoint write --notes 'two lines are there'");
    wait_until("the checkpoint", TIMEOUT, || {
        let read = env.json(&["checkpoint", "read", "--agent", MAX]);
        (read["notes"] == "two lines are there").then_some(())
    });
    let_it_run(
        &env,
        "gt handoff --force -s 'Half a poem' -m 'Two lines are missing.'",
    );
    let second = await_session(&env, 2);
    env.wait_screen(MAX, "Two lines are missing.");
    assert_eq!(second["parent_id"], first["id"]);
    assert_eq!(state(&env, &second), "autonomous", "it has read its marker");

    fs::write(dir.join("poem.txt"), "one\ntwo\nthree\nfour\n").unwrap();
    let_it_run(&env, "gt checkpoint write --notes 'to be committed'");
    wait_until("the checkpoint", TIMEOUT, || {
        let read = env.json(&["checkpoint", "read", "--agent", MAX]);
        (read["notes"] == "to be committed").then_some(())
    });
    signal(env.pid(MAX), Signal::KILL);
    let third = await_session(&env, 3);
    env.wait_screen(MAX, "It noted: to be committed");
    assert_eq!(third["parent_id"], second["id"]);
    assert_eq!(state(&env, &third), "crash-recovery");

    let_it_run(
        &env,
        "git commit -q -a -m 'The rest'; gt done --exit -m 'four lines'",
    );
    wait_until("it is done", TIMEOUT, || {
        let session = env.json(&["sessions", "show", third["id"].as_str().unwrap()]);
        (session["outcome"] == "done").then_some(())
    });
    assert_eq!(
        env.json(&["work", "show", id])["status"],
        "in_progress",
        "not merged yet"
    );
    let merged = env.json(&["mq", "run", "gastown"]);
    assert_eq!(merged[0]["status"], "merged", "{merged}");
    let item = env.json(&["work", "show", id]);
    assert_eq!(item["status"], "closed", "{item}");
    let commit = merged[0]["merged_as"].as_str().unwrap();
    let poem = env.git(&dir, &["show", &format!("{commit}:poem.txt")]);
    assert_eq!(poem.lines().count(), 4, "{poem}");

    let chain = env.json(&["sessions", "chain", id]);
    let outcomes: Vec<&str> = chain["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["handoff", "crash", "done"], "{chain}");
    assert_eq!(chain["totals"]["lives"], 3);
    assert_snapshot!(env.snapshot(&["sessions", "chain", id]), @"
    exit code: 0
    --- stdout
    [UUID] gastown/crew/max, [TIME] [TIME], [N], handoff, [N] tokens
    └─ [UUID] gastown/crew/max, [TIME] [TIME], [N], crash, [N] tokens
       └─ [UUID] gastown/crew/max, [TIME] [TIME], [N], done, [N] tokens
    3 sessions, [N] together, [N] tokens
    ");
    assert!(env.running().is_empty());
}

#[test]
fn item_whose_agents_keep_crashing_is_given_up() {
    let env = TestEnv::with_crew(&["max"]);
    let role = env.town().join("roles/crew.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(role, "[start]\ndeaths_per_item = 2\n").unwrap();
    let item = env.json(&["work", "create", "Deadly", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap();
    env.gt(&["sling", id, MAX]).ok();
    let lock = env.town().join(".runtime/locks/gastown.crew.max.lock");
    for number in 1..=2 {
        await_session(&env, number);
        // A process that dies before it is ready counts as a failed start, not as a death while it
        // works on the item.
        wait_until("its start is over", TIMEOUT, || {
            (!FileLock::is_held(&lock)).then_some(())
        });
        signal(env.pid(MAX), Signal::KILL);
    }
    let events = wait_until("it is given up", TIMEOUT, || {
        let events = env
            .gt(&["events", "--type", "escalation_raised"])
            .ok()
            .stdout;
        events
            .contains("died 2 times over its work")
            .then_some(events)
    });
    assert!(events.contains(MAX), "{events}");
    assert_eq!(
        env.json(&["hook", "--agent", MAX])["id"],
        id,
        "its work stays its own"
    );
    assert_eq!(list_sessions(&env, &["--agent", MAX]).len(), 2);
}

/// Script that each polecat runs for its item: commits one file and calls `gt done`.
const WORK: &str = r#"#!/bin/sh
set -e
id=$(gt hook --json | sed -n 's/^ *"id": "\(gt-[^"]*\)".*/\1/p' | head -1)
echo "$id" >> "$DONE_LOG"
echo "$id" > "$id.txt"
git add "$id.txt"
git commit -q -m "$id"
gt done
"#;

#[test]
fn items_over_ten_polecats_are_each_done_once() {
    let items = repetitions(100, 25);
    const RACERS: usize = 8;
    const POLECATS: usize = 10;
    let mut env = TestEnv::with_rig();
    let settings = env.town().join("town.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(
        &settings,
        text.replace(
            "[limits]\n",
            &format!("[limits]\npolecats_per_rig = {POLECATS}\n"),
        ),
    )
    .unwrap();
    let (log, script) = (env.path("done.log"), env.path("work.sh"));
    fs::write(&script, WORK).unwrap();
    let role = env.town().join("roles/polecat.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    let variables = [
        ("DONE_LOG", log.to_str().unwrap()),
        ("GIT_AUTHOR_EMAIL", "p@localhost"),
        ("GIT_COMMITTER_NAME", "p"),
        ("GIT_COMMITTER_EMAIL", "p@localhost"),
    ];
    let lines: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name} = '{value}'"))
        .collect();
    fs::write(role, format!("[env]\n{}\n", lines.join("\n"))).unwrap();
    env.set("GT_HARNESS", "demo");
    let ids: Vec<String> = (0..items)
        .map(|number| {
            let item = env.json(&[
                "work",
                "create",
                &format!("Item {number}"),
                "--rig",
                "gastown",
            ]);
            item["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let args = format!("[[tool=sh {}]]", script.display());
    // Every racer slings every item, so that many processes want the same item concurrently.
    std::thread::scope(|scope| {
        for racer in 0..RACERS {
            let (env, ids, args) = (&env, &ids, &args);
            scope.spawn(move || {
                for turn in 0..ids.len() {
                    let id = &ids[(turn + racer * ids.len() / RACERS) % ids.len()];
                    wait_until("an agent has the item", TIMEOUT * 4, || {
                        // A full rig refuses every call, so the loop polls only tmux until a
                        // session has ended.
                        if env.sessions().len() >= POLECATS {
                            return None;
                        }
                        let status = env.json(&["work", "show", id])["status"].clone();
                        if status != "open" {
                            return Some(());
                        }
                        let slung = env.gt(&["sling", id, "--now", "--args", args]);
                        assert!(matches!(slung.code, 0 | 4), "{slung:?}");
                        (slung.code == 0).then_some(())
                    });
                }
            });
        }
    });
    wait_until("all are handed in", TIMEOUT * 4, || {
        let queue = env.json(&["mq", "list"]);
        (queue.as_array().unwrap().len() == items).then_some(())
    });
    let done = fs::read_to_string(&log).unwrap();
    let mut done: Vec<&str> = done.lines().collect();
    done.sort_unstable();
    let mut expected: Vec<&str> = ids.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(done, expected, "each once");
    let polecats = fs::read_dir(env.town().join("gastown/polecats"))
        .unwrap()
        .count();
    assert!((1..=POLECATS).contains(&polecats), "{polecats}");
    let merged = env.json(&["mq", "run", "gastown"]);
    let merged = merged.as_array().unwrap();
    assert_eq!(merged.len(), items);
    assert!(
        merged.iter().all(|merge| merge["status"] == "merged"),
        "{merged:?}"
    );
    let commit = merged.last().unwrap()["merged_as"].as_str().unwrap();
    let repository = env.town().join("gastown/polecats");
    let any = fs::read_dir(repository)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let files = env.git(&any, &["ls-tree", "--name-only", commit]);
    let there = files.lines().filter(|file| file.starts_with("gt-")).count();
    assert_eq!(there, items);
    let left = env.json(&["work", "list", "--rig", "gastown"]);
    assert_eq!(left.as_array().unwrap().len(), 0, "{left}");
}
