//! `gt status`, and tables in narrow and wide terminals.

use crate::env::{TIMEOUT, TestEnv};
use crate::help::{assert_fits, at_width};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;

const QUESTION: &str = "[[ask=Which colour should the button in the settings have?|red|blue]]";

/// Makes a town with an idle worker, a polecat with an item, and a worker that asks a question.
fn busy_town() -> TestEnv {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "max", "amy"]).ok();
    let title = "Write the whole of the manual, with examples for every command of the tool";
    env.create_item(title);
    env.gt(&["sling", &env.create_item(title)]).ok();
    for name in ["max", "amy", "Toast"] {
        env.gt(&["wait", name, "--until", "idle", "--timeout", "30"])
            .ok();
    }
    env.gt(&["nudge", "amy", QUESTION]).ok();
    env.gt(&["wait", "amy", "--until", "waiting", "--timeout", "30"])
        .ok();
    env
}

#[test]
fn agents_fit_the_width_and_questions_have_their_command() {
    let env = busy_town();
    assert_snapshot!(env.snapshot(&["agents"]), @r"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  WHAT
        gastown/crew/amy  waiting  [N]  asks: Which colour should the button in the settings have?
        gastown/crew/max  [STATE]  [N]
        gastown/polecats/Toast  [STATE]  [N]  gt-[ID] Write the whole of the manual, with examples for every command of the tool
        gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
        ");
    assert_snapshot!(at_width(&env, 60, &["agents"]).ok().rendered(&env), @r"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  WHAT
        gastown/crew/amy  waiting  [N]  asks: Which colour…
        gastown/crew/max  [STATE]  [N]
        gastown/polecats/Toast  [STATE]  [N]  gt-[ID] Write the…
        gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
        ");
    assert_snapshot!(env.snapshot(&["agents", "--wide", "max"]), @r"
        exit code: 0
        --- stdout
        AGENT  STATE  SINCE  HEALTH  HARNESS  CONTAINER  NOTES  WHAT
        gastown/crew/max  [STATE]  [N]  healthy  demo  gt-crew-max
        ");
    for columns in [60, 80, 140] {
        for args in [
            &["agents"][..],
            &["agents", "--wide"],
            &["work", "list"],
            &["sessions", "list"],
            &["harness", "show", "claude"],
            &["harness", "list"],
            &["role", "show", "crew"],
            &["crew", "list"],
        ] {
            let text = at_width(&env, columns, args).ok().stdout;
            let table = text.split("\ngastown/crew/amy waits").next().unwrap();
            assert_fits(table, columns);
        }
    }
    // A pipe gets whole cells.
    assert!(
        env.gt(&["work", "list"])
            .ok()
            .stdout
            .contains("every command of the tool")
    );
    assert_snapshot!(env.snapshot(&["answer", "amy"]), @r"
        exit code: 0
        --- stdout
        Which colour should the button in the settings have?
        ❯ 1. red
          2. blue
        `gt answer gastown/crew/amy NUMBER` answers.
        ");
}

#[test]
fn status_lists_what_needs_attention_once() {
    let env = busy_town();
    assert_snapshot!(env.snapshot(&["status"]), @r"
        exit code: 0
        --- stdout
        gt at ~/gt (tmux socket: ~/s)
          gastown (gt): 3 running
        Agents: 2 idle, 1 waiting.

        AGENT  STATE  SINCE  WHAT
        gastown/crew/amy  waiting  [N]  asks: Which colour should the button in the settings have?
        gastown/crew/max  [STATE]  [N]
        gastown/polecats/Toast  [STATE]  [N]  gt-[ID] Write the whole of the manual, with examples for every command of the tool

        Needs attention:
          ! gastown/crew/amy waits for an answer: `gt answer gastown/crew/amy`
        ");
    let session = env.agent("gastown/crew/max")["session"].clone();
    assert_snapshot!(env.snapshot(&["sessions", "show", session.as_str().unwrap()]), @"
    exit code: 0
    --- stdout
    agent  gastown/crew/max
    outcome  running
    started  [TIME] [TIME] (lasted [N])
    usage  4 in, 22 out, [N] from the cache, [N] into the cache, demo
    harness  demo
    container  gt-crew-max
    folder  ~/gt/gastown/crew/max
    session  [UUID]
    conversation  [UUID]
    ");
    env.tmux(Tmux::new("kill-server"));
    wait_until("the loss is in the status", TIMEOUT, || {
        let status = env.gt(&["status"]).ok().stdout;
        let is_told = status.contains("are lost with the tmux server: `gt restore`");
        is_told.then_some(())
    });
}
