//! `gt costs`: sums of tokens and costs over all sessions.

use crate::env::TestEnv;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;

const PRICES: &str = "[demo]\ninput = 1000\noutput = 2000\ncache_read = 100\ncache_write = 1250\n";

/// Appends sessions to the journal, as `gt` would have written them.
fn journal(env: &TestEnv, lines: &[Value]) {
    let folder = env.town().join(".sessions");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("index.jsonl");
    let mut options = fs::File::options();
    let mut file = options.create(true).append(true).open(path).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}

fn session(number: u8, agent: &str, day: &str, rest: &Value) -> Value {
    let mut line = json!({
        "id": format!("01a1e1f0-8c1b-7c02-9d3e-5f0d8a6a2f{number:02}"),
        "agent": agent, "rig": "gastown", "role": "crew", "harness": "claude",
        "started_at": format!("{day}T12:00:00.000Z"), "ended_at": format!("{day}T12:10:00.000Z"),
        "outcome": "stopped", "status": "stopped",
    });
    for (name, value) in rest.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

fn usage(output_tokens: u64, model: &str, cost: Option<f64>) -> Value {
    let unpriced = if cost.is_none() { output_tokens } else { 0 };
    json!({"input_tokens": 0, "output_tokens": output_tokens, "cache_read_tokens": 0,
        "cache_write_tokens": 0, "model": model, "cost_usd": cost, "unpriced_tokens": unpriced})
}

/// A town with four ended sessions: of two days, agents, models and items.
fn spent() -> TestEnv {
    let env = TestEnv::with_town();
    let max = "gastown/crew/max";
    journal(
        &env,
        &[
            session(
                1,
                max,
                "2026-01-16",
                &json!({"usage": usage(100, "opus", Some(1.0)), "work_unit": "gt-aaaaa"}),
            ),
            // It ran past midnight and used two models.
            session(
                2,
                max,
                "2026-01-16",
                &json!({"usage": usage(1000, "opus", Some(5.0)), "work_unit": "gt-bbbbb",
                "earlier_work": [{"work_unit": "gt-aaaaa", "usage": usage(400, "opus", Some(2.0))}],
                "daily": [
                    {"day": "2026-01-16", "model": "opus", "tokens": 600, "cost_usd": 3.0},
                    {"day": "2026-01-17", "model": "opus", "tokens": 300, "cost_usd": 1.75},
                    {"day": "2026-01-17", "model": "haiku", "tokens": 100, "cost_usd": 0.25},
                ]}),
            ),
            session(
                3,
                "gastown/crew/amy",
                "2026-01-17",
                &json!({"usage": usage(50, "gpt-new", None)}),
            ),
        ],
    );
    env
}

/// Returns key, tokens and cost of each row.
fn rows(costs: &Value) -> Vec<(String, u64, f64)> {
    let by = costs["by"].as_str().unwrap();
    let rows = costs["rows"].as_array().unwrap().iter();
    let row = |row: &Value| {
        (
            row[by].as_str().unwrap().to_owned(),
            row["tokens"].as_u64().unwrap(),
            row["cost_usd"].as_f64().unwrap_or_default(),
        )
    };
    rows.map(row).collect()
}

fn check(env: &TestEnv, args: &[&str], expected: &[(&str, u64, f64)]) {
    let costs = env.json(&[&["costs"], args].concat());
    let found = rows(&costs);
    let found: Vec<(&str, u64, f64)> = found
        .iter()
        .map(|(key, tokens, cost)| (key.as_str(), *tokens, *cost))
        .collect();
    assert_eq!(found, expected, "{args:?}");
}

fn check_all(env: &TestEnv) {
    check(
        env,
        &[],
        &[("2026-01-16", 700, 4.0), ("2026-01-17", 450, 2.0)],
    );
    check(
        env,
        &["--by", "model"],
        &[
            ("opus", 1000, 5.75),
            ("haiku", 100, 0.25),
            ("gpt-new", 50, 0.0),
        ],
    );
    check(
        env,
        &["--by", "agent"],
        &[
            ("gastown/crew/max", 1100, 6.0),
            ("gastown/crew/amy", 50, 0.0),
        ],
    );
    check(env, &["--by", "rig"], &[("gastown", 1150, 6.0)]);
    check(
        env,
        &["--by", "item"],
        &[
            ("gt-bbbbb", 600, 3.0),
            ("gt-aaaaa", 500, 3.0),
            ("", 50, 0.0),
        ],
    );
    check(env, &["--since", "2026-01-17"], &[("2026-01-17", 450, 2.0)]);
    check(env, &["--by", "day", "--since", "2026-01-18"], &[]);
}

#[test]
fn costs_are_added_up_by_each_key_also_from_the_archive() {
    let env = spent();
    check_all(&env);
    env.gt(&["sessions", "archive", "--before", "2026-01-18"])
        .ok();
    assert_eq!(env.json(&["sessions", "list"]), json!([]));
    check_all(&env);
    env.gt(&["sessions", "rebuild"]).ok();
    check_all(&env);
}

#[test]
fn table_has_totals_and_names_models_without_a_price() {
    let env = spent();
    let table = env.gt(&["costs", "--by", "model"]).ok().stdout;
    insta::assert_snapshot!(table, @r"
    MODEL    TOKENS  COST
    opus     1.0k    $5.75
    haiku    100     $0.25
    gpt-new  50      +
    total    1.1k    $6.00+
    + 50 tokens of gpt-new have no price: add it to prices.toml in the town.
    ");
    let costs = env.json(&["costs"]);
    assert_eq!(costs["unpriced_models"], json!(["gpt-new"]));
    assert_eq!(costs["total"]["unpriced_tokens"], 50);
    assert_eq!(costs["total"]["cost_usd"], 6.0);
}

#[test]
fn town_without_sessions_has_no_costs() {
    let env = TestEnv::with_town();
    let answer = env.gt(&["costs"]).ok();
    assert_eq!(answer.stdout, "No session has used tokens.\n");
    let wrong = env.gt(&["costs", "--since", "soon"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn running_session_counts_with_its_present_usage_and_equals_its_end() {
    let env = TestEnv::with_town();
    fs::write(env.town().join("prices.toml"), PRICES).unwrap();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["nudge", "mayor", "a message"]).ok();
    env.gt(&["wait", "mayor"]).ok();
    let running = env.json(&["costs", "--by", "model"]);
    let total = running["total"]["cost_usd"].as_f64().unwrap();
    assert!(total > 0.0, "{running}");
    assert_eq!(rows(&running)[0].0, "demo");
    env.gt(&["stop", "mayor"]).ok();
    let ended = env.json(&["costs", "--by", "model"]);
    assert_eq!(ended, running);
    let today = env.json(&["costs", "--since", "today"]);
    assert_eq!(today["total"], ended["total"]);
}
