//! How sessions end, and what follows: crashes, clean exits, stops and finished work.

use crate::env::{TIMEOUT, TestEnv, login, signal};
use crate::save::crash as kill_server;
use crate::sessions::list_sessions;
use crate::task::{folder, with_project};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const MAX: &str = "gastown/crew/max";

/// Waits until the agent has `number` sessions and the newest one is at its prompt.
#[track_caller]
fn await_session(env: &TestEnv, agent: &str, number: usize) -> Value {
    wait_until(&format!("session {number} of {agent}"), TIMEOUT, || {
        let all = list_sessions(env, &["--agent", agent]);
        let runs = all.len() == number && all[0]["status"] == "running";
        (runs && env.agent(agent)["state"] == "idle").then(|| all[0].clone())
    })
}

#[track_caller]
fn await_state(env: &TestEnv, agent: &str, state: &str) {
    wait_until(&format!("{agent} to be {state}"), TIMEOUT, || {
        (env.agent(agent)["state"] == state).then_some(())
    });
}

#[track_caller]
fn await_outcome(env: &TestEnv, id: &Value, outcome: &str) -> Value {
    wait_until(&format!("the outcome {outcome}"), TIMEOUT, || {
        let session = env.json(&["sessions", "show", id.as_str().unwrap()]);
        (session["outcome"] == outcome).then_some(session)
    })
}

/// Counts the journal lines that record the end of a session.
fn end_records(env: &TestEnv, id: &Value) -> usize {
    let journal = fs::read_to_string(env.town().join(".sessions/index.jsonl")).unwrap();
    let lines = journal.lines().map(serde_json::from_str::<Value>);
    lines
        .map(Result::unwrap)
        .filter(|line| line["id"] == *id && line.get("outcome").is_some())
        .count()
}

fn transcript(env: &TestEnv, conversation: &Value) -> std::path::PathBuf {
    let name = format!("{}.jsonl", conversation.as_str().unwrap());
    env.town().join(".runtime/demo/sessions").join(name)
}

#[test]
fn respawn_after_a_crash_resumes_the_conversation() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["nudge", MAX, "remember the apple"]).ok();
    env.wait_screen(MAX, "You said: remember the apple");
    let first = list_sessions(&env, &[])[0].clone();
    signal(env.pid(MAX), Signal::KILL);
    let second = await_session(&env, MAX, 2);
    assert_eq!(second["harness_session_id"], first["harness_session_id"]);
    assert_eq!(second["parent_id"], first["id"]);
    assert_eq!(second["chain_id"], first["id"]);
    let prompt = second["initial_prompt"].as_str().unwrap();
    assert!(prompt.contains("crashed (killed by signal 9)"), "{prompt}");
    env.wait_screen(MAX, "Your program crashed");
    env.wait_screen(MAX, "remember the apple");
    let text = fs::read_to_string(transcript(&env, &first["harness_session_id"])).unwrap();
    let (apple, crashed) = (text.find("the apple"), text.find("program crashed"));
    assert!(apple.is_some() && apple < crashed, "{text}");
    assert_eq!(
        await_outcome(&env, &first["id"], "crash")["exit_code"],
        Value::Null
    );
    assert_eq!(end_records(&env, &first["id"]), 1);

    // A conversation that crashes again right after its resume is replaced by a new one.
    signal(env.pid(MAX), Signal::KILL);
    let third = await_session(&env, MAX, 3);
    assert_ne!(third["harness_session_id"], first["harness_session_id"]);
    assert_eq!(third["parent_id"], second["id"]);
    assert_eq!(third["chain_id"], first["id"]);
}

#[test]
fn respawn_without_a_transcript_begins_a_new_conversation() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    env.gt(&["nudge", MAX, "remember the apple"]).ok();
    env.wait_screen(MAX, "You said: remember the apple");
    let first = list_sessions(&env, &[])[0].clone();
    fs::remove_file(transcript(&env, &first["harness_session_id"])).unwrap();
    signal(env.pid(MAX), Signal::KILL);
    // The attempt to resume is recorded as a session, too.
    let third = await_session(&env, MAX, 3);
    assert_ne!(third["harness_session_id"], first["harness_session_id"]);
    let all = list_sessions(&env, &["--agent", MAX]);
    assert_eq!(all[1]["failed_start"], true, "{all:?}");
    assert_eq!(end_records(&env, &all[1]["id"]), 1);
    assert_eq!(third["chain_id"], first["id"], "{third}");
}

#[test]
fn clean_exit_of_crew_is_final() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--auto-respawn", "--no-prompt"])
        .ok();
    let session = list_sessions(&env, &[])[0].clone();
    env.gt(&["nudge", MAX, "/exit", "--command", "--mode", "immediate"])
        .ok();
    let ended = await_outcome(&env, &session["id"], "exited");
    assert_eq!(ended["exit_code"], 0, "{ended}");
    assert_eq!(env.agent(MAX)["state"], "exited");
    // No command reports the exit as a fault.
    assert_eq!(env.agent(MAX)["health"], "exited");
    env.gt(&["agents", "check"]).ok();
    assert_eq!(env.json(&["status"])["unhealthy"], serde_json::json!([]));
    let findings = env.gt(&["doctor", "--json"]).json();
    let mut findings = findings.as_array().unwrap().iter();
    let agents = findings.find(|it| it["check"] == "agents").unwrap();
    assert_eq!(agents["status"], "ok", "{agents}");
    wait_until("it is not wanted back", TIMEOUT, || {
        env.format("gt-crew-max", "#{@gt_auto_respawn}")
            .is_empty()
            .then_some(())
    });
    let told = env.json(&["events", "--type", "session_*"]);
    let types: Vec<&Value> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["type"])
        .collect();
    assert_eq!(types, ["session_start", "session_end"], "{told}");
    // The session ended before the stop.
    env.gt(&["stop", MAX]).ok();
    let ended = await_outcome(&env, &session["id"], "exited");
    assert_eq!(ended.get("ended_by"), None, "{ended}");
    assert_eq!(end_records(&env, &session["id"]), 1);
    assert_eq!(list_sessions(&env, &["--outcome", "exited"]).len(), 1);
    let stats = env.json(&["sessions", "stats"]);
    assert_eq!(stats[0]["outcomes"]["exited"], 1, "{stats}");
}

#[test]
fn clean_exit_of_an_always_on_role_restarts_in_the_conversation() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["nudge", "mayor", "remember the apple"]).ok();
    env.wait_screen("mayor", "You said: remember the apple");
    let first = list_sessions(&env, &[])[0].clone();
    env.gt(&[
        "nudge",
        "mayor",
        "/exit",
        "--command",
        "--mode",
        "immediate",
    ])
    .ok();
    let second = await_session(&env, "mayor", 2);
    await_outcome(&env, &first["id"], "exited");
    assert_eq!(second["harness_session_id"], first["harness_session_id"]);
    assert_eq!(second["parent_id"], first["id"]);
    let prompt = second["initial_prompt"].as_str().unwrap();
    assert!(prompt.starts_with("Your program exited."), "{prompt}");
    let text = fs::read_to_string(transcript(&env, &first["harness_session_id"])).unwrap();
    assert!(text.contains("remember the apple") && text.contains("Your program exited."));
    assert!(!text.to_lowercase().contains("crash"), "{text}");
    // The role's `on_exit` decides.
    let role = env.town().join("roles/mayor.toml");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(role, "[start]\non_exit = \"stop\"\n").unwrap();
    env.gt(&[
        "nudge",
        "mayor",
        "/exit",
        "--command",
        "--mode",
        "immediate",
    ])
    .ok();
    await_outcome(&env, &second["id"], "exited");
    wait_until("it is not wanted back", TIMEOUT, || {
        env.format("hq-mayor", "#{@gt_auto_respawn}")
            .is_empty()
            .then_some(())
    });
}

#[test]
fn restore_leaves_clean_exits_alone_unless_a_restart_was_due() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX, "mayor", "--no-prompt"]).ok();
    let sessions = list_sessions(&env, &[]);
    for agent in [MAX, "mayor"] {
        // Disables tmux's respawn until the server ends.
        let container = env.agent(agent)["container"].clone();
        let target = gt_tmux::SessionName::try_from(container.as_str().unwrap()).unwrap();
        env.tmux(
            gt_tmux::Command::new("set-option")
                .target(target)
                .args(["@gt_bin", "/bin/true"]),
        );
        env.gt(&["nudge", agent, "/exit", "--command", "--mode", "immediate"])
            .ok();
        await_state(&env, agent, "exited");
    }
    env.gt(&["sync"]).ok();
    for session in &sessions {
        await_outcome(&env, &session["id"], "exited");
    }
    env.gt(&["save"]).ok();
    kill_server(&env);
    let answer = env.json(&["restore"]);
    let restored: Vec<&Value> = answer["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|agent| agent["restored"] == true)
        .map(|agent| &agent["agent"])
        .collect();
    assert_eq!(restored, ["mayor"], "{answer}");
}

#[test]
fn stop_records_the_caller() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["start", MAX, "mayor", "--no-prompt"]).ok();
    env.gt(&["stop", MAX]).ok();
    let session = list_sessions(&env, &["--agent", MAX])[0].clone();
    assert_eq!(session["outcome"], "stopped", "{session}");
    assert_eq!(session["ended_by"], login());
    assert_eq!(end_records(&env, &session["id"]), 1);
    let ended = env.json(&["events", "--type", "session_end"])[0].clone();
    assert_eq!(ended["payload"]["by"], login(), "{ended}");
    assert_snapshot!(env.snapshot(&["sessions", "list", "--agent", MAX]), @"
    exit code: 0
    --- stdout
    ID  AGENT  STARTED  LASTED  OUTCOME  HARNESS
    [UUID]  gastown/crew/max  [TIME] [TIME]  [N]  stopped by [USER]  demo
    ");
    // An agent that stops itself is recorded as the caller.
    env.gt(&["nudge", "mayor", "[[tool=gt stop mayor]]"]).ok();
    let session = list_sessions(&env, &["--agent", "mayor"])[0].clone();
    let ended = await_outcome(&env, &session["id"], "stopped");
    assert_eq!(ended["ended_by"], "mayor", "{ended}");
}

#[test]
fn killed_sessions_of_older_journals_are_read() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["stop", "mayor"]).ok();
    let journal = env.town().join(".sessions/index.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(
        &journal,
        text.replace("\"stopped\",\"ended_by\"", "\"killed\",\"x\""),
    )
    .unwrap();
    assert!(fs::read_to_string(&journal).unwrap().contains("\"killed\""));
    assert_eq!(list_sessions(&env, &["--outcome", "killed"]).len(), 1);
}

#[test]
fn done_writes_one_end_record() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Look at it", "--rig", "gastown"]);
    env.gt(&["sling", item["id"].as_str().unwrap(), MAX]).ok();
    let session = list_sessions(&env, &[])[0].clone();
    env.gt(&["nudge", MAX, "[[tool=gt done --exit]]"]).ok();
    await_outcome(&env, &session["id"], "done");
    wait_until("its container is gone", TIMEOUT, || {
        env.sessions().is_empty().then_some(())
    });
    env.gt(&["sync"]).ok();
    assert_eq!(end_records(&env, &session["id"]), 1);
}

#[test]
fn session_of_a_merged_task_ends_as_done_and_its_cost_stays_on_the_card() {
    let (env, id) = with_project("");
    fs::write(
        env.town().join("prices.toml"),
        "[demo]\ninput = 1000\noutput = 2000\ncache_read = 100\ncache_write = 1250\n",
    )
    .unwrap();
    env.gt(&["task", "start", &id, "--prompt", "say something"])
        .ok();
    env.wait_screen(&id, "You said: ");
    env.gt(&["wait", &id]).ok();
    let session = list_sessions(&env, &["--work", &id])[0].clone();
    let dir = folder(&env, &id);
    fs::write(dir.join("new"), "new\n").unwrap();
    env.git(&dir, &["add", "new"]);
    env.git(&dir, &["commit", "--quiet", "-m", "Add new"]);
    let merged = env.json(&["task", "merge", &id]);
    assert_eq!(merged["result"], "merged", "{merged}");
    env.gt(&["task", "cleanup", &id, "--yes", "--close"]).ok();
    await_outcome(&env, &session["id"], "done");
    let chain = env.json(&["sessions", "chain", &id]);
    let cost = chain["totals"]["cost_usd"].clone();
    assert!(cost.as_f64().unwrap() > 0.0, "{chain}");
    let board = env.json(&["board"]);
    let mut cards = board["cards"].as_array().unwrap().iter();
    let card = cards.find(|card| card["id"] == id.as_str()).unwrap();
    assert_eq!(card["usage"]["cost_usd"], cost, "{card}");
}

#[test]
fn failed_starts_are_no_mass_death() {
    let env = TestEnv::with_town();
    for _ in 0..3 {
        env.gt(&["start", "mayor", "--command", "exit 3"]).fails(1);
    }
    let told = env.json(&["events", "--type", "*_death"]);
    let types: Vec<&Value> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["type"])
        .collect();
    assert_eq!(types, ["session_death"; 3], "{told}");
}

#[test]
fn crash_of_a_session_without_the_item_is_no_recovery() {
    let env = TestEnv::with_crew(&["max"]);
    let item = env.json(&["work", "create", "Later", "--rig", "gastown"]);
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    signal(env.pid(MAX), Signal::KILL);
    await_state(&env, MAX, "crashed");
    env.gt(&["hook", item["id"].as_str().unwrap(), "--agent", MAX])
        .ok();
    env.gt(&["sync"]).ok();
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    let primed = env.json(&["prime", "--agent", MAX, "--state"]);
    assert_eq!(primed["state"], "autonomous", "{primed}");
    // The next session has the item, so its crash leaves something to recover.
    signal(env.pid(MAX), Signal::KILL);
    await_state(&env, MAX, "crashed");
    env.gt(&["start", MAX, "--no-auto-respawn"]).ok();
    let primed = env.json(&["prime", "--agent", MAX, "--state"]);
    assert_eq!(primed["state"], "crash-recovery", "{primed}");
}

#[test]
fn lost_card_is_as_old_as_the_end_in_the_journal() {
    let (env, id) = with_project("");
    env.gt(&["task", "start", &id]).ok();
    kill_server(&env);
    env.gt(&["sync"]).ok();
    let session = list_sessions(&env, &["--work", &id])[0].clone();
    let ended: jiff::Timestamp = session["ended_at"].as_str().unwrap().parse().unwrap();
    // A later change of the item does not change the time of the death.
    env.gt(&["work", "update", &id, "--priority", "1"]).ok();
    let board = env.json(&["board"]);
    let mut cards = board["cards"].as_array().unwrap().iter();
    let card = cards.find(|card| card["id"] == id.as_str()).unwrap();
    assert_eq!(card["lost"], true, "{card}");
    assert_eq!(card["lost_since"], json!(ended.as_second()), "{card}");
}
