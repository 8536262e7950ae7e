//! A start that fails after it wrote its PID file rolls back its own changes, and nothing else.

use crate::env::{Answer, TIMEOUT, TestEnv, is_alive, processes_of};
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Child;

/// Preset of a program that runs and never shows its prompt.
const NEVER_READY: &str = "[command]\nprogram = 'sh'\nargs = ['-c', 'exec sleep 7100']\n\
    session_id = []\n[process]\nnames = ['sleep']\n";

struct Failing<'a> {
    env: &'a TestEnv,
    child: Child,
    file: PathBuf,
    pid: u32,
}

impl<'a> Failing<'a> {
    /// Starts an agent whose program never becomes ready, and waits for its PID file.
    fn up_to_pid_file(env: &'a TestEnv, container: &str, words: &[&str]) -> Self {
        fs::write(env.town().join("harnesses/demo.toml"), NEVER_READY).unwrap();
        let args = [words, &["--ready-timeout", "3"]].concat();
        let child = env.spawn(&args);
        let file = env.town().join(format!(".runtime/pids/{container}.pid"));
        let pid = wait_until("the PID file is written", TIMEOUT, || {
            let text = fs::read_to_string(&file).ok()?;
            text.split_once('|')?.0.parse().ok()
        });
        assert!(is_alive(pid));
        Failing {
            env,
            child,
            file,
            pid,
        }
    }

    fn fails(self) {
        let answer = Answer::of(self.child.wait_with_output().unwrap()).fails(1);
        assert!(answer.stderr.contains("not ready within 3 s"), "{answer:?}");
        let sessions = self.env.json(&["sessions", "list", "--limit", "1"]);
        assert_eq!(sessions[0]["outcome"], "crash", "{sessions}");
        assert_eq!(sessions[0]["failed_start"], true, "{sessions}");
    }
}

#[test]
fn failed_start_takes_back_pid_file_container_worktree_and_record() {
    let env = TestEnv::with_crew(&["max"]);
    let words = ["start", "--create", "gastown/polecats/Toast"];
    let failing = Failing::up_to_pid_file(&env, "gt-Toast", &words);
    let (pid, file) = (failing.pid, failing.file.clone());
    let worktree = env.town().join("gastown/polecats/Toast");
    assert!(worktree.exists());
    failing.fails();
    assert!(!is_alive(pid));
    assert!(!file.exists());
    assert!(!worktree.exists());
    assert_eq!(env.sessions(), [""; 0]);
    let running = env.json(&["sessions", "list", "--status", "running"]);
    assert_eq!(running, json!([]));
    wait_until("no process is left", TIMEOUT, || {
        processes_of(env.home()).is_empty().then_some(())
    });
    let repository = env.town().join("gastown/.repo.git");
    assert_eq!(env.git(&repository, &["branch", "--list", "polecat/*"]), "");
    let found = env.gt(&["doctor", "--json"]).ok().json();
    let worst = |finding: &&Value| finding["status"] != "ok" && finding["check"] != "hooks";
    let found: Vec<&Value> = found.as_array().unwrap().iter().filter(worst).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn start_that_fails_before_its_container_removes_its_worktree() {
    let env = TestEnv::with_crew(&["max"]);
    // The folder of the hooks cannot be made.
    let hooks = env.town().join(".runtime/hooks");
    let _ = fs::remove_dir_all(&hooks);
    fs::write(&hooks, "").unwrap();
    let words = ["start", "--create", "gastown/polecats/Toast"];
    let failed = env.gt(&words);
    assert_ne!(failed.code, 0, "{failed:?}");
    assert_snapshot!(failed.rendered(&env), @"
    exit code: 1
    --- stderr
    error: cannot read ~/gt/.runtime/hooks/claude.json
    caused by: Not a directory (os error 20)
    ");
    assert!(!env.town().join("gastown/polecats/Toast").exists());
    let repository = env.town().join("gastown/.repo.git");
    assert_eq!(env.git(&repository, &["branch", "--list", "polecat/*"]), "");
    assert_eq!(env.sessions(), [""; 0]);
    // The folder of an agent that was there before stays.
    env.gt(&["start", "gastown/max"]).fails(failed.code);
    assert!(env.town().join("gastown/crew/max").exists());
    fs::remove_file(&hooks).unwrap();
    env.gt(&words).ok();
    assert!(env.town().join("gastown/polecats/Toast").exists());
}

#[test]
fn failed_start_leaves_what_was_there_before() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", "mayor"]).ok();
    env.tmux(Tmux::new("new-session").args(["-d", "-s", "mine", "exec sleep 7101"]));
    let worktree = env.town().join("gastown/crew/max");
    fs::write(worktree.join("mine.txt"), "mine\n").unwrap();
    let mayor = env.town().join(".runtime/pids/hq-mayor.pid");
    let before = fs::read_to_string(&mayor).unwrap();
    let failing = Failing::up_to_pid_file(&env, "gt-crew-max", &["start", "gastown/max"]);
    let file = failing.file.clone();
    failing.fails();
    assert!(!file.exists());
    assert!(worktree.join("mine.txt").exists());
    assert_eq!(fs::read_to_string(&mayor).unwrap(), before);
    assert_eq!(env.running(), ["mayor"]);
    let mut sessions = env.sessions();
    sessions.sort();
    assert_eq!(sessions, ["hq-mayor", "mine"]);
}

#[test]
fn failed_start_leaves_the_pid_file_of_another_process() {
    let env = TestEnv::with_crew(&["max"]);
    let failing = Failing::up_to_pid_file(&env, "gt-crew-max", &["start", "gastown/max"]);
    let file = failing.file.clone();
    let other = fs::read_to_string(&file).unwrap();
    let other = other.replacen(&failing.pid.to_string(), &std::process::id().to_string(), 1);
    fs::write(&file, &other).unwrap();
    failing.fails();
    assert_eq!(fs::read_to_string(&file).unwrap(), other);
    assert_eq!(env.sessions(), [""; 0]);
}

#[test]
fn failed_start_leaves_a_container_that_another_session_has_taken() {
    let env = TestEnv::with_crew(&["max"]);
    let failing = Failing::up_to_pid_file(&env, "gt-crew-max", &["start", "gastown/max"]);
    let container = SessionName::try_from("gt-crew-max").unwrap();
    let other = ["@gt_session", "01890000-0000-7000-8000-000000000000"];
    env.tmux(Tmux::new("set-option").target(container).args(other));
    failing.fails();
    assert_eq!(env.sessions(), ["gt-crew-max"]);
}
