//! Every letter of the action menu, and of the board, by its effect on tmux and git.
//!
//! The screen is read only where it is the effect, or where a key must wait until the board has the
//! data.

mod agent;
mod attach;
mod branch;
mod dev;
mod items;
mod marks;
mod restore;
mod start;

use super::terminal::Terminal;
use super::{card, create, wait_card};
use crate::env::TestEnv;
use crate::task::{folder, window_names, with_project, without_items};
use std::fs;
use std::path::{Path, PathBuf};

/// Makes a task whose agent runs and waits for its first prompt.
pub(super) fn running() -> (TestEnv, String, PathBuf) {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    wait_state(&env, &id, "idle");
    let dir = folder(&env, &id);
    (env, id, dir)
}

#[track_caller]
pub(super) fn wait_state(env: &TestEnv, id: &str, state: &str) {
    wait_card(env, id, state, |card| card["session"]["state"] == state);
}

/// Waits until the container has an agent, not only a shell.
#[track_caller]
fn wait_agent(env: &TestEnv, id: &str) {
    wait_card(env, id, "an agent", |card| {
        card["session"]["harness"] == "demo" && card["session"]["state"] == "idle"
    });
    assert_eq!(env.agent(&format!("task/{id}"))["health"], "healthy");
}

/// Writes a file, commits it, and returns the commit.
pub(super) fn commit(env: &TestEnv, dir: &Path, name: &str, text: &str) -> String {
    fs::write(dir.join(name), text).unwrap();
    env.git(dir, &["add", "--all"]);
    env.git(dir, &["commit", "--quiet", "-m", &format!("Change {name}")]);
    head(env, dir)
}

/// Writes a file and commits it to the base, in the rig's source repository.
pub(super) fn commit_to_base(env: &TestEnv, name: &str, text: &str) -> String {
    commit(env, &env.path("source-gastown"), name, text)
}

fn head(env: &TestEnv, dir: &Path) -> String {
    env.git(dir, &["rev-parse", "HEAD"]).trim().to_owned()
}

fn subject(env: &TestEnv, dir: &Path) -> String {
    let subject = env.git(dir, &["log", "-1", "--format=%s"]);
    subject.trim().to_owned()
}

fn has_container(env: &TestEnv, id: &str) -> bool {
    env.sessions().contains(&format!("{id}-az"))
}

/// Returns the command line of the agent program.
fn call_of(env: &TestEnv, id: &str) -> Vec<String> {
    let pid = env.pid(&format!("task/{id}"));
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let line = String::from_utf8(line).unwrap();
    line.split('\0').map(str::to_owned).collect()
}

/// Writes an executable file under HOME.
fn program(env: &TestEnv, name: &str, script: &str) -> PathBuf {
    let path = env.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    path
}
