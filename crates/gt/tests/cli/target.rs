//! Which agent a command selects: without a target by folder and pane, with one by role or item.

use crate::env::{TestEnv, run};
use insta::assert_snapshot;
use serde_json::Value;

const MAX: &str = "gastown/crew/max";

fn create(env: &TestEnv, title: &str) -> String {
    let made = env.json(&["work", "create", "--rig", "gastown", title]);
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn commands_in_an_agents_folder_mean_that_agent() {
    let env = TestEnv::with_crew(&["max"]);
    let dir = env.town().join("gastown/crew/max");
    let id = create(&env, "a thing");
    env.gt(&["hook"]).fails(2);
    env.gt_in(&dir, &["hook", &id]).ok();
    let hooked = env.gt_in(&dir, &["hook", "--json"]).ok().json();
    assert_eq!(hooked["id"], id.as_str());
    let below = dir.join("below");
    std::fs::create_dir(&below).unwrap();
    let hooked = env.gt_in(&below, &["hook", "--json"]).ok().json();
    assert_eq!(
        hooked["id"],
        id.as_str(),
        "a folder below is the agent's too"
    );
    env.gt_in(&dir, &["mol", "status"]).ok();
    env.gt(&["mail", "send", MAX, "-s", "for max"]).ok();
    let inbox = env.gt_in(&dir, &["mail", "inbox", "--json"]).ok().json();
    assert_eq!(inbox[0]["subject"], "for max", "{inbox}");
    let written = env
        .gt_in(&dir, &["checkpoint", "write", "--json"])
        .ok()
        .json();
    assert_eq!(written["hooked_bead"], id.as_str(), "{written}");
    // A person in an agent's folder still sends mail as a person.
    env.gt_in(&dir, &["mail", "send", "mayor", "-s", "from me"])
        .ok();
    let sent = env
        .gt(&["mail", "inbox", "--agent", "mayor", "--json"])
        .ok()
        .json();
    assert_eq!(sent[0]["sender"], "human", "{sent}");
    env.gt_in(&dir, &["done"]).ok();
    let hooked = env.gt_in(&dir, &["hook", "--json"]).ok().json();
    assert_eq!(hooked, Value::Null);
}

#[test]
fn commands_in_an_agents_pane_mean_that_agent() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    let id = create(&env, "a thing");
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    let pane = env.format("gt-crew-max", "#{pane_id}");
    let mut hook = env.gt_command(&["hook", "--json"]);
    hook.env("TMUX", format!("{},1,0", env.socket().display()))
        .env("TMUX_PANE", pane);
    assert_eq!(run(&mut hook).ok().json()["id"], id.as_str());
}

#[test]
fn roles_and_items_are_targets() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX]).ok();
    env.gt(&["start", "witness"]).ok();
    assert!(env.running().contains(&"gastown/witness".to_owned()));
    let id = create(&env, "a thing");
    env.gt(&["hook", &id, "--agent", MAX]).ok();
    let sent = env.gt(&["nudge", &id, "hello", "--json"]).ok().json();
    assert_eq!(sent["agent"], MAX, "the item's holder");
    assert_eq!(env.gt(&["peek", &id, "--json"]).ok().json()["agent"], MAX);
    env.add_rig("beads", "bd");
    assert_snapshot!(env.snapshot(&["stop", "witness"]), @r#"
    exit code: 2
    --- stderr
    error: "witness" could be any of gastown/witness, beads/witness
    hint: give the whole address
    "#);
    // For an agent of a rig, a role selects the agent of that rig.
    run(env.gt_command(&["stop", "witness"]).env("GT_ROLE", MAX)).ok();
    assert!(!env.running().contains(&"gastown/witness".to_owned()));
}

#[test]
fn overseer_and_human_are_one_mailbox() {
    let env = TestEnv::with_town();
    env.gt(&["mail", "send", "overseer", "-s", "one"]).ok();
    env.gt(&["mail", "send", "human", "-s", "two"]).ok();
    for words in [
        &["mail", "inbox", "--json"][..],
        &["mail", "inbox", "--agent", "overseer", "--json"],
    ] {
        let inbox = env.gt(words).ok().json();
        assert_eq!(inbox.as_array().unwrap().len(), 2, "{words:?}: {inbox}");
    }
    let own = run(env
        .gt_command(&["mail", "inbox", "--json"])
        .env("GT_ROLE", "overseer"));
    assert_eq!(own.ok().json().as_array().unwrap().len(), 2);
}

#[test]
fn a_checkpoint_of_another_agent_describes_that_agents_worktree() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let crew = |name: &str| env.town().join("gastown/crew").join(name);
    std::fs::write(crew("max").join("of-max"), "x").unwrap();
    std::fs::write(crew("amy").join("of-amy"), "x").unwrap();
    let words = ["checkpoint", "write", "--agent", MAX, "--json"];
    for dir in [crew("amy"), env.home().to_owned()] {
        let written = env.gt_in(&dir, &words).ok().json();
        assert_eq!(
            written["modified_files"].to_string(),
            "[\"of-max\"]",
            "{written}"
        );
    }
}
