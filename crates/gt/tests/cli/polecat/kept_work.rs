//! Work in the worktree of a polecat that is removed or gets another item: nothing is lost,
//! wherever git keeps it.

use crate::env::TestEnv;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const NUKE: [&str; 3] = ["polecat", "nuke", "Toast"];

/// Makes a polecat with an item. Returns the item and the polecat's folder.
fn with_toast() -> (TestEnv, String, PathBuf) {
    let env = TestEnv::with_rig();
    let id = sling(&env, "a");
    let dir = env.town().join("gastown/polecats/Toast");
    (env, id, dir)
}

fn sling(env: &TestEnv, title: &str) -> String {
    let item = env.json(&["work", "create", title, "--rig", "gastown"]);
    let id = item["id"].as_str().unwrap().to_owned();
    env.gt(&["sling", &id, "--no-start"]).ok();
    id
}

fn repository(env: &TestEnv) -> PathBuf {
    env.town().join("gastown/.repo.git")
}

/// Removes Toast by force, after checking a refusal that contains `why` and changes nothing.
/// Returns the saved refs.
fn removed_by_force(env: &TestEnv, id: &str, why: &str) -> Vec<String> {
    let dry = env.json(&[&NUKE[..], &["--dry-run"]].concat());
    let message = dry[0]["refused"]["message"].as_str().unwrap();
    assert!(message.contains(why), "{dry}");
    let refused = env.gt(&NUKE).fails(4).stderr;
    assert!(refused.contains(why), "{refused}");
    assert_eq!(env.json(&["work", "show", id])["status"], "hooked");
    let gone = env.json(&[&NUKE[..], &["--force"]].concat());
    let saved = gone[0]["saved"].as_array().unwrap().iter();
    saved.map(|it| it.as_str().unwrap().to_owned()).collect()
}

/// Returns the contents of a file in these commits and their ancestors.
fn kept(env: &TestEnv, saved: &[String], name: &str) -> Vec<String> {
    let commits = saved.iter().flat_map(|it| {
        let all = env.git(&repository(env), &["rev-list", "--max-count=4", it]);
        all.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let text = |commit: String| {
        let show = ["cat-file", "-p", &format!("{commit}:{name}")];
        let mut command = env.command("git");
        let output = command.arg("-C").arg(repository(env)).args(show).output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    commits.filter_map(text).collect()
}

#[test]
fn files_of_a_worktree_that_has_lost_its_index_are_not_removed() {
    let (env, id, dir) = with_toast();
    fs::write(dir.join("precious.txt"), "of Toast\n").unwrap();
    fs::remove_file(repository(&env).join("worktrees/Toast/index")).unwrap();
    let saved = removed_by_force(&env, &id, "changed file");
    assert_eq!(kept(&env, &saved, "precious.txt"), ["of Toast\n"]);
}

#[test]
fn autostash_of_a_rebase_is_not_removed() {
    let (env, id, dir) = with_toast();
    fs::write(dir.join("README.md"), "changed\n").unwrap();
    let stop = ["-c", "sequence.editor=echo break >", "rebase", "--quiet"];
    env.git(&dir, &[&stop[..], &["--autostash", "-i", "HEAD"]].concat());
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
    env.gt(&["unhook", &id]).ok();
    let gc = ["polecat", "gc", "--older-than", "0s"];
    let passed_over = env.gt(&gc).stderr;
    assert!(dir.exists(), "{passed_over}");
    env.gt(&["hook", &id, "--agent", "gastown/polecats/Toast"])
        .ok();
    let saved = removed_by_force(&env, &id, "an unfinished rebase");
    let kept = kept(&env, &saved, "README.md");
    assert!(kept.contains(&"changed\n".to_owned()), "{kept:?}");
}

#[test]
fn staged_changes_are_kept() {
    let (env, id, dir) = with_toast();
    fs::write(dir.join("both.txt"), "staged\n").unwrap();
    fs::write(dir.join("gone.txt"), "staged\n").unwrap();
    env.git(&dir, &["add", "."]);
    fs::write(dir.join("both.txt"), "later\n").unwrap();
    fs::remove_file(dir.join("gone.txt")).unwrap();
    let saved = removed_by_force(&env, &id, "2 changed files");
    assert_eq!(kept(&env, &saved, "gone.txt"), ["staged\n"]);
    let mut both = kept(&env, &saved, "both.txt");
    both.sort();
    assert_eq!(both, ["later\n", "staged\n"]);
    // A staged file is saved, although it is deleted from the folder.
    let id = sling(&env, "b");
    fs::write(dir.join("gone.txt"), "staged\n").unwrap();
    env.git(&dir, &["add", "."]);
    fs::remove_file(dir.join("gone.txt")).unwrap();
    let saved = removed_by_force(&env, &id, "1 changed file");
    assert_eq!(kept(&env, &saved, "gone.txt"), ["staged\n"]);
}

#[test]
fn locked_worktree_is_not_removed() {
    let (env, id, dir) = with_toast();
    let lock = [
        "worktree",
        "lock",
        "--reason",
        "mine",
        dir.to_str().unwrap(),
    ];
    env.git(&repository(&env), &lock);
    assert_snapshot!(env.snapshot(&NUKE), @r#"
    exit code: 4
    --- stderr
    error: gastown/polecats/Toast has work that exists nowhere else: a locked worktree
    caused by: it was locked because of "mine"
    hint: `git worktree unlock` in it, or `--force`
    "#);
    let saved = removed_by_force(&env, &id, "locked");
    assert_eq!(saved, Vec::<String>::new());
    assert!(!dir.exists());
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_stays() {
    let (env, id, dir) = with_toast();
    let (branch, place) = (format!("polecat/Toast/{id}"), env.path("elsewhere"));
    env.git(&dir, &["switch", "--quiet", "-c", "another"]);
    let add = [
        "worktree",
        "add",
        "--quiet",
        place.to_str().unwrap(),
        &branch,
    ];
    env.git(&repository(&env), &add);
    let dry = env.json(&[&NUKE[..], &["--dry-run"]].concat());
    assert_eq!(dry[0]["kept_branches"], json!([branch]), "{dry}");
    let gone = env.json(&NUKE);
    assert_eq!(gone[0]["kept_branches"], json!([branch]), "{gone}");
    assert!(!dir.exists());
    env.gt(&NUKE).fails(3);
}

#[test]
fn a_folder_that_was_put_aside_is_no_worktree_of_the_next() {
    let (env, _, dir) = with_toast();
    fs::write(dir.join("old.txt"), "of the old one\n").unwrap();
    fs::remove_dir_all(repository(&env).join("worktrees/Toast")).unwrap();
    let gone = env.json(&[&NUKE[..], &["--force"]].concat());
    let saved = gone[0]["saved"].as_array().unwrap().last().unwrap();
    let saved = PathBuf::from(saved.as_str().unwrap());
    sling(&env, "b");
    assert!(saved.join("old.txt").exists());
    assert!(!saved.join(".git").exists());
}

#[test]
fn repository_around_the_town_is_not_taken_for_a_worktree() {
    let (env, id, dir) = with_toast();
    let around = env.town();
    env.git(&around, &["init", "--quiet", "-b", "outer"]);
    fs::remove_file(dir.join(".git")).unwrap();
    fs::create_dir(dir.join(".git")).unwrap();
    let shown = env.json(&["polecat", "show", "Toast"]);
    assert_eq!(shown["worktree"], "broken", "{shown}");
    assert_eq!(shown.get("branch"), None, "{shown}");
    fs::remove_dir(dir.join(".git")).unwrap();
    let write = ["checkpoint", "write", "--agent", "gastown/polecats/Toast"];
    let noted = env.gt_in(&dir, &[&write[..], &["--json"]].concat()).ok();
    assert_eq!(noted.json().get("branch"), None, "{noted:?}");
    env.gt(&[&NUKE[..], &["--force"]].concat()).ok();
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
}

#[test]
fn hooks_of_the_repository_do_not_block_a_new_branch() {
    let env = TestEnv::with_rig();
    let hook = env.path("hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = hook.parent().unwrap().to_str().unwrap();
    env.git(&repository(&env), &["config", "core.hooksPath", hooks]);
    for title in ["a", "b"] {
        let id = sling(&env, title);
        env.gt(&["unhook", &id]).ok();
    }
    let listed = env.json(&["polecat", "list"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn commits_of_a_submodule_that_are_nowhere_else_keep_a_polecat_from_other_work() {
    let (env, id, dir) = with_toast();
    let library = env.repository("library");
    let words = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    let add = ["add", library.to_str().unwrap(), "sub"];
    env.git(&dir, &[&words[..], &add].concat());
    env.git(&dir, &["commit", "--quiet", "-m", "Add sub"]);
    env.gt(&["unhook", &id]).ok();
    let state = || env.json(&["polecat", "show", "Toast"])["state"].clone();
    assert_eq!(state(), "idle");
    let sub = dir.join("sub");
    let commit = ["commit", "--quiet", "--allow-empty", "-m", "Only here"];
    env.git(&sub, &commit);
    env.git(&dir, &["add", "sub"]);
    env.git(&dir, &["commit", "--quiet", "-m", "Point to it"]);
    assert_eq!(state(), "dirty");
    env.git(&sub, &["push", "--quiet", "origin", "HEAD:refs/heads/more"]);
    assert_eq!(state(), "idle");
    // The submodule follows the branch, so no file looks changed after the next sling.
    env.git(
        &dir,
        &["switch", "--quiet", "-c", "polecat/Toast/idle", "HEAD~1"],
    );
    env.git(
        &dir,
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "update",
            "--quiet",
        ],
    );
    env.gt(&["sling", &id, "--no-start"]).ok();
    assert_eq!(env.git(&dir, &["status", "--porcelain"]), "");
}

#[test]
fn a_polecat_that_runs_gets_the_branch_of_its_new_item() {
    let (env, id, dir) = with_toast();
    let toast = "gastown/polecats/Toast";
    env.gt(&["sling", &id]).ok();
    env.gt(&["unhook", &id]).ok();
    let other = env.json(&["work", "create", "b", "--rig", "gastown"]);
    let other = other["id"].as_str().unwrap();
    fs::write(dir.join("new.txt"), "of the first\n").unwrap();
    assert_snapshot!(env.snapshot(&["sling", other, toast]), @"
    exit code: 4
    --- stderr
    error: gastown/polecats/Toast runs, and its worktree has work that exists nowhere else
    hint: `gt polecat show` shows it; let it commit, or give the item to another
    ");
    assert_eq!(env.json(&["hook", "--agent", toast]), Value::Null);
    fs::remove_file(dir.join("new.txt")).unwrap();
    let slung = env.json(&["sling", other, toast]);
    assert_eq!(slung["branch"], format!("polecat/Toast/{other}"), "{slung}");
    assert_eq!(env.json(&["hook", "--agent", toast])["id"], other);
}
