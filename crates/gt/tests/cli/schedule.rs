//! `gt schedule`: items beyond the limits wait, and start when a slot is free.

use crate::env::{TIMEOUT, TestEnv, signal};
use crate::sling::{create, polecats, state, status};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

const TOAST: &str = "gastown/polecats/Toast";

/// Makes a town with one slot for polecats, and no time between starts.
fn town() -> TestEnv {
    let env = TestEnv::with_rig();
    env.add_settings("[schedule]\nstart_spacing = '0s'\n");
    limit(&env, 1);
    env
}

fn limit(env: &TestEnv, polecats: usize) {
    let file = env.town().join("town.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("polecats_per_rig"));
    let text: Vec<&str> = lines.collect();
    let limits = format!("[limits]\npolecats_per_rig = {polecats}");
    std::fs::write(&file, text.join("\n").replacen("[limits]", &limits, 1)).unwrap();
}

fn queue(env: &TestEnv) -> Vec<String> {
    let list = env.json(&["schedule", "list"]);
    let beads = list["queue"].as_array().unwrap().iter();
    beads
        .map(|entry| entry["bead"].as_str().unwrap().to_owned())
        .collect()
}

fn await_queue(env: &TestEnv, expected: &[&String]) {
    wait_until("the queue is as expected", TIMEOUT, || {
        (queue(env).iter().collect::<Vec<_>>() == expected).then_some(())
    });
}

#[test]
fn item_beyond_the_limit_is_queued_and_starts_with_the_next_free_slot() {
    let env = town();
    let [a, b, c] = ["a", "b", "c"].map(|title| create(&env, title));
    env.gt(&["sling", &a]).ok();
    let queued = env.gt(&["sling", &b, "--args", "mind the gap"]).ok().stdout;
    let reason = "the rig gastown has 1 polecat at work, the maximum";
    assert_eq!(
        queued,
        format!("… {b} is queued for gastown, place 1 of 1: {reason}\n")
    );
    let queued = env.json(&["sling", &c]);
    assert_eq!(queued["queued"], true, "{queued}");
    assert_eq!(
        (&queued["place"], &queued["waiting"]),
        (&2.into(), &2.into())
    );
    assert_eq!(queued["reason"], reason);
    assert_eq!(env.json(&["status"])["waiting"], 2);
    let shown = env.gt(&["status"]).ok().stdout;
    assert!(
        shown.contains("Schedule: 2 items wait for a slot"),
        "{shown}"
    );
    env.gt(&["work", "update", &c, "--priority", "0"]).ok();
    let list = env.json(&["schedule", "list"]);
    assert_eq!(queue(&env), [c.clone(), b.clone()]);
    assert_eq!(list["queue"][1]["options"]["args"], "mind the gap");
    assert_eq!(list["queue"][0]["reason"], reason);
    assert_eq!(status(&env, &c), "open");
    // The slot becomes free: the most urgent item starts by itself.
    env.gt(&["done", "--agent", TOAST, "--status", "deferred"])
        .ok();
    await_queue(&env, &[&b]);
    assert_eq!(status(&env, &c), "hooked");
    assert_eq!(env.running().len(), 1);
    env.gt(&["stop", &env.running()[0]]).ok();
    await_queue(&env, &[]);
    let item = env.json(&["work", "show", &b]);
    assert_eq!(item["notes"], "mind the gap");
    assert_eq!(item["status"], "hooked");
}

#[test]
fn paused_schedule_starts_nothing_and_removed_items_stay_open() {
    let env = town();
    let [a, b, c] = ["a", "b", "c"].map(|title| create(&env, title));
    env.gt(&["sling", &a]).ok();
    env.gt(&["sling", &b, &c]).ok();
    assert_snapshot!(env.snapshot(&["schedule", "pause"]), @r"
    exit code: 0
    --- stdout
    Paused. `gt schedule resume` continues it.
    ");
    env.gt(&["stop", TOAST]).ok();
    assert_snapshot!(env.snapshot(&["schedule", "run"]), @r"
    exit code: 0
    --- stdout
    2 items wait: the schedule is paused.
    ");
    assert_eq!(env.running(), [""; 0]);
    env.gt(&["schedule", "remove", &b]).ok();
    assert_eq!(status(&env, &b), "open");
    assert_snapshot!(env.snapshot(&["schedule", "remove", &b]), @r"
        exit code: 3
        --- stderr
        error: gt-[ID] is neither in the queue nor the name of recurring work
        hint: `gt schedule list` shows both
        ");
    assert_snapshot!(env.snapshot(&["schedule", "list"]), @"
    exit code: 0
    --- stdout
    Paused by [USER] [N] ago; `gt schedule resume` continues it.
    #  ITEM  PRIORITY  RIG  WAITS  REASON  TITLE
    1  gt-[ID]  2  gastown  [N]  the schedule is paused  c
    ");
    env.gt(&["schedule", "resume"]).ok();
    await_queue(&env, &[]);
    assert_eq!(status(&env, &c), "hooked");
    assert_snapshot!(env.snapshot(&["schedule", "run"]), @r"
    exit code: 0
    --- stdout
    Nothing waits.
    ");
}

#[test]
fn impossible_orders_are_refused_and_not_queued() {
    let env = town();
    let [a, b, c] = ["a", "b", "c"].map(|title| create(&env, title));
    env.gt(&["sling", &a]).ok();
    env.gt(&["work", "dep", "add", &b, &c]).ok();
    env.gt(&["sling", &b]).fails(4);
    env.gt(&["sling", &c, "--harness", "nosuch"]).fails(3);
    env.gt(&["sling", &c, "--account", "nosuch"]).fails(3);
    env.gt(&["sling", &c, "--now"]).fails(4);
    env.gt(&["sling", &c, "--no-start"]).fails(4);
    env.gt(&["rig", "park", "gastown"]).ok();
    env.gt(&["sling", &c]).fails(4);
    assert_eq!(queue(&env), [""; 0]);
}

#[test]
fn killed_scheduler_loses_no_item_and_starts_none_twice() {
    let points = [
        gt_town::workflow::sling::FAULT_POINTS,
        gt_town::supervision::scheduler::FAULT_POINTS,
    ];
    for point in points
        .concat()
        .iter()
        .filter(|point| **point != "sling.noted")
    {
        let env = town();
        let [a, b] = ["a", "b"].map(|title| create(&env, title));
        env.gt(&["sling", &a]).ok();
        env.gt(&["schedule", "pause"]).ok();
        env.gt(&["sling", &b]).ok();
        env.gt(&["stop", TOAST]).ok();
        std::fs::remove_file(env.town().join(".runtime/schedule-paused.json")).unwrap();
        env.kill_at_fault(&["schedule", "run"], point);
        assert_eq!(queue(&env), std::slice::from_ref(&b), "{point}");
        env.gt(&["schedule", "run"]).ok();
        assert_eq!(queue(&env), [""; 0], "{point}");
        assert_eq!(status(&env, &b), "hooked", "{point}");
        assert_eq!(env.running(), ["gastown/polecats/Nux"], "{point}");
        let holders: Vec<Value> = polecats(&env)
            .into_iter()
            .filter(|polecat| polecat["bead"] == *b)
            .collect();
        assert_eq!(holders.len(), 1, "{point}: {holders:?}");
    }
}

#[test]
fn concurrent_slings_and_runs_keep_to_the_limit_and_lose_nothing() {
    const ITEMS: usize = 12;
    let env = town();
    limit(&env, 3);
    let items: Vec<String> = (0..ITEMS).map(|n| create(&env, &format!("i{n}"))).collect();
    let racers: Vec<_> = items
        .iter()
        .map(|id| env.spawn(&["sling", id, "--json"]))
        .chain((0..3).map(|_| env.spawn(&["schedule", "run", "--json"])))
        .collect();
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    // Runs in the background may still start what the last free slot allows.
    wait_until("three work and the others wait", TIMEOUT, || {
        (env.running().len() == 3 && queue(&env).len() == ITEMS - 3).then_some(())
    });
    let waiting = queue(&env);
    for id in &items {
        let expected = if waiting.contains(id) {
            "open"
        } else {
            "hooked"
        };
        assert_eq!(status(&env, id), expected, "{id}");
    }
}

#[test]
fn daemon_refills_the_slot_of_a_polecat_that_died() {
    let env = town();
    let [a, b] = ["a", "b"].map(|title| create(&env, title));
    env.gt(&["sling", &a]).ok();
    env.gt(&["sling", &b]).ok();
    env.gt(&["daemon", "start"]).ok();
    signal(env.pid(TOAST), Signal::KILL);
    await_queue(&env, &[]);
    assert_eq!(state(&env, "Nux"), "working");
    assert_eq!(state(&env, "Toast"), "stopped", "it keeps its item");
    env.gt(&["daemon", "stop"]).ok();
}

#[test]
fn recurring_work_is_listed_run_and_removed() {
    let env = town();
    let add = |words: &[&str]| {
        let mut all = vec!["schedule", "add"];
        all.extend(words);
        env.gt(&all)
    };
    add(&["--cron", "0 25 * * *", "patrol"]).fails(2);
    add(&["--cron", "@daily", "nosuch"]).fails(3);
    add(&["--cron", "@daily", "review"]).fails(2);
    let added = add(&[
        "--cron",
        "0 3 * * mon-fri",
        "review",
        "--var",
        "change=main",
        "--name",
        "nightly",
    ]);
    let said = added.ok().stdout;
    assert!(
        said.starts_with("Added nightly: review in gastown, next at "),
        "{said}"
    );
    add(&["--cron", "@daily", "patrol", "--name", "nightly"]).fails(4);
    let list = env.json(&["schedule", "list"]);
    let entry = &list["recurring"][0];
    assert_eq!(
        (&entry["name"], &entry["cron"]),
        (&"nightly".into(), &"0 3 * * mon-fri".into())
    );
    assert_eq!(entry["vars"]["change"], "main");
    assert!(entry["next_at"].as_str().is_some(), "{entry}");
    assert_eq!(entry["runs"], 0);
    let shown = env.gt(&["schedule", "list"]).ok().stdout;
    assert!(
        shown.contains("RECURRING") && shown.contains("nightly"),
        "{shown}"
    );
    // A run creates an item, and its polecat has the formula as its molecule.
    let run = env.json(&["schedule", "run", "nightly"]);
    let item = run["started"][0]["bead"].as_str().unwrap().to_owned();
    let shown = env.json(&["work", "show", &item]);
    assert_eq!(shown["labels"], serde_json::json!(["recurring:nightly"]));
    assert_eq!(shown["status"], "hooked");
    let molecule = env.json(&["mol", "status", "--agent", TOAST]);
    assert_eq!(molecule["formula"], "review", "{molecule}");
    let entry = &env.json(&["schedule", "list"])["recurring"][0];
    assert_eq!(
        (&entry["runs"], &entry["last_item"]),
        (&1.into(), &item.as_str().into())
    );
    env.gt(&["schedule", "run", "other"]).fails(3);
    env.gt(&["schedule", "remove", "other"]).fails(3);
    env.gt(&["schedule", "remove", "nightly"]).ok();
    assert_eq!(
        env.json(&["schedule", "list"])["recurring"],
        serde_json::json!([])
    );
    assert_eq!(status(&env, &item), "hooked", "its item stays");
}

/// Sets a time zone whose next minute begins after this number of seconds.
fn begin_minute_in(env: &mut TestEnv, seconds: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ahead = (120 - seconds - now.as_secs() % 60) % 60;
    env.set("TZ", &format!("TEST-00:00:{ahead:02}"));
}

#[test]
fn daemon_queues_recurring_work_when_it_falls_due() {
    let mut env = town();
    env.gt(&["schedule", "pause"]).ok();
    // Time for the first sweep of the daemon; the next sweep is a minute later.
    begin_minute_in(&mut env, 8);
    env.gt(&["schedule", "add", "--cron", "* * * * *", "patrol"])
        .ok();
    env.gt(&["daemon", "start"]).ok();
    let duties = || env.gt(&["daemon", "status", "--json"]).ok().json()["duties"].clone();
    wait_until("the first sweep has run", TIMEOUT, || {
        duties()["recurring"]["runs"].as_u64()
    });
    assert_eq!(queue(&env), [""; 0], "it is not due yet");
    let queued = wait_until("its timer has queued it", TIMEOUT, || queue(&env).pop());
    assert_eq!(duties()["upkeep"]["runs"], 1, "no sweep has queued it");
    let labels = env.json(&["work", "show", &queued])["labels"].clone();
    assert_eq!(labels, serde_json::json!(["recurring:patrol"]));
    // The daemon starts it as soon as the schedule is resumed.
    env.gt(&["schedule", "resume"]).ok();
    await_queue(&env, &[]);
    assert_eq!(status(&env, &queued), "hooked");
    env.gt(&["daemon", "stop"]).ok();
}

#[test]
fn run_that_was_missed_while_no_daemon_ran_happens_once() {
    let env = town();
    env.gt(&["schedule", "pause"]).ok();
    env.gt(&["schedule", "add", "--cron", "@daily", "patrol"])
        .ok();
    let database = env.town().join(".work/items.db");
    let database = rusqlite::Connection::open(database).unwrap();
    let set_back = "UPDATE recurring SET seen_at = '2026-01-01T00:00:00.000Z'";
    database.execute(set_back, []).unwrap();
    env.gt(&["daemon", "start"]).ok();
    let status = || env.gt(&["daemon", "status", "--json"]).ok().json();
    wait_until("it was queued", TIMEOUT, || {
        (queue(&env).len() == 1).then_some(())
    });
    let sweeps = || status()["duties"]["recurring"]["runs"].as_u64().unwrap();
    let before = sweeps();
    signal(
        u32::try_from(status()["pid"].as_u64().unwrap()).unwrap(),
        Signal::HUP,
    );
    wait_until("another sweep has run", TIMEOUT, || {
        (sweeps() > before).then_some(())
    });
    env.gt(&["daemon", "stop"]).ok();
    let entry = &env.json(&["schedule", "list"])["recurring"][0];
    assert_eq!((queue(&env).len(), &entry["runs"]), (1, &1.into()));
}
