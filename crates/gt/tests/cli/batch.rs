//! Batches: `gt sling` with several items, `gt work tree`, and the one message when all landed.

use crate::env::{TIMEOUT, TestEnv};
use crate::sling::{create, status};
use gt_tmux::testing::wait_until;
use serde_json::Value;

/// Makes a town without time between starts.
fn town() -> TestEnv {
    let env = TestEnv::with_rig();
    env.add_settings("[schedule]\nstart_spacing = '0s'\n");
    env
}

fn batch_of(env: &TestEnv, item: &str) -> String {
    let shown = env.json(&["work", "show", item]);
    shown["parent"].as_str().unwrap().to_owned()
}

fn progress(env: &TestEnv, batch: &str) -> Vec<String> {
    let tree = env.json(&["work", "tree", batch]);
    let children = tree["children"].as_array().unwrap().iter();
    children
        .map(|child| child["progress"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the mail and the events about the end of batches.
fn announcements(env: &TestEnv) -> (usize, usize) {
    let count = |list: &Value, field: &str, words: &str| {
        let list = list.as_array().unwrap().iter();
        let found = list.filter(|it| it[field].as_str().unwrap().contains(words));
        found.count()
    };
    let mail = env.json(&["mail", "inbox"]);
    let events = env.json(&["events", "--type", "batch_landed"]);
    (
        count(&mail, "subject", "has landed"),
        count(&events, "type", "batch_landed"),
    )
}

#[test]
fn owner_of_a_batch_is_notified_once() {
    let env = town();
    let a = create(&env, "a");
    let b = env.json(&["work", "create", "b", "--dep", &a])["id"].clone();
    let b = b.as_str().unwrap();
    let c = create(&env, "c");
    let slung = env.json(&["sling", &a, b, &c, "gastown"]);
    let batch = batch_of(&env, &a);
    assert_eq!(slung[0]["batch"], batch.as_str());
    assert_eq!(slung[1]["queued"], true, "{slung}");
    assert_eq!(slung[1]["reason"], format!("it waits for {a}"));
    assert_eq!(progress(&env, &batch), ["working", "queued", "working"]);
    let tree = env.json(&["work", "tree", &batch]);
    assert_eq!(tree["owner"], "human");
    assert_eq!(tree["parts"]["total"], 3);
    // Items start at the same time, so either polecat may have it.
    assert_eq!(tree["children"][0]["holder"], slung[0]["agent"], "{tree}");
    assert!(tree["total_cost_usd"].is_number(), "{tree}");
    // The batch itself is no work for an agent.
    env.gt(&["sling", &batch]).fails(4);
    let ready = env.json(&["work", "ready"]);
    assert!(!ready.to_string().contains(&batch), "{ready}");
    // An item that waited starts when its blocker is closed.
    env.gt(&["work", "close", &a]).ok();
    wait_until("the second item has started", TIMEOUT, || {
        (status(&env, b) == "hooked").then_some(())
    });
    let shown = env.gt(&["work", "tree", &batch]).ok().stdout;
    assert!(shown.contains("(1 of 3 landed, by human)"), "{shown}");
    // An item that was left for help is shown.
    let holder = env.json(&["work", "tree", &c])["holder"].clone();
    let holder = holder.as_str().unwrap();
    env.gt(&["done", "--agent", holder, "--status", "escalated"])
        .ok();
    let tree = env.json(&["work", "tree", &batch]);
    assert_eq!(tree["parts"]["failed"], serde_json::json!([c]));
    assert_eq!(announcements(&env), (0, 0));
    env.gt(&["work", "close", &c]).ok();
    env.gt(&["work", "close", b]).ok();
    assert_eq!(announcements(&env), (1, 1));
    assert_eq!(status(&env, &batch), "closed");
    env.gt(&["internal", "save", "--timer"]).ok();
    env.gt(&["schedule", "run"]).ok();
    assert_eq!(announcements(&env), (1, 1));
}

#[test]
fn batch_is_chosen_or_left_out() {
    let env = town();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|title| create(&env, title));
    let sling = |words: &[&str]| {
        let mut all = vec!["sling", "--no-start"];
        all.extend(words);
        env.gt(&all)
    };
    sling(&[&a, &b, "--no-batch"]).ok();
    let parent = |id: &str| env.json(&["work", "show", id])["parent"].clone();
    assert_eq!((parent(&a), parent(&b)), (Value::Null, Value::Null));
    let said = sling(&[&c, "--batch", "Spring cleaning"]).ok().stdout;
    assert!(said.contains(": Spring cleaning; `gt work tree"), "{said}");
    let batch = batch_of(&env, &c);
    sling(&[&d, "--batch", &batch]).ok();
    assert_eq!(batch_of(&env, &d), batch);
    // An item has one parent, and a misspelt id is no title.
    let e = create(&env, "e");
    sling(&[&d, &e, "--batch", "Other"]).fails(4);
    sling(&[&e, "--batch", "gt-nosuch"]).fails(3);
    assert_eq!(parent(&e), Value::Null);
}

#[test]
fn kill_while_a_batch_lands_loses_and_repeats_nothing() {
    for point in gt_town::supervision::batches::FAULT_POINTS {
        let env = town();
        let [a, b] = ["a", "b"].map(|title| create(&env, title));
        env.gt(&["sling", &a, &b, "--no-start"]).ok();
        env.gt(&["work", "close", &a]).ok();
        env.kill_at_fault(&["work", "close", &b], point);
        for _ in 0..2 {
            env.gt(&["internal", "save", "--timer"]).ok();
        }
        assert_eq!(announcements(&env), (1, 1), "{point}");
    }
}
