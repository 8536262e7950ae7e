//! Worktrees with settings of their own, with the real git.

use super::*;
use crate::repo::workspace;
use crate::testing::TestTown;
use gt_core::Identity;
use std::path::PathBuf;

fn worktree(stage: &TestTown, name: &str) -> PathBuf {
    let dir = stage.town.root().join("lab/crew").join(name);
    workspace::ensure(&stage.town, &Identity::crew("lab", name), &dir).unwrap();
    dir
}

fn clone_of(stage: &TestTown) -> PathBuf {
    rig::repository(&stage.town, "lab")
}

/// Makes the rig as an earlier version of `gt` did.
fn undo(stage: &TestTown) {
    let clone = clone_of(stage);
    let config = clone.join("config");
    let config = config.to_str().unwrap();
    stage.git(&clone, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    stage.git(&clone, &["config", "--file", config, "core.bare", "true"]);
    let off = ["config", "--file", config, "--unset"];
    stage.git(&clone, &[&off[..], &["extensions.worktreeConfig"]].concat());
    fs::remove_file(clone.join("config.worktree")).unwrap();
    assert!(!is_done(&clone));
}

/// Uses the clone and two of its worktrees as agents and people do.
fn check_git(stage: &TestTown, max: &Path, joe: &Path) {
    let clone = clone_of(stage);
    let bare = ["rev-parse", "--is-bare-repository"];
    assert_eq!(stage.git(&clone, &bare), "true");
    for dir in [max, joe] {
        assert_eq!(stage.git(dir, &bare), "false");
        assert_eq!(stage.git(dir, &["status", "--porcelain"]), "");
        stage.git(dir, &["fetch", "--quiet", "origin"]);
    }
    // Git refuses a branch that is checked out in two places.
    stage.git(max, &["switch", "--quiet", "main"]);
    stage.git(max, &["switch", "--quiet", "crew/max"]);
    let there = clone.to_str().unwrap();
    stage.git(max, &["push", "--quiet", there, "HEAD:refs/heads/main"]);
    let more = max.parent().unwrap().join("more");
    let add = ["worktree", "add", "--quiet", "--detach"];
    stage.git(max, &[&add[..], &[more.to_str().unwrap()]].concat());
    assert_eq!(stage.git(&more, &["status", "--porcelain"]), "");
    stage.git(&clone, &["worktree", "remove", more.to_str().unwrap()]);
    let listed = stage.git(&clone, &["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("bare").count(), 1, "{listed}");
}

#[test]
fn git_works_in_the_clone_and_in_worktrees_of_a_new_rig() {
    let stage = TestTown::new().with_rig();
    assert!(is_done(&clone_of(&stage)));
    let [max, joe] = ["max", "joe"].map(|name| worktree(&stage, name));
    check_git(&stage, &max, &joe);
}

#[test]
fn setting_of_a_worktree_affects_no_other() {
    let stage = TestTown::new().with_rig();
    let [max, joe] = ["max", "joe"].map(|name| worktree(&stage, name));
    stage.git(&max, &["config", "--worktree", "core.fsmonitor", "x"]);
    stage.git(&max, &["config", "user.name", "shared"]);
    let of = |dir: &Path, key: &str| stage.git(dir, &["config", "--default", "-", "--get", key]);
    assert_eq!(of(&max, "core.fsmonitor"), "x");
    for other in [&joe, &clone_of(&stage)] {
        assert_eq!(of(other, "core.fsmonitor"), "-");
        assert_eq!(of(other, "user.name"), "shared");
    }
}

#[test]
fn existing_rig_is_changed_when_a_worktree_is_made() {
    let stage = TestTown::new().with_rig();
    let max = worktree(&stage, "max");
    undo(&stage);
    let joe = worktree(&stage, "joe");
    assert!(is_done(&clone_of(&stage)));
    check_git(&stage, &max, &joe);
}

#[test]
fn change_that_was_interrupted_leaves_a_working_rig_and_is_completed() {
    let stage = TestTown::new().with_rig();
    let [max, joe] = ["max", "joe"].map(|name| worktree(&stage, name));
    let clone = clone_of(&stage);
    let config = clone.join("config").display().to_string();
    let own = clone.join("config.worktree").display().to_string();
    let head = stage.git(&clone, &["rev-parse", "HEAD"]);
    let steps: [&[&str]; 4] = [
        &["update-ref", "--no-deref", "HEAD", &head],
        &["config", "--file", &own, "core.bare", "true"],
        &["config", "--file", &config, "--unset-all", "core.bare"],
        &[
            "config",
            "--file",
            &config,
            "extensions.worktreeConfig",
            "true",
        ],
    ];
    for done in 0..=steps.len() {
        undo(&stage);
        for step in &steps[..done] {
            stage.git(&clone, step);
        }
        assert_eq!(is_done(&clone), done == steps.len());
        check_git(&stage, &max, &joe);
        separate_existing(&stage.town, "lab").unwrap();
        assert!(is_done(&clone));
        check_git(&stage, &max, &joe);
    }
}

#[test]
fn extension_that_an_agent_has_switched_on_is_completed() {
    let stage = TestTown::new().with_rig();
    let [max, joe] = ["max", "joe"].map(|name| worktree(&stage, name));
    undo(&stage);
    // Git itself switches the extension on and moves `core.bare`, but leaves HEAD on its branch.
    stage.git(&max, &["sparse-checkout", "set", "--no-cone", "/*"]);
    assert!(!is_done(&clone_of(&stage)));
    separate_existing(&stage.town, "lab").unwrap();
    check_git(&stage, &max, &joe);
}

#[test]
fn setting_that_leads_all_worktrees_elsewhere_is_removed() {
    let stage = TestTown::new().with_rig();
    let [max, joe] = ["max", "joe"].map(|name| worktree(&stage, name));
    let clone = clone_of(&stage);
    for (key, value) in [("core.worktree", "/nowhere"), ("core.bare", "true")] {
        let config = clone.join("config").display().to_string();
        stage.git(&clone, &["config", "--file", &config, key, value]);
        assert!(!is_done(&clone), "{key}");
        separate_existing(&stage.town, "lab").unwrap();
        assert!(is_done(&clone), "{key}");
    }
    check_git(&stage, &max, &joe);
}
