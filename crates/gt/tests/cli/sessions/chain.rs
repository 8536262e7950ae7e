//! The chain of an item: every session that worked on it, however the previous one ended.

use crate::env::{TIMEOUT, TestEnv, signal};
use crate::save::crash as kill_server;
use crate::sessions::list_sessions;
use crate::task::with_project;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const PRICES: &str = "[demo]\ninput = 1000\noutput = 2000\ncache_read = 100\ncache_write = 1250\n";

/// Makes the agent of a task answer once.
fn talk(env: &TestEnv, id: &str, text: &str) {
    env.gt(&["nudge", id, text]).ok();
    env.wait_screen(id, &format!("You said: {text}"));
    env.gt(&["wait", id]).ok();
}

#[test]
fn chain_of_an_item_has_every_session_and_the_totals_of_list_and_board() {
    let (env, id) = with_project("");
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    let agent = format!("task/{id}");
    env.gt(&["task", "start", &id]).ok();
    talk(&env, &id, "one");
    // Stopped and started again.
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&["task", "start", &id]).ok();
    talk(&env, &id, "two");
    // Stopped and resumed.
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&["task", "resume", &id]).ok();
    talk(&env, &id, "three");
    // Crashed and resumed.
    signal(env.pid(&agent), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(&agent)["state"] == "crashed").then_some(())
    });
    env.gt(&["task", "resume", &id]).ok();
    talk(&env, &id, "four");
    // Lost with its server and restored.
    env.gt(&["save"]).ok();
    kill_server(&env);
    env.gt(&["restore"]).ok();
    talk(&env, &id, "five");
    // Handed over.
    env.gt(&["handoff", &agent, "--force", "-m", "go on"]).ok();
    wait_until("the sixth session", TIMEOUT, || {
        (list_sessions(&env, &["--work", &id]).len() == 6).then_some(())
    });
    env.gt(&["wait", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();

    let chain = env.json(&["sessions", "chain", &id]);
    let sessions = chain["sessions"].as_array().unwrap();
    let outcomes: Vec<&str> = sessions
        .iter()
        .map(|session| session["outcome"].as_str().unwrap())
        .collect();
    let expected = ["stopped", "stopped", "crash", "crash", "handoff", "stopped"];
    assert_eq!(outcomes, expected, "{chain}");
    for pair in sessions.windows(2) {
        assert_eq!(pair[1]["parent_id"], pair[0]["id"], "{chain}");
        assert_eq!(pair[0]["child_id"], pair[1]["id"], "{chain}");
        assert_eq!(pair[1]["chain_id"], sessions[0]["id"], "{chain}");
    }
    // Every session of the chain gives the same result.
    for session in sessions {
        let by_session = env.json(&["sessions", "chain", session["id"].as_str().unwrap()]);
        assert_eq!(by_session["totals"], chain["totals"], "{by_session}");
    }
    let listed = list_sessions(&env, &["--work", &id]);
    let sum = |field: &str| -> f64 {
        let of = |session: &Value| session["usage"][field].as_f64().unwrap_or_default();
        listed.iter().map(of).sum()
    };
    let tokens = [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
    ];
    let tokens: f64 = tokens.map(sum).iter().sum();
    assert!(tokens > 0.0, "{listed:?}");
    assert_eq!(chain["totals"]["lives"], listed.len());
    assert_eq!(chain["totals"]["tokens"].as_f64(), Some(tokens), "{chain}");
    let cost = chain["totals"]["cost_usd"].as_f64().unwrap();
    assert!((cost - sum("cost_usd")).abs() < 1e-6, "{chain}");
    let board = env.json(&["board"]);
    let mut cards = board["cards"].as_array().unwrap().iter();
    let card = cards.find(|card| card["id"] == id.as_str()).unwrap();
    assert_eq!(
        card["usage"]["cost_usd"], chain["totals"]["cost_usd"],
        "{card}"
    );
    assert_snapshot!(env.snapshot(&["sessions", "chain", &id]), @"
    exit code: 0
    --- stdout
    [UUID] task/gt-[ID], [TIME] [TIME], [N], stopped by [USER], [N] tokens, $[N]
    └─ [UUID] task/gt-[ID], [TIME] [TIME], [N], stopped by [USER], [N] tokens, $[N]
       └─ [UUID] task/gt-[ID], [TIME] [TIME], [N], crash, [N] tokens, $[N]
          └─ [UUID] task/gt-[ID], [TIME] [TIME], [N], crash, [N] tokens, $[N]
             └─ [UUID] task/gt-[ID], [TIME] [TIME], [N], handoff, [N] tokens, $[N]
                └─ [UUID] task/gt-[ID], [TIME] [TIME], [N], stopped by [USER], [N] tokens, $[N]
    6 sessions, [N] together, [N] tokens, $[N]
    ");
}

#[test]
fn next_polecat_with_an_item_continues_its_chain_and_other_work_does_not() {
    let env = TestEnv::with_rig();
    let create = |title: &str| {
        let item = env.json(&["work", "create", title, "--rig", "gastown"]);
        item["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (create("First"), create("Second"));
    let sling = |item: &str| env.json(&["sling", item, "gastown"])["agent"].clone();
    let agent = sling(&first);
    let agent = agent.as_str().unwrap();
    signal(env.pid(agent), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(agent)["state"] == "crashed").then_some(())
    });
    env.gt(&["polecat", "nuke", agent]).ok();
    let next = sling(&first);
    let chain = env.json(&["sessions", "chain", &first]);
    assert_eq!(chain["totals"]["lives"], 2, "{chain}");
    assert_eq!(chain["sessions"][1]["agent"], next, "{chain}");
    assert_eq!(
        chain["sessions"][1]["chain_id"], chain["sessions"][0]["id"],
        "{chain}"
    );
    // Another item begins a separate chain.
    let other = sling(&second);
    let chain = env.json(&["sessions", "chain", &second]);
    assert_eq!(chain["totals"]["lives"], 1, "{chain}");
    assert_eq!(chain["sessions"][0]["agent"], other);
    assert_eq!(chain["sessions"][0].get("parent_id"), None, "{chain}");
}

#[test]
fn session_with_two_items_is_in_the_chain_list_and_sum_of_both() {
    let env = TestEnv::with_crew(&["max"]);
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    let create = |title: &str| {
        let item = env.json(&["work", "create", title, "--rig", "gastown"]);
        item["id"].as_str().unwrap().to_owned()
    };
    let items = [create("First"), create("Second")];
    env.gt(&["crew", "start", "max"]).ok();
    for (item, text) in items.iter().zip(["one", "two and a little more"]) {
        env.gt(&["hook", item, "--agent", "gastown/crew/max"]).ok();
        talk(&env, "gastown/crew/max", text);
        env.gt(&["work", "close", item]).ok();
    }
    env.gt(&["crew", "stop", "max"]).ok();
    let whole = list_sessions(&env, &["--agent", "gastown/crew/max"]);
    assert_eq!(whole.len(), 1, "{whole:?}");
    let cost = |of: &Value| of["cost_usd"].as_f64().unwrap();
    let board = env.json(&["board"]);
    let mut sum = 0.0;
    for (item, other) in [(&items[0], &items[1]), (&items[1], &items[0])] {
        let chain = env.json(&["sessions", "chain", item]);
        assert_eq!(chain["totals"]["lives"], 1, "{chain}");
        let listed = list_sessions(&env, &["--work", item]);
        assert_eq!(listed.len(), 1, "{listed:?}");
        let total = cost(&chain["totals"]);
        assert!(total > 0.0, "{chain}");
        assert!(
            (cost(&listed[0]["usage"]) - total).abs() < 1e-9,
            "{listed:?}"
        );
        assert_eq!(listed[0]["session_usage"], whole[0]["usage"]);
        let mut cards = board["cards"].as_array().unwrap().iter();
        let card = cards.find(|card| card["id"] == item.as_str()).unwrap();
        assert!((cost(&card["usage"]) - total).abs() < 1e-9, "{card}");
        let stats = env.json(&["sessions", "stats", "--work", item]);
        assert!((cost(&stats[0]) - total).abs() < 1e-9, "{stats}");
        assert_eq!(stats[0]["seconds"], chain["totals"]["seconds"], "{stats}");
        let drawn = env.gt(&["sessions", "chain", item]).ok().stdout;
        assert!(
            drawn.contains(&format!("(also worked on {other})")),
            "{drawn}"
        );
        sum += total;
    }
    let all = cost(&whole[0]["usage"]);
    assert!((sum - all).abs() < 1e-9, "{sum} of {all}");
}
