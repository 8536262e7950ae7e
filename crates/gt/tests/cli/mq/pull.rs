//! `gt mq pull`, and the branches that remain in a person's repository.

use crate::env::TestEnv;
use crate::mq::{commit, finish, item, validate_with, with_bare_remote};
use insta::assert_snapshot;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

fn merged(env: &TestEnv, name: &str, file: &str) {
    finish(env, name, file, "x\n");
    env.gt(&["mq", "run"]).ok();
}

fn head(env: &TestEnv, dir: &Path) -> String {
    env.git(dir, &["rev-parse", "HEAD"]).trim().to_owned()
}

fn with_merged_work() -> (TestEnv, PathBuf) {
    let env = TestEnv::with_crew(&["max"]);
    merged(&env, "max", "a.txt");
    let source = env.path("source-gastown");
    (env, source)
}

#[test]
fn a_clean_checkout_is_fast_forwarded_with_its_files() {
    let env = TestEnv::with_crew(&["max"]);
    finish(&env, "max", "a.txt", "x\n");
    assert_snapshot!(env.snapshot(&["mq", "run"]), @"
    exit code: 0
    --- stdout
    mr-[ID] crew/max: merging into main
    mr-[ID] crew/max: merged as [HEX]
    Your checkout's `main` is unchanged: `gt mq pull gastown` fast-forwards it to `gt/merged/main`.
    1 merged, 0 not.
    ");
    let source = env.path("source-gastown");
    let before = head(&env, &source);
    // An untracked file does not block the pull.
    fs::write(source.join("notes"), "mine\n").unwrap();
    let pulled = env.json(&["mq", "pull"]);
    let after = head(&env, &source);
    assert_eq!(pulled["from"], json!(before), "{pulled}");
    assert_eq!(pulled["to"], json!(after));
    assert_eq!(pulled["commits"], 2, "the commit and its merge");
    assert!(source.join("a.txt").exists() && source.join("notes").exists());
    assert_eq!(env.git(&source, &["status", "--porcelain"]), "?? notes\n");
    assert_snapshot!(env.snapshot(&["mq", "pull", "gastown"]), @"
    exit code: 0
    --- stdout
    ✓ main in ~/source-gastown has all merged work.
    ");
    env.gt(&["mq", "pull", "other"]).fails(3);
}

#[test]
fn a_branch_that_is_not_checked_out_is_moved_alone() {
    let (env, source) = with_merged_work();
    env.git(&source, &["switch", "--quiet", "-c", "mine"]);
    let before = head(&env, &source);
    env.gt(&["mq", "pull"]).ok();
    assert_eq!(head(&env, &source), before);
    let files = env.git(&source, &["ls-tree", "--name-only", "main"]);
    assert_eq!(files, "README.md\na.txt\n");
    assert_eq!(env.git(&source, &["status", "--porcelain"]), "");
}

#[test]
fn a_dirty_or_diverged_checkout_is_left_as_it_is() {
    let (env, source) = with_merged_work();
    let before = head(&env, &source);
    fs::write(source.join("README.md"), "mine\n").unwrap();
    assert_snapshot!(env.snapshot(&["mq", "pull"]), @"
    exit code: 4
    --- stderr
    error: ~/source-gastown has changes that are not committed
    caused by: README.md
    hint: commit them, or `git stash` and try again; main was not changed
    ");
    assert_eq!(head(&env, &source), before);
    assert_eq!(env.git(&source, &["diff", "--name-only"]), "README.md\n");
    env.git(&source, &["checkout", "--quiet", "README.md"]);
    let own = commit(&env, &source, "own.txt", "mine\n");
    assert_snapshot!(env.snapshot(&["mq", "pull"]), @"
    exit code: 4
    --- stderr
    error: main in ~/source-gastown has commits that the merged work lacks
    hint: `git merge gt/merged/main` there brings both together
    hint: or let the queue merge them first: `gt mq run gastown`
    ");
    assert_eq!(head(&env, &source), own);
    // The queue merges the owner's commit first; then the pull is a fast-forward.
    merged(&env, "max", "b.txt");
    env.gt(&["mq", "pull"]).ok();
    assert!(source.join("b.txt").exists() && source.join("own.txt").exists());
}

#[test]
fn a_clone_of_a_remote_is_found_by_its_address() {
    let (env, bare) = with_bare_remote(&["max"]);
    let clone = env.path("clone");
    let url = bare.to_str().unwrap();
    let words = ["clone", "--quiet", url, clone.to_str().unwrap()];
    env.git(env.home(), &words);
    finish(&env, "max", "a.txt", "x\n");
    env.gt(&["mq", "run"]).ok();
    assert_snapshot!(env.snapshot(&["mq", "pull"]), @"
    exit code: 3
    --- stderr
    error: there is no checkout of gastown here
    hint: run it in yours, or name it: `gt mq pull gastown --checkout DIR`
    ");
    env.gt_in(&clone, &["mq", "pull", "gastown"]).ok();
    assert!(clone.join("a.txt").exists());
}

#[test]
fn merged_polecat_branches_do_not_stay_in_the_persons_repository() {
    let env = TestEnv::with_rig();
    let source = env.path("source-gastown");
    for number in 0..2 {
        let id = item(&env, &["Work", "--rig", "gastown"]);
        env.gt(&["sling", &id, "--no-start"]).ok();
        let dir = env.town().join("gastown/polecats/Toast");
        commit(&env, &dir, &format!("{number}.txt"), "x\n");
        env.gt(&["done", "--agent", "gastown/Toast"]).ok();
        let branch = format!("polecat/Toast/{id}");
        let pushed = env.git(&source, &["branch", "--list", "polecat/*"]);
        assert_eq!(pushed.trim(), branch, "it was pushed");
        env.gt(&["mq", "run"]).ok();
        let left = env.git(&source, &["branch", "--list", "polecat/*"]);
        assert_eq!(left, "");
        // The polecat's worktree is unchanged.
        let here = env.git(&dir, &["branch", "--show-current"]);
        assert_eq!(here.trim(), branch);
    }
}

#[test]
fn a_polecat_branch_that_has_gone_on_stays() {
    let env = TestEnv::with_rig();
    let source = env.path("source-gastown");
    let id = item(&env, &["Work", "--rig", "gastown"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join("gastown/polecats/Toast");
    commit(&env, &dir, "a.txt", "x\n");
    env.gt(&["done", "--agent", "gastown/Toast"]).ok();
    let branch = format!("polecat/Toast/{id}");
    // A person adds a commit to the pushed branch.
    env.git(&source, &["switch", "--quiet", &branch]);
    let added = commit(&env, &source, "b.txt", "x\n");
    env.git(&source, &["switch", "--quiet", "main"]);
    env.gt(&["mq", "run"]).ok();
    let tip = env.git(&source, &["rev-parse", &branch]);
    assert_eq!(tip.trim(), added);
}

#[test]
fn endless_output_of_a_command_is_bounded_in_its_log() {
    let env = TestEnv::with_crew(&["max"]);
    validate_with(
        &env,
        "echo first; yes | head -c 20000000; echo last; exit 1",
    );
    finish(&env, "max", "a.txt", "x\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let log = fs::read_to_string(ran[0]["log"].as_str().unwrap()).unwrap();
    assert!(log.len() < 1_100_000, "{}", log.len());
    assert!(log.contains("first\ny\n") && log.ends_with("y\nlast\n"));
    assert!(log.contains("bytes are left out here"));
}
