//! `gt budget`: limits of spending, their effects, and raises.

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;

const PRICES: &str = "[demo]\ninput = 1000\noutput = 2000\ncache_read = 100\ncache_write = 1250\n";

/// A town with these budgets, in which the tokens of the demo agent have a price.
fn with_budgets(budgets: &str) -> TestEnv {
    let env = TestEnv::with_town();
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    let settings = env.town().join("town.toml");
    let mut file = fs::File::options().append(true).open(settings).unwrap();
    writeln!(file, "\n[budget]\n{budgets}").unwrap();
    env
}

fn state(env: &TestEnv, agent: &str) -> Value {
    let agents = env.json(&["agents"]);
    let all = agents.as_array().unwrap();
    let found = all.iter().find(|it| it["agent"] == agent);
    found.cloned().unwrap_or_default()
}

#[track_caller]
fn await_state(env: &TestEnv, agent: &str, wanted: &str) -> Value {
    wait_until(&format!("{agent} is {wanted}"), TIMEOUT, || {
        Some(state(env, agent)).filter(|it| it["state"] == wanted)
    })
}

fn events(env: &TestEnv, kind: &str) -> Vec<Value> {
    let events = env.json(&["events", "--type", kind]);
    events.as_array().cloned().unwrap_or_default()
}

fn budget(env: &TestEnv, scope: &str) -> Value {
    let all = env.json(&["budget"]);
    let all = all["budgets"].as_array().unwrap().clone();
    all.into_iter()
        .find(|it| it["scope"] == scope)
        .unwrap_or_default()
}

#[test]
fn town_without_budgets_says_so_and_wrong_raises_are_refused() {
    let env = TestEnv::with_town();
    let answer = env.gt(&["budget"]).ok();
    assert_eq!(
        answer.stdout,
        "No budget is set. `day = 20` under [budget] in town.toml limits a day to $20; `rig`, \
         `agent` and `item` limit those.\n"
    );
    let raised = env.gt(&["budget", "raise", "day", "5"]).ok();
    assert_eq!(
        raised.stderr,
        "warning: day has no limit: the raise counts as soon as day is set under [budget] \
         in town.toml\n"
    );
    for words in [
        ["raise", "month", "5"],
        ["raise", "day", "much"],
        ["raise", "day", "-5"],
        ["raise", "day", "0"],
    ] {
        let answer = env.gt(&[&["budget"], words.as_slice()].concat());
        assert_eq!(answer.code, 2, "{words:?} {answer:?}");
    }
    assert_snapshot!(env.snapshot(&["budget", "raise", "rig:nowhere", "5"]), @r#"
    exit code: 3
    --- stderr
    error: there is no rig "nowhere"
    hint: `gt rig list` shows them
    "#);
}

#[test]
fn exhausted_day_pauses_at_the_end_of_the_turn_refuses_starts_and_a_raise_resumes() {
    let env = with_budgets("day = 0.01");
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["nudge", "mayor", "a first message"]).ok();
    let paused = await_state(&env, "mayor", "paused");
    let reason = paused["state_reason"].as_str().unwrap();
    assert!(reason.starts_with("budget of the day: $"), "{paused}");
    assert_snapshot!(env.snapshot(&["agents"]), @"
    exit code: 0
    --- stdout
    AGENT  STATE  SINCE  WHAT
    mayor  paused !  [N]  budget of the day: $[N] of $[N]
    ! no permission prompts and no sandbox: `gt doctor`
    ");
    assert_eq!(budget(&env, "day")["level"], "exhausted");
    // No start, with the figure and the command that helps.
    let refused = env.gt(&["start", "deacon"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_snapshot!(refused.rendered(&env), @"
    exit code: 4
    --- stderr
    error: the budget of the day is exhausted: $[N] of $[N]
    hint: `gt budget raise day AMOUNT --today` raises it
    ");
    // A message waits.
    let sent = env.json(&["nudge", "mayor", "a second message"]);
    assert_eq!(sent["delivered"], "queue", "{sent}");
    assert_eq!(sent["deliverer"], "resume", "{sent}");
    assert_eq!(state(&env, "mayor")["state"], "paused");
    assert_eq!(events(&env, "budget_exhausted").len(), 1);
    assert_eq!(events(&env, "paused").len(), 1);
    let open = env.json(&["escalate", "list"]);
    assert!(open.to_string().contains("The budget of the day"), "{open}");
    // After the raise the message is delivered, and starts are possible.
    let raised = env.json(&["budget", "raise", "day", "1000", "--today"]);
    assert_eq!(raised["resumed"], json!(["mayor"]), "{raised}");
    assert_eq!(raised["budget"]["level"], "ok");
    wait_until("the second message arrives", TIMEOUT, || {
        let screen = env.gt(&["peek", "mayor"]).ok().stdout;
        screen.contains("a second message").then_some(())
    });
    await_state(&env, "mayor", "idle");
    env.gt(&["start", "deacon", "--no-prompt"]).ok();
    let raise = &events(&env, "budget_raised")[0];
    assert_eq!(raise["payload"]["scope"], "day", "{raise}");
    assert_eq!(raise["payload"]["amount"], "$1000.00", "{raise}");
}

#[test]
fn warning_is_given_once() {
    let env = with_budgets("agent = 1000\nwarn_at = 0.000001");
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    for text in ["one", "two"] {
        env.gt(&["nudge", "mayor", text]).ok();
        env.gt(&["wait", "mayor"]).ok();
        env.gt(&["internal", "check-budgets"]).ok();
    }
    wait_until("a warning", TIMEOUT, || {
        (!events(&env, "budget_warning").is_empty()).then_some(())
    });
    env.gt(&["internal", "check-budgets"]).ok();
    assert_eq!(events(&env, "budget_warning").len(), 1);
    assert_eq!(budget(&env, "agent:mayor")["level"], "warn");
    assert_eq!(state(&env, "mayor")["state"], "idle");
}

#[test]
fn handoff_is_refused_under_an_exhausted_budget_unless_forced() {
    let env = with_budgets("day = 0.01");
    env.add_settings("[handoff]\ncooldown = '0s'");
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["nudge", "mayor", "a first message"]).ok();
    let before = await_state(&env, "mayor", "paused");
    let refused = env.gt(&["handoff", "mayor", "-m", "go on"]).fails(4);
    for part in [
        "the budget of the day is exhausted",
        "budget raise",
        "--force",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(state(&env, "mayor")["session"], before["session"]);
    // The state can be saved: no session is started for that.
    env.gt(&["handoff", "mayor", "--auto"]).ok();
    env.gt(&["handoff", "mayor", "-m", "go on", "--force"]).ok();
    assert_ne!(state(&env, "mayor")["session"], before["session"]);
}
