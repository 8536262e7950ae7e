//! `gt demo`.

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::wait_until;
use std::fs;

#[test]
fn the_demo_removes_only_what_it_made() {
    let env = TestEnv::empty();
    let dir = env.path("project");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("thesis.txt"), "years of work").unwrap();
    env.gt(&["demo", "--dir", "project"]).fails(4);
    env.gt(&["demo", "--clean", "--dir", "project"]).ok();
    env.gt(&["init", "own", "--name", "demo", "--harness", "demo"])
        .ok();
    env.gt(&["demo", "--clean", "--dir", "own"]).fails(4);
    assert!(dir.join("thesis.txt").exists() && env.path("own/town.toml").exists());
    let shown = env.gt(&["demo"]).ok().stdout;
    assert!(
        shown.contains("gastown/crew/max") && shown.contains("hello from the demo"),
        "{shown}"
    );
    env.gt(&["demo"]).ok();
    env.gt(&["demo", "--clean"]).ok();
    assert!(!env.path("gt-demo").exists());
    wait_until("no process is left", TIMEOUT, || {
        crate::env::processes_of(env.home())
            .is_empty()
            .then_some(())
    });
}
