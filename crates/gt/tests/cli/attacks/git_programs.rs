//! An agent plants programs in the configuration that its worktree shares with the rig. A person's
//! commands must not run them.

use crate::env::TestEnv;
use crate::sling::{create, folder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Settings that name a program.
const SETTINGS: &[&str] = &[
    "core.fsmonitor",
    "core.sshCommand",
    "core.pager",
    "pager.diff",
    "credential.helper",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "merge.evil.driver",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
];

const HOOKS: &[&str] = &[
    "pre-commit",
    "post-checkout",
    "post-index-change",
    "post-merge",
    "pre-push",
    "reference-transaction",
];

/// A program that notes its call. The command under test is a person's, so no call is right.
fn program(env: &TestEnv, name: &str) -> String {
    let path = env.path(name);
    let calls = env.path("calls");
    fs::write(
        &path,
        format!("#!/bin/sh\necho {name} >> '{}'\n", calls.display()),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn arm(env: &TestEnv, dir: &Path) {
    let repository = env.town().join("gastown/.repo.git");
    let config = repository.join("config");
    let mut text = fs::read_to_string(&config).unwrap();
    for key in SETTINGS {
        let (section, name) = key.rsplit_once('.').unwrap();
        let (section, sub) = section.split_once('.').unwrap_or((section, ""));
        let program = program(env, key);
        text += &format!("[{section} \"{sub}\"]\n\t{name} = {program}\n").replace(" \"\"]", "]");
    }
    fs::write(config, text).unwrap();
    let attributes = "* filter=evil diff=evil merge=evil\n";
    fs::create_dir_all(repository.join("info")).unwrap();
    fs::write(repository.join("info/attributes"), attributes).unwrap();
    fs::write(dir.join("work.txt"), "work\n").unwrap();
    for hook in HOOKS {
        fs::create_dir_all(repository.join("hooks")).unwrap();
        fs::copy(program(env, hook), repository.join("hooks").join(hook)).unwrap();
    }
}

#[test]
fn persons_commands_run_no_program_that_an_agent_has_planted() {
    let env = TestEnv::with_rig();
    env.add_settings("[rigs.gastown.merge]\nvalidate = [\"true\"]\nautomatic = false\n");
    let id = create(&env, "Work");
    env.gt(&["sling", &id]).ok();
    let other = create(&env, "Other");
    let dir = folder(&env, "Toast");
    // The agent's own commit is made before, because its own git runs what it likes.
    fs::write(dir.join("done.txt"), "done\n").unwrap();
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "-m", "Done"]);
    arm(&env, &dir);
    let none = |command: &[&str]| {
        let calls = fs::read_to_string(env.path("calls")).unwrap_or_default();
        assert_eq!(calls, "", "by gt {command:?}");
    };
    for command in [
        &["status"][..],
        &["agents", "--wide"],
        &["polecat", "list"],
        &["polecat", "show", "Toast"],
        &["polecat", "gc", "--older-than", "0s"],
        &["rig", "list"],
        &["rig", "status", "gastown"],
        &["doctor"],
        &["patrol", "--dry-run"],
        &["save"],
        &["sessions", "list"],
        &["crew", "add", "max"],
        &["crew", "list"],
        &["sling", &other],
        &["mq", "list"],
        &["stop", "--all"],
        &["restore"],
    ] {
        env.gt(command);
        none(command);
    }
    fs::remove_file(dir.join("work.txt")).unwrap();
    let done = env.gt_in(&dir, &["done"]);
    none(&["done"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    env.gt(&["mq", "run"]).ok();
    none(&["mq", "run"]);
    let merged = env.git(&env.town().join("gastown/.repo.git"), &["log", "--all"]);
    assert!(merged.contains("Done"), "{merged}");
    env.gt(&["polecat", "nuke", "Toast", "--force"]).ok();
    none(&["polecat", "nuke"]);
    let doctor = env.gt(&["doctor"]).stdout;
    assert!(doctor.contains("gt does not run"), "{doctor}");
}
