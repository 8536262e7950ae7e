//! `gt patrol`: one round of the rules, and its log.

use crate::env::{TIMEOUT, TestEnv, signal};
use crate::sling::create;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

const TOAST: &str = "gastown/polecats/Toast";

/// Runs patrols that change nothing until one plans an action; returns it.
fn planned(env: &TestEnv) -> Value {
    wait_until("a patrol plans an action", TIMEOUT, || {
        let plan = env.json(&["patrol", "--dry-run"]);
        let mut actions = plan["actions"].as_array().unwrap().iter();
        actions.find(|action| action["agent"] == TOAST).cloned()
    })
}

#[test]
fn town_without_trouble_needs_nothing() {
    let env = TestEnv::with_rig();
    let answer = env.gt(&["patrol"]).ok();
    assert_eq!(answer.stdout, "Nothing to do.\n");
    assert_eq!(env.json(&["patrol"]), json!({"actions": []}));
    assert!(!env.town().join(".runtime/patrol.json").exists());
    let log = env.gt(&["patrol", "log"]).ok();
    assert_eq!(log.stdout, "No patrol has done anything yet.\n");
    assert_eq!(env.json(&["patrol", "log"]), json!([]));
}

#[test]
fn dead_polecat_goes_on_in_its_conversation() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id]).ok();
    signal(env.pid(TOAST), Signal::KILL);
    let plan = planned(&env);
    assert_eq!(
        (&plan["rule"], &plan["action"], &plan["item"]),
        (&json!("dead-polecat"), &json!("resume"), &json!(id))
    );
    assert_eq!(
        env.agent(TOAST)["state"],
        "crashed",
        "a dry run changes nothing"
    );
    let done = env.json(&["patrol"]);
    let resumed = done["actions"].as_array().unwrap();
    let resumed = resumed
        .iter()
        .find(|it| it["rule"] == "dead-polecat")
        .unwrap();
    assert_eq!(resumed["done"], true);
    assert!(
        resumed["evidence"][0]
            .as_str()
            .unwrap()
            .contains("signal 9")
    );
    assert_ne!(env.agent(TOAST)["state"], "crashed");
    let sessions = env.json(&["sessions", "list", "--agent", TOAST]);
    let conversations: Vec<&Value> = sessions
        .as_array()
        .unwrap()
        .iter()
        .map(|session| &session["harness_session_id"])
        .collect();
    assert_eq!(conversations.len(), 2, "{sessions}");
    assert!(
        conversations[0].is_string() && conversations[0] == conversations[1],
        "{sessions}"
    );
    assert_eq!(
        env.json(&["patrol"]),
        json!({"actions": []}),
        "it backs off"
    );
    assert_snapshot!(env.snapshot(&["patrol", "log"]), @"
    exit code: 0
    --- stdout
    [TIME] ✓ resume gt-[ID]: gastown/polecats/Toast has gt-[ID] and does not run [dead-polecat]
    ");
    let events = env.json(&["events", "--type", "patrol_action"]);
    assert!(events.to_string().contains("dead-polecat"), "{events}");
}

#[test]
fn killed_patrol_repeats_no_action_at_once() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id]).ok();
    signal(env.pid(TOAST), Signal::KILL);
    planned(&env);
    env.kill_at_fault(&["patrol"], "patrol.remembered");
    assert_eq!(env.agent(TOAST)["state"], "crashed");
    assert_eq!(
        env.json(&["patrol"]),
        json!({"actions": []}),
        "it was remembered"
    );
}

#[test]
fn rules_are_documented() {
    let env = TestEnv::with_town();
    let rules = env.json(&["patrol", "rules"]);
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/patrol.md");
    let page = std::fs::read_to_string(page).unwrap();
    let text = env.gt(&["patrol", "rules"]).ok().stdout;
    let rules = rules.as_array().unwrap();
    for rule in rules {
        let name = rule["rule"].as_str().unwrap();
        assert!(
            page.contains(&format!("| `{name}` |")),
            "{name} is not documented"
        );
        assert!(text.contains(name));
    }
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `") && line.matches('|').count() == 6);
    assert_eq!(rows.count(), rules.len());
}
