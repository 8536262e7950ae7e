//! `gt crew`: removal of workers.

use crate::env::TestEnv;
use insta::assert_snapshot;
use std::fs;

#[test]
fn crew_is_removed_only_when_nothing_is_lost() {
    let env = TestEnv::with_crew(&["max"]);
    let worktree = env.town().join("gastown/crew/max");
    fs::write(worktree.join("new.txt"), "work").unwrap();
    env.gt(&["crew", "start", "max"]).ok();
    assert_snapshot!(env.snapshot(&["crew", "rm", "max"]), @"
    exit code: 4
    --- stderr
    error: gastown/crew/max has work that exists nowhere else: 1 changed file
    hint: commit and push it, or `--force`: it is then kept under refs/gt/saved/
    ");
    assert_eq!(
        env.running(),
        ["gastown/crew/max"],
        "a refusal changes nothing"
    );
    assert_snapshot!(env.snapshot(&["crew", "rm", "max", "--force", "--dry-run"]), @"
    exit code: 0
    --- stdout
    Would remove gastown/crew/max: its container, worktree ~/gt/gastown/crew/max, branch crew/max; and keep work that exists nowhere else: 1 changed file.
    ");
    assert!(worktree.exists());
    let removed = env
        .gt(&["crew", "rm", "max", "--force", "--json"])
        .ok()
        .json();
    let saved = removed[0]["saved"][0].as_str().unwrap();
    assert!(!worktree.exists());
    assert_eq!(env.sessions(), Vec::<String>::new());
    let kept = env.git(
        &env.town().join("gastown/.repo.git"),
        &["show", &format!("{saved}:new.txt")],
    );
    assert_eq!(kept, "work");
    env.gt(&["crew", "add", "max"]).ok();
    assert!(!worktree.join("new.txt").exists());
}

#[test]
fn commits_that_are_nowhere_else_are_never_lost() {
    let env = TestEnv::with_crew(&["max", "amy", "zoe"]);
    let bare = env.town().join("gastown/.repo.git");
    let commit = |name: &str| {
        let dir = env.town().join("gastown/crew").join(name);
        fs::write(dir.join("new.txt"), name).unwrap();
        env.git(&dir, &["add", "."]);
        env.git(&dir, &["commit", "--quiet", "-m", "work"]);
        env.git(&dir, &["rev-parse", "HEAD"]).trim().to_owned()
    };
    // The commit is on the branch, and a detached HEAD is checked out.
    let work = commit("max");
    env.git(
        &env.town().join("gastown/crew/max"),
        &["checkout", "--quiet", "--detach", "origin/main"],
    );
    env.gt(&["crew", "rm", "max"]).fails(4);
    // The folder is missing.
    commit("amy");
    fs::remove_dir_all(env.town().join("gastown/crew/amy")).unwrap();
    fs::create_dir(env.town().join("gastown/crew/amy")).unwrap();
    env.gt(&["crew", "rm", "amy"]).fails(4);
    let removed = env
        .gt(&["crew", "rm", "max", "--force", "--json"])
        .ok()
        .json();
    let saved = removed[0]["saved"][0].as_str().unwrap();
    assert_eq!(env.git(&bare, &["rev-parse", saved]).trim(), work);
    // A nested repository cannot be saved, so the worktree is not removed.
    let inner = env.town().join("gastown/crew/zoe/inner");
    env.git(
        &env.town(),
        &[
            "clone",
            "--quiet",
            bare.to_str().unwrap(),
            inner.to_str().unwrap(),
        ],
    );
    assert_snapshot!(env.snapshot(&["crew", "rm", "zoe", "--force"]), @"
    exit code: 4
    --- stderr
    error: ~/gt/gastown/crew/zoe contains a separate repository: inner/
    hint: move it away first: gt cannot save its contents
    ");
    assert!(inner.join("README.md").exists());
}

#[test]
fn empty_list_names_the_command_that_adds_a_worker() {
    let env = TestEnv::with_rig();
    assert_snapshot!(env.snapshot(&["crew", "list"]), @"
    exit code: 0
    --- stdout
    No crew workers. `gt crew add RIG/NAME` makes one.
    ");
    assert_eq!(env.json(&["crew", "list"]), serde_json::json!([]));
}
