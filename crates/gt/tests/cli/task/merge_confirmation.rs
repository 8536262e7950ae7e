//! The first `gt task merge` of a rig lists its steps and asks for confirmation.

use super::*;
use insta::assert_snapshot;
use serde_json::json;

/// Makes a task with a commit, in a town that asks before the first merge.
fn asking() -> (TestEnv, String) {
    let (env, id, dir) = running();
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("confirm = false\n", "")).unwrap();
    commit(&env, &dir, "new", "x\n");
    (env, id)
}

#[test]
fn first_merge_without_a_terminal_lists_its_steps_and_changes_nothing() {
    let (env, id) = asking();
    assert_snapshot!(env.snapshot(&["task", "merge", &id]), @"
    exit code: 2
    --- stderr
    error: the first merge in gastown has to be confirmed
    caused by: merge gt-[ID] with main of gastown
    caused by: run no test: `validate` under [rigs.gastown.merge] in town.toml is not set
    caused by: keep it as refs/gt/merged/main in the town, and offer it as gt/merged/main in ~/source-gastown, where main itself stays as it is
    caused by: close gt-[ID]; its branch goes once nothing has it checked out
    hint: `gt task merge gt-[ID] --yes` confirms it and merges
    hint: `confirm = false` under [merge] in town.toml never asks
    ");
    assert_snapshot!(env.snapshot(&["task", "merge", &id, "--json"]), @r#"
    exit code: 2
    --- stderr
    {"error":{"kind":"unconfirmed","message":"the first merge in gastown has to be confirmed","causes":["merge gt-[ID] with main of gastown","run no test: `validate` under [rigs.gastown.merge] in town.toml is not set","keep it as refs/gt/merged/main in the town, and offer it as gt/merged/main in ~/source-gastown, where main itself stays as it is","close gt-[ID]; its branch goes once nothing has it checked out"],"hints":["`gt task merge gt-[ID] --yes` confirms it and merges","`confirm = false` under [merge] in town.toml never asks"]}}
    "#);
    assert_eq!(env.json(&["mq", "list", "--all"]), json!([]));
    let plan = env.json(&["task", "merge", &id, "--dry-run"]);
    assert_eq!(plan["confirmed"], false, "{plan}");
    assert_eq!(env.json(&["mq", "list", "--all"]), json!([]));
    let merged = env.json(&["task", "merge", &id, "--yes"]);
    assert_eq!(merged["result"], "merged", "{merged}");
    let delivery = merged["delivery"].as_str().unwrap();
    assert!(delivery.contains("`gt mq pull gastown`"), "{delivery}");
}

#[test]
fn confirmation_is_remembered_until_the_work_goes_elsewhere() {
    let (env, id) = asking();
    env.gt(&["task", "merge", &id, "--yes"]).ok();
    let dir = folder(&env, &id);
    env.gt(&["work", "reopen", &id]).ok();
    commit(&env, &dir, "more", "x\n");
    let plan = env.json(&["task", "merge", &id, "--dry-run"]);
    assert_eq!(plan["confirmed"], true, "{plan}");
    // The plan lists validation commands; adding them does not require another confirmation.
    env.add_settings("[rigs.gastown.merge]\nvalidate = ['true']\n");
    let plan = env.json(&["task", "merge", &id, "--dry-run"]);
    assert_eq!(plan["confirmed"], true, "{plan}");
    let steps = plan["steps"].to_string();
    assert!(steps.contains("run `true` on the result"), "{steps}");
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}into = 'origin'\n")).unwrap();
    let plan = env.json(&["task", "merge", &id, "--dry-run"]);
    assert_eq!(plan["confirmed"], false, "{plan}");
    let steps = plan["steps"].to_string();
    assert!(steps.contains("push it to main of "), "{steps}");
}

#[test]
fn task_merge_validates_and_waits_for_the_background_queue() {
    let (env, id) = asking();
    let path = env.town().join("town.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("automatic = false\n", "");
    let rig = "[rigs.gastown.merge]\nrepair_agents = false\nvalidate = ['test -e fixed']\n";
    fs::write(&path, format!("{text}\n{rig}")).unwrap();
    let failed = env
        .gt(&["task", "merge", &id, "--yes", "--json"])
        .fails(1)
        .json();
    assert_eq!(failed["result"], "failed", "{failed}");
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("`test -e fixed` failed"), "{reason}");
    commit(&env, &folder(&env, &id), "fixed", "x\n");
    let merged = env.json(&["task", "merge", &id]);
    assert_eq!(merged["result"], "merged", "{merged}");
    let source = env.path("source-gastown");
    let files = env.git(&source, &["ls-tree", "--name-only", "gt/merged/main"]);
    assert!(files.lines().any(|name| name == "fixed"), "{files}");
    let log = env.town().join(".runtime/merge/gastown/queue.log");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("merged as "), "{log}");
}
