//! Seances: asking earlier sessions.

use crate::env::{TIMEOUT, TestEnv, is_alive, processes_of, signal};
use gt_tmux::testing::wait_until;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Runs a session of `max` that says something and ends. Returns it as `gt seance` lists it.
fn ended(env: &TestEnv, args: &[&str]) -> Value {
    env.gt(&[&["crew", "start", "max"], args].concat()).ok();
    env.gt(&["nudge", "gastown/max", "[[text=the key is under the mat]]"])
        .ok();
    env.wait_screen("gastown/max", "the key is under the mat");
    env.gt(&["stop", "gastown/max"]).ok();
    env.json(&["seance"])[0].clone()
}

fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

fn conversations(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("sessions")).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn a_fork_is_asked_and_the_original_stays() {
    let env = TestEnv::with_crew(&["max"]);
    assert_eq!(env.json(&["seance"]), json!([]));
    let session = ended(&env, &["--topic", "patrol"]);
    for (field, expected) in [
        ("agent", json!("gastown/crew/max")),
        ("role", json!("crew")),
        ("rig", json!("gastown")),
        ("harness", json!("demo")),
        ("outcome", json!("stopped")),
        ("conversation", session["id"].clone()),
        ("can_talk", json!(true)),
        ("account", Value::Null),
    ] {
        assert_eq!(session[field], expected, "{field}: {session}");
    }
    let topic = session["topic"].as_str().unwrap();
    assert!(
        topic.starts_with("[GAS TOWN]") && topic.contains("patrol"),
        "{topic}"
    );
    let home = env.town().join(".runtime/demo");
    let original = home.join(format!("sessions/{}.jsonl", id(&session)));
    let before = (
        fs::read(&original).unwrap(),
        original.metadata().unwrap().modified().unwrap(),
    );
    // Called by an agent, with an identity that the fork must not inherit.
    let args = [
        "seance",
        "--talk",
        &id(&session)[..14],
        "--prompt",
        "[[text=an answer]]",
    ];
    let answer = env
        .gt_command(&args)
        .env("GT_ROLE", "gastown/crew/amy")
        .env("GT_SESSION_UUID", "0193a2b4-c5d6-7abc-8def-0123456789ab")
        .output()
        .unwrap();
    let stdout = String::from_utf8(answer.stdout).unwrap();
    assert!(
        answer.status.success() && stdout.contains("an answer"),
        "{stdout}"
    );
    let after = (
        fs::read(&original).unwrap(),
        original.metadata().unwrap().modified().unwrap(),
    );
    assert_eq!(before, after, "the original is as it was");
    let all = conversations(&home);
    assert_eq!(all.len(), 2, "{all:?}");
    let fork = all.iter().find(|path| **path != original).unwrap();
    let fork = fs::read_to_string(fork).unwrap();
    assert!(
        fork.contains("under the mat") && fork.contains("an answer"),
        "{fork}"
    );
    // The fork is not recorded as an agent.
    let sessions = env.json(&["sessions", "list"]);
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    assert!(
        !env.town()
            .join(".runtime/keepalive/gastown.crew.amy.json")
            .exists()
    );
    let told = env.json(&["seance", "--talk", id(&session), "--prompt", "[[text=yes]]"]);
    assert_eq!(told["life"], session["id"]);
    assert!(told["answer"].as_str().unwrap().contains("yes"), "{told}");
    let shown = env
        .gt(&["seance", "--role", "crew", "--rig", "gastown"])
        .ok()
        .stdout;
    let row = shown
        .lines()
        .find(|line| line.contains(id(&session)))
        .unwrap();
    assert!(row.ends_with("  patrol"), "{shown}");
    let began = session["started_at"].as_str().unwrap();
    assert!(!row.contains(began), "a time as people read it: {shown}");
    assert_eq!(env.json(&["seance", "--role", "mayor"]), json!([]));
    env.gt(&["seance", "--recent", "3", "--talk", id(&session)])
        .fails(2);
}

#[test]
fn session_that_cannot_be_asked_has_a_reason() {
    let env = TestEnv::with_crew(&["max"]);
    let session = ended(&env, &[]);
    let talk = |id: &str| env.gt(&["seance", "--talk", id, "--prompt", "x"]);
    talk("ffffffff").fails(3);
    env.gt(&["seance", "--talk", id(&session)]).fails(2);
    env.gt(&["seance", "--prompt", "x"]).fails(2);
    env.gt(&["seance", "--role", "nosuch"]).fails(3);
    env.gt(&["seance", "--rig", "nowhere"]).fails(3);
    // A harness that cannot fork.
    let preset = env.town().join("harnesses/demo.toml");
    fs::create_dir_all(preset.parent().unwrap()).unwrap();
    fs::write(&preset, "[command]\nfork = []\n").unwrap();
    let refused = talk(id(&session)).fails(2);
    assert!(
        refused.stderr.contains("these can: claude, codex"),
        "{}",
        refused.stderr
    );
    let listed = &env.json(&["seance"])[0];
    assert_eq!(listed["can_talk"], false);
    assert!(
        listed["reason"].as_str().unwrap().contains("cannot fork"),
        "{listed}"
    );
    fs::write(&preset, "[command]\nprint = []\n").unwrap();
    let refused = talk(id(&session)).fails(2);
    assert!(
        refused.stderr.contains("at a terminal"),
        "{}",
        refused.stderr
    );
    fs::remove_file(&preset).unwrap();
    // A missing folder.
    let folder = env.town().join("gastown/crew/max");
    let away = env.path("away");
    fs::rename(&folder, &away).unwrap();
    let listed = &env.json(&["seance"])[0];
    assert_eq!(listed["can_talk"], false);
    let reason = listed["reason"].as_str().unwrap();
    assert!(reason.contains("its folder is gone"), "{reason}");
    let refused = talk(id(&session)).fails(3).stderr;
    assert!(refused.contains("its folder is gone"), "{refused}");
    fs::rename(&away, &folder).unwrap();
    // A missing conversation.
    let file = env
        .town()
        .join(format!(".runtime/demo/sessions/{}.jsonl", id(&session)));
    fs::remove_file(&file).unwrap();
    talk(id(&session)).fails(3);
    assert_eq!(env.json(&["seance"])[0]["can_talk"], false);
}

#[test]
fn conversation_is_lent_to_another_account_during_a_seance() {
    let env = TestEnv::with_crew(&["max"]);
    let folder = |name: &str| env.town().join(format!(".accounts/{name}/demo"));
    for name in ["work", "home"] {
        env.gt(&["account", "add", name]).ok();
    }
    let session = ended(&env, &["--account", "work"]);
    assert_eq!(session["account"], "work");
    let original = folder("work").join(format!("sessions/{}.jsonl", id(&session)));
    let before = fs::read(&original).unwrap();
    let talk = [
        "seance",
        "--talk",
        id(&session),
        "--prompt",
        "[[text=hello]]",
    ];
    // With the session's own account nothing is copied.
    env.gt(&talk).ok();
    assert_eq!(conversations(&folder("work")).len(), 2);
    let across = [&talk[..], &["--account", "home"]].concat();
    env.gt(&across).ok();
    assert_eq!(fs::read(&original).unwrap(), before);
    assert_eq!(conversations(&folder("work")).len(), 2);
    let left = conversations(&folder("home"));
    let [fork] = left.as_slice() else {
        panic!("only the fork is left: {left:?}");
    };
    assert!(fs::read_to_string(fork).unwrap().contains("under the mat"));
    // Ctrl-C reaches both the program and `gt`.
    let slow = [
        "seance",
        "--talk",
        id(&session),
        "--account",
        "home",
        "--prompt",
        "[[delay=60]]",
    ];
    let shown = folder("home").join(format!("sessions/{}.jsonl", id(&session)));
    let child = env
        .gt_command(&slow)
        .env("GT_ROLE", "gastown/crew/amy")
        .env("GT_SESSION_UUID", "0193a2b4-c5d6-7abc-8def-0123456789ab")
        .env("GT_DEMO_HOME", "/nowhere")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the copy", TIMEOUT, || shown.exists().then_some(()));
    let of_talk = || {
        let all = processes_of(env.home()).into_iter();
        all.filter(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.windows(14).any(|word| word == b"--fork-session")
        })
        .collect::<Vec<u32>>()
    };
    let program = wait_until("the program", TIMEOUT, || of_talk().first().copied());
    // The program has no agent identity, and has the account's folder.
    let variables = fs::read(format!("/proc/{program}/environ")).unwrap();
    let variables = String::from_utf8(variables).unwrap();
    let ours: BTreeMap<&str, &str> = variables
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| name.starts_with("GT_"))
        .collect();
    let names: Vec<&str> = ours.keys().copied().collect();
    assert_eq!(names, ["GT_DEMO_HOME", "GT_ROOT", "GT_TMUX_SOCKET"]);
    assert_eq!(ours["GT_DEMO_HOME"], folder("home").to_str().unwrap());
    signal(child.id(), Signal::INT);
    signal(program, Signal::INT);
    let end = child.wait_with_output().unwrap();
    assert!(!end.status.success(), "{end:?}");
    assert!(!shown.exists(), "the copy is gone");
    // A TERM to `gt` alone ends both.
    let child = env.spawn(&slow);
    let program = wait_until("the program", TIMEOUT, || of_talk().first().copied());
    signal(child.id(), Signal::TERM);
    child.wait_with_output().unwrap();
    assert!(!is_alive(program) && !shown.exists());
    // After a kill the next seance cleans up.
    for point in gt_town::lifecycle::seance::FAULT_POINTS {
        env.kill_at_fault(&across, point);
        env.gt(&["seance"]).ok();
        let hidden = conversations(&folder("home")).into_iter().filter(|path| {
            *path == shown || path.file_name().unwrap().to_str().unwrap().starts_with('.')
        });
        assert_eq!(hidden.count(), 0, "{point}");
        let notes = fs::read_dir(env.town().join(".runtime/seance")).unwrap();
        assert_eq!(notes.count(), 0, "{point}");
    }
    // A conversation that the account already has is neither replaced nor removed.
    fs::copy(&original, &shown).unwrap();
    env.gt(&across).ok();
    assert_eq!(fs::read(&shown).unwrap(), before);
    env.gt(&[&talk[..], &["--account", "nosuch"]].concat())
        .fails(3);
}

#[test]
fn concurrent_seances_ask_one_conversation() {
    let env = TestEnv::with_crew(&["max"]);
    let folder = |name: &str| env.town().join(format!(".accounts/{name}/demo"));
    for name in ["work", "home"] {
        env.gt(&["account", "add", name]).ok();
    }
    let session = ended(&env, &["--account", "work"]);
    let talk = |words: &str| {
        let args = ["seance", "--talk", id(&session), "--account", "home"];
        env.spawn(&[&args[..], &["--prompt", words]].concat())
    };
    let shown = folder("home").join(format!("sessions/{}.jsonl", id(&session)));
    // One seance continues while others start and end.
    let long = talk("[[delay=60]]");
    wait_until("the copy", TIMEOUT, || shown.exists().then_some(()));
    let many: Vec<_> = (0..8).map(|_| talk("[[text=hello]]")).collect();
    for child in many {
        let end = child.wait_with_output().unwrap();
        assert!(end.status.success(), "{end:?}");
    }
    assert!(shown.exists(), "the copy is not taken away from the first");
    signal(long.id(), Signal::TERM);
    long.wait_with_output().unwrap();
    assert!(!shown.exists(), "the last gives it back");
    let all: Vec<_> = (0..8).map(|_| talk("[[text=hello]]")).collect();
    for child in all {
        let end = child.wait_with_output().unwrap();
        assert!(end.status.success(), "{end:?}");
    }
    let left = conversations(&folder("home"));
    let is_lent = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        **path == shown || name.starts_with('.')
    };
    assert_eq!(left.iter().filter(is_lent).count(), 0, "{left:?}");
    let notes = fs::read_dir(env.town().join(".runtime/seance")).unwrap();
    assert_eq!(notes.count(), 0);
}

#[test]
fn person_holds_a_seance_at_a_terminal() {
    let env = TestEnv::with_crew(&["max"]);
    let session = ended(&env, &[]);
    let line = format!(
        "{} seance --talk {}",
        env!("CARGO_BIN_EXE_gt"),
        id(&session)
    );
    env.gt(&["agent", "new", "person"]).ok();
    env.gt(&["start", "agent/person", "--command", &line, "--no-wait"])
        .ok();
    env.wait_screen("agent/person", "under the mat");
    env.gt(&["keys", "agent/person", "[[text=I am a copy]]", "Enter"])
        .ok();
    env.wait_screen("agent/person", "● I am a copy");
    env.gt(&["stop", "agent/person"]).ok();
}
