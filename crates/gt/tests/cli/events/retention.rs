//! `gt events stats|prune|retention`.

use crate::env::{TIMEOUT, TestEnv, signal};
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;

/// Makes a town with a TTL of zero for `junk` events.
pub(super) fn forgetful() -> TestEnv {
    let env = TestEnv::with_town();
    let settings = env.town().join("town.toml");
    let mut file = fs::File::options().append(true).open(settings).unwrap();
    file.write_all(b"\n[krc.ttl]\njunk = '0s'\n").unwrap();
    env
}

/// Appends many lines to the log at once, as other writers would.
pub(super) fn fill(env: &TestEnv, kind: &str, count: usize) {
    let log = env.town().join(".events.jsonl");
    let mut options = fs::File::options();
    let mut file = options.create(true).append(true).open(log).unwrap();
    let now = format!("{:.3}", jiff::Timestamp::now());
    let line = json!({"ts": now, "source": "gt", "type": kind,
        "actor": "test", "payload": {"text": "x".repeat(200)}, "visibility": "audit"});
    let text = format!("{line}\n").repeat(count);
    file.write_all(text.as_bytes()).unwrap();
}

fn count(env: &TestEnv, kind: &str) -> usize {
    let log = fs::read_to_string(env.town().join(".events.jsonl")).unwrap();
    let events = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] == kind).count()
}

#[test]
fn events_written_during_a_prune_are_kept() {
    const WRITERS: usize = 20;
    const EACH: usize = 6;
    let env = forgetful();
    fill(&env, "junk", 2_000);
    let pruned = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let env = &env;
                scope.spawn(move || {
                    let actor = format!("writer/{writer}");
                    for _ in 0..EACH {
                        env.gt(&["events", "emit", "kept", "--actor", &actor]).ok();
                        env.gt(&["events", "emit", "junk", "--actor", &actor]).ok();
                    }
                })
            })
            .collect();
        let mut pruned = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            let answer = env.json(&["events", "prune"]);
            pruned += usize::from(answer["files"][0]["removed"] != 0);
        }
        pruned
    });
    assert!(pruned > 1, "it was pruned meanwhile: {pruned}");
    assert_eq!(count(&env, "kept"), WRITERS * EACH);
    let feed = fs::read_to_string(env.town().join(".feed.jsonl")).unwrap();
    assert_eq!(feed.matches("\"kept\"").count(), WRITERS * EACH);
    // The newest hundred events are kept, whatever their type.
    fill(&env, "junk", 150);
    env.gt(&["events", "prune"]).ok();
    assert_eq!(count(&env, "junk"), 100);
}

#[test]
fn a_prune_that_is_killed_leaves_the_old_or_the_new() {
    let env = forgetful();
    fill(&env, "nudge_kept", 10_000);
    let beside = env.town().join(".events.jsonl.prune");
    let mut hits = 0;
    for round in 0..5 {
        fill(&env, "junk", 5_000);
        let mut prune = env.spawn(&["events", "prune"]);
        let size = 600_000 * round;
        let is_hit = wait_until("it is in the middle, or over", TIMEOUT, || {
            let written = beside.metadata().is_ok_and(|meta| meta.len() >= size);
            match prune.try_wait().unwrap() {
                Some(_) => Some(false),
                None => written.then_some(true),
            }
        });
        signal(prune.id(), Signal::KILL);
        prune.wait().unwrap();
        hits += usize::from(is_hit);
    }
    assert!(hits > 0, "none was caught in the middle");
    assert_eq!(count(&env, "nudge_kept"), 10_000);
    env.gt(&["events", "prune"]).ok();
    assert_eq!(count(&env, "nudge_kept"), 10_000);
    assert_eq!(count(&env, "junk"), 100);
    assert!(!beside.exists());
}

#[test]
fn daemon_prunes_while_no_container_comes_or_goes() {
    let env = forgetful();
    fill(&env, "junk", 130);
    env.gt(&["daemon", "start"]).ok();
    wait_until("the expired events are removed", TIMEOUT, || {
        (count(&env, "junk") <= 100).then_some(())
    });
    env.gt(&["daemon", "stop"]).ok();
}

#[test]
fn stats_and_prune_follow_the_retention_of_retention_of_each_type() {
    let env = forgetful();
    env.gt(&["events", "emit", "mail", "--actor", "mayor"]).ok();
    fill(&env, "junk", 130);
    let stats = env.json(&["events", "stats"]);
    let log = &stats["files"][0];
    assert_eq!(
        (&log["events"], &log["expired"]),
        (&json!(131), &json!(130))
    );
    let told = env.json(&["events", "prune", "--dry-run"]);
    assert_eq!(told["files"][0]["removed"], 30, "{told}");
    assert_eq!(count(&env, "junk"), 130);
    let told = env.json(&["events", "prune", "--auto"]);
    assert_eq!(told["files"][0]["removed"], 30, "{told}");
    let told = env.json(&["events", "prune", "--auto"]);
    assert_eq!(
        (&told["pruned"], &told["reason"]),
        (&json!(false), &json!("not_yet"))
    );
    assert!(env.town().join(".krc-autoprune.json").exists());
    let config = env.json(&["events", "retention"]);
    assert_eq!(config["minimum_kept"], 100);
    assert_eq!(config["prune_interval_seconds"], 3_600);
    let types = config["types"].as_array().unwrap();
    let row = |kind: &str| types.iter().find(|row| row["type"] == kind).unwrap();
    assert_eq!(row("mass_death")["ttl_seconds"], 90 * 86_400);
    assert_eq!(row("mass_death")["decay"], "flat");
    assert_eq!(row("junk")["overridden"], true);
    for command in ["stats", "retention", "prune"] {
        env.gt(&["events", command]).ok();
    }
}
