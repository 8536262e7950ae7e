//! `gt project`: commands of a repository run only after a person has approved them.

use crate::env::{TestEnv, run};
use crate::task::{create, folder};
use insta::assert_snapshot;
use std::fs;
use std::path::Path;

const SETTINGS: &str = "[init]\ncommands = ['touch made-init']\n\
     [[dev_servers]]\nname = 'web'\ncommand = 'sleep 1000'\n";

/// Makes a rig whose repository has these settings, without an approval. Returns an item of it.
fn with_settings(settings: &str) -> (TestEnv, String) {
    let env = TestEnv::with_town();
    let source = env.repository("source-gastown");
    commit(&env, &source, settings);
    let path = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", path, "--prefix", "gt"])
        .ok();
    let id = create(&env);
    (env, id)
}

fn commit(env: &TestEnv, dir: &Path, settings: &str) {
    fs::write(dir.join(".gt.toml"), settings).unwrap();
    fs::write(dir.join(".gitignore"), "made*\n").unwrap();
    env.git(dir, &["add", "."]);
    env.git(dir, &["commit", "--quiet", "-m", "Settings"]);
}

#[test]
fn commands_run_only_after_their_approval() {
    let (env, id) = with_settings(SETTINGS);
    let refused = env.gt(&["task", "start", &id]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_snapshot!(refused.stderr, @"
    error: .gt.toml of gastown has 2 commands that you have not approved
    caused by: init: touch made-init
    caused by: dev server: sleep 1000
    hint: `gt project allow gastown` approves the commands of its base branch, with `--worktree DIR` those of a worktree
    ");
    assert!(!folder(&env, &id).exists(), "nothing was made");
    assert_snapshot!(env.snapshot(&["project", "diff"]), @"
    exit code: 0
    --- stdout
    + init  touch made-init
    + dev server  sleep 1000
    2 of 2 are not approved: `gt project allow gastown`
    ");
    assert_snapshot!(env.snapshot(&["project", "allow"]), @"
    exit code: 0
    --- stdout
    + init  touch made-init
    + dev server  sleep 1000
    All of this is approved for gastown.
    ");
    env.gt(&["task", "start", &id]).ok();
    assert!(folder(&env, &id).join("made-init").exists());
    assert_snapshot!(env.snapshot(&["project", "diff"]), @"
    exit code: 0
    --- stdout
      init  touch made-init
      dev server  sleep 1000
    All of this is approved for gastown.
    ");
}

#[test]
fn changed_command_is_not_approved() {
    let (env, id) = with_settings(SETTINGS);
    env.gt(&["project", "allow", "gastown"]).ok();
    env.gt(&["task", "start", &id]).ok();
    let agent = format!("task/{id}");
    // An agent can change the file in its worktree.
    let dir = folder(&env, &id);
    let changed = SETTINGS.replace("sleep 1000", "touch made-planted");
    fs::write(dir.join(".gt.toml"), changed).unwrap();
    let refused = env.gt(&["dev", "start", &agent, "web"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(!dir.join("made-planted").exists());
    let diff = [
        "project",
        "diff",
        "gastown",
        "--worktree",
        dir.to_str().unwrap(),
    ];
    let shown = env.gt(&diff).ok().stdout;
    assert_snapshot!(shown.replace(dir.to_str().unwrap(), "DIR"), @"
      init        touch made-init
    + dev server  touch made-planted
    - dev server  sleep 1000
    1 of 2 is not approved: `gt project allow gastown --worktree DIR`
    ");
}

#[test]
fn agents_cannot_approve() {
    let (env, _) = with_settings(SETTINGS);
    let allow = ["project", "allow", "gastown"];
    let refused = run(env.gt_command(&allow).env("GT_ROLE", "mayor"));
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_snapshot!(refused.stderr, @"
    error: mayor may not approve commands
    hint: only a person may: the commands run as the user of the town
    ");
    env.gt(&allow).ok();
    assert_snapshot!(env.snapshot(&["project", "deny", "gastown"]), @"
    exit code: 0
    --- stdout
    Nothing of gastown is approved now.
    ");
    let left = env.json(&["project", "diff", "gastown"]);
    assert_eq!(left["unapproved"].as_array().unwrap().len(), 2, "{left}");
    // A rig that is removed and added again has no approvals either.
    env.gt(&allow).ok();
    env.gt(&["rig", "remove", "gastown"]).ok();
    let source = env.path("source-gastown");
    let added = env.gt(&["rig", "add", "gastown", source.to_str().unwrap()]);
    let note = "which run only after your approval: `gt project diff gastown`";
    assert!(added.stdout.contains(note), "{added:?}");
    let left = env.json(&["project", "diff", "gastown"]);
    assert_eq!(left["unapproved"].as_array().unwrap().len(), 2, "{left}");
}

#[test]
fn agent_does_not_start_with_settings_that_are_not_approved() {
    let env = TestEnv::with_town();
    let source = env.repository("source-gastown");
    fs::write(source.join(".demo-agent.json"), "{\"hooks\": 1}\n").unwrap();
    commit(&env, &source, "");
    let path = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", path, "--prefix", "gt"])
        .ok();
    env.gt(&["crew", "add", "max"]).ok();
    assert_snapshot!(env.snapshot(&["crew", "start", "max"]), @"
    exit code: 4
    --- stderr
    error: .demo-agent.json of gastown may make Demo agent run commands, and you have not approved it
    hint: read it, then `gt project allow gastown --worktree ~/gt/gastown/crew/max` approves it
    ");
    assert_snapshot!(env.snapshot(&["project", "diff"]), @"
    exit code: 0
    --- stdout
    + settings  .demo-agent.json
    1 of 1 is not approved: `gt project allow gastown`
    ");
    env.gt(&["project", "allow"]).ok();
    env.gt(&["crew", "start", "max"]).ok();
    // Changed content is not approved.
    env.gt(&["crew", "stop", "max"]).ok();
    let dir = env.town().join("gastown/crew/max");
    fs::write(dir.join(".demo-agent.json"), "{\"hooks\": 2}\n").unwrap();
    assert_eq!(env.gt(&["crew", "start", "max"]).code, 4);
}
