//! Items that are reopened while they wait to be merged: no item is closed under its worker, and no
//! commit is lost.

use crate::env::{TIMEOUT, TestEnv};
use crate::mq::{MERGED, commit, files, finish, item, repository, status, validate_with, worktree};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const TOAST: &str = "gastown/polecats/Toast";

fn queued_refs(env: &TestEnv) -> String {
    env.git(&repository(env), &["for-each-ref", "refs/gt/queued"])
}

#[test]
fn an_item_that_is_opened_again_is_not_merged_as_it_was() {
    let env = TestEnv::with_rig();
    let id = item(&env, &["Twice"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join(TOAST);
    let first = commit(&env, &dir, "a.txt", "a\n");
    let merge = env.json(&["done", "--agent", TOAST])["merge"].clone();
    let merge = merge.as_str().unwrap();
    // A late sling or hook is refused with a hint, before it changes anything.
    for late in [
        &["sling", &id, "--no-start"][..],
        &["hook", &id, "--agent", TOAST],
    ] {
        let refused = env.gt(late).fails(4).stderr;
        assert!(refused.contains("waits to be merged"), "{refused}");
        let hint = format!("`gt work update {id} --status open` frees it, and withdraws");
        assert!(refused.contains(&hint), "{refused}");
    }
    assert_snapshot!(env.snapshot(&["work", "update", &id, "--status", "open"]), @"
    exit code: 0
    --- stdout
    Changed gt-[ID].
    --- stderr
    warning: the merge mr-[ID] of polecat/Toast/gt-[ID] is withdrawn: gt-[ID] was reopened; its commit [HEX] is kept
    ");
    let entry = env.json(&["mq", "status", merge]);
    assert_eq!(entry["status"], "withdrawn", "{entry}");
    assert_eq!(env.json(&["mq", "list"]), json!([]));
    let events = env.json(&["events", "--type", "merge_withdrawn"]);
    assert_eq!(events[0]["payload"]["merge"], json!(merge), "{events}");
    // The work continues on the same branch, and the queue ignores it.
    env.gt(&["sling", &id, "--no-start"]).ok();
    let second = commit(&env, &dir, "b.txt", "b\n");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 0
    --- stdout
    Nothing waits to be merged.
    ");
    assert_eq!(status(&env, &id), "hooked");
    assert!(queued_refs(&env).contains(&first), "it is kept");
    let again = env.json(&["done", "--agent", TOAST])["merge"].clone();
    assert_ne!(again, json!(merge));
    assert!(queued_refs(&env).contains(&second));
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
    assert_eq!(
        files(&env, &repository(&env), MERGED),
        ["README.md", "a.txt", "b.txt"]
    );
    assert_eq!(queued_refs(&env), "");
    // It also applies to an item that was closed by hand and reopened.
    let (id, merge) = {
        env.gt(&["crew", "add", "max"]).ok();
        finish(&env, "max", "c.txt", "c\n")
    };
    env.gt(&["work", "close", &id]).ok();
    env.gt(&["work", "reopen", &id]).ok();
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "withdrawn");
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "open");
}

#[test]
fn submitted_item_is_given_to_no_agent() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let (id, merge) = finish(&env, "max", "a.txt", "a\n");
    env.gt(&["work", "update", &id, "--status", "blocked"]).ok();
    for late in [
        &["sling", &id, "--force", "--no-start"][..],
        &["sling", &id, "gastown/amy", "--force", "--no-start"],
        &["hook", &id, "--agent", "gastown/amy"],
        &["task", "start", &id, "--force"],
    ] {
        let refused = env.gt(late).fails(4).stderr;
        assert!(refused.contains("waits to be merged"), "{refused}");
    }
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "queued");
    assert_eq!(status(&env, &id), "blocked");
}

#[test]
fn item_being_merged_cannot_be_reopened() {
    let env = TestEnv::with_crew(&["max"]);
    let (begun, go) = (env.path("begun"), env.path("go"));
    let line = format!(
        "touch {}; while ! test -e {}; do sleep 0.02; done",
        begun.display(),
        go.display()
    );
    validate_with(&env, &line);
    let (id, _) = finish(&env, "max", "a.txt", "a\n");
    let run = env.spawn(&["mq", "run"]);
    wait_until("its commands run", TIMEOUT, || begun.exists().then_some(()));
    let open = ["work", "update", &id, "--status", "open"];
    assert_snapshot!(env.snapshot(&open), @"
    exit code: 4
    --- stderr
    error: gt-[ID] is being merged (mr-[ID])
    hint: try again when it is done; `gt mq run mr-[ID]` ends what a killed run has left
    ");
    fs::write(&go, "").unwrap();
    assert!(run.wait_with_output().unwrap().status.success());
    assert_eq!(status(&env, &id), "closed");
}

/// Makes a town in which the work of max failed to merge, and Toast has the repair. Returns the
/// item, its queue entry, its repair, and the file that makes validation succeed.
fn with_a_repair() -> (TestEnv, String, String, String, PathBuf) {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let sound = env.path("sound");
    validate_with(&env, &format!("test -e {}", sound.display()));
    let (id, merge) = finish(&env, "max", "a.txt", "a\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let repair = ran[0]["repair"].as_str().unwrap().to_owned();
    let hooked = env.json(&["hook", "--agent", TOAST]);
    assert_eq!(hooked["id"], repair.as_str(), "{hooked}");
    (env, id, merge, repair, sound)
}

#[test]
fn held_repair_stays_on_its_hook_when_its_entry_is_merged() {
    let (env, id, merge, repair, sound) = with_a_repair();
    fs::write(&sound, "").unwrap();
    env.gt(&["mq", "retry", &merge]).ok();
    assert_snapshot!(env.snapshot(&["mq", "run"]), @r#"
    exit code: 0
    --- stdout
    mr-[ID] crew/max: merging into main
    mr-[ID] crew/max: running test -e ~/sound
    mr-[ID] crew/max: running echo "$GT_MERGE_COMMIT" >> ~/validated
    mr-[ID] crew/max: merged as [HEX]
    Your checkout's `main` is unchanged: `gt mq pull gastown` fast-forwards it to `gt/merged/main`.
    1 merged, 0 not.
    --- stderr
    warning: gt-[ID].1 stays on the hook of gastown/polecats/Toast, and is not closed
    "#);
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "merged");
    assert_eq!(status(&env, &id), "closed");
    assert_eq!(status(&env, &repair), "hooked");
    // The repair ends as usual.
    env.gt(&["done", "--agent", TOAST]).ok();
    assert_eq!(status(&env, &repair), "closed");
}

#[test]
fn failed_entry_of_a_reopened_item_is_withdrawn() {
    let (env, id, merge, repair, sound) = with_a_repair();
    assert_snapshot!(env.snapshot(&["hook", &id, "--agent", "gastown/amy"]), @"
    exit code: 4
    --- stderr
    error: gt-[ID] could not be merged (mr-[ID]), and is repaired by gt-[ID].1
    hint: `gt work show gt-[ID].1` shows who has it
    hint: `gt work update gt-[ID] --status open` frees it
    ");
    assert_snapshot!(env.snapshot(&["work", "update", &id, "--status", "open"]), @"
    exit code: 0
    --- stdout
    Changed gt-[ID].
    --- stderr
    warning: the merge mr-[ID] of crew/max is withdrawn: gt-[ID] was reopened; its repair gt-[ID].1 stays on the hook of gastown/polecats/Toast; its commit [HEX] is kept
    ");
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "withdrawn");
    assert_eq!(status(&env, &repair), "hooked");
    env.gt(&["hook", &id, "--agent", "gastown/amy"]).ok();
    env.gt(&["mq", "retry", &merge]).fails(4);
    // A withdrawn entry closes no item, whatever happens to its repair.
    fs::write(&sound, "").unwrap();
    env.gt(&["done", "--agent", TOAST]).ok();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "hooked");
    commit(&env, &worktree(&env, "amy"), "b.txt", "b\n");
    env.gt(&["done", "--agent", "gastown/amy"]).ok();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
    assert_eq!(
        files(&env, &repository(&env), MERGED),
        ["README.md", "b.txt"]
    );
}

#[test]
fn change_that_does_not_reopen_withdraws_nothing() {
    let (env, id, merge, repair, _) = with_a_repair();
    let told = env.gt(&["work", "update", &id, "--title", "Another"]).ok();
    assert_eq!(told.stderr, "");
    assert_eq!(env.json(&["mq", "status", &merge])["status"], "failed");
    // The repair may be marked as in progress, and stays on the hook during a retry.
    env.gt(&["work", "update", &repair, "--status", "in_progress"])
        .ok();
    env.gt(&["mq", "retry", &merge]).ok();
    env.gt(&["mq", "run"]).fails(1);
    assert_eq!(
        env.json(&["hook", "--agent", TOAST])["status"],
        "in_progress"
    );
    let told = env.gt(&["mq", "reject", &merge, "--reason", "no", "--reopen"]);
    told.ok();
    assert_eq!(status(&env, &id), "open");
    assert_eq!(status(&env, &repair), "closed");
}

#[test]
fn a_repair_that_is_opened_again_is_waited_for() {
    let env = TestEnv::with_crew(&["max"]);
    validate_with(&env, "test ! -e bad.txt");
    let (id, merge) = finish(&env, "max", "bad.txt", "x\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let repair = ran[0]["repair"].as_str().unwrap();
    let dir = env.town().join(TOAST);
    env.git(
        &dir,
        &["merge", "--quiet", ran[0]["commit"].as_str().unwrap()],
    );
    commit(&env, &dir, "half.txt", "x\n");
    env.gt(&["done", "--agent", TOAST]).ok();
    // The repair was incomplete.
    assert_snapshot!(env.snapshot(&["work", "update", repair, "--status", "open"]), @"
    exit code: 0
    --- stdout
    Changed gt-[ID].1.
    --- stderr
    warning: the merge mr-[ID] of polecat/Toast/gt-[ID].1 waits for its repair again: its repair gt-[ID].1 was reopened
    ");
    let events = env.json(&["events", "--type", "merge_withdrawn"]);
    assert_eq!(events[0]["payload"]["merge"], json!(merge), "{events}");
    let entry = env.json(&["mq", "status", &merge]);
    assert_eq!(entry["status"], "failed", "{entry}");
    env.gt(&["sling", repair, "--no-start"]).ok();
    env.git(&dir, &["rm", "--quiet", "bad.txt"]);
    commit(&env, &dir, "whole.txt", "x\n");
    let done = env.json(&["done", "--agent", TOAST]);
    assert_eq!(done["merge"], json!(merge), "{done}");
    env.gt(&["mq", "run"]).ok();
    for item in [id.as_str(), repair] {
        assert_eq!(status(&env, item), "closed");
    }
    assert_eq!(env.json(&["hook", "--agent", TOAST]), Value::Null);
}
