//! Polecats whose worktree has lost its link, or whose folder is gone.

use crate::env::TestEnv;
use insta::assert_snapshot;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

fn create(env: &TestEnv, title: &str) -> String {
    let item = env.json(&["work", "create", title]);
    item["id"].as_str().unwrap().to_owned()
}

/// Makes a polecat with an item on its hook and an uncommitted file, whose worktree has lost its
/// link. Returns the item and the folder.
fn with_a_broken_one() -> (TestEnv, String, PathBuf) {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join("gastown/polecats/Toast");
    fs::write(dir.join("new.txt"), "of Toast\n").unwrap();
    fs::remove_file(dir.join(".git")).unwrap();
    (env, id, dir)
}

/// Prunes the worktree, as git does whenever it adds another one.
fn forget_it(env: &TestEnv) {
    let repository = env.town().join("gastown/.repo.git");
    env.git(&repository, &["worktree", "prune"]);
}

#[test]
fn a_broken_worktree_is_linked_again_by_the_next_sling_with_its_files() {
    let (env, id, dir) = with_a_broken_one();
    let shown = env.json(&["polecat", "show", "Toast"]);
    assert_eq!(shown["worktree"], "broken", "{shown}");
    assert_eq!(shown.get("changed_files"), None, "unknown: {shown}");
    assert_snapshot!(env.snapshot(&["polecat", "show", "Toast"]), @"
    exit code: 0
    --- stdout
    agent  gastown/polecats/Toast
    state  stopped
    item  gt-[ID]
    branch  -
    worktree  broken: the folder exists, but git does not know it as a worktree
    ahead  -
    changed  -
    container  -
    session  -
    folder  ~/gt/gastown/polecats/Toast
    ");
    let slung = env.json(&["sling", &id, "--no-start"]);
    assert_eq!(slung["branch"], format!("polecat/Toast/{id}"), "{slung}");
    let shown = env.json(&["polecat", "show", "Toast"]);
    assert_eq!(shown["worktree"], "sound", "{shown}");
    assert_eq!(shown["changed_files"], 1, "{shown}");
    // After git pruned the worktree, it cannot be linked again.
    fs::remove_file(dir.join(".git")).unwrap();
    forget_it(&env);
    for more in [&["--no-start"][..], &[]] {
        let refused = env.gt(&[&["sling", &id], more].concat()).fails(4);
        assert!(refused.stderr.contains("not a worktree"), "{refused:?}");
    }
    assert!(dir.join("new.txt").exists());
    assert_eq!(env.json(&["work", "show", &id])["status"], "hooked");
}

#[test]
fn a_broken_worktree_with_files_is_not_removed_and_by_force_they_are_kept() {
    for is_forgotten in [false, true] {
        let (env, id, dir) = with_a_broken_one();
        if is_forgotten {
            forget_it(&env);
        }
        let nuke = ["polecat", "nuke", "Toast"];
        let dry = env.json(&[&nuke[..], &["--dry-run"]].concat());
        assert_eq!(dry[0]["refused"]["kind"], "conflict", "{dry}");
        assert_eq!(dry[0]["broken"], true, "{dry}");
        let refused = env.gt(&nuke).fails(4);
        assert!(refused.stderr.contains("broken"), "{refused:?}");
        // A refusal changes nothing.
        assert_eq!(env.json(&["work", "show", &id])["status"], "hooked");
        assert!(dir.join("new.txt").exists());
        let gone = env.json(&[&nuke[..], &["--force"]].concat());
        assert_eq!(gone[0]["released"], json!(id), "{gone}");
        assert!(!dir.exists());
        let saved = gone[0]["saved"].as_array().unwrap();
        let saved = saved.last().unwrap().as_str().unwrap();
        let kept = match is_forgotten {
            true => fs::read_to_string(PathBuf::from(saved).join("new.txt")).unwrap(),
            false => {
                let repository = env.town().join("gastown/.repo.git");
                env.git(&repository, &["show", &format!("{saved}:new.txt")])
            }
        };
        assert_eq!(kept, "of Toast\n");
        assert_eq!(env.json(&["work", "show", &id])["status"], "open");
        assert_eq!(env.json(&["polecat", "list"]), json!([]));
        // The next sling reuses the name, with a complete worktree.
        let slung = env.json(&["sling", &id, "--no-start"]);
        assert_eq!(slung["branch"], format!("polecat/Toast/{id}"), "{slung}");
    }
}

/// Leaves the worktree as a git that was killed while it created it.
fn lock_it(env: &TestEnv) {
    let entry = env.town().join("gastown/.repo.git/worktrees/Toast");
    for part in ["HEAD", "commondir", "index"] {
        let _ = fs::remove_file(entry.join(part));
    }
    fs::write(entry.join("locked"), "initializing").unwrap();
}

#[test]
fn worktree_lock_left_by_git_does_not_block_the_name() {
    for has_files in [false, true] {
        let env = TestEnv::with_rig();
        let id = create(&env, "a");
        env.gt(&["sling", &id, "--no-start"]).ok();
        let dir = env.town().join("gastown/polecats/Toast");
        lock_it(&env);
        if !has_files {
            fs::remove_file(dir.join("README.md")).unwrap();
        }
        let nuke = ["polecat", "nuke", "Toast"];
        // A worktree that contains only its link has no work, so no `--force` is needed.
        match has_files {
            true => {
                env.gt(&nuke).fails(4);
                env.gt(&[&nuke[..], &["--force"]].concat()).ok();
            }
            false => drop(env.gt(&nuke).ok()),
        }
        env.gt(&nuke).fails(3);
        assert!(!dir.exists());
        let slung = env.json(&["sling", &id, "--no-start"]);
        assert_eq!(slung["agent"], "gastown/polecats/Toast", "{slung}");
    }
}

#[test]
fn a_commit_on_no_branch_of_a_broken_worktree_is_kept() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join("gastown/polecats/Toast");
    env.git(&dir, &["checkout", "--quiet", "--detach"]);
    fs::write(dir.join("new.txt"), "of Toast\n").unwrap();
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "-m", "On no branch"]);
    let commit = env.git(&dir, &["rev-parse", "HEAD"]);
    fs::remove_file(dir.join(".git")).unwrap();
    fs::create_dir(dir.join(".git")).unwrap();
    env.gt(&["polecat", "nuke", "Toast", "--force"]).ok();
    let repository = env.town().join("gastown/.repo.git");
    let kept = env.git(&repository, &["for-each-ref", "refs/gt/saved"]);
    assert!(kept.contains(commit.trim()), "{kept}");
}

#[test]
fn polecat_without_a_folder_is_listed_while_it_has_work() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id, "--no-start"]).ok();
    let dir = env.town().join("gastown/polecats/Toast");
    fs::remove_dir_all(&dir).unwrap();
    let listed = env.json(&["polecat", "list", "gastown"]);
    assert_eq!(listed[0]["name"], "Toast", "{listed}");
    assert_eq!(listed[0]["bead"], json!(id));
    assert_eq!(listed[0]["worktree"], "missing");
    assert_snapshot!(env.snapshot(&["polecat", "list"]), @"
    exit code: 0
    --- stdout
    AGENT  STATE  ITEM  BRANCH  AHEAD  CHANGED
    gastown/polecats/Toast  stopped  gt-[ID]  (missing)  -  -
    ");
    env.gt(&["sling", &id, "--no-start"]).ok();
    assert!(dir.join("README.md").exists());
}

#[test]
fn a_dry_run_says_what_would_be_refused() {
    let env = TestEnv::with_crew(&["max"]);
    let id = create(&env, "a");
    env.gt(&["sling", &id, "--no-start"]).ok();
    env.gt(&["unhook", &id]).ok();
    let nuke = ["polecat", "nuke", "Toast"];
    let dry_nuke = [&nuke[..], &["--dry-run"]].concat();
    let dry = env.gt(&dry_nuke).ok().stdout;
    assert_eq!(dry, "Would remove gastown/polecats/Toast.\n");
    for dir in ["polecats/Toast", "crew/max"] {
        fs::write(env.town().join("gastown").join(dir).join("new.txt"), "x").unwrap();
    }
    assert_snapshot!(env.snapshot(&nuke), @"
    exit code: 4
    --- stderr
    error: gastown/polecats/Toast has work that exists nowhere else: 1 changed file
    hint: commit and push it, or `--force`: it is then kept under refs/gt/saved/
    ");
    let why = "has work that exists nowhere else: 1 changed file";
    let gc = ["polecat", "gc", "--older-than", "0s", "--dry-run"];
    for dry in [&dry_nuke[..], &gc, &["crew", "rm", "max", "--dry-run"]] {
        let told = env.gt(dry).ok().stdout;
        assert!(told.starts_with("Would be refused: "), "{told}");
        assert!(told.contains(why), "{told}");
        let told = env.json(dry);
        let message = told[0]["refused"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{told}");
        assert_eq!(told[0]["removed"], false, "{told}");
    }
    assert_snapshot!(env.snapshot(&[&dry_nuke[..], &["--force"]].concat()), @"
    exit code: 0
    --- stdout
    Would remove gastown/polecats/Toast, and keep work that exists nowhere else: 1 changed file.
    ");
}

#[test]
fn polecat_name_alone_is_enough_if_one_rig_has_it() {
    let env = TestEnv::with_rig();
    let id = create(&env, "a");
    env.gt(&["sling", &id, "gastown/polecats/Toast", "--no-start"])
        .ok();
    env.add_rig("other", "ot");
    let shown = env.json(&["polecat", "show", "Toast"]);
    assert_eq!(shown["agent"], "gastown/polecats/Toast", "{shown}");
    env.gt(&["polecat", "show", "Nobody"]).fails(3);
    env.gt(&["start", "--create", "other/polecats/Toast"]).ok();
    env.gt(&["polecat", "show", "Toast"]).fails(2);
}
