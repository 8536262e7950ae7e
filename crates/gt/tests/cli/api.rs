//! The HTTP API: the real daemon, a real tmux, the demo agent.

mod http;

use crate::attacks::identity::inside;
use crate::env::{Answer, TIMEOUT, TestEnv, is_alive, login, signal};
use crate::external_programs;
use crate::nudge;
use gt_tmux::testing::wait_until;
use http::{Api, Messages, read_head};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::BufRead;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

const MAX: &str = "/api/v1/agents/gastown%2Fcrew%2Fmax";

/// Starts the daemon. Returns its socket.
fn serve(env: &TestEnv) -> Api {
    env.gt(&["daemon", "start"]).ok();
    let path = env.town().join(".runtime/api.sock");
    wait_until("the API listens", TIMEOUT, || {
        std::os::unix::net::UnixStream::connect(&path).ok()
    });
    Api::Unix(path)
}

/// Adds a TCP address to the settings, and starts the daemon.
fn serve_tcp(env: &TestEnv) -> Api {
    // The address is free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    env.gt(&["config", "set", "web.listen", &address.to_string()])
        .ok();
    serve(env);
    wait_until("the API listens", TIMEOUT, || {
        std::net::TcpStream::connect(address).ok()
    });
    Api::Tcp(address)
}

fn token(env: &TestEnv, name: &str, scope: &str) -> String {
    let made = env.json(&["web", "token", "create", name, "--scope", scope]);
    format!("Bearer {}", made["token"].as_str().unwrap())
}

fn daemon(env: &TestEnv) -> u32 {
    let status = env.gt(&["daemon", "status", "--json"]).json();
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn reads_return_the_documents_of_the_commands() {
    let env = nudge::stage(&["max"]);
    let api = serve(&env);
    env.create_item("Write a poem");
    env.gt(&["mail", "send", "human", "-s", "Hello", "-m", "text"])
        .ok();
    for (path, command) in [
        (
            "/api/v1/agents?stopped=true",
            &["agents", "--all", "--stopped"][..],
        ),
        ("/api/v1/sessions", &["sessions", "list"]),
        ("/api/v1/work", &["work", "list"]),
        ("/api/v1/mail", &["mail", "inbox"]),
        ("/api/v1/merges", &["mq", "list"]),
        ("/api/v1/escalations", &["escalate", "list"]),
        ("/api/v1/costs", &["costs"]),
        ("/api/v1/settings", &["config", "list"]),
    ] {
        assert_eq!(api.get(path).ok(), env.json(command), "{path}");
    }
    for path in ["/api/v1/status", "/api/v1/doctor", "/api/v1/openapi.json"] {
        api.get(path).ok();
    }
    let one = api.get(MAX).ok();
    assert_eq!(one["agent"], "gastown/crew/max");
    let session = one["session"].as_str().unwrap();
    let shown = api.get(&format!("/api/v1/sessions/{session}")).ok();
    assert_eq!(shown["id"], session);
    api.get(&format!("/api/v1/chains/{session}")).ok();
    let screen = api.get(&format!("{MAX}/screen?lines=5")).ok();
    assert!(screen["lines"].is_array(), "{screen}");
    assert_eq!(api.get(&format!("{MAX}/hook")).ok(), Value::Null);
    let problem = api.get("/api/v1/agents/nothing").fails(404);
    assert_eq!(
        (&problem["kind"], &problem["status"]),
        (&json!("not_found"), &json!(404))
    );
    assert!(
        !problem["hints"].as_array().unwrap().is_empty(),
        "{problem}"
    );
    let socket = env.town().join(".runtime/api.sock");
    assert_eq!(
        socket.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let caller = api.get("/api/v1/caller").ok();
    assert_eq!(caller["kind"], "person");
}

#[test]
fn changes_are_those_of_the_commands_and_are_recorded() {
    let env = nudge::stage(&["max"]);
    let api = serve(&env);
    let draft = json!({"title": "--json", "rig": "gastown", "labels": ["a", "b"]});
    let made = api.post("/api/v1/work", &draft).ok();
    assert_eq!(made["title"], "--json");
    let item = format!("/api/v1/work/{}", made["id"].as_str().unwrap());
    let changed = api.send("PATCH", &item, &[], &json!({"priority": 0})).ok();
    assert_eq!(changed["priority"], 0);
    let hook = format!("{MAX}/hook");
    let hooked = api
        .send("PUT", &hook, &[], &json!({"item": made["id"]}))
        .ok();
    assert_eq!(hooked["id"], made["id"]);
    api.send("DELETE", &hook, &[], &Value::Null).ok();
    api.post(&format!("{item}/close"), &json!({"reason": "done"}))
        .ok();
    assert_eq!(api.get(&item).ok()["status"], "closed");

    let messages = format!("{MAX}/messages");
    let key = [("Idempotency-Key", "once")];
    let hello = json!({"message": "-hello\n--two"});
    let first = api.send("POST", &messages, &key, &hello);
    let second = api.send("POST", &messages, &key, &hello);
    assert_eq!(
        second.header("idempotency-replayed"),
        Some("true"),
        "{second:?}"
    );
    assert_eq!(first.ok(), second.ok());
    env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
    assert_eq!(nudge::prompts(&env), ["-hello\n--two"]);

    api.post(&format!("{MAX}/stop"), &json!({})).ok();
    let refused = api.post(&format!("{MAX}/stop"), &json!({}));
    assert!(matches!(refused.status, 404 | 409), "{refused:?}");
    let started = api.post(&format!("{MAX}/start"), &Value::Null).ok();
    assert_eq!(started["started"], true);
    let running = api.post(&format!("{MAX}/start"), &Value::Null).fails(409);
    assert_eq!(running["kind"], "running");

    let events = env.json(&["events", "--type", "api_call,work_created"]);
    let events = events.as_array().unwrap();
    assert_eq!(events[0]["type"], "work_created");
    assert_eq!(
        (&events[0]["actor"], &events[1]["actor"]),
        (&json!(login()), &json!(login()))
    );
    let operations: Vec<&str> = events[1..]
        .iter()
        .map(|event| event["payload"]["operation"].as_str().unwrap())
        .collect();
    let expected = [
        "work_create",
        "work_update",
        "hook_set",
        "hook_clear",
        "work_close",
        "agents_nudge",
        "agents_stop",
        "agents_stop",
        "agents_start",
        "agents_start",
    ];
    assert_eq!(operations, expected);
}

#[test]
fn standalone_agents_are_created_started_reset_and_deleted() {
    let env = TestEnv::with_town();
    let api = serve(&env);
    let one = |action: &str| format!("/api/v1/containers/scout/{action}");
    api.post(
        "/api/v1/containers",
        &json!({"slug": "scout", "harness": "demo"}),
    )
    .ok();
    let listed = api.get("/api/v1/containers").ok();
    assert_eq!(listed[0]["agent"], "agent/scout", "{listed}");
    api.post(&one("start"), &Value::Null).ok();
    let session = |listed: &Value| listed[0]["session"].clone();
    let first = session(&api.get("/api/v1/containers").ok());
    api.post(&one("reset"), &Value::Null).ok();
    assert_ne!(session(&api.get("/api/v1/containers").ok()), first);
    api.post(&one("stop"), &Value::Null).ok();
    api.send("DELETE", "/api/v1/containers/scout", &[], &Value::Null)
        .ok();
    assert_eq!(api.get("/api/v1/containers").ok(), json!([]));
}

#[test]
fn question_is_answered_once_and_only_if_it_is_the_expected_one() {
    let env = nudge::stage(&["max"]);
    let api = serve(&env);
    let text = "[[tool=touch first]] [[tool=touch second]]";
    env.gt(&["nudge", "gastown/max", text]).ok();
    let asks = |about: &str| {
        wait_until(about, TIMEOUT, || {
            let asked = api.get(&format!("{MAX}/question"));
            let asked = (asked.status == 200).then(|| asked.json())?;
            asked["question"].as_str()?.contains(about).then_some(asked)
        })
    };
    let first = asks("touch first");
    let answer = json!({"choice": "yes", "expect": first["fingerprint"]});
    let path = format!("{MAX}/answer");
    let key = [("Idempotency-Key", "answer-1")];
    let answered = api.send("POST", &path, &key, &answer).ok();
    let second = asks("touch second");
    // A client that lost the connection repeats the request.
    let repeated = api.send("POST", &path, &key, &answer).ok();
    assert_eq!(repeated, answered);
    // Another browser still shows the first question.
    let problem = api.post(&path, &answer).fails(409);
    assert!(
        problem["detail"].as_str().unwrap().contains("question"),
        "{problem}"
    );
    let made = |name: &str| env.town().join("gastown/crew/max").join(name);
    assert_eq!(asks("touch second")["fingerprint"], second["fingerprint"]);
    assert!(!made("second").exists());
    let no = json!({"choice": "no", "expect": second["fingerprint"]});
    api.post(&path, &no).ok();
    env.gt(&["wait", "gastown/max", "--timeout", "30"]).ok();
    assert!(made("first").exists() && !made("second").exists());
}

#[test]
fn agent_has_only_its_own_capabilities() {
    if !external_programs::are_there("the API as an agent sees it", &["curl"]) {
        return;
    }
    let env = crate::attacks::identity::stage();
    serve(&env);
    let socket = env.town().join(".runtime/api.sock");
    let curl = |method: &str, path: &str, body: &str, before: &str| -> (u16, Value) {
        let script = format!(
            "{before} curl -s -X {method} -w '\\n%{{http_code}}' --unix-socket {} \
             -H 'Content-Type: application/json' -H 'GT-Caller: ada' -d '{body}' \
             http://localhost{path}\n",
            socket.display()
        );
        let Answer { stdout, .. } = inside(&env, "gastown/crew/max", &script).ok();
        let (text, status) = stdout.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), serde_json::from_str(text).unwrap())
    };
    let (_, caller) = curl("GET", "/api/v1/caller", "", "");
    assert_eq!(caller["agent"], "gastown/crew/max", "{caller}");
    let joe = "/api/v1/agents/gastown%2Fcrew%2Fjoe";
    for (method, path, body) in [
        ("POST", format!("{joe}/stop"), "{}"),
        ("POST", format!("{joe}/keys"), r#"{"keys": ["C-c"]}"#),
        (
            "POST",
            format!("{MAX}/answer"),
            r#"{"choice": "yes", "expect": "0"}"#,
        ),
        ("GET", "/api/v1/mail?agent=human".to_owned(), ""),
        (
            "POST",
            "/api/v1/containers".to_owned(),
            r#"{"slug": "mine"}"#,
        ),
    ] {
        let (status, problem) = curl(method, &path, body, "");
        assert_eq!(
            (status, &problem["kind"]),
            (403, &json!("denied")),
            "{path}: {problem}"
        );
    }
    // Variables of the process do not make it another caller.
    let as_person = "env -u GT_ROLE -u GT_SESSION -u GT_ROOT GT_CALLER=ada";
    let (status, problem) = curl("POST", &format!("{joe}/stop"), "{}", as_person);
    assert_eq!(status, 403, "{problem}");
    // Its permitted operations carry its own name.
    let mail = r#"{"to": ["gastown/joe"], "subject": "Hello", "message": "text"}"#;
    let (status, sent) = curl("POST", "/api/v1/mail", mail, "");
    assert_eq!(status, 200, "{sent}");
    let inbox = env.json(&["mail", "inbox", "--agent", "gastown/joe"]);
    assert_eq!(inbox[0]["sender"], "gastown/crew/max", "{inbox}");
    for command in [
        "gt web token create mine --scope admin",
        "gt web token list",
        "gt dashboard --no-open",
    ] {
        let refused = inside(&env, "gastown/crew/max", command).fails(7);
        assert!(
            refused.stderr.contains("gastown/crew/max"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(env.running().len(), 2);
}

#[test]
fn tokens_open_the_tcp_address() {
    let env = TestEnv::with_town();
    let api = serve_tcp(&env);
    let reader = token(&env, "reader", "read");
    let admin = token(&env, "admin", "admin");
    let send = |method: &str, path: &str, token: &str, more: &[(&str, &str)]| {
        let headers = [&[("Authorization", token)][..], more].concat();
        api.send(method, path, &headers, &Value::Null)
    };
    api.get("/api/v1/status").fails(401);
    send("GET", "/api/v1/status", &reader, &[]).ok();
    let problem = send("POST", "/api/v1/agents/mayor/stop", &reader, &[]).fails(403);
    assert!(
        problem["detail"].as_str().unwrap().contains("scope"),
        "{problem}"
    );
    let evil = [("Origin", "http://evil.example")];
    send("GET", "/api/v1/status", &admin, &evil).fails(403);
    let rebound = [("Host", "evil.example")];
    send("GET", "/api/v1/status", &admin, &rebound).fails(421);
    let foreign = [
        ("Authorization", &*admin),
        ("Origin", "http://evil.example"),
    ];
    let socket = Messages::open(&api, "/api/v1/ws", &foreign);
    assert!(socket.is_err_and(|head| head.starts_with("HTTP/1.1 403")));
    let page = api.get("/");
    assert_eq!(page.status, 200);
    assert!(page.text.contains("/page.js"), "{page:?}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    env.gt(&["web", "token", "revoke", "admin"]).ok();
    send("GET", "/api/v1/status", &admin, &[]).fails(401);
}

#[test]
fn stream_resumes_after_a_restart_without_loss_or_duplicates() {
    let env = TestEnv::with_town();
    let api = serve(&env);
    let emit = |kind: &str| env.json(&["events", "emit", kind])["seq"].as_u64().unwrap();
    let start = emit("test_begin");
    let path = |after: u64| format!("/api/v1/ws?type=test_*&after={after}");
    let mut messages = Messages::open(&api, &path(start), &[]).unwrap();
    let seq = |message: Value| message["event"]["seq"].as_u64().unwrap();
    let mut sent = vec![emit("test_one"), emit("test_two")];
    let mut received = vec![seq(messages.next().unwrap()), seq(messages.next().unwrap())];
    let killed = daemon(&env);
    signal(killed, Signal::KILL);
    assert_eq!(messages.next(), None);
    sent.push(emit("test_three"));
    wait_until("the daemon is gone", TIMEOUT, || {
        (!is_alive(killed)).then_some(())
    });
    let api = serve(&env);
    sent.push(emit("test_four"));
    let mut messages = Messages::open(&api, &path(received[1]), &[]).unwrap();
    received.extend([seq(messages.next().unwrap()), seq(messages.next().unwrap())]);
    sent.push(emit("test_five"));
    received.push(seq(messages.next().unwrap()));
    assert_eq!(received, sent);

    // Server-sent events and the command have the same cursor.
    let stream = format!("/api/v1/events/stream?type=test_*&after={}", sent[2]);
    let mut reader = api.open("GET", &stream, &[], "");
    read_head(&mut reader);
    let mut ids = Vec::new();
    while ids.len() < 3 {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        ids.extend(
            line.strip_prefix("id: ")
                .map(|id| id.trim().parse::<u64>().unwrap()),
        );
    }
    assert_eq!(ids, sent[2..], "the first is that of hello");
    let after = sent[2].to_string();
    let shown = env.json(&["events", "--type", "test_*", "--after", &after]);
    let shown = shown.as_array().unwrap().iter();
    let shown: Vec<u64> = shown.map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(shown, sent[3..]);

    // The streams end with the daemon.
    env.gt(&["daemon", "stop"]).ok();
    assert_eq!(messages.next(), None);
    assert!(!env.town().join(".runtime/api.sock").exists());
}

#[test]
fn client_that_missed_pruned_events_is_told() {
    let env = TestEnv::with_town();
    env.add_settings("[krc]\nminimum_kept = 0\nttl = { \"old_*\" = \"0s\" }\n");
    let emit = |kind: &str| env.json(&["events", "emit", kind])["seq"].as_u64().unwrap();
    let start = emit("test_begin");
    emit("old_one");
    emit("old_two");
    let last = emit("test_end");
    env.gt(&["krc", "prune"]).ok();
    let api = serve(&env);
    let gap = json!({"after": start, "missing": 2});
    let page = api
        .get(&format!("/api/v1/events?after={start}&type=test_*"))
        .ok();
    assert_eq!(
        (&page["gap"], &page["events"][0]["seq"]),
        (&gap, &json!(last))
    );
    let mut messages = Messages::open(&api, &format!("/api/v1/ws?after={start}"), &[]).unwrap();
    let told = messages.next().unwrap();
    assert_eq!(
        (&told["type"], &told["gap"]),
        (&json!("gap"), &gap),
        "{told}"
    );
    assert_eq!(told["snapshot"]["agents"], json!([]));
    assert_eq!(messages.next().unwrap()["event"]["seq"], last);
    let warned = env.gt(&["events", "--after", &start.to_string()]).ok();
    let expected = format!("warning: 2 events after {start} are no longer in the log\n");
    assert_eq!(warned.stderr, expected);
}
