//! Which agents a restore brings back: those that were lost, not those that ended or were stopped.

use super::done;
use crate::env::{TIMEOUT, TestEnv, signal};
use crate::save::{by_hand, crash, files, history, rewrite, session, text_of};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

#[test]
fn stopped_agent_is_restored_only_by_name() {
    let env = TestEnv::with_crew(&["max", "amy", "bob"]);
    by_hand(&env);
    env.gt(&[
        "start",
        "mayor",
        "gastown/max",
        "gastown/amy",
        "gastown/bob",
    ])
    .ok();
    let tag = Tmux::new("set-option").target(session("gt-crew-bob"));
    env.tmux(tag.args(["@gt_auto_respawn", ""]));
    signal(env.pid("gastown/crew/bob"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("gastown/crew/bob")["state"] == "crashed").then_some(())
    });
    env.gt(&["save"]).ok();
    // The agent was dead for longer than a shutdown takes.
    rewrite(&env, |lines| {
        let is_bob = |line: &&mut Value| line["agent"] == "gastown/crew/bob";
        let bob = lines.iter_mut().find(is_bob).unwrap();
        let dead_for = &mut bob["windows"][0]["panes"][0]["dead_for_seconds"];
        assert!(dead_for.is_i64(), "{dead_for}");
        *dead_for = 600.into();
    });
    env.gt(&["stop", "gastown/amy"]).ok();
    crash(&env);
    let told = env.json(&["restore", "--dry-run"]);
    assert_eq!(env.sessions(), Vec::<String>::new(), "nothing was done");
    let reasons: Vec<(&str, &str)> = told["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["action"].as_str().unwrap(), a["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("leave", "was ended since (stopped)"),
            ("leave", "had ended before the save"),
            ("restore", "is missing"),
            ("restore", "is missing"),
        ]
    );
    let one = env.json(&["restore", "--agent", "gastown/max"]);
    assert_eq!(done(&one), [("gastown/crew/max", true)]);
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["mayor", "gastown/crew/max"]);
    env.gt(&[
        "restore",
        "--agent",
        "gastown/amy",
        "--agent",
        "gastown/bob",
    ])
    .ok();
    assert_eq!(env.running().len(), 4);
    env.gt(&["restore", "--agent", "deacon"]).fails(3);
    env.gt(&["restore", "2001"]).fails(3);
}

#[test]
fn agent_lost_before_any_save_is_restored_from_the_journal() {
    let env = TestEnv::with_town();
    by_hand(&env);
    let folder = env.path("elsewhere");
    fs::create_dir(&folder).unwrap();
    env.gt(&["start", "deacon"]).ok();
    env.gt(&["start", "mayor", "--work-dir", folder.to_str().unwrap()])
        .ok();
    let started = env.json(&["sessions", "list", "--agent", "mayor"]);
    crash(&env);
    assert_snapshot!(env.snapshot(&["restore", "--dry-run"]), @"
    exit code: 0
    --- stdout
    Would bring back deacon, in its conversation [UUID].
    Would bring back mayor, in its conversation [UUID].
    ");
    let one = env.json(&["restore", "--agent", "deacon"]);
    assert_eq!(done(&one), [("deacon", true)]);
    assert_eq!(one["save"], Value::Null);
    // A later save does not contain the agent, either.
    env.gt(&["save"]).ok();
    env.gt(&["sync"]).ok();
    let answer = env.json(&["restore"]);
    assert_eq!(done(&answer), [("deacon", false), ("mayor", true)]);
    let mayor = &answer["agents"][1];
    assert_eq!(mayor["conversation_id"], started[0]["harness_session_id"]);
    assert_eq!(env.agent("mayor")["work_dir"], *folder.to_str().unwrap());
    let text = history(&env, "hq-mayor");
    assert!(text.contains("its earlier text was not saved"), "{text}");
    // An old save is restored as it is.
    env.gt(&["start", "boot"]).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    let old = files(&env)[1].file_name().unwrap().to_owned();
    let old = env.json(&["restore", "--dry-run", old.to_str().unwrap()]);
    assert_eq!(old["agents"].as_array().unwrap().len(), 1, "{old}");
}

#[test]
fn closed_or_crashed_agent_is_not_lost() {
    let env = TestEnv::with_town();
    by_hand(&env);
    env.gt(&["start", "mayor", "deacon", "boot"]).ok();
    signal(env.pid("deacon"), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent("deacon")["state"] == "crashed").then_some(())
    });
    env.gt(&["stop", "deacon"]).ok();
    env.tmux(Tmux::new("kill-session").target(session("hq-boot")));
    let left = || env.json(&["sessions", "list", "--status", "running"]);
    wait_until("both are over", TIMEOUT, || {
        (left().as_array().unwrap().len() == 1).then_some(())
    });
    crash(&env);
    let answer = env.json(&["restore"]);
    assert_eq!(done(&answer), [("mayor", true)]);
}

#[test]
fn agent_ended_by_a_shutdown_is_restored() {
    let env = TestEnv::with_crew(&["max", "amy"]);
    env.gt(&["crew", "start", "--all"]).ok();
    let names = ["max", "amy"];
    for name in names {
        let container = session(&format!("gt-crew-{name}"));
        let tag = Tmux::new("set-option").target(container);
        env.tmux(tag.args(["@gt_auto_respawn", ""]));
    }
    // As at a shutdown: TERM to every process, then the end of the server.
    for name in names {
        signal(env.pid(&format!("gastown/crew/{name}")), Signal::TERM);
    }
    wait_until("a save has seen them dead", TIMEOUT, || {
        let text = text_of(&env, files(&env).first()?);
        (text.matches("\"dead\":true").count() == 2).then_some(())
    });
    crash(&env);
    let answer = env.json(&["restore"]);
    let all = [("gastown/crew/amy", true), ("gastown/crew/max", true)];
    assert_eq!(done(&answer), all);
    for agent in answer["agents"].as_array().unwrap() {
        assert_eq!(agent["conversation"], "resume", "{agent}");
    }
}

#[test]
fn removed_agent_is_not_restored_and_blocks_no_other() {
    let env = TestEnv::with_crew(&["max", "bob", "eve"]);
    by_hand(&env);
    env.gt(&["agent", "new", "solo"]).ok();
    let all = ["gastown/max", "gastown/bob", "gastown/eve", "agent/solo"];
    env.gt(&[&["start"][..], &all].concat()).ok();
    env.gt(&["save"]).ok();
    crash(&env);
    env.gt(&["crew", "rm", "gastown/bob", "--force"]).ok();
    env.gt(&["sync"]).ok();
    env.gt(&["agent", "rm", "solo", "--force"]).ok();
    // The folder is removed by hand, so no event records it.
    fs::remove_dir_all(env.town().join("gastown/crew/eve")).unwrap();
    let answer = env.gt(&["restore", "--json"]).ok();
    assert_snapshot!(env.masked(&answer.stderr), @"warning: gastown/crew/eve was removed: its folder is gone");
    let answer = answer.json();
    let reason = |agent: &str| {
        let agents = answer["agents"].as_array().unwrap().iter();
        let mut agents = agents.filter(|a| a["agent"] == agent);
        agents.next().unwrap()["reason"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(reason("agent/solo"), "was ended since (stopped)");
    assert_eq!(reason("gastown/crew/bob"), "was ended since (stopped)");
    assert_eq!(reason("gastown/crew/eve"), "was removed");
    assert_eq!(env.running(), ["gastown/crew/max"]);
    env.gt(&["restore", "--agent", "gastown/crew/eve"]).fails(3);
    // A new agent of the same name is not the old one.
    env.gt(&["crew", "add", "gastown/bob"]).ok();
    env.gt(&["restore"]).ok();
    assert_eq!(env.running(), ["gastown/crew/max"]);
}
