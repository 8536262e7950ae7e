//! `gt task`: one item with its own worktree, container and agent.

mod cleanup;
mod merge;
mod merge_confirmation;
mod pause;
mod pull_request;
mod resolver;
mod sandbox;
mod start;
mod update;

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::{wait_until, wait_until_or};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Makes a rig whose project has this `.gt.toml`, and an item.
pub(crate) fn with_project(settings: &str) -> (TestEnv, String) {
    let env = without_items(settings);
    let id = create(&env);
    (env, id)
}

/// Makes a rig whose project has this `.gt.toml`.
pub(crate) fn without_items(settings: &str) -> TestEnv {
    let env = TestEnv::with_town();
    let source = env.repository("source-gastown");
    fs::write(source.join(".gt.toml"), settings).unwrap();
    fs::write(source.join(".gitignore"), ".env\nmade*\n").unwrap();
    env.git(&source, &["add", "."]);
    env.git(&source, &["commit", "--quiet", "-m", "Settings"]);
    let path = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", path, "--prefix", "gt"])
        .ok();
    // A file that is invalid on purpose cannot be approved.
    env.gt(&["project", "allow", "gastown"]);
    env
}

pub(crate) fn create(env: &TestEnv) -> String {
    let item = env.json(&["work", "create", "Fix it"]);
    item["id"].as_str().unwrap().to_owned()
}

pub(crate) fn folder(env: &TestEnv, id: &str) -> PathBuf {
    env.path(&format!("gastown-{id}"))
}

pub(crate) fn window_names(env: &TestEnv, container: &str) -> Vec<String> {
    let target = gt_tmux::SessionName::try_from(container).unwrap();
    let list = gt_tmux::Command::new("list-windows")
        .target(target)
        .args(["-F", "#{window_name}"]);
    env.tmux(list).lines().map(str::to_owned).collect()
}

/// Makes a task with a running agent, in a rig whose source has a checkout.
fn running() -> (TestEnv, String, PathBuf) {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    let dir = folder(&env, &id);
    (env, id, dir)
}

/// Makes a running task that changed and removed files of beads.
fn with_beads_changed() -> (TestEnv, String, PathBuf) {
    let (env, id) = with_project("");
    commit_to_base(&env, ".beads/issues.jsonl", "0\n");
    commit_to_base(&env, ".beads/gone", "0\n");
    env.gt(&["task", "start", &id]).ok();
    let dir = folder(&env, &id);
    commit(&env, &dir, ".beads/issues.jsonl", "ours\n");
    fs::remove_file(dir.join(".beads/gone")).unwrap();
    (env, id, dir)
}

/// Writes a file, commits it, and returns the commit.
fn commit(env: &TestEnv, dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    env.git(dir, &["add", "--all"]);
    env.git(dir, &["commit", "--quiet", "-m", &format!("Change {name}")]);
    head(env, dir)
}

/// Adds the submodule `sub`, with a remote and a file `s.txt`, to a worktree, and commits it.
fn add_submodule(env: &TestEnv, dir: &Path) {
    let library = env.repository("library");
    commit(env, &library, "s.txt", "first\n");
    let library = library.to_str().unwrap();
    let words = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    env.git(dir, &[&words[..], &["add", library, "sub"]].concat());
    env.git(dir, &["commit", "--quiet", "-m", "Add sub"]);
}

fn head(env: &TestEnv, dir: &Path) -> String {
    env.git(dir, &["rev-parse", "HEAD"]).trim().to_owned()
}

/// Writes a file and commits it to the base, in the rig's source repository.
fn commit_to_base(env: &TestEnv, name: &str, text: &str) -> String {
    commit(env, &env.path("source-gastown"), name, text)
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_default()
}

/// Returns the windows beside the agent, from `gt task show`.
fn windows(env: &TestEnv, id: &str) -> Vec<Value> {
    let shown = env.json(&["task", "show", id]);
    shown["windows"].as_array().unwrap().clone()
}

/// Waits until the agent of a task is in a state.
#[track_caller]
pub(crate) fn wait_state(env: &TestEnv, id: &str, state: &str) {
    wait_until(&format!("{id} to be {state}"), TIMEOUT, || {
        (env.json(&["task", "show", id])["state"] == state).then_some(())
    });
}

/// A person's terminal that runs a command.
struct Person<'a> {
    env: &'a TestEnv,
}

impl<'a> Person<'a> {
    fn at(env: &'a TestEnv, call: &str) -> Self {
        let call = format!("{call}; echo ended-with-$?; exec sleep 1000");
        env.tmux(
            gt_tmux::Command::new("new-session")
                .args(["-d", "-s", "person", "-x", "150", "-y", "30"])
                .args(["--", "env"])
                .arg(format!("HOME={}", env.home().display()))
                .arg(format!("GT_TMUX_SOCKET={}", env.socket().display()))
                .args(["sh", "-c", &call]),
        );
        Person { env }
    }

    fn target() -> gt_tmux::SessionName {
        gt_tmux::SessionName::try_from("person").unwrap()
    }

    #[track_caller]
    fn sees(&self, text: &str) -> String {
        wait_until(&format!("{text:?}"), TIMEOUT, || {
            let look = gt_tmux::Command::new("capture-pane").arg("-p");
            let screen = self.env.tmux(look.target(Self::target()));
            screen.contains(text).then_some(screen)
        })
    }

    fn presses(&self, key: &str) {
        let press = gt_tmux::Command::new("send-keys").target(Self::target());
        self.env.tmux(press.arg(key));
    }
}
