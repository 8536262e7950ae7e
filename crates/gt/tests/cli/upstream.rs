//! The merge queue and its remote: nothing is split between the two, nothing that was taken
//! back comes again, and what one entry meets there is not the fault of others.

use crate::env::TestEnv;
use crate::merging::{commit, finish, item, worktree};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

#[test]
fn what_git_calls_a_conflict_is_one_also_without_a_file() {
    let env = TestEnv::with_town();
    let source = env.repository("source");
    fs::create_dir(source.join("dir")).unwrap();
    for file in ["1", "2", "3", "4"] {
        let text = format!("{file}{file}{file}\n");
        commit(&env, &source, &format!("dir/f{file}"), &text);
    }
    let url = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", url, "--prefix", "gt"])
        .ok();
    env.gt(&["crew", "add", "max", "amy"]).ok();
    finish(&env, "max", "dir/new", "n\n");
    // Whoever moves half of a folder here and half of it there leaves nobody to say where
    // something new belongs.
    let amy = worktree(&env, "amy");
    for (to, names) in [("x", ["f1", "f2"]), ("y", ["f3", "f4"])] {
        fs::create_dir(amy.join(to)).unwrap();
        for name in names {
            fs::rename(amy.join("dir").join(name), amy.join(to).join(name)).unwrap();
        }
    }
    finish(&env, "amy", "b.txt", "b\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    assert_eq!(ran[0]["status"], "merged", "{ran}");
    assert_eq!(ran[1]["status"], "conflict", "{ran}");
    assert_eq!(ran[1]["files"], json!(["dir"]), "{ran}");
    let reason = ran[1]["reason"].as_str().unwrap();
    assert!(reason.contains("directory rename split"), "{reason}");
    // A task is given the same to resolve.
    let id = item(&env, &["As a task"]);
    let started = env.json(&["task", "start", &id]);
    let dir = PathBuf::from(started["work_dir"].as_str().unwrap());
    let base = env.git(&source, &["rev-parse", "HEAD"]);
    env.git(&dir, &["reset", "--quiet", "--hard", base.trim()]);
    env.git(&dir, &["merge", "--quiet", "crew/amy"]);
    let refused = env.gt(&["task", "merge", &id]).fails(1).stderr;
    assert!(refused.contains("in conflict with main"), "{refused}");
    let updated = env.gt(&["task", "update", &id, "--json"]).fails(1).json();
    assert_eq!(updated["result"], "conflict", "{updated}");
    assert_eq!(updated["files"], json!(["dir"]), "{updated}");
}
