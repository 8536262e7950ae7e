//! Usage of a session from the transcripts of real programs, compared with the usage that the model
//! server reported.

use crate::stage::{Stage, TIMEOUT};
use crate::{every, is_shortened};
use gt_model::{Api, LoggedRequest};
use gt_tmux::testing::wait_until;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Input, output and cached tokens.
type Tokens = [u64; 3];

/// Sums the usage that the server reported for these requests. Requests without tools are side
/// requests, such as for a title; no program writes them into its transcript.
fn reported(requests: &[LoggedRequest]) -> Tokens {
    let answers = requests.iter().filter(|r| r.has_tools && r.status == 200);
    answers.fold([0; 3], |[input, output, cached], request| {
        let usage = request.usage;
        // Only Anthropic excludes cached tokens from the input count.
        let fresh = match request.api {
            Api::Anthropic => usage.input,
            _ => usage.input - usage.cached,
        };
        [input + fresh, output + usage.output, cached + usage.cached]
    })
}

fn counted(session: &Value) -> Tokens {
    let usage = &session["usage"];
    ["input_tokens", "output_tokens", "cache_read_tokens"]
        .map(|name| usage[name].as_u64().unwrap_or_default())
}

/// Returns the newest session with all its details.
fn newest(stage: &Stage) -> Value {
    let all: Value = serde_json::from_str(&stage.ok(&["sessions", "list", "--json"])).unwrap();
    let id = all[0]["id"].as_str().unwrap();
    serde_json::from_str(&stage.ok(&["sessions", "show", id, "--json"])).unwrap()
}

/// Runs one session with one message, and checks its usage while it runs and after it ended.
fn one_session(stage: &Stage, args: &[&str], message: &str) -> Value {
    let before = stage.requests().len();
    stage.start(&[&["--no-prompt"], args].concat());
    stage.nudge(message);
    wait_until("its message is answered", TIMEOUT, || {
        let new = &stage.requests()[before..];
        new.iter().any(|r| r.has_tools).then_some(())
    });
    stage.ok(&["wait", "gastown/max", "--timeout", "60"]);
    // The screen may be ahead of the transcript.
    let running = wait_until("its tokens are counted", TIMEOUT, || {
        let session = newest(stage);
        let expected = reported(&stage.requests()[before..]);
        (counted(&session) == expected && expected[1] > 0).then_some(session)
    });
    stage.ok(&["stop", "gastown/max"]);
    let ended = newest(stage);
    assert_eq!(ended["id"], running["id"]);
    let expected = reported(&stage.requests()[before..]);
    assert_eq!(counted(&ended), expected, "{ended}");
    let journal = fs::read_to_string(stage.path("gt/.sessions/index.jsonl")).unwrap();
    assert!(journal.contains("\"usage\""), "{journal}");
    ended
}

#[test]
#[ignore = "needs the real programs: make test-agents"]
fn session_counts_the_reported_tokens() {
    every("usage", |stage| {
        let first = one_session(stage, &[], "count this");
        let model = first["usage"]["model"].as_str().unwrap().to_owned();
        let requests = stage.requests();
        assert!(requests.iter().any(|r| r.has_tools && r.model == model));
        let cost = first["usage"]["cost_usd"].as_f64();
        match stage.program().harness {
            // Claude Code's own total is the reference for ours.
            "claude" => {
                let own = own_cost(&stage.path(".claude/projects"), &first);
                assert!((cost.unwrap() - own).abs() < 1e-9, "{cost:?} {own}");
            }
            // An unknown model has no price.
            "codex" => assert_eq!(cost, None),
            _ => assert!(cost > Some(0.0), "{first}"),
        }
        // The next session continues the conversation and counts only its own tokens.
        let second = one_session(stage, &["--continue"], "and this");
        assert_ne!(second["id"], first["id"]);
        assert_eq!(
            counted(&newest_but_one(stage)),
            counted(&first),
            "the first is as it was"
        );
        if is_shortened(stage.program()) {
            return;
        }
        // The transcript of a fork begins with a copy of the original.
        let conversation = second["harness_session_id"].as_str();
        if let Some(id) = conversation.filter(|_| stage.program().harness != "gemini") {
            one_session(stage, &["--fork", id], "and that");
        }
    });
}

/// Returns the cost that Claude Code writes at the end of a conversation.
fn own_cost(projects: &Path, session: &Value) -> f64 {
    let name = format!("{}.jsonl", session["harness_session_id"].as_str().unwrap());
    let mut folders = fs::read_dir(projects).unwrap().flatten();
    let file = folders.find_map(|folder| fs::read_to_string(folder.path().join(&name)).ok());
    let file = file.unwrap();
    let lines = file.lines().rev();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let last = lines.find(|line| line["type"] == "cost-state").unwrap();
    last["totalCostUSD"].as_f64().unwrap()
}

fn newest_but_one(stage: &Stage) -> Value {
    let all: Value = serde_json::from_str(&stage.ok(&["sessions", "list", "--json"])).unwrap();
    all[1].clone()
}
