//! Usage of sessions, from the transcripts of the demo agent, whose figures are deterministic for a
//! conversation.

use crate::env::{TIMEOUT, TestEnv, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

const PRICES: &str = "[demo]\ninput = 1000\noutput = 2000\ncache_read = 100\ncache_write = 1250\n";

fn show(env: &TestEnv, id: &Value) -> Value {
    env.json(&["sessions", "show", id.as_str().unwrap()])
}

fn newest(env: &TestEnv) -> Value {
    env.json(&["sessions", "list"])[0].clone()
}

/// Starts an agent without a first prompt, and returns the id of its session.
fn start(env: &TestEnv, args: &[&str]) -> Value {
    let all = [&["start", "mayor", "--no-prompt"], args].concat();
    env.json(&all)[0]["session"].clone()
}

/// Makes the agent answer once.
fn talk(env: &TestEnv, text: &str) {
    env.gt(&["nudge", "mayor", text]).ok();
    env.gt(&["wait", "mayor"]).ok();
}

fn transcript(env: &TestEnv, id: &Value) -> PathBuf {
    let name = format!("{}.jsonl", id.as_str().unwrap());
    env.town().join(".runtime/demo/sessions").join(name)
}

/// Sums the figures of a transcript independently.
fn written(env: &TestEnv, id: &Value) -> [u64; 4] {
    let mut sum = [0; 4];
    for line in fs::read_to_string(transcript(env, id)).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let usage = &line["message"]["usage"];
        for (sum, name) in sum.iter_mut().zip([
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ]) {
            *sum += usage[name].as_u64().unwrap_or_default();
        }
    }
    sum
}

fn counted(session: &Value) -> [u64; 4] {
    let usage = &session["usage"];
    [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
    ]
    .map(|name| usage[name].as_u64().unwrap_or_default())
}

fn cost([input, output, read, write]: [u64; 4]) -> f64 {
    (input * 1000 + output * 2000 + read * 100 + write * 1250) as f64 / 1e6
}

#[test]
fn session_shows_its_usage_while_it_runs_and_afterwards() {
    let env = TestEnv::with_town();
    let id = start(&env, &[]);
    assert_eq!(show(&env, &id)["usage"], Value::Null, "nothing was said");
    talk(&env, "a first message to the mayor");
    let first = show(&env, &id);
    assert_eq!(counted(&first), written(&env, &id), "{first}");
    assert_eq!(first["usage"]["cost_usd"], Value::Null, "it has no price");
    let unpriced = counted(&first).iter().sum::<u64>();
    assert_eq!(first["usage"]["unpriced_tokens"], json!(unpriced));
    // A price that is added later also applies to earlier tokens.
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    talk(&env, "and a second one");
    let second = show(&env, &id);
    assert_eq!(counted(&second), written(&env, &id), "{second}");
    assert!(counted(&second)[1] > counted(&first)[1]);
    assert_eq!(second["usage"]["model"], "demo");
    let dollars = second["usage"]["cost_usd"].as_f64().unwrap();
    assert!((dollars - cost(counted(&second))).abs() < 1e-9, "{second}");
    assert_eq!(second["usage"]["unpriced_tokens"], Value::Null);
    let table = env.gt(&["sessions", "list"]).ok().stdout;
    assert!(
        table.contains("TOKENS") && table.contains("COST"),
        "{table}"
    );
    assert!(table.contains('$'), "{table}");
    let journal = env.town().join(".sessions/index.jsonl");
    let has_usage = || fs::read_to_string(&journal).unwrap().contains("\"usage\"");
    assert!(!has_usage(), "looking writes nothing down");
    env.gt(&["stop", "mayor"]).ok();
    assert!(has_usage());
    let ended = show(&env, &id);
    assert_eq!(ended["usage"], second["usage"]);
    assert!(
        fs::read_dir(env.town().join(".runtime/usage"))
            .unwrap()
            .next()
            .is_none(),
        "what was only needed on the way is gone"
    );
    // The usage survives the loss of the transcript.
    fs::remove_file(transcript(&env, &id)).unwrap();
    env.gt(&["sessions", "rebuild"]).ok();
    assert_eq!(show(&env, &id)["usage"], second["usage"]);
    let text = env.gt(&["sessions", "show", id.as_str().unwrap()]).ok();
    assert!(text.stdout.contains(" from the cache, "), "{}", text.stdout);
}

#[test]
fn resumed_conversation_counts_once_per_session() {
    let env = TestEnv::with_town();
    let first = start(&env, &[]);
    talk(&env, "said in the first life");
    env.gt(&["stop", "mayor"]).ok();
    let before = written(&env, &first);
    let resumed = start(&env, &["--resume", first.as_str().unwrap()]);
    talk(&env, "said in the second life, which is another");
    env.gt(&["stop", "mayor"]).ok();
    let both = written(&env, &first);
    assert_eq!(counted(&show(&env, &first)), before);
    let later = counted(&show(&env, &resumed));
    let sum: Vec<u64> = before.iter().zip(later).map(|(a, b)| a + b).collect();
    assert_eq!(sum, both, "each answer belongs to one of them");
    assert!(later[1] > 0);
    // A fork begins with a copy of the conversation, which does not count for it.
    let fork = start(&env, &["--fork", first.as_str().unwrap()]);
    assert_eq!(show(&env, &fork)["usage"], Value::Null);
    talk(&env, "said in the fork");
    let taken = counted(&show(&env, &fork));
    assert!(taken[1] > 0 && taken[1] < both[1], "{taken:?} {both:?}");
}

#[test]
fn a_conversation_that_was_cleared_still_counts() {
    let env = TestEnv::with_town();
    let id = start(&env, &[]);
    talk(&env, "before it was cleared");
    env.gt(&["nudge", "mayor", "/clear", "--command"]).ok();
    wait_until("it has another conversation", TIMEOUT, || {
        let files = fs::read_dir(env.town().join(".runtime/demo/sessions")).unwrap();
        (files.count() == 2).then_some(())
    });
    env.gt(&["wait", "mayor"]).ok();
    let before = written(&env, &id);
    assert_eq!(counted(&show(&env, &id)), before);
    talk(&env, "after it was cleared");
    let after = counted(&show(&env, &id));
    assert!(after[1] > before[1], "{after:?} {before:?}");
    env.gt(&["stop", "mayor"]).ok();
    assert_eq!(counted(&show(&env, &id)), after);
}

#[test]
fn usage_of_a_chain_is_totalled() {
    let env = TestEnv::with_town();
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    let first = start(&env, &[]);
    talk(&env, "to one that will crash");
    signal(env.pid("mayor"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("mayor")["state"] == "crashed").then_some(())
    });
    let second = start(&env, &[]);
    talk(&env, "to the one after it");
    let chain = env.json(&["sessions", "chain", first.as_str().unwrap()]);
    assert_eq!(
        chain.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["chain_id", "sessions", "totals"]
    );
    let totals = &chain["totals"];
    assert_eq!(
        totals.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["lives", "seconds", "tokens", "cost_usd", "commits"]
    );
    let sessions = [written(&env, &first), written(&env, &second)];
    let tokens: u64 = sessions.iter().flatten().sum();
    assert_eq!(totals["tokens"], json!(tokens), "{chain}");
    assert_eq!(totals["commits"], 0);
    let dollars = totals["cost_usd"].as_f64().unwrap();
    assert!((dollars - cost(sessions[0]) - cost(sessions[1])).abs() < 1e-9);
    assert_snapshot!(env.snapshot(&["sessions", "chain", first.as_str().unwrap()]), @"
    exit code: 0
    --- stdout
    [UUID] mayor, [TIME] [TIME], [N], crash, [N] tokens, $[N]
    └─ [UUID] mayor, [TIME] [TIME], [N], running, [N] tokens, $[N]
    2 sessions, [N] together, [N] tokens, $[N]
    ");
}

#[test]
fn usage_of_an_unseen_end_is_counted_by_sync() {
    let env = TestEnv::with_town();
    let id = start(&env, &[]);
    talk(&env, "to one whose server dies");
    env.tmux(gt_tmux::Command::new("kill-server"));
    wait_until("the server is gone", TIMEOUT, || {
        (!env.server().is_running()).then_some(())
    });
    env.gt(&["sync"]).ok();
    let session = newest(&env);
    assert_eq!(
        session["outcome"], "crash",
        "lost with its server: {session}"
    );
    assert_eq!(counted(&session), written(&env, &id), "{session}");
}

#[test]
fn a_transcript_that_is_damaged_or_missing_does_no_harm() {
    let env = TestEnv::with_town();
    let id = start(&env, &[]);
    talk(&env, "before the damage");
    let whole = written(&env, &id);
    let path = transcript(&env, &id);
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(b"\xff\0{\"type\":\"assistant\",\"usage\":\nnonsense\n{\"half")
        .unwrap();
    assert_eq!(counted(&show(&env, &id)), whole, "what can be read counts");
    // Neither damaged notes of ours nor unreadable prices change the count.
    let notes = env.town().join(".runtime/usage");
    for entry in fs::read_dir(&notes).unwrap().flatten() {
        fs::write(entry.path(), "{]").unwrap();
    }
    fs::write(env.town().join("prices.toml"), "[demo\n").unwrap();
    assert_eq!(counted(&show(&env, &id)), whole);
    fs::remove_file(&path).unwrap();
    let made = env.command("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    env.gt(&["sessions", "list"]).ok();
    env.gt(&["sessions", "show", id.as_str().unwrap()]).ok();
    env.gt(&["stop", "mayor"]).ok();
    env.gt(&["sync"]).ok();
    let session = newest(&env);
    assert_eq!(
        (&session["id"], &session["outcome"]),
        (&id, &json!("stopped"))
    );
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
}

#[test]
fn unreadable_prices_are_reported() {
    let env = TestEnv::with_town();
    fs::write(env.town().join("prices.toml"), "[demo]\ninputs = 1\n").unwrap();
    assert_snapshot!(env.doctor_findings(&[]), @"
    exit code: 1
    ✗ prices: ~/gt/prices.toml:2:1 cannot be read: unknown field `inputs`, expected one of `input`, `output`, `cache_read`, `cache_write`, `cache_write_[N]`, `long`
      hint: correct that line; every key is explained in the documentation
    ");
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    env.gt(&["doctor"]).ok();
}

#[test]
fn reading_the_archive_adds_nothing_to_the_journal() {
    let env = TestEnv::with_town();
    let id = start(&env, &[]);
    env.gt(&["stop", "mayor"]).ok();
    // The figures appear in the transcript only after the session was archived.
    env.gt(&["sessions", "archive", "--before", "now"]).ok();
    let ended = show(&env, &id)["ended_at"].clone();
    let line = json!({"type": "assistant", "timestamp": ended,
        "message": {"id": "m", "model": "demo", "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let mut file = File::options()
        .append(true)
        .open(transcript(&env, &id))
        .unwrap();
    writeln!(file, "{line}").unwrap();
    let session = show(&env, &id);
    assert_eq!(
        (&session["agent"], &session["outcome"]),
        (&json!("mayor"), &json!("stopped"))
    );
    let journal = fs::read_to_string(env.town().join(".sessions/index.jsonl")).unwrap();
    assert!(!journal.contains(id.as_str().unwrap()), "{journal}");
}
