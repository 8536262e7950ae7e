//! The event log records actions of agents and on agents: each once, with its source.

use crate::dev::free_port;
use crate::env::{TIMEOUT, TestEnv, login, run, signal};
use crate::notify::{bash, hook, see_screens, spawn_hook};
use crate::task::{folder, with_project};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Stdio};

/// Event types that other files test.
const OTHERS: &[&str] = &[
    "session_start",
    "work_created",
    "session_end",
    "prime",
    "hook",
    "unhook",
    "done",
    "project_allow",
    "command",
];

/// Returns the events of the log, each as its type, its source and its line.
fn told(env: &TestEnv) -> Vec<String> {
    let all = env.json(&["events", "--limit", "1000"]);
    let all = all.as_array().unwrap().iter();
    let of_here = all.filter(|event| !OTHERS.contains(&event["type"].as_str().unwrap()));
    of_here
        .map(|event| {
            let event: gt_core::event::Event = serde_json::from_value(event.clone()).unwrap();
            format!("{} [{}] {}", event.kind, event.source_words(), event.line())
        })
        .collect()
}

#[track_caller]
fn wait_told(env: &TestEnv, count: usize) -> Vec<String> {
    wait_until(&format!("{count} events"), TIMEOUT, || {
        Some(told(env)).filter(|told| told.len() >= count)
    })
}

/// Waits for the events, checks and returns them. A command and the hooks of the program that it
/// reaches write concurrently, so the last `concurrent` events may be in any order.
#[track_caller]
fn check_told(env: &TestEnv, expected: &[String], concurrent: usize) -> Vec<String> {
    let sorted = |events: &[String]| {
        let mut events = events.to_vec();
        let first = events.len().saturating_sub(concurrent);
        events[first..].sort();
        events
    };
    let told = wait_told(env, expected.len());
    assert_eq!(sorted(&told), sorted(expected));
    told
}

fn all_at_once(env: &TestEnv, count: usize, event: &str, report: &Value) {
    let hooks: Vec<Child> = (0..count).map(|_| spawn_hook(env, event, report)).collect();
    for mut child in hooks {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn hook_reports_are_recorded_once() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    hook(&env, "prompt", &json!({"prompt": "go"}));
    hook(&env, "tool-start", &bash("x"));
    all_at_once(&env, 6, "permission", &bash("x"));
    let still = json!({"notification_type": "permission_prompt", "message": "m"});
    hook(&env, "notification", &still);
    let mut expected = vec!["question [hook] mayor: asks: Bash(x)"];
    assert_eq!(told(&env), expected);
    // A new question, without a report that the first one was answered.
    all_at_once(&env, 3, "permission", &bash("y, #{pane_id}"));
    expected.push("question [hook] mayor: asks: Bash(y, #{pane_id})");
    assert_eq!(told(&env), expected);
    hook(&env, "tool-end", &bash("y"));
    all_at_once(&env, 3, "stop", &json!({}));
    expected.push("turn_end [hook] mayor ended its turn");
    hook(&env, "prompt", &json!({"prompt": "go"}));
    hook(&env, "interrupt", &json!({}));
    expected.push("turn_end [hook] mayor ended its turn: interrupted");
    hook(&env, "prompt", &json!({"prompt": "go"}));
    hook(&env, "stop-failure", &json!({"error": "overloaded"}));
    expected.push("turn_failed [hook] mayor failed in its turn: overloaded");
    hook(&env, "prompt", &json!({"prompt": "go"}));
    hook(&env, "done", &json!({"reason": "all tests pass"}));
    hook(&env, "stop", &json!({}));
    expected.push("turn_end [hook] mayor ended its turn: all tests pass");
    assert_eq!(told(&env), expected);
    let asked = env.json(&["events", "--type", "question", "--limit", "1"]);
    let session = env.json(&["sessions", "list"])[0]["id"].clone();
    assert_eq!(asked[0]["payload"]["session_id"], session);
    assert_eq!(asked[0]["payload"]["via"], "hook");
    let (ends, others) = (
        ["events", "--type", "turn_*"],
        ["events", "--about", "mayor"],
    );
    assert_eq!(env.json(&ends).as_array().unwrap().len(), 4);
    assert!(env.json(&others).as_array().unwrap().len() >= 7);
    assert_snapshot!(env.snapshot(&["events", "--about", "mayr"]), @r#"
    exit code: 3
    --- stderr
    error: there is no agent "mayr"
    hint: did you mean mayor?
    hint: `gt agents` lists those that run, `gt agents --stopped` those that could
    hint: targets are addresses (gastown/crew/max), rig/name, roles that one agent has (witness), container names, session ids or ids of work items
    "#);
    let nobody = env.json(&["events", "--about", "deacon"]);
    assert_eq!(nobody, json!([]));
}

#[test]
fn turn_that_ends_late_is_recorded_as_an_end() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    hook(&env, "prompt", &json!({"prompt": "go"}));
    // The tags that a watcher sets when it reads an interrupt from the screen.
    let set = |tag: &'static str, value: &'static str| {
        let command = Tmux::new("set-option").args(["-t", "=hq-mayor:", tag, value]);
        env.tmux(command);
    };
    set("@gt_state", "idle");
    set("@gt_state_source", "gt");
    set("@gt_state_reason", "its turn was interrupted");
    hook(&env, "stop", &json!({}));
    assert_eq!(told(&env), ["turn_end [hook] mayor ended its turn"]);
}

#[test]
fn hook_works_in_a_read_only_town() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    for file in [".events.jsonl", ".feed.jsonl"] {
        fs::remove_file(env.town().join(file)).unwrap();
        fs::create_dir(env.town().join(file)).unwrap();
    }
    // `hook` passes `--strict`, so an error would make it fail.
    hook(&env, "permission", &bash("x"));
    assert_eq!(env.format("hq-mayor", "#{@gt_state}"), "waiting");
}

#[test]
fn screen_is_recorded_once_by_concurrent_watchers() {
    let env = TestEnv::with_town();
    see_screens(&env);
    let told = wait_told(&env, 2);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("question [screen] mayor: asks: "),
        "{told:?}"
    );
    assert_eq!(told[1], "turn_end [screen] mayor ended its turn");
}

fn commit(env: &TestEnv, dir: &std::path::Path, text: &str) {
    fs::write(dir.join("both"), text).unwrap();
    env.git(dir, &["add", "both"]);
    env.git(dir, &["commit", "--quiet", "-m", text.trim()]);
}

#[test]
fn task_actions_are_recorded_with_their_actor() {
    let (env, id) = with_project("");
    let agent = format!("task/{id}");
    let me = login();
    let line = |words: &str| words.replace("IT", &agent).replace("ME", &me);
    let mut expected = Vec::new();
    env.gt(&["task", "start", &id, "--prompt", "[[tool=touch made]]"])
        .ok();
    env.gt(&["task", "start", &id]).ok();
    expected.push(line("task_start [command by ME] ME started IT with demo"));
    let asks = line("question [hook] IT: asks: Bash(touch made");
    let told = wait_told(&env, 2);
    let question = told.iter().find(|event| event.starts_with(&asks));
    expected.push(question.unwrap_or_else(|| panic!("{told:?}")).clone());
    let mut expected = check_told(&env, &expected, 2);
    let mut answer = env.gt_command(&["answer", &agent, "yes"]);
    run(answer.env("GT_ROLE", "gastown/witness")).ok();
    expected.push(line(
        "answer [command by gastown/witness] gastown/witness answered IT: option 1",
    ));
    expected.push(line("turn_end [hook] IT ended its turn"));
    expected = check_told(&env, &expected, 2);
    env.gt(&["nudge", &agent, "[[delay=10m]]"]).ok();
    expected.push(line("nudge [command by ME] ME sent IT a message"));
    crate::task::wait_state(&env, &id, "busy");
    env.gt(&["task", "pause", &id, "--reason", "lunch"]).ok();
    env.gt(&["task", "pause", &id]).ok();
    expected.push(line("paused [command by ME] ME paused IT: lunch"));
    env.gt(&["task", "resume", &id]).ok();
    expected.push(line("resumed [command by ME] ME resumed IT"));
    expected.push(line("nudge [command by ME] ME sent IT a message"));
    expected.push(line("turn_end [hook] IT ended its turn"));
    expected = check_told(&env, &expected, 2);
    env.gt(&["task", "pause", &id]).ok();
    expected.push(line("paused [command by ME] ME paused IT"));
    // A prompt by a person ends the pause as well.
    from_hook(&env, "prompt", &id);
    expected.push(line("resumed [hook] IT resumed"));
    from_hook(&env, "stop", &id);
    expected.push(line("turn_end [hook] IT ended its turn"));
    assert_eq!(self::told(&env), expected);
    env.gt(&["task", "update", &id]).ok();
    expected.push(line(
        "update_up_to_date [command by ME] ME updated IT: main has nothing new",
    ));
    let (dir, base) = (folder(&env, &id), env.path("source-gastown"));
    commit(&env, &base, "one\n");
    env.gt(&["task", "update", &id]).ok();
    expected.push(line(
        "update_merged [command by ME] ME merged main into IT, commits: 1",
    ));
    commit(&env, &base, "two\n");
    commit(&env, &dir, "three\n");
    env.gt(&["task", "merge", &id]).fails(1);
    expected.push(line(&format!(
        "merge_conflict [command by ME] ME found conflicts in {id}: it conflicts with main"
    )));
    env.gt(&["task", "update", &id]).fails(1);
    expected.push(line(
        "update_conflict [command by ME] ME merged main into IT, with conflicts in both",
    ));
    env.gt(&["task", "update", &id]).fails(1);
    env.gt(&["task", "abort-merge", &id]).ok();
    expected.push(line(
        "merge_aborted [command by ME] ME aborted the merge in IT, with conflicts in both",
    ));
    env.git(&dir, &["reset", "--quiet", "--hard", "HEAD~1"]);
    env.gt(&["task", "cleanup", &id, "--yes"]).ok();
    expected.push(line("cleanup [command by ME] ME cleaned IT up"));
    assert_eq!(self::told(&env), expected);
}

#[test]
fn resubmitted_message_is_one_resume_event_with_its_actor() {
    let (env, id) = with_project("");
    let words = "[[put-back]] [[delay=10m]] think";
    env.gt(&["task", "start", &id, "--prompt", words]).ok();
    crate::task::wait_state(&env, &id, "busy");
    env.gt(&["task", "pause", &id]).ok();
    env.gt(&["task", "resume", &id]).ok();
    crate::task::wait_state(&env, &id, "busy");
    let resumed = env.json(&["events", "--type", "resumed"]);
    let resumed = resumed.as_array().unwrap();
    assert_eq!(resumed.len(), 1, "{resumed:?}");
    assert_eq!(resumed[0]["actor"], login());
    assert_eq!(resumed[0]["payload"]["via"], "command");
    let container = format!("{id}-az");
    assert_eq!(env.format(&container, "#{@gt_resumer}"), "");
    // The program's hook may come before the resumer's own event, and then records it for the
    // resumer.
    env.gt(&["task", "pause", &id]).ok();
    let target = gt_tmux::SessionName::try_from(&*container).unwrap();
    let by = gt_tmux::Command::new("set-option").target(target);
    env.tmux(by.args(["@gt_resumer", "gastown/witness"]));
    from_hook(&env, "prompt", &id);
    let resumed = env.json(&["events", "--type", "resumed"]);
    assert_eq!(resumed.as_array().unwrap().len(), 2, "{resumed}");
    assert_eq!(resumed[1]["actor"], "gastown/witness");
    assert_eq!(resumed[1]["payload"]["via"], "command");
    assert_eq!(env.format(&container, "#{@gt_resumer}"), "");
}

/// Reports an event as the hook of a task's agent, without a report.
fn from_hook(env: &TestEnv, event: &str, id: &str) {
    let words = [
        "signal",
        event,
        "--session",
        &format!("{id}-az"),
        "--strict",
    ];
    run(env.gt_command(&words).stdin(Stdio::null())).ok();
}

#[test]
fn lost_task_is_recorded_as_resumed_and_not_started() {
    let (env, id) = with_project("[init]\ncommands = ['test -e made-ready']\n");
    env.gt(&["task", "start", &id]).fails(1);
    let agent = format!("task/{id}");
    let failed = format!(
        "init_failed [process] {agent} could not be set up: `test -e made-ready` ended with exit code 1"
    );
    assert_eq!(told(&env), [failed.as_str()]);
    fs::write(folder(&env, &id).join("made-ready"), "").unwrap();
    env.gt(&["task", "start", &id]).ok();
    env.gt(&["task", "stop", &id]).ok();
    env.gt(&["task", "resume", &id]).ok();
    let (told, me) = (told(&env), login());
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].starts_with("task_start "), "{told:?}");
    assert!(
        told[2].starts_with(&format!(
            "resumed [command by {me}] {me} resumed {agent} in a "
        )),
        "{told:?}"
    );
}

#[test]
fn dev_server_starts_stops_and_failures_are_recorded_once() {
    let port = free_port();
    let settings = format!(
        "[[dev_servers]]\nname = 'web'\ncommand = 'exec sleep 1000'\nport = {port}\n\
         [[dev_servers]]\nname = 'broken'\ncommand = 'exit 7'\nport = {port}\n"
    );
    let (env, id) = with_project(&settings);
    env.gt(&["task", "start", &id]).ok();
    let (agent, me) = (format!("task/{id}"), login());
    let watches: Vec<Child> = (0..2).map(|_| env.spawn(&["watch", "--json"])).collect();
    let port_of = |server: &Value| server["port"].as_u64().unwrap();
    let web = env.json(&["dev", "start", &agent, "web"]);
    let started = |port: u64, name: &str| {
        format!(
            "server_start [command by {me}] {me} started the server {name} for {agent} on port {port}"
        )
    };
    let mut expected = vec![started(port_of(&web[0]), "web")];
    env.gt(&["dev", "start", &agent, "web"]).ok();
    // The command fails if the server ends while it looks on. On a loaded machine the watchers are
    // the first to see the end.
    let broken = env.gt(&["dev", "start", &agent, "broken", "--json"]);
    assert!(matches!(broken.code, 0 | 1), "{broken:?}");
    let broken = broken.json();
    expected.push(started(port_of(&broken[0]), "broken"));
    expected.push(format!(
        "server_failed [process] {agent} lost its server broken, which ended with exit code 7"
    ));
    wait_told(&env, expected.len() + 1);
    env.gt(&["dev", "stop", &agent, "web"]).ok();
    env.gt(&["dev", "stop", &agent]).ok();
    expected.push(format!(
        "server_stop [command by {me}] {me} stopped the server web for {agent}"
    ));
    let of_servers = || {
        let mut all = told(&env);
        all.retain(|line| line.starts_with("server_"));
        all
    };
    assert_eq!(of_servers(), expected);
    // A server that runs and then fails, with two watchers.
    let web = env.json(&["dev", "start", &agent, "web"]);
    expected.push(started(port_of(&web[0]), "web"));
    signal(
        u32::try_from(web[0]["pid"].as_u64().unwrap()).unwrap(),
        Signal::KILL,
    );
    expected.push(format!(
        "server_failed [process] {agent} lost its server web, which was killed by signal 9"
    ));
    wait_until("its failure", TIMEOUT, || {
        (of_servers().len() >= expected.len()).then_some(())
    });
    assert_eq!(of_servers(), expected);
    for mut watch in watches {
        signal(watch.id(), Signal::TERM);
        assert!(watch.wait().unwrap().success());
    }
    assert_eq!(of_servers(), expected);
}
