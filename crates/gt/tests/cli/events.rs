//! `gt events`: emitting, searching, following and streaming.

mod retention;
mod sources;

use crate::env::{TIMEOUT, TestEnv, login, run, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use retention::{fill, forgetful};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

fn events(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    let answer = env.json(&[&["events"], args].concat());
    answer.as_array().unwrap().clone()
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types.collect()
}

fn crash(env: &TestEnv, address: &str) {
    signal(env.pid(address), Signal::KILL);
    wait_until("it is dead", TIMEOUT, || {
        (env.agent(address)["state"] == "crashed").then_some(())
    });
}

#[test]
fn sessions_and_messages_are_recorded() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    let sent = env.json(&["nudge", "gastown/max", "hello", "--sender", "mayor"]);
    env.gt(&["stop", "gastown/max"]).ok();
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    crash(&env, "gastown/crew/max");
    env.gt(&["sync"]).ok();
    env.gt(&["sync"]).ok();
    // The start detects the death again, and does not report it twice.
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    let mut all = events(&env, &[]);
    // Every session also gets a `prime` event, at any time. The preparation writes `command`.
    all.retain(|event| event["type"] != "prime" && event["type"] != "command");
    assert_eq!(
        types(&all),
        [
            "session_start",
            "nudge",
            "session_end",
            "session_start",
            "session_death",
            "session_start"
        ]
    );
    let sessions = env.json(&["sessions", "list"]);
    assert_eq!(all[0]["payload"]["session_id"], sessions[2]["id"]);
    assert_eq!(all[0]["actor"], "gastown/crew/max");
    assert_eq!(all[0]["source"], "gt");
    assert_eq!(all[1]["actor"], "mayor");
    assert_eq!(all[1]["payload"]["id"], sent["id"]);
    assert_eq!(all[1]["payload"]["delivered"], "agent");
    assert_eq!(all[2]["payload"]["outcome"], "stopped");
    assert_eq!(all[4]["actor"], "gastown/crew/max");
    assert_eq!(all[4]["payload"]["session_id"], sessions[1]["id"]);
    assert!(!all[1].to_string().contains("hello"), "{}", all[1]);
    let feed = env.gt(&["events", "--feed"]).ok().stdout;
    assert!(feed.contains("mayor sent gastown/crew/max a message"));
    assert!(feed.contains("gastown/crew/max died"), "{feed}");
    for file in [".events.jsonl", ".feed.jsonl"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = env.town().join(file).metadata().unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn events_are_found_by_type_actor_and_time() {
    let env = TestEnv::with_town();
    env.gt(&["events", "emit", "deploy_begun"]).ok();
    let payload = r#"{"message": "v2"}"#;
    let told = env.json(&["events", "emit", "deploy_done", "--payload", payload]);
    assert_eq!(told["payload"]["message"], "v2");
    env.gt(&["events", "emit", "patrol_begun", "--actor", "deacon"])
        .ok();
    env.gt(&["events", "emit", "hook", "--actor", "gastown/crew/max"])
        .ok();
    let found = |args: &[&str]| types(&events(&env, args)).join(" ");
    assert_eq!(found(&["--type", "deploy_*"]), "deploy_begun deploy_done");
    assert_eq!(found(&["--type", "hook,patrol_begun"]), "patrol_begun hook");
    assert_eq!(found(&["--agent", "deacon"]), "patrol_begun");
    assert_eq!(found(&["--actor", "gastown/*"]), "hook");
    assert_eq!(found(&["--since", "1h", "--limit", "1"]), "hook");
    assert_eq!(found(&["--since", "0s"]), "");
    let feed = env.gt(&["events", "--feed", "--json"]).ok().json();
    assert_eq!(
        types(feed.as_array().unwrap()),
        ["deploy_begun", "deploy_done", "hook"]
    );
    // Unreadable lines are skipped, and a torn last line is repaired.
    let log = env.town().join(".events.jsonl");
    let mut file = fs::File::options().append(true).open(log).unwrap();
    file.write_all(b"what is this?\n{\"ts\":\"20").unwrap();
    env.gt(&["events", "emit", "after"]).ok();
    assert_eq!(found(&["--limit", "2"]), "hook after");
    env.gt(&["events", "emit", "Bad Type"]).fails(2);
    env.gt(&["events", "emit", "good", "--payload", "[1]"])
        .fails(2);
    env.gt(&["events", "--since", "soon"]).fails(2);
}

#[test]
fn changed_log_is_reported_until_a_person_accepts_it() {
    let env = TestEnv::with_town();
    for kind in ["one", "two", "three"] {
        env.gt(&["events", "emit", kind]).ok();
    }
    assert_eq!(env.json(&["events", "verify"])["head"]["seq"], 3);
    let log = env.town().join(".events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("\"two\"", "\"six\"")).unwrap();
    let said = env.gt(&["events", "verify"]).fails(1).stdout;
    assert!(said.contains("line 2 ("), "{said}");
    assert!(said.contains("the hash does not match"), "{said}");
    let report = env.gt(&["events", "verify", "--json"]).fails(1).json();
    assert_eq!(report["break"]["line"], 2);
    let doctor = env.gt(&["doctor"]).fails(1).stdout;
    assert!(
        doctor.contains("the log is not as gt wrote it: line 2"),
        "{doctor}"
    );
    env.gt(&["events", "verify", "--accept"]).ok();
    env.gt(&["events", "verify"]).ok();
    let told = events(&env, &["--type", "events_accepted"]);
    assert_eq!(told[0]["actor"], login());
    assert_eq!(told[0]["command"], "gt events verify");
}

#[test]
fn many_deaths_at_once_are_one_event_more() {
    let env = TestEnv::with_crew(&["amy", "bob", "max"]);
    let all = ["gastown/crew/amy", "gastown/crew/bob", "gastown/crew/max"];
    env.gt(&["crew", "start", "--all", "--no-prompt"]).ok();
    all.iter().for_each(|address| crash(&env, address));
    env.gt(&["sync"]).ok();
    // A tmux hook may be writing the event concurrently.
    let told = wait_until("all is told", TIMEOUT, || {
        Some(events(&env, &["--type", "*_death"])).filter(|told| told.len() >= 4)
    });
    let mass: Vec<&Value> = told.iter().filter(|e| e["type"] == "mass_death").collect();
    assert_eq!((told.len(), mass.len()), (4, 1), "{told:?}");
    assert_eq!(mass[0]["payload"]["count"], 3);
    let mut agents: Vec<&str> = mass[0]["payload"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent.as_str().unwrap())
        .collect();
    agents.sort_unstable();
    assert_eq!(agents, all);
}

#[test]
fn message_for_an_earlier_session_is_marked_and_delivered() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    // A half-typed line keeps the message in the queue.
    env.gt(&["keys", "mayor", "--", "half"]).ok();
    env.wait_screen("mayor", "❯ half");
    env.gt(&["nudge", "mayor", "for you", "--mode", "queue"])
        .ok();
    let listed = env.json(&["nudge", "mayor", "--list"]);
    assert_eq!(listed[0]["stale"], false, "{listed}");
    env.gt(&["stop", "mayor", "--force"]).ok();
    // The agent is busy, so the message is not delivered at once.
    env.gt(&["start", "mayor", "--instructions", "[[delay=4]]"])
        .ok();
    let listed = env.json(&["nudge", "mayor", "--list"]);
    assert_eq!(listed[0]["stale"], true, "{listed}");
    let reason = listed[0]["stale_reason"].as_str().unwrap();
    assert!(reason.starts_with("message=20"), "{reason}");
    assert!(reason.contains(" session_started=20"), "{reason}");
    assert_snapshot!(env.snapshot(&["nudge", "mayor", "--list"]), @"
    exit code: 0
    --- stdout
    ID  PRIORITY  PHASE  AGE  FROM  MESSAGE
    [UUID]  normal  waiting, stale  [N]  [USER]  for you
    ");
    env.wait_screen("mayor", "> for you");
    let told = wait_until("its delivery is told", TIMEOUT, || {
        let told = events(&env, &["--type", "nudge"]);
        (told.len() == 2).then_some(told)
    });
    assert_eq!(told[0]["payload"].get("stale"), None, "{told:?}");
    assert_eq!(told[1]["payload"]["stale"], true, "{told:?}");
    assert_eq!(told[1]["payload"]["stale_reason"], reason);
}

#[test]
fn agent_reports_its_steps() {
    let mut env = TestEnv::with_town();
    env.gt(&["start", "mayor", "--no-prompt"]).ok();
    env.gt(&["step", "start", "build"]).fails(2);
    let session = env.json(&["sessions", "list"])[0]["id"].clone();
    env.set("GT_SESSION_UUID", session.as_str().unwrap());
    env.gt(&["step", "start", "build", "--ref", "gt-abc.1"])
        .ok();
    env.gt(&["step", "start", "build"]).fails(4);
    env.gt(&["step", "start", "test"]).ok();
    let shown = env.json(&["sessions", "show", session.as_str().unwrap()]);
    assert_eq!(shown["step_ref"], "test", "{shown}");
    env.gt(&["step", "done", "test"]).ok();
    env.gt(&["step", "done", "test"]).fails(3);
    let shown = env.json(&["sessions", "show", session.as_str().unwrap()]);
    assert_eq!(shown["step_ref"], "gt-abc.1", "{shown}");
    assert_eq!(shown["steps"][0]["ref"], "gt-abc.1");
    assert_eq!(shown["steps"][0].get("completed_at"), None);
    assert!(shown["steps"][1]["completed_at"].is_string(), "{shown}");
    assert_eq!(env.json(&["step", "list"]), shown["steps"]);
    env.gt(&["sessions", "rebuild"]).ok();
    assert_eq!(env.json(&["step", "list"]), shown["steps"]);
    let told = events(&env, &["--type", "session_step_*"]);
    assert_eq!(
        types(&told),
        [
            "session_step_started",
            "session_step_started",
            "session_step_completed"
        ]
    );
    assert_eq!(told[0]["payload"]["session_id"], session);
    assert_eq!(told[0]["actor"], login());
    assert_eq!(told[0]["payload"]["target"], "mayor");
    // After its last step the session has no current step.
    env.gt(&["step", "done", "build"]).ok();
    for _ in 0..2 {
        let shown = env.json(&["sessions", "show", session.as_str().unwrap()]);
        assert_eq!(shown.get("step_ref"), None, "{shown}");
        env.gt(&["sessions", "rebuild"]).ok();
    }
}

#[test]
fn command_of_an_agent_refreshes_its_keepalive() {
    let env = TestEnv::with_crew(&["max"]);
    env.gt(&["crew", "start", "max", "--no-prompt"]).ok();
    let sign = env.town().join(".runtime/keepalive/gastown.crew.max.json");
    let _ = fs::remove_file(&sign);
    let by_agent = |args: &[&str], pane: &str| {
        let mut command = env.gt_command(args);
        command
            .env("GT_ROLE", "gastown/crew/max")
            .env("GT_ROOT", env.town())
            .env("GT_SESSION_UUID", "01a1e1f0-8c1b-7c02-9d3e-5f0d8a6a2f11")
            .env("TMUX_PANE", pane);
        assert!(command.output().unwrap().status.success());
    };
    let age = || env.agent("gastown/crew/max")["keepalive_age_seconds"].clone();
    assert_eq!(age(), Value::Null, "none was given");
    by_agent(&["status-line"], "%1");
    by_agent(&["events", "stats"], "");
    assert!(!sign.exists(), "tmux runs these, not the agent");
    by_agent(&["events", "stats"], "%1");
    let text: Value = serde_json::from_slice(&fs::read(&sign).unwrap()).unwrap();
    assert_eq!(text["last_command"], "gt events stats");
    assert!(age().as_i64().unwrap() < 30);
    fs::write(&sign, "nonsense").unwrap();
    assert_eq!(age(), Value::Null, "what cannot be read is none");
    let folder = env.town().join("gastown/crew/max");
    assert_eq!(env.git(&folder, &["status", "--porcelain"]), "");
}

/// A long-running command, and the lines that it prints.
struct Going {
    child: Child,
    lines: Receiver<Value>,
}

impl Going {
    fn start(env: &TestEnv, args: &[&str]) -> Self {
        let mut child = env.spawn(&[args, &["--json"]].concat());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        Going { child, lines }
    }

    #[track_caller]
    fn next(&self) -> Value {
        self.lines.recv_timeout(TIMEOUT).expect("a line")
    }

    /// Sends INT, and returns the exit code.
    fn interrupt(mut self) -> Option<i32> {
        signal(self.child.id(), Signal::INT);
        self.child.wait().unwrap().code()
    }
}

#[test]
fn events_continue_after_a_number() {
    let env = TestEnv::with_town();
    let emit = |kind: &str| env.json(&["events", "emit", kind])["seq"].as_u64().unwrap();
    let first = emit("n_one");
    let second = emit("n_two");
    assert_eq!(second, first + 1);
    emit("n_three");
    let after = first.to_string();
    let after = ["--type", "n_*", "--after", &after];
    assert_eq!(types(&events(&env, &after)), ["n_two", "n_three"]);
    let limited = events(&env, &[&after[..], &["--limit", "1"]].concat());
    assert_eq!(types(&limited), ["n_two"], "the oldest first");
    let follow = [&["events", "--follow"], &after[..]].concat();
    let following = Going::start(&env, &follow);
    let next = || following.next()["seq"].as_u64().unwrap();
    assert_eq!([next(), next()], [second, second + 1]);
    let last = emit("n_four");
    assert_eq!(next(), last);
    let unknown = env.gt(&["events", "--after", "99999"]).ok();
    let expected = "warning: the log has no event 99999: it is another log\n";
    assert_eq!(unknown.stderr, expected);
}

#[test]
fn events_are_followed_through_the_file_and_the_socket() {
    let env = forgetful();
    env.gt(&["events", "emit", "first"]).ok();
    let by_file = Going::start(&env, &["events", "--follow", "--type", "first,n_*"]);
    assert_eq!(by_file.next()["type"], "first");
    let server = Going::start(&env, &["events", "--serve"]);
    let socket = server.next()["socket"].as_str().unwrap().to_owned();
    assert!(fs::metadata(&socket).is_ok());
    env.gt(&["events", "--serve"]).fails(4);
    let by_socket = Going::start(&env, &["events", "--follow", "--type", "first,n_*"]);
    assert_eq!(by_socket.next()["type"], "first");
    let feed = Going::start(&env, &["events", "--feed", "--follow"]);
    assert_eq!(feed.next()["type"], "first");
    let mut number = 0;
    let mut step = || {
        fill(&env, "junk", 120);
        let kind = format!("n_{number}");
        env.gt(&["events", "emit", &kind]).ok();
        env.gt(&["events", "prune"]).ok();
        number += 1;
        kind
    };
    for _ in 0..3 {
        let kind = step();
        assert_eq!(by_file.next()["type"], kind.as_str());
        assert_eq!(by_socket.next()["type"], kind.as_str());
        // Events about a prune are not in the feed.
        assert_eq!(feed.next()["type"], kind.as_str());
    }
    // After the server is killed, readers fall back to the log file.
    let mut server = server;
    signal(server.child.id(), Signal::KILL);
    server.child.wait().unwrap();
    assert!(fs::metadata(&socket).is_ok(), "its socket is left");
    let kind = step();
    assert_eq!(by_socket.next()["type"], kind.as_str());
    assert_eq!(by_file.next()["type"], kind.as_str());
    let server = Going::start(&env, &["events", "--serve"]);
    server.next();
    assert_eq!(server.interrupt(), Some(0));
    assert!(fs::metadata(&socket).is_err(), "it is removed");
    assert_eq!(by_socket.interrupt(), Some(0));
    assert_eq!(by_file.interrupt(), Some(0));
    assert_eq!(feed.interrupt(), Some(0));
}

#[test]
fn events_name_the_person_the_agent_or_gt_that_caused_them() {
    let mut env = TestEnv::with_crew(&["max"]);
    let (max, me) = ("gastown/crew/max", login());
    // The name comes from the user id, not from `USER`.
    env.set("USER", "mallory");
    let newest = |env: &TestEnv, kind: &str| {
        let found = env.json(&["events", "--type", kind]);
        let event = found.as_array().unwrap().last().unwrap().clone();
        let target = event["payload"]["target"].as_str().unwrap_or_default();
        format!("{} {target}", event["actor"].as_str().unwrap())
    };
    let item = |env: &TestEnv| {
        let made = env.json(&["work", "create", "--rig", "gastown", "a thing"]);
        made["id"].as_str().unwrap().to_owned()
    };
    let first = item(&env);
    env.gt(&["hook", &first, "--agent", max]).ok();
    assert_eq!(newest(&env, "hook"), format!("{me} {max}"));
    env.gt(&["start", max]).ok();
    env.gt(&["nudge", max, "hello"]).ok();
    assert_eq!(newest(&env, "nudge"), format!("{me} {max}"));
    env.gt(&["events", "emit", "deploy"]).ok();
    assert_eq!(newest(&env, "deploy"), format!("{me} "));
    env.gt(&["done", "--agent", max]).ok();
    assert_eq!(newest(&env, "done"), format!("{me} {max}"));
    let second = item(&env);
    let as_max = |words: &[&str]| run(env.gt_command(words).env("GT_ROLE", max)).ok();
    as_max(&["hook", &second]);
    assert_eq!(newest(&env, "hook"), format!("{max} "));
    as_max(&["done"]);
    assert_eq!(newest(&env, "done"), format!("{max} "));
    run(env
        .gt_command(&["events", "emit", "deploy"])
        .env("GT_CALLER", "gt"))
    .ok();
    assert_eq!(newest(&env, "deploy"), "gt ");
}
