//! A restore beside another restore, a start or a kill.

use super::done;
use crate::env::{Answer, TIMEOUT, TestEnv, signal};
use crate::save::{by_hand, crash, history, pane};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::{Child, Stdio};

/// A `gt` process that waits at a named step until it is released.
struct Held<'a> {
    env: &'a TestEnv,
    step: &'a str,
    child: Child,
}

impl<'a> Held<'a> {
    fn at(env: &'a TestEnv, step: &'a str, args: &[&str]) -> Self {
        let gate = env.path(step).display().to_string();
        let mut command = env.gt_command(args);
        command
            .env("GT_HOLD", format!("{step}={gate}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Held { env, step, child }
    }

    fn wait_reached(&self) {
        let reached = self.env.path(&format!("{}.reached", self.step));
        wait_until(&format!("{} is reached", self.step), TIMEOUT, || {
            reached.exists().then_some(())
        });
    }

    fn release(self) -> Answer {
        fs::write(self.env.path(self.step), "").unwrap();
        Answer::of(self.child.wait_with_output().unwrap())
    }
}

/// Makes a town whose only agent was lost with its tmux server after a save.
fn lost_worker() -> TestEnv {
    let env = TestEnv::with_crew(&["max"]);
    by_hand(&env);
    env.gt(&["crew", "start", "max"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    env
}

/// Checks the answer of a restore that found the worker running.
fn check_left(answer: Answer) {
    let answer = answer.ok().json();
    assert_eq!(done(&answer), [("gastown/crew/max", false)], "{answer}");
    let agent = &answer["agents"][0];
    assert_eq!(agent["action"], "leave", "{answer}");
    assert_eq!(agent["reason"], "is there already", "{answer}");
    assert_eq!(agent["error"], Value::Null, "{answer}");
}

#[test]
fn an_interrupted_restore_leaves_nothing_half_done() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "deacon"]).ok();
    let mine = Tmux::new("split-window").args(["-d", "-h"]);
    env.tmux(mine.target(pane(&env, "hq-mayor")));
    env.gt(&["save"]).ok();
    crash(&env);
    // The program never shows its ready mark.
    let preset = "[command]\nargs = ['demo-agent', '--startup-delay', '600000']\n\
                  [ready]\ntimeout_seconds = 600\n";
    fs::write(env.town().join("harnesses/demo.toml"), preset).unwrap();
    let restore = env.spawn(&["restore"]);
    wait_until("both come up", TIMEOUT, || {
        let is_up = |name: &str| history(&env, name).contains("# gt: restored");
        (env.sessions().len() == 2 && is_up("hq-mayor") && is_up("hq-deacon")).then_some(())
    });
    signal(restore.id(), Signal::INT);
    let output = restore.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(env.sessions(), Vec::<String>::new());
    let left = fs::read_dir(env.town().join(".runtime/replay")).unwrap();
    assert_eq!(left.count(), 0);
    fs::remove_file(env.town().join("harnesses/demo.toml")).unwrap();
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["mayor", "deacon"]);
    assert_eq!(env.format("hq-mayor", "#{window_panes}"), "2");
}

#[test]
fn restore_during_another_restore_reports_its_agents_as_running() {
    let env = lost_worker();
    let first = Held::at(&env, "restore.planned", &["restore", "--json"]);
    first.wait_reached();
    let second = env.spawn(&["restore", "--json"]);
    let first = first.release().ok().json();
    assert_eq!(done(&first), [("gastown/crew/max", true)], "{first}");
    check_left(Answer::of(second.wait_with_output().unwrap()));
}

#[test]
fn restore_that_meets_a_start_under_way_reports_the_agent_as_running() {
    let env = lost_worker();
    let start = Held::at(&env, "start.locked", &["start", "gastown/max"]);
    start.wait_reached();
    // The restore has planned the agent, and has lost the agent's lock to the start.
    let restore = Held::at(&env, "restore.contended", &["restore", "--json"]);
    restore.wait_reached();
    start.release().ok();
    check_left(restore.release());
    assert_eq!(env.running(), ["gastown/crew/max"]);
}

#[test]
fn restore_that_meets_an_agent_started_since_its_plan_reports_it_as_running() {
    let env = lost_worker();
    let restore = Held::at(&env, "restore.planned", &["restore", "--json"]);
    restore.wait_reached();
    env.gt(&["start", "gastown/max"]).ok();
    check_left(restore.release());
    assert_eq!(env.running(), ["gastown/crew/max"]);
}

#[test]
fn restore_that_meets_a_start_that_fails_reports_the_agent_as_not_brought_back() {
    let env = lost_worker();
    let words = ["start", "gastown/max", "--command", "exit 3"];
    let start = Held::at(&env, "start.locked", &words);
    start.wait_reached();
    let restore = Held::at(&env, "restore.contended", &["restore", "--json"]);
    restore.wait_reached();
    start.release().fails(1);
    let answer = restore.release().fails(4).json();
    assert_eq!(done(&answer), [("gastown/crew/max", false)], "{answer}");
    assert_eq!(answer["agents"][0]["action"], "restore", "{answer}");
}

#[test]
fn two_concurrent_restores_act_as_one() {
    let env = TestEnv::with_crew(&["a", "b", "c"]);
    by_hand(&env);
    env.gt(&["crew", "start", "--all"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    let answers: Vec<_> = (0..3)
        .map(|_| env.spawn(&["restore", "--json"]))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    let mut restored = Vec::new();
    for answer in &answers {
        assert!(answer.status.success(), "{answer:?}");
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        let agents = answer["agents"].as_array().unwrap();
        restored.push(agents.iter().filter(|a| a["restored"] == true).count());
    }
    restored.sort_unstable();
    assert_eq!(restored, [0, 0, 3]);
    assert_eq!(env.running().len(), 3);
}
