//! An agent plants programs in the configuration that its worktree shares with the rig. A person's
//! commands must not run them.

use crate::env::TestEnv;
use crate::sling::{create, folder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
    "core.gitProxy",
    "core.editor",
    "core.askPass",
    "core.alternateRefsCommand",
    "sequence.editor",
    "interactive.diffFilter",
    "pager.log",
    "pager.branch",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "trailer.evil.command",
    "gc.recentObjectsHook",
    "uploadpack.packObjectsHook",
    "difftool.evil.cmd",
    "mergetool.evil.cmd",
];

/// Settings that let a program be called, with their values.
const SWITCHES: &[(&str, &str)] = &[
    ("log.showSignature", "true"),
    ("merge.verifySignatures", "false"),
    ("protocol.ext.allow", "always"),
    ("submodule.recurse", "true"),
    ("fetch.recurseSubmodules", "true"),
    ("gc.auto", "1"),
    ("maintenance.auto", "true"),
];

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "update",
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

/// Plants the programs in the rig, and in the worktree at `dir`: in the shared configuration, in
/// one that it includes, in the worktree's own, in attributes, hooks and submodules.
pub(super) fn arm(env: &TestEnv, dir: &Path) {
    let repository = env.town().join("gastown/.repo.git");
    let config = repository.join("config");
    let mut planted = String::new();
    for key in SETTINGS {
        let program = program(env, key);
        planted += &setting(key, &program);
    }
    for (key, value) in SWITCHES {
        planted += &setting(key, value);
    }
    planted += &setting("submodule.evil.update", &format!("!{}", program(env, "up")));
    let url = format!("ext::{} %S", program(env, "ext"));
    planted += &setting("submodule.evil.url", &url);
    let included = repository.join("included");
    fs::write(&included, planted.replace("\"evil\"]", "\"included\"]")).unwrap();
    let include = setting("include.path", &included.display().to_string());
    let text = fs::read_to_string(&config).unwrap();
    fs::write(config, text + &planted + &include).unwrap();
    let own = env.git(dir, &["rev-parse", "--absolute-git-dir"]);
    fs::write(Path::new(own.trim()).join("config.worktree"), &planted).unwrap();
    let attributes = "* filter=evil diff=evil merge=evil\n*.txt filter=included diff=included\n";
    fs::create_dir_all(repository.join("info")).unwrap();
    fs::write(repository.join("info/attributes"), attributes).unwrap();
    fs::write(dir.join("work.txt"), "work\n").unwrap();
    fs::write(dir.join(".gitattributes"), attributes).unwrap();
    let modules = format!(
        "[submodule \"evil\"]\n\tpath = sub\n\turl = {url}\n\tupdate = !{}\n",
        program(env, "modules")
    );
    fs::write(dir.join(".gitmodules"), modules).unwrap();
    for hook in HOOKS {
        fs::create_dir_all(repository.join("hooks")).unwrap();
        fs::copy(program(env, hook), repository.join("hooks").join(hook)).unwrap();
    }
}

/// Plants a repository with a filter inside the worktree at `dir`. Its commit is in the index, so git
/// enters it.
pub(super) fn plant_repository(env: &TestEnv, dir: &Path) {
    let inside = dir.join("inside");
    fs::create_dir(&inside).unwrap();
    env.git(&inside, &["init", "--quiet"]);
    fs::write(inside.join("f"), "one\n").unwrap();
    env.git(&inside, &["add", "f"]);
    env.git(&inside, &["commit", "--quiet", "-m", "Inside"]);
    let head = env.git(&inside, &["rev-parse", "HEAD"]);
    let entry = format!("160000,{},inside", head.trim());
    env.git(dir, &["update-index", "--add", "--cacheinfo", &entry]);
    let filter = program(env, "filter-inside");
    env.git(&inside, &["config", "filter.inside.clean", &filter]);
    fs::create_dir_all(inside.join(".git/info")).unwrap();
    fs::write(inside.join(".git/info/attributes"), "* filter=inside\n").unwrap();
    fs::write(inside.join("f"), "two\n").unwrap();
}

/// Returns a line of a configuration file with its section.
fn setting(key: &str, value: &str) -> String {
    let (section, name) = key.rsplit_once('.').unwrap();
    let section = match section.split_once('.') {
        Some((section, sub)) => format!("{section} \"{sub}\""),
        None => section.to_owned(),
    };
    format!("[{section}]\n\t{name} = \"{value}\"\n")
}

/// Returns the planted programs that were called, one in each line.
pub(super) fn planted_calls(env: &TestEnv) -> String {
    fs::read_to_string(env.path("calls")).unwrap_or_default()
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
    let index = env.git(
        &dir,
        &["rev-parse", "--path-format=absolute", "--git-path", "index"],
    );
    let index = PathBuf::from(index.trim());
    let unplanted = fs::read(&index).unwrap();
    plant_repository(&env, &dir);
    arm(&env, &dir);
    let none = |command: &[&str]| {
        assert_eq!(planted_calls(&env), "", "by gt {command:?}");
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
    for file in ["work.txt", ".gitattributes", ".gitmodules"] {
        fs::remove_file(dir.join(file)).unwrap();
    }
    fs::remove_dir_all(dir.join("inside")).unwrap();
    // The agent's own git would run the planted programs.
    fs::write(&index, unplanted).unwrap();
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

#[test]
fn push_to_a_repository_that_an_agent_has_named_runs_no_hook() {
    let env = TestEnv::with_rig();
    env.add_settings("[rigs.gastown.merge]\nautomatic = false\n");
    let id = create(&env, "Work");
    env.gt(&["sling", &id]).ok();
    let dir = folder(&env, "Toast");
    fs::write(dir.join("done.txt"), "done\n").unwrap();
    env.git(&dir, &["add", "."]);
    env.git(&dir, &["commit", "--quiet", "-m", "Done"]);
    let evil = env.path("evil.git");
    env.git(
        env.home(),
        &["init", "--quiet", "--bare", evil.to_str().unwrap()],
    );
    fs::create_dir_all(evil.join("hooks")).unwrap();
    for hook in HOOKS {
        fs::copy(program(&env, hook), evil.join("hooks").join(hook)).unwrap();
    }
    env.git(
        &dir,
        &["config", "remote.origin.pushurl", evil.to_str().unwrap()],
    );
    env.gt_in(&dir, &["done"]).ok();
    env.gt(&["mq", "run"]);
    let arrived = env.git(&evil, &["for-each-ref"]);
    assert_ne!(arrived, "", "gt has pushed there");
    assert_eq!(planted_calls(&env), "");
}
