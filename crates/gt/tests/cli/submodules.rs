//! Submodules in new worktrees and in the worktree of the merge queue.

use crate::env::TestEnv;
use crate::mq::{commit, finish, item, validate_with, worktree};
use std::fs;
use std::path::{Path, PathBuf};

const LOCAL: [&str; 2] = ["-c", "protocol.file.allow=always"];

/// Makes a repository with the submodule `vendor/lib`, which contains the submodule `deep`.
fn with_submodules(env: &TestEnv) -> (PathBuf, PathBuf) {
    let deep = env.repository("deep");
    commit(env, &deep, "deep.txt", "deep\n");
    let lib = env.repository("lib");
    commit(env, &lib, "lib.txt", "one\n");
    add(env, &lib, &deep, "deep");
    let source = env.repository("source");
    add(env, &source, &lib, "vendor/lib");
    let update = ["submodule", "--quiet", "update", "--init", "--recursive"];
    env.git(&source, &[&LOCAL[..], &update].concat());
    (source, lib)
}

fn add(env: &TestEnv, dir: &Path, module: &Path, path: &str) {
    let words = [
        "submodule",
        "--quiet",
        "add",
        module.to_str().unwrap(),
        path,
    ];
    env.git(dir, &[&LOCAL[..], &words].concat());
    env.git(dir, &["commit", "--quiet", "-m", "Add a submodule"]);
}

fn rig_add(env: &TestEnv, source: &Path) -> String {
    let source = source.to_str().unwrap();
    let added = env.gt(&["rig", "add", "gastown", source, "--prefix", "gt"]);
    added.ok().stderr
}

#[track_caller]
fn assert_whole(env: &TestEnv, dir: &Path, text: &str) {
    let lib = dir.join("vendor/lib");
    assert_eq!(fs::read_to_string(lib.join("lib.txt")).unwrap(), text);
    assert!(lib.join("deep/deep.txt").exists());
    assert_eq!(env.git(dir, &["status", "--porcelain"]), "");
}

#[test]
fn new_worktrees_and_the_queue_have_submodules_without_their_remotes() {
    let env = TestEnv::with_town();
    let (source, lib) = with_submodules(&env);
    assert_eq!(rig_add(&env, &source), "", "nothing is missing");
    // From here on no remote is reachable.
    fs::rename(&lib, env.path("lib-away")).unwrap();
    fs::rename(env.path("deep"), env.path("deep-away")).unwrap();
    env.gt(&["crew", "add", "max"]).ok();
    assert_whole(&env, &worktree(&env, "max"), "one\n");
    let id = item(&env, &["Work", "--rig", "gastown"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let toast = env.town().join("gastown/polecats/Toast");
    assert_whole(&env, &toast, "one\n");
    // The agent sees the address of the submodule's remote, not that of the local copy.
    let inside = worktree(&env, "max").join("vendor/lib");
    let url = env.git(&inside, &["remote", "get-url", "origin"]);
    assert_eq!(url.trim(), lib.to_str().unwrap());
    validate_with(
        &env,
        "test -e vendor/lib/lib.txt && test -e vendor/lib/deep/deep.txt",
    );
    finish(&env, "max", "a.txt", "a\n");
    env.gt(&["mq", "run"]).ok();
    // The free polecat gets the next item, and no new polecat is created.
    commit(&env, &toast, "b.txt", "b\n");
    env.gt(&["done", "--agent", "gastown/Toast"]).ok();
    let id = item(&env, &["More", "--rig", "gastown"]);
    let slung = env.json(&["sling", &id, "--no-start"]);
    assert_eq!(slung["agent"], "gastown/polecats/Toast", "{slung}");
}

#[test]
fn the_queue_validates_the_commit_that_a_branch_points_to() {
    let env = TestEnv::with_town();
    let (source, lib) = with_submodules(&env);
    // git permits local submodules only with this setting.
    let allow = ["config", "--global", "protocol.file.allow", "always"];
    env.git(env.home(), &allow);
    rig_add(&env, &source);
    env.gt(&["crew", "add", "max"]).ok();
    let lines = "cat vendor/lib/lib.txt; grep -q two vendor/lib/lib.txt";
    validate_with(&env, lines);
    let (_, merge) = finish(&env, "max", "a.txt", "a\n");
    env.gt(&["mq", "run"]).fails(1);
    let second = commit(&env, &lib, "lib.txt", "two\n");
    let dir = worktree(&env, "max");
    let inside = dir.join("vendor/lib");
    env.git(&inside, &["fetch", "--quiet", "origin"]);
    env.git(&inside, &["checkout", "--quiet", &second]);
    env.git(&dir, &["commit", "--quiet", "-a", "-m", "Take the new lib"]);
    env.gt(&["mq", "retry", &merge]).ok();
    env.gt(&["mq", "run", &merge]).ok();
    // A new worktree has the new submodule commit.
    env.gt(&["crew", "add", "amy"]).ok();
    assert_whole(&env, &worktree(&env, "amy"), "two\n");
}

#[test]
fn a_submodule_that_cannot_be_copied_is_reported_when_the_rig_is_added() {
    let env = TestEnv::with_town();
    let (source, _) = with_submodules(&env);
    let clone = env.path("clone");
    let words = ["clone", "--quiet", source.to_str().unwrap()];
    env.git(
        env.home(),
        &[&words[..], &[clone.to_str().unwrap()]].concat(),
    );
    let told = rig_add(&env, &clone);
    assert!(
        told.contains("the submodule vendor/lib is not checked out"),
        "{told}"
    );
    assert!(told.contains("transport 'file' not allowed"), "{told}");
    // Everything else works, and the validation log names the missing submodule.
    let added = env.gt(&["crew", "add", "max"]).ok();
    assert!(added.stderr.contains("vendor/lib"), "{}", added.stderr);
    validate_with(&env, "test -e vendor/lib/lib.txt");
    finish(&env, "max", "a.txt", "a\n");
    let ran = env.gt(&["mq", "run", "--json"]).fails(1).json();
    let log = fs::read_to_string(ran[0]["log"].as_str().unwrap()).unwrap();
    assert!(
        log.contains("the submodule vendor/lib is not checked out"),
        "{log}"
    );
}

#[test]
fn hostile_submodules_run_nothing_and_read_nothing() {
    let mark = "ran-by-a-submodule";
    for (name, url, more) in [
        ("lib", "ext::sh -c touch% HOME/MARK", ""),
        ("lib", "HOME/secret", ""),
        ("lib", "HOME/secret", "update = !touch HOME/MARK\n"),
        ("../../lib", "HOME/secret", ""),
        ("lib", "-uHOME/MARK", ""),
    ] {
        let env = TestEnv::with_town();
        let secret = env.repository("secret");
        let id = commit(&env, &secret, "secret.txt", "x\n");
        let source = env.repository("source");
        let fill = |text: &str| {
            let text = text.replace("HOME", env.home().to_str().unwrap());
            text.replace("MARK", mark)
        };
        let text = format!("[submodule \"{name}\"]\npath = lib\nurl = {url}\n{more}");
        fs::write(source.join(".gitmodules"), fill(&text)).unwrap();
        let pointer = format!("160000,{id},lib");
        env.git(&source, &["update-index", "--add", "--cacheinfo", &pointer]);
        env.git(&source, &["add", ".gitmodules"]);
        env.git(&source, &["commit", "--quiet", "-m", "Be hostile"]);
        let told = rig_add(&env, &source);
        assert!(told.contains("lib"), "{name} {url}: {told}");
        env.gt(&["crew", "add", "max"]).ok();
        assert!(!env.path(mark).exists(), "{name} {url}");
        let dir = worktree(&env, "max").join("lib");
        assert!(!dir.join("secret.txt").exists(), "{name} {url}");
        assert!(!env.town().join("lib").exists());
    }
}

#[test]
fn submodule_that_an_agent_leads_elsewhere_is_checked_out_in_the_worktree() {
    let env = TestEnv::with_town();
    let (source, lib) = with_submodules(&env);
    rig_add(&env, &source);
    let id = item(&env, &["Work", "--rig", "gastown"]);
    env.gt(&["sling", &id, "--no-start"]).ok();
    let toast = env.town().join("gastown/polecats/Toast");
    let inside = toast.join("vendor/lib");
    commit(&env, &toast, "b.txt", "b\n");
    env.gt(&["done", "--agent", "gastown/Toast"]).ok();
    // The agent has left a submodule whose files are those of another folder.
    let victim = env.path("victim");
    fs::create_dir_all(victim.join("deep")).unwrap();
    for file in ["lib.txt", "README.md", ".gitmodules"] {
        if inside.join(file).exists() {
            fs::copy(inside.join(file), victim.join(file)).unwrap();
        }
    }
    env.git(
        &inside,
        &["config", "core.worktree", victim.to_str().unwrap()],
    );
    let second = commit(&env, &lib, "lib.txt", "two\n");
    env.git(
        &source.join("vendor/lib"),
        &["fetch", "--quiet", lib.to_str().unwrap(), "main"],
    );
    env.git(
        &source.join("vendor/lib"),
        &["checkout", "--quiet", &second],
    );
    env.git(&source, &["commit", "--quiet", "-a", "-m", "Take two"]);
    let id = item(&env, &["More", "--rig", "gastown"]);
    let slung = env.json(&["sling", &id, "--no-start"]);
    assert_eq!(slung["agent"], "gastown/polecats/Toast", "{slung}");
    let text = |dir: &Path| fs::read_to_string(dir.join("lib.txt")).unwrap();
    assert_eq!(
        (text(&victim), text(&inside)),
        ("one\n".to_owned(), "two\n".to_owned())
    );
}
