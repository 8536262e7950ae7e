//! `gt watch`: reports every change of an agent's state when it happens.

use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use crate::stopwatch::Stopwatch;
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) struct Watch {
    child: Child,
    lines: Receiver<Value>,
}

impl Watch {
    pub(crate) fn begin(env: &TestEnv) -> Self {
        let mut child = env.spawn(&["watch", "--json", "--first"]);
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = serde_json::from_str(&line.unwrap()).unwrap();
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        wait_until("it listens", TIMEOUT, || {
            env.town()
                .join(".runtime/board/changed")
                .exists()
                .then_some(())
        });
        Watch { child, lines }
    }

    /// Returns the next line with that state.
    #[track_caller]
    fn expect(&self, state: &str) -> Value {
        self.expect_where(state, |_| true)
    }

    /// Returns the next line of this agent with that state.
    #[track_caller]
    pub(crate) fn expect_of(&self, agent: &str, state: &str) -> Value {
        self.expect_where(state, |line| line["agent"] == agent)
    }

    #[track_caller]
    fn expect_where(&self, state: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let mut others = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) if line["state"] == state && is_expected(&line) => return line,
                Ok(line) => others.push(line),
                Err(_) => panic!("{state} was not reported, only {others:?}"),
            }
        }
    }

    pub(crate) fn end(mut self) {
        signal(self.child.id(), Signal::INT);
        assert!(self.child.wait().unwrap().success());
    }
}

fn hook(env: &TestEnv, container: &str, event: &str, report: &Value) {
    let mut command = env.gt_command(&["signal", event, "--session", container, "--strict"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(report.to_string().as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Maximum delay on a loaded machine; usually it is a tenth of a second.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn session_is_reported_from_start_to_end() {
    let env = TestEnv::with_town();
    let watch = Watch::begin(&env);
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let line = watch.expect("idle");
    assert_eq!(line["agent"], "mayor");
    assert_eq!(line["container"], "hq-mayor");
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "rm x"}});
    let stopwatch = Stopwatch::start();
    hook(&env, "hq-mayor", "permission", &bash);
    // The real title contradicts the fake report at once.
    let told = env.format("hq-mayor", "#{@gt_state}");
    assert_eq!(told, "waiting");
    env.tmux(
        Tmux::new("select-pane")
            .target(gt_tmux::SessionName::try_from("hq-mayor").unwrap())
            .args(["-T", "no mark"]),
    );
    hook(&env, "hq-mayor", "permission", &bash);
    let line = watch.expect("waiting");
    stopwatch.assert_within("the question", SOON);
    assert_eq!(line["source"], "hook");
    assert_eq!(line["reason"], "asks: Bash(rm x)");
    let stopwatch = Stopwatch::start();
    signal(env.pid("mayor"), Signal::KILL);
    let line = watch.expect("crashed");
    stopwatch.assert_within("the crash", SOON);
    assert_eq!(line["before"], "waiting");
    env.gt(&["stop", "mayor"]).ok();
    let line = watch.expect("stopped");
    assert_eq!(line["before"], "crashed");
    watch.end();
    assert!(!env.town().join(".runtime/board/changed").exists());
}

#[test]
fn a_watch_that_is_killed_leaves_no_client_behind() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    let mut watch = Watch::begin(&env);
    let clients = || env.tmux(Tmux::new("list-clients").args(["-F", "#{client_pid}"]));
    let client = wait_until("a client", TIMEOUT, || clients().parse::<u32>().ok());
    // The control client does not count as attached.
    assert_eq!(env.agent("mayor")["attached"], false);
    watch.child.kill().unwrap();
    watch.child.wait().unwrap();
    wait_until("its client is gone", TIMEOUT, || {
        (!is_alive(client) && clients().is_empty()).then_some(())
    });
    // Leftovers of the killed watcher do not block the next one.
    let watch = Watch::begin(&env);
    let line = watch.expect("idle");
    assert_eq!(line["agent"], "mayor");
    watch.end();
}
