//! `gt sessions`: every start and end is recorded and found.

mod chain;
mod durability;
mod ends;
mod usage;

use crate::env::{TIMEOUT, TestEnv, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

pub(crate) fn list_sessions(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    let answer = env.json(&[&["sessions", "list"], args].concat());
    answer.as_array().unwrap().clone()
}

#[test]
fn session_is_recorded_from_start_to_end() {
    let env = TestEnv::with_crew(&["max"]);
    let started = env.json(&["crew", "start", "max"]);
    let session = &list_sessions(&env, &[])[0];
    for (field, expected) in [
        ("agent", json!("gastown/crew/max")),
        ("rig", json!("gastown")),
        ("role", json!("crew")),
        ("container", json!("gt-crew-max")),
        ("harness", json!("demo")),
        ("branch", json!("crew/max")),
        ("status", json!("running")),
        ("chain_id", session["id"].clone()),
        ("harness_session_id", session["id"].clone()),
        ("pid", started[0]["pid"].clone()),
    ] {
        assert_eq!(session[field], expected, "{field}: {session}");
    }
    assert!(
        session["initial_prompt"]
            .as_str()
            .unwrap()
            .contains("[GAS TOWN]")
    );
    env.gt(&["stop", "gastown/max"]).ok();
    let id = session["id"].as_str().unwrap();
    let ended = env.json(&["sessions", "show", &id[..13]]);
    assert_eq!(ended["outcome"], "stopped", "{ended}");
    assert_eq!(ended["status"], "stopped");
    assert!(ended["ended_at"].as_str() >= ended["started_at"].as_str());
    env.gt(&["sessions", "show", "ffff"]).fails(3);
}

#[test]
fn crash_and_the_sessions_after_it_are_one_chain() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max"]).ok();
    signal(env.pid("gastown/crew/max"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("gastown/crew/max")["state"] == "crashed").then_some(())
    });
    env.gt(&["crew", "start", "max"]).ok();
    let all = list_sessions(&env, &["--agent", "gastown/max"]);
    let [second, first] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(first["outcome"], "crash");
    assert_eq!(first["child_id"], second["id"]);
    assert_eq!(second["parent_id"], first["id"]);
    assert_eq!(second["chain_id"], first["id"]);
    for of in [first, second] {
        let chain = env.json(&["sessions", "chain", of["id"].as_str().unwrap()]);
        assert_eq!(chain["totals"]["lives"], 2, "{chain}");
        assert_eq!(chain["chain_id"], first["id"]);
        assert_eq!(chain["sessions"][0]["id"], first["id"]);
        assert_eq!(chain["sessions"][1]["id"], second["id"]);
    }
    let drawn = env
        .gt(&["sessions", "chain", first["id"].as_str().unwrap()])
        .ok();
    assert!(drawn.stdout.contains("└─ "), "{}", drawn.stdout);
    assert!(drawn.stdout.contains("2 sessions"), "{}", drawn.stdout);
}

#[test]
fn sessions_are_found_by_their_fields() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["start", "mayor", "gastown/max", "gastown/amy"])
        .ok();
    env.gt(&["stop", "gastown/amy"]).ok();
    let count = |args: &[&str]| list_sessions(&env, args).len();
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["--rig", "gastown"]), 2);
    assert_eq!(count(&["--role", "mayor"]), 1);
    assert_eq!(count(&["--status", "running"]), 2);
    assert_eq!(count(&["--outcome", "stopped"]), 1);
    assert_eq!(count(&["--harness", "demo", "--limit", "1"]), 1);
    assert_eq!(count(&["--since", "1h", "--rig", "gastown"]), 2);
    assert_eq!(count(&["--until", "1h"]), 0);
    assert_eq!(count(&["--agent", "mayor", "--since", "yesterday"]), 1);
    env.gt(&["sessions", "list", "--since", "soon"]).fails(2);
    let table = env.gt(&["sessions", "list"]).ok().stdout;
    let mut ids: Vec<&str> = table.lines().skip(1).map(|line| &line[..36]).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "sessions are distinguished: {table}");
    let exported = env.gt(&["sessions", "export", "--jsonl"]).ok().stdout;
    assert_eq!(exported.lines().count(), 3);
}

#[test]
fn failed_start_is_recorded_as_failed() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--command", "exit 3"]).fails(1);
    let all = list_sessions(&env, &[]);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["outcome"], "crash");
    assert_eq!(all[0]["status"], "stopped");
}

#[test]
fn a_damaged_index_or_journal_loses_nothing_else() {
    let env = TestEnv::with_town();
    // Without prompts, so that no output is counted meanwhile.
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["start", "deacon", "--no-prompt"]).ok();
    let folder = env.town().join(".sessions");
    let before = list_sessions(&env, &[]);
    assert_eq!(before.len(), 2);
    fs::write(folder.join("index.db"), "nonsense ".repeat(1000)).unwrap();
    assert_eq!(list_sessions(&env, &[]), before);
    fs::remove_file(folder.join("index.db")).unwrap();
    assert_eq!(list_sessions(&env, &[]), before);
    // One line is damaged, and the last one is torn.
    let journal = folder.join("index.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, format!("what is this?\n{text}{{\"id\":\"torn")).unwrap();
    let rebuilt = env.gt(&["sessions", "rebuild", "--json"]).ok();
    let answer = rebuilt.json();
    assert_eq!(answer["lives"], 2, "{answer}");
    assert_eq!(answer["skipped_lines"], json!([1]), "{answer}");
    assert_snapshot!(env.masked(&rebuilt.stderr), @"warning: line 1 of the journal was skipped: expected value at line 1 column 1");
    env.gt(&["stop", "deacon"]).ok();
    assert_eq!(list_sessions(&env, &["--outcome", "stopped"]).len(), 1);
    assert_eq!(list_sessions(&env, &[]).len(), 2);
}

#[test]
fn many_concurrent_starts_lose_no_session() {
    let names: Vec<String> = (0..10).map(|n| format!("w{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let env = TestEnv::with_crew(&names);
    std::thread::scope(|scope| {
        for name in &names {
            let env = &env;
            scope.spawn(move || {
                let target = format!("gastown/{name}");
                for _ in 0..3 {
                    env.gt(&["start", &target, "--no-prompt", "--no-wait"]).ok();
                    env.gt(&["sessions", "list"]).ok();
                    env.gt(&["stop", &target, "--force"]).ok();
                }
            });
        }
    });
    let all = list_sessions(&env, &[]);
    assert_eq!(all.len(), 30);
    assert!(all.iter().all(|session| session["outcome"] == "stopped"));
}

#[test]
fn old_sessions_are_archived_and_found() {
    let env = TestEnv::with_crew(&["max"]);
    for _ in 0..2 {
        env.gt(&["crew", "start", "max"]).ok();
        // A turn that ends during the stop may or may not be counted.
        env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
        env.gt(&["stop", "gastown/max"]).ok();
    }
    env.gt(&["start", "mayor"]).ok();
    // Returns a session by its id or a prefix, without the timeline, which lists omit.
    let show = |id: &str| {
        let mut shown = env.json(&["sessions", "show", id]);
        shown.as_object_mut().unwrap().remove("detail");
        shown
    };
    let all = list_sessions(&env, &[]);
    let [_, second, first] = all.as_slice() else {
        panic!("{all:?}");
    };
    let told = env.json(&["sessions", "archive", "--before", "now", "--dry-run"]);
    assert_eq!(told["lives"], 2, "{told}");
    assert_eq!(list_sessions(&env, &[]).len(), 3);
    env.gt(&["sessions", "archive", "--before", "now"]).ok();
    let journal = fs::read_to_string(env.town().join(".sessions/index.jsonl")).unwrap();
    assert!(!journal.contains(first["id"].as_str().unwrap()));
    for _ in 0..2 {
        let left = list_sessions(&env, &[]);
        assert_eq!(left.len(), 1, "{left:?}");
        for session in [first, second] {
            let id = session["id"].as_str().unwrap();
            assert_eq!(show(id), *session);
            assert_eq!(show(&id[..35]), *session);
            let chain = env.json(&["sessions", "chain", id]);
            assert_eq!(chain["sessions"][0], *session, "{chain}");
        }
        let exported = env.gt(&["sessions", "export"]).ok().stdout;
        assert_eq!(exported.lines().count(), 3, "{exported}");
        // A rebuild from journal and archive gives the same result.
        let rebuilt = env.json(&["sessions", "rebuild"]);
        assert_eq!(rebuilt["archived"], 2, "{rebuilt}");
    }
    let none = env.json(&["sessions", "archive"]);
    assert_eq!(none["lives"], 0, "{none}");
}

#[test]
fn session_details_have_commits_and_events() {
    let env = TestEnv::with_crew(&["max"]);
    let folder = env.town().join("gastown/crew/max");
    let commit = |subject: &str| {
        env.git(
            &folder,
            &["commit", "--quiet", "--allow-empty", "-m", subject],
        );
    };
    commit("before");
    // Commit times have a resolution of one second.
    let second = jiff_second();
    wait_until("the next second", TIMEOUT, || {
        (jiff_second() > second).then_some(())
    });
    env.gt(&["crew", "start", "max"]).ok();
    let id = list_sessions(&env, &[])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    commit("one");
    commit("two");
    env.gt(&["stop", "gastown/max"]).ok();
    let session = env.json(&["sessions", "show", &id]);
    assert_eq!(session["commits"].as_array().unwrap().len(), 2, "{session}");
    let subjects: Vec<&str> = session["detail"]["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| commit["subject"].as_str().unwrap())
        .collect();
    assert_eq!(subjects, ["one", "two"]);
    let timeline = session["detail"]["timeline"].as_array().unwrap();
    let kinds: Vec<&str> = timeline
        .iter()
        .map(|e| e["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"session_start"), "{kinds:?}");
    assert!(kinds.contains(&"commit"), "{kinds:?}");
    let chain = env.json(&["sessions", "chain", &id]);
    assert_eq!(chain["totals"]["commits"], 2, "{chain}");
    let shown = env.gt(&["sessions", "show", &id]).ok().stdout;
    assert!(shown.contains("timeline"), "{shown}");
    // The process that should write the file was killed.
    let file = env.town().join(format!(".sessions/{id}.json"));
    fs::remove_file(&file).unwrap();
    let again = env.json(&["sessions", "show", &id]);
    assert_eq!(again, session);
    assert!(file.is_file());
    env.gt(&["sessions", "archive", "--before", "now"]).ok();
    assert!(!file.exists());
    assert_eq!(env.json(&["sessions", "show", &id]), session);
}

fn jiff_second() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}

#[test]
fn sessions_are_totalled() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    for _ in 0..2 {
        env.gt(&["crew", "start", "max"]).ok();
        env.gt(&["stop", "gastown/max"]).ok();
    }
    env.gt(&["start", "gastown/amy", "mayor"]).ok();
    let by_agent = env.json(&["sessions", "stats"]);
    assert_eq!(by_agent[0]["agent"], "gastown/crew/max", "{by_agent}");
    assert_eq!(by_agent[0]["lives"], 2);
    assert_eq!(by_agent[0]["outcomes"]["stopped"], 2);
    assert_eq!(by_agent[0]["running"], 0);
    let by_rig = env.json(&["sessions", "stats", "--by", "rig"]);
    assert_eq!(by_rig[0]["lives"], 3, "{by_rig}");
    assert_eq!(by_rig[0]["running"], 1);
    let by_day = env.json(&["sessions", "stats", "--by", "day", "--since", "1h"]);
    let sessions: u64 = by_day
        .as_array()
        .unwrap()
        .iter()
        .map(|day| day["lives"].as_u64().unwrap())
        .sum();
    assert_eq!(sessions, 4, "{by_day}");
    let only = env.json(&["sessions", "stats", "--role", "mayor"]);
    assert_eq!(only.as_array().unwrap().len(), 1, "{only}");
    let drawn = env
        .gt(&["sessions", "stats", "--bars", "sessions"])
        .ok()
        .stdout;
    assert!(drawn.contains(&"█".repeat(20)), "{drawn}");
}

#[test]
fn sessions_prints_the_history() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["sessions", "list"]), @"
    exit code: 0
    --- stdout
    No session matches.
    ");
    env.gt(&["start", "gastown/max", "--no-prompt"]).ok();
    env.gt(&["stop", "gastown/max", "--force"]).ok();
    assert_snapshot!(env.snapshot(&["sessions", "list"]), @"
    exit code: 0
    --- stdout
    ID  AGENT  STARTED  LASTED  OUTCOME  HARNESS
    [UUID]  gastown/crew/max  [TIME] [TIME]  [N]  stopped by [USER]  demo
    ");
    assert_snapshot!(env.snapshot(&["sessions", "show", "unknown"]), @r#"
    exit code: 3
    --- stderr
    error: there is no session "unknown"
    hint: `gt sessions list` shows them
    "#);
}
