//! `gt hook` and `gt unhook`: the item that an agent works on.

use crate::env::TestEnv;
use crate::sessions::list_sessions;
use crate::work::{create, id, ids};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::process::Child;

#[test]
fn an_item_is_on_one_hook_and_a_hook_has_one_item() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    assert_eq!(env.json(&["hook", "--agent", "gastown/max"]), Value::Null);
    env.gt(&["hook"]).fails(2);
    let [a, b] = ["a", "b"].map(|title| id(&create(&env, &[title])).to_owned());
    env.gt(&["crew", "start", "max"]).ok();
    let hooked = env.json(&["hook", &a, "--agent", "gastown/max"]);
    assert_eq!(hooked["status"], "hooked");
    assert_eq!(hooked["assignee"], "gastown/crew/max");
    assert_eq!(id(&env.json(&["hook", "--agent", "gastown/max"])), a);
    env.gt(&["hook", &a, "--agent", "gastown/max"]).ok();
    env.gt(&["hook", &b, "--agent", "gastown/max"]).fails(4);
    env.gt(&["hook", &a, "--agent", "gastown/amy"]).fails(4);
    env.gt(&["work", "update", &a, "--status", "open"]).fails(4);
    env.gt(&["work", "update", &b, "--status", "hooked"])
        .fails(2);
    assert_eq!(ids(&env, &["ready"]), [b.as_str()]);
    // The running session is recorded for the item, and so is the next one.
    assert_eq!(list_sessions(&env, &["--work", &a]).len(), 1);
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    assert_eq!(list_sessions(&env, &["--work", &a]).len(), 2);
    let taken = env.json(&["unhook", &a]);
    assert_eq!(taken["agent"], "gastown/crew/max");
    assert_eq!(env.json(&["work", "show", &a])["status"], "open");
    assert_eq!(env.json(&["unhook", "--agent", "gastown/max"]), Value::Null);
    env.gt(&["hook", &a, "--agent", "gastown/amy"]).ok();
    env.gt(&["work", "close", &a]).ok();
    assert_eq!(env.json(&["hook", "--agent", "gastown/amy"]), Value::Null);
    env.gt(&["hook", &a, "--agent", "gastown/amy"]).fails(4);
    let told: Vec<Value> = env
        .json(&["events", "--type", "hook,unhook"])
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0]["payload"]["bead"], json!(a));
    let feed = env.gt(&["events", "--feed"]).ok().stdout;
    assert!(feed.contains(&format!("hooked {a}")), "{feed}");
}

#[test]
fn hooked_item_stays_with_its_holder() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let item = id(&create(&env, &["Work"])).to_owned();
    env.gt(&["hook", &item, "--agent", "gastown/max"]).ok();
    let update = |option: &str, value: &str| env.gt(&["work", "update", &item, option, value]);
    for status in ["in_progress", "hooked", "in_progress"] {
        update("--status", status).ok();
        for other in ["open", "pinned", "blocked"] {
            let refused = update("--status", other).fails(4);
            let hint = format!("`gt unhook {item}`");
            assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
        }
        update("--assignee", "gastown/amy").fails(4);
        update("--assignee", "").fails(4);
        update("--assignee", "gastown/max").ok();
        let found = env.json(&["work", "show", &item]);
        assert_eq!(found["status"], status);
        assert_eq!(found["assignee"], "gastown/crew/max");
    }
    env.gt(&["unhook", &item]).ok();
    update("--status", "blocked").ok();
    update("--assignee", "gastown/amy").ok();
}

#[test]
fn one_of_a_hundred_concurrent_claims_wins() {
    let names: Vec<String> = (0..100).map(|number| format!("agent/a{number}")).collect();
    let env = TestEnv::with_town();
    for number in 0..100 {
        fs::create_dir_all(env.town().join(format!("agents/a{number}"))).unwrap();
    }
    let wanted = id(&create(&env, &["Wanted"])).to_owned();
    let racers: Vec<(Child, &String)> = names
        .iter()
        .map(|name| (env.spawn(&["hook", &wanted, "--agent", name]), name))
        .collect();
    let mut winners = Vec::new();
    for (racer, name) in racers {
        let output = racer.wait_with_output().unwrap();
        match output.status.code() {
            Some(0) => winners.push(name.clone()),
            code => assert_eq!(code, Some(4), "{output:?}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(
        env.json(&["work", "show", &wanted])["assignee"],
        json!(winners[0])
    );
}

#[test]
fn hook_works_while_the_journal_cannot_be_written() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Mend the roof", "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap();
    env.gt(&["start", "gastown/max"]).ok();
    let journal = env.town().join(".sessions");
    fs::rename(&journal, env.path("away")).unwrap();
    fs::write(&journal, "in the way").unwrap();
    env.gt(&["hook", id, "--agent", "gastown/max"]).ok();
    let log = fs::read_to_string(env.town().join(".runtime/gt.log")).unwrap();
    assert!(log.contains("hook: "), "{log}");
    fs::remove_file(&journal).unwrap();
    fs::rename(env.path("away"), &journal).unwrap();
    assert_eq!(env.json(&["hook", "--agent", "gastown/max"])["id"], id);
}

#[test]
fn work_is_not_put_on_the_hook_of_a_missing_agent() {
    let env = TestEnv::with_rig();
    let id = env.create_item("Mend the roof");
    assert_snapshot!(env.snapshot(&["hook", &id, "--agent", "gastown/polecats/Ghost"]), @"
    exit code: 3
    --- stderr
    error: there is no agent gastown/polecats/Ghost
    hint: `gt agents --stopped` lists all agents
    ");
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
    env.gt(&["hook", &id, "--agent", "mayor"]).ok();
    env.gt(&["unhook", &id]).ok();
    env.gt(&["hook", &id, "--agent", "gastown/witness"]).ok();
}

#[test]
fn hook_prints_the_item() {
    let env = TestEnv::with_crew(&["max"]);
    assert_snapshot!(env.snapshot(&["hook", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    Nothing is on the hook of gastown/crew/max.
    ");
    let id = env.create_item("Mend the roof");
    assert_snapshot!(env.snapshot(&["hook", &id, "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    gt-[ID] is on the hook of gastown/crew/max.
    ");
    assert_snapshot!(env.snapshot(&["hook", "--agent", "gastown/max"]), @"
    exit code: 0
    --- stdout
    gt-[ID] Mend the roof [task, hooked, P2]
    ");
    assert_snapshot!(env.snapshot(&["unhook", &id]), @"
    exit code: 0
    --- stdout
    gt-[ID] is off the hook of gastown/crew/max, and open again.
    ");
    assert_snapshot!(env.snapshot(&["hook", "nope-12345", "--agent", "gastown/max"]), @"
    exit code: 3
    --- stderr
    error: there is no work item nope-12345
    hint: `gt work list` shows them
    ");
}
