//! `gt done` submits all the work or fails: no item is closed while commits made for it are left
//! behind.

use crate::env::TestEnv;
use crate::mq::{
    MERGED, commit, files, item, repository, status, validate_with, with_bare_remote, worktree,
};
use insta::assert_snapshot;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const TOAST: &str = "gastown/polecats/Toast";
const DONE: [&str; 3] = ["done", "--agent", TOAST];
const LOCAL: [&str; 2] = ["-c", "protocol.file.allow=always"];

/// Makes a polecat with an item and a commit on the item's branch. Returns the item, the worktree
/// and the commit.
fn with_a_commit() -> (TestEnv, String, PathBuf, String) {
    let env = TestEnv::with_rig();
    let id = item(&env, &["The work"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join(TOAST);
    let tip = commit(&env, &dir, "a.txt", "a\n");
    (env, id, dir, tip)
}

#[test]
fn commits_on_the_items_own_branch_are_not_left_behind() {
    let (env, id, dir, _) = with_a_commit();
    let branch = format!("polecat/Toast/{id}");
    let mut refused = Vec::new();
    for elsewhere in [
        &["checkout", "--quiet", "origin/main"][..],
        &["checkout", "--quiet", "-b", "side"],
    ] {
        env.git(&dir, elsewhere);
        refused.push(env.snapshot(&DONE));
        assert_eq!(status(&env, &id), "hooked");
    }
    assert_snapshot!(refused.join("\n"), @"
    exit code: 4
    --- stderr
    error: polecat/Toast/gt-[ID] has a commit that main lacks, and ~/gt/gastown/polecats/Toast is not on that branch
    hint: `git switch polecat/Toast/gt-[ID]` there includes them
    hint: `git branch --force polecat/Toast/gt-[ID] HEAD` there discards them

    exit code: 4
    --- stderr
    error: polecat/Toast/gt-[ID] has a commit that main lacks, and ~/gt/gastown/polecats/Toast is not on that branch
    hint: `git switch polecat/Toast/gt-[ID]` there includes them
    hint: `git branch --force polecat/Toast/gt-[ID] HEAD` there discards them
    ");
    // Another commit for the same item does not replace the missing one.
    commit(&env, &dir, "b.txt", "b\n");
    env.gt(&DONE).fails(4);
    env.git(&dir, &["merge", "--quiet", "--no-edit", &branch]);
    let done = env.json(&DONE);
    assert_eq!(done["branch"], "side", "{done}");
    env.gt(&["mq", "run"]).ok();
    assert_eq!(
        files(&env, &repository(&env), MERGED),
        ["README.md", "a.txt", "b.txt"]
    );
    // To discard the commits, a person moves the branch with git.
    let id = item(&env, &["Nothing after all"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let branch = format!("polecat/Toast/{id}");
    commit(&env, &dir, "c.txt", "c\n");
    env.git(&dir, &["checkout", "--quiet", MERGED]);
    assert_snapshot!(env.snapshot(&DONE), @"
    exit code: 4
    --- stderr
    error: polecat/Toast/gt-[ID] has a commit that main lacks, and ~/gt/gastown/polecats/Toast is not on that branch
    hint: `git switch polecat/Toast/gt-[ID]` there includes them
    hint: `git branch --force polecat/Toast/gt-[ID] HEAD` there discards them
    ");
    env.git(&dir, &["branch", "--force", &branch, "HEAD"]);
    env.gt(&DONE).ok();
    assert_eq!(status(&env, &id), "closed");
}

#[test]
fn work_of_other_items_blocks_no_submission() {
    let env = TestEnv::with_crew(&["max"]);
    let dir = worktree(&env, "max");
    let hook = |title: &str| {
        let id = item(&env, &[title]);
        env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
        id
    };
    let done = ["done", "--agent", "gastown/max"];
    hook("Waits to be merged");
    commit(&env, &dir, "a.txt", "a\n");
    env.gt(&done).ok();
    env.git(&dir, &["checkout", "--quiet", "origin/main"]);
    let id = hook("Nothing to merge");
    env.gt(&done).ok();
    assert_eq!(status(&env, &id), "closed");
    // Commits made since then belong to this item.
    env.git(&dir, &["switch", "--quiet", "crew/max"]);
    commit(&env, &dir, "b.txt", "b\n");
    env.git(&dir, &["checkout", "--quiet", "origin/main"]);
    let id = hook("On the branch of max");
    assert_snapshot!(env.snapshot(&done), @"
    exit code: 4
    --- stderr
    error: crew/max has a commit that main lacks, and ~/gt/gastown/crew/max is not on that branch
    hint: `git switch crew/max` there includes them
    hint: `git branch --force crew/max HEAD` there discards them
    ");
    // Another branch may be submitted, because crew/max is not named after the item.
    env.git(&dir, &["switch", "--quiet", "-c", "side"]);
    commit(&env, &dir, "c.txt", "c\n");
    env.gt(&done).ok();
    assert_eq!(status(&env, &id), "in_progress");
}

#[test]
fn unfinished_git_operation_is_not_submitted() {
    let (env, id, dir, tip) = with_a_commit();
    commit(&env, &dir, "b.txt", "b\n");
    let refused = || {
        let refused = env.snapshot(&DONE);
        env.gt(&[&DONE[..], &["--force"]].concat()).fails(4);
        assert_eq!(status(&env, &id), "hooked");
        refused
    };
    let rebase = ["-c", "sequence.editor=echo break >", "rebase", "--quiet"];
    env.git(&dir, &[&rebase[..], &["-i", &tip]].concat());
    assert_snapshot!(refused(), @"
    exit code: 4
    --- stderr
    error: a rebase is under way in ~/gt/gastown/polecats/Toast
    hint: finish it there, or abort it with `git rebase --abort`
    ");
    env.git(&dir, &["rebase", "--abort"]);
    // A merge that changes no file.
    env.git(&dir, &["branch", "other", "HEAD^"]);
    env.git(&dir, &["switch", "--quiet", "other"]);
    env.git(&dir, &["commit", "--quiet", "--allow-empty", "-m", "Empty"]);
    env.git(&dir, &["switch", "--quiet", &format!("polecat/Toast/{id}")]);
    let merge = ["merge", "--quiet", "--no-commit", "--no-ff", "other"];
    env.git(&dir, &merge);
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    assert_snapshot!(refused(), @"
    exit code: 4
    --- stderr
    error: a merge is under way in ~/gt/gastown/polecats/Toast
    hint: finish it there, or abort it with `git merge --abort`
    ");
    // The work may be deferred in this state.
    env.gt(&[&DONE[..], &["--status", "deferred"]].concat())
        .ok();
    assert_eq!(status(&env, &id), "open");
}

#[test]
fn a_worktree_that_is_gone_is_not_one_without_work() {
    let (env, id, dir, tip) = with_a_commit();
    let away = env.path("away");
    fs::rename(&dir, &away).unwrap();
    assert_snapshot!(env.snapshot(&DONE), @"
    exit code: 4
    --- stderr
    error: the worktree of gastown/polecats/Toast is not there: ~/gt/gastown/polecats/Toast
    hint: put it back, or `gt start gastown/polecats/Toast` creates it again, on its branch
    hint: `gt work close gt-[ID]` closes it without checking the work
    ");
    assert_eq!(status(&env, &id), "hooked");
    fs::rename(&away, &dir).unwrap();
    // A worktree without its link is linked again; a folder of another kind is not.
    let link = fs::read(dir.join(".git")).unwrap();
    fs::remove_file(dir.join(".git")).unwrap();
    let done = env.json(&DONE);
    assert_eq!(done["commit"], json!(tip), "{done}");
    assert_eq!(fs::read(dir.join(".git")).unwrap(), link);
    env.gt(&["mq", "run"]).ok();
    let id = item(&env, &["More"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    fs::remove_file(dir.join(".git")).unwrap();
    env.git(&repository(&env), &["worktree", "prune"]);
    assert_snapshot!(env.snapshot(&DONE), @"
    exit code: 4
    --- stderr
    error: ~/gt/gastown/polecats/Toast is not empty and not a worktree of gastown
    hint: move it away; gt removes nothing that it did not make
    ");
    assert_eq!(status(&env, &id), "hooked");
    env.gt(&[&DONE[..], &["--status", "deferred"]].concat())
        .ok();
}

/// Adds the submodule `lib` to a worktree, commits it, and returns its remote.
fn add_lib(env: &TestEnv, dir: &Path) -> PathBuf {
    let remote = env.repository("lib-source");
    let bare = env.path("lib.git");
    let names = [remote.to_str().unwrap(), bare.to_str().unwrap()];
    env.git(
        env.home(),
        &[&["clone", "--quiet", "--bare"], &names[..]].concat(),
    );
    let words = ["submodule", "--quiet", "add", names[1], "lib"];
    env.git(dir, &[&LOCAL[..], &words].concat());
    env.git(dir, &["commit", "--quiet", "-m", "Add lib"]);
    bare
}

#[test]
fn a_submodule_is_not_pointed_to_a_commit_that_is_nowhere_else() {
    let (env, id, dir, _) = with_a_commit();
    add_lib(&env, &dir);
    let lib = dir.join("lib");
    commit(&env, &lib, "l.txt", "l\n");
    commit(&env, &dir, "b.txt", "b\n");
    assert_snapshot!(env.snapshot(&DONE), @"
    exit code: 4
    --- stderr
    error: the work points to commits that exist nowhere else, inside lib
    hint: push them there, such as with `git -C 'lib' push origin HEAD:BRANCH`
    ");
    // A pushed tag makes the commit available, although it is on no branch.
    env.git(&lib, &["tag", "v1"]);
    env.git(&lib, &["push", "--quiet", "origin", "v1"]);
    env.gt(&DONE).ok();
    env.gt(&["mq", "run"]).ok();
    assert_eq!(status(&env, &id), "closed");
}

#[test]
fn submodule_state_of_one_branch_does_not_affect_another() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    let bare = add_lib(&env, &worktree(&env, "max"));
    let finish = |name: &str| {
        let id = item(&env, &["Of lib"]);
        let agent = format!("gastown/{name}");
        env.gt(&["hook", &id, "--agent", &agent]).ok();
        env.gt(&["done", "--agent", &agent]).ok();
    };
    finish("max");
    env.gt(&["mq", "run"]).ok();
    let update = "git -c protocol.file.allow=always submodule --quiet update --init";
    validate_with(&env, &format!("{update} && test -e lib/README.md"));
    // The submodule commit is pushed and then deleted from the remote, so it is unavailable.
    let max = worktree(&env, "max");
    let lib = max.join("lib");
    commit(&env, &lib, "l.txt", "l\n");
    env.git(&lib, &["push", "--quiet", "origin", "HEAD:side"]);
    commit(&env, &max, "b.txt", "b\n");
    finish("max");
    env.git(&bare, &["branch", "--quiet", "-D", "side"]);
    env.git(&bare, &["reflog", "expire", "--expire=now", "--all"]);
    env.git(&bare, &["gc", "--quiet", "--prune=now"]);
    let amy = worktree(&env, "amy");
    env.git(&amy, &["merge", "--quiet", MERGED]);
    commit(&env, &amy, "c.txt", "c\n");
    finish("amy");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    assert_eq!(ran[0]["status"], "failed", "{ran}");
    assert_eq!(ran[1]["status"], "merged", "{ran}");
}

#[test]
fn rewritten_branch_replaces_the_pushed_one() {
    let (env, bare) = with_bare_remote(&["max"]);
    let id = item(&env, &["a"]);
    let dir = worktree(&env, "max");
    let done = ["done", "--agent", "gastown/max"];
    let hook = || env.gt(&["hook", &id, "--agent", "gastown/max"]).ok();
    hook();
    commit(&env, &dir, "a.txt", "a\n");
    env.gt(&[&done[..], &["--status", "deferred"]].concat())
        .ok();
    hook();
    env.git(&dir, &["commit", "--quiet", "--amend", "-m", "Better"]);
    let told = env.gt(&done).ok().stderr;
    assert_eq!(told, "");
    let head = env.git(&dir, &["rev-parse", "HEAD"]);
    assert_eq!(env.git(&bare, &["rev-parse", "crew/max"]), head);
    // Commits that another person pushed there stay.
    let theirs = env.git(&bare, &["rev-parse", "main"]);
    env.git(&bare, &["branch", "--force", "crew/max", theirs.trim()]);
    let side = ["commit-tree", "main^{tree}", "-p", "crew/max", "-m", "x"];
    let theirs = env.git(&bare, &side);
    env.git(&bare, &["branch", "--force", "crew/max", theirs.trim()]);
    env.git(&dir, &["fetch", "--quiet", "origin"]);
    env.gt(&["work", "update", &id, "--status", "open"]).ok();
    hook();
    env.git(&dir, &["commit", "--quiet", "--amend", "-m", "Best"]);
    let told = env.gt(&done).ok().stderr;
    assert!(told.contains("crew/max could not be pushed"), "{told}");
    assert_eq!(env.git(&bare, &["rev-parse", "crew/max"]), theirs);
    // Even if the agent has checked them out or reset to them before.
    env.git(&dir, &["checkout", "--quiet", theirs.trim()]);
    env.git(&dir, &["checkout", "--quiet", "crew/max"]);
    let own = env.git(&dir, &["rev-parse", "HEAD"]);
    env.git(&dir, &["reset", "--quiet", "--hard", theirs.trim()]);
    env.git(&dir, &["reset", "--quiet", "--hard", own.trim()]);
    env.gt(&["work", "update", &id, "--status", "open"]).ok();
    hook();
    let told = env.gt(&done).ok().stderr;
    assert!(told.contains("crew/max could not be pushed"), "{told}");
    assert_eq!(env.git(&bare, &["rev-parse", "crew/max"]), theirs);
}
