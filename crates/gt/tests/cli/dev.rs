//! Dev servers in windows beside an agent.

use crate::board::terminal::Terminal;
use crate::env::{TIMEOUT, TestEnv, is_alive, signal};
use gt_tmux::testing::wait_until;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a free port with room above it. It is outside the kernel's ephemeral range, so that
/// concurrent tests do not get it.
pub(crate) fn free_port() -> u16 {
    // Tests run in processes of their own, or as threads of one.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let own = u16::try_from((std::process::id() + call * 3) % 1000).unwrap();
    let mut firsts = (0..100).map(|step| 12_000 + (own * 10 + step * 10) % 10_000);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    firsts.find(is_free).unwrap()
}

/// Makes a rig whose project has these servers. The first one writes its ports to a file and
/// sleeps; the test itself listens on the port.
fn with_servers(first: u16) -> TestEnv {
    let env = TestEnv::with_town();
    let source = env.repository("source-gastown");
    let settings = format!(
        r#"
[[dev_servers]]
name = "web"
command = "echo $PORT $DEBUG_PORT > made-web; exec sleep 1000"
port = {first}
ports = {{ DEBUG_PORT = {first} }}

[[dev_servers]]
name = "broken"
command = "echo $API_PORT > made-broken; exit 7"
port = {first}
port_variable = "API_PORT"
"#
    );
    fs::write(source.join(".gt.toml"), settings).unwrap();
    fs::write(source.join(".gitignore"), "made*\n").unwrap();
    env.git(&source, &["add", "."]);
    env.git(&source, &["commit", "--quiet", "-m", "Settings"]);
    let path = source.to_str().unwrap();
    env.gt(&["rig", "add", "gastown", path, "--prefix", "gt"])
        .ok();
    env.gt(&["project", "allow", "gastown"]).ok();
    env
}

fn create(env: &TestEnv) -> String {
    let item = env.json(&["work", "create", "Fix it"]);
    item["id"].as_str().unwrap().to_owned()
}

fn written(env: &TestEnv, id: &str, name: &str) -> Vec<u64> {
    let file: PathBuf = env.path(&format!("gastown-{id}/{name}"));
    wait_until("the server to say its ports", TIMEOUT, || {
        let text = fs::read_to_string(&file).ok()?;
        let ports = text.strip_suffix('\n')?.split(' ');
        Some(ports.map(|port| port.parse().unwrap()).collect())
    })
}

fn server(env: &TestEnv, id: &str, name: &str) -> Value {
    let all = env.json(&["dev", "list", id]);
    let mut all = all.as_array().unwrap().iter();
    all.find(|it| it["name"] == name).unwrap().clone()
}

#[test]
fn a_server_has_a_window_and_free_ports_which_it_keeps() {
    let first = free_port();
    let taken = TcpListener::bind(("127.0.0.1", first)).unwrap();
    let env = with_servers(first);
    let id = create(&env);
    env.gt(&["task", "start", &id]).ok();
    assert_eq!(server(&env, &id, "web")["state"], "stopped");
    let started = env.json(&["dev", "start", &id, "web"]);
    let web = &started[0];
    assert_eq!(web["window"], "dev-web");
    assert_eq!(web["state"], "starting", "no process listens yet");
    assert_eq!(web["changed"], true);
    let port = web["port"].as_u64().unwrap();
    let debug = web["ports"]["DEBUG_PORT"].as_u64().unwrap();
    assert!(port > u64::from(first) && debug > port, "{web}");
    assert_eq!(written(&env, &id, "made-web"), [port, debug]);
    let windows = env.format(&format!("{id}-az"), "#{W:#{window_name} }");
    assert_eq!(windows.trim(), "task dev-web");
    // The server counts as running as soon as its port answers; a second start changes nothing.
    let listener = TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    assert_eq!(server(&env, &id, "web")["state"], "running");
    assert_eq!(env.json(&["dev", "start", &id, "web"])[0]["changed"], false);
    let shown = env.json(&["task", "show", &id]);
    assert_eq!(
        shown["windows"],
        json!([{"name": "dev-web", "running": true}])
    );
    drop(listener);
    drop(taken);
    // A restarted server keeps its port, although a lower one is free by then.
    let pid = u32::try_from(web["pid"].as_u64().unwrap()).unwrap();
    let stopped = env.json(&["dev", "stop", &id]);
    assert_eq!(stopped[0]["state"], "stopped");
    assert!(!is_alive(pid));
    let windows = env.format(&format!("{id}-az"), "#{W:#{window_name} }");
    assert_eq!(windows.trim(), "task");
    for change in ["start", "restart"] {
        let again = env.json(&["dev", change, &id, "web"]);
        assert_eq!(again[0]["ports"], web["ports"], "{change}");
        assert_eq!(again[0]["changed"], true, "{change}");
    }
    // The server ends with its task.
    let pid = server(&env, &id, "web")["pid"].as_u64().unwrap();
    env.gt(&["task", "stop", &id]).ok();
    assert!(!is_alive(u32::try_from(pid).unwrap()));
    assert_eq!(env.sessions(), Vec::<String>::new());
}

#[test]
fn each_worktree_has_ports_of_its_own() {
    let env = with_servers(free_port());
    let ids = [create(&env), create(&env)];
    let mut seen = Vec::new();
    for id in &ids {
        // Without an agent the container gets a shell, and the item stays unassigned.
        let started = env.json(&["dev", "start", id, "web"]);
        seen.push(started[0]["port"].as_u64().unwrap());
        seen.push(started[0]["ports"]["DEBUG_PORT"].as_u64().unwrap());
        assert_eq!(env.json(&["work", "show", id])["status"], "open");
        let task = env.json(&["task", "show", id]);
        assert_eq!(task["state"], "idle");
        assert_eq!(task["initialized"], true);
    }
    let all = seen.clone();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4, "{all:?}");
    assert_eq!(env.json(&["dev", "list"]).as_array().unwrap().len(), 4);
    // Messages are not typed into a shell, and an agent can start in its place later.
    let agent = format!("task/{}", ids[0]);
    env.gt(&[
        "nudge",
        &agent,
        "touch made-by-nudge",
        "--mode",
        "immediate",
    ])
    .fails(3);
    let pid = server(&env, &ids[0], "web")["pid"].clone();
    let started = env.json(&["task", "start", &ids[0]]);
    assert_eq!(started["started"], true);
    assert_eq!(env.agent(&agent)["health"], "healthy");
    assert_eq!(server(&env, &ids[0], "web")["pid"], pid);
}

#[test]
fn failed_dev_server_is_reported_with_its_exit_code() {
    let env = with_servers(free_port());
    let id = create(&env);
    env.gt(&["task", "start", &id]).ok();
    env.gt(&["dev", "start", &id, "broken"]);
    let failed = wait_until("the server to fail", TIMEOUT, || {
        let server = server(&env, &id, "broken");
        (server["state"] == "error").then_some(server)
    });
    assert_eq!(failed["exit_code"], 7);
    assert_eq!(failed["pid"], Value::Null);
    assert_eq!(
        written(&env, &id, "made-broken"),
        [failed["port"].as_u64().unwrap()]
    );
    assert_snapshot!(env.snapshot(&["dev", "start", &id, "nope"]), @r#"
    exit code: 3
    --- stderr
    error: the project has no server called "nope"
    hint: it has web, broken
    "#);
    env.gt(&["dev", "start"]).fails(2);
}

/// Server that listens once the file `go` exists, closes its port on USR1 and opens it again on
/// USR2.
const MOODY: &str = r#"
import os, signal, socket, time
while not os.path.exists(os.path.expanduser("~/go")):
    time.sleep(0.05)
def listen(*_):
    global door
    door = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=64)
signal.signal(signal.SIGUSR1, lambda *_: door.close())
signal.signal(signal.SIGUSR2, listen)
listen()
while True:
    signal.pause()
"#;

#[test]
fn unresponsive_dev_server_and_its_recovery_are_shown_on_an_open_board() {
    let (env, id) = crate::task::with_project(&format!(
        "[[dev_servers]]\nname = 'web'\nport = {}\ncommand = 'exec python3 ~/moody.py'\n",
        free_port()
    ));
    fs::write(env.home().join("moody.py"), MOODY).unwrap();
    env.gt(&["task", "start", &id]).ok();
    env.gt(&["dev", "start", &id]).ok();
    let web = server(&env, &id, "web");
    assert_eq!(web["state"], "starting");
    let pid = u32::try_from(web["pid"].as_u64().unwrap()).unwrap();
    let board = Terminal::open(&env, 150, 45);
    let (up, down) = (format!(" :{}", web["port"]), format!("✗:{}", web["port"]));
    // Only the board polls the server, from its first answer on.
    board.wait("its window", |screen| screen.contains(&id));
    fs::write(env.home().join("go"), "").unwrap();
    board.wait("its port", |screen| screen.contains(&up));
    signal(pid, Signal::USR1);
    board.wait("its failure", |screen| screen.contains(&down));
    let failed = server(&env, &id, "web");
    assert_eq!(
        (&failed["state"], &failed["pid"]),
        (&"error".into(), &web["pid"])
    );
    let reason = "runs, but does not answer";
    assert_eq!(failed["reason"], reason);
    assert!(failed["since"].is_string(), "{failed}");
    let shown = env.gt(&["dev", "list", &id]).ok().stdout;
    assert!(shown.contains(&format!("error: {reason}, for ")), "{shown}");
    let cards = env.json(&["board"]);
    let card = cards["cards"].as_array().unwrap();
    let card = card.iter().find(|card| card["id"] == id.as_str()).unwrap();
    let (on_card, since) = (&card["servers"][0], &failed["since"]);
    assert_eq!(
        (&on_card["reason"], &on_card["since"]),
        (&reason.into(), since)
    );
    let told = || -> Vec<Value> {
        let told = env.json(&["events", "--type", "server_failed"]);
        told.as_array().unwrap().clone()
    };
    let once = wait_until("it is told", TIMEOUT, || {
        Some(told()).filter(|told| !told.is_empty())
    });
    assert_eq!(once[0]["payload"]["reason"], reason);
    // A start does not restart the server, and reports a failure.
    let again = env.gt(&["dev", "start", &id]).fails(1);
    assert!(again.stderr.contains("does not answer"), "{}", again.stderr);
    signal(pid, Signal::USR2);
    board.wait("its return", |screen| {
        screen.contains(&up) && !screen.contains(&down)
    });
    assert_eq!(server(&env, &id, "web")["state"], "running");
    assert_eq!(told().len(), 1, "once, for as long as it lasts");
    signal(pid, Signal::USR1);
    wait_until("it is told again", TIMEOUT, || {
        (told().len() == 2).then_some(())
    });
}

#[test]
fn a_crew_worker_has_servers_and_names_only_them() {
    let env = with_servers(free_port());
    env.gt(&["crew", "add", "max"]).ok();
    env.gt(&["dev", "start", "gastown/max", "web"]).fails(3);
    env.gt(&["crew", "start", "max"]).ok();
    let dir = env.town().join("gastown/crew/max");
    let started = env
        .gt_in(&dir, &["dev", "start", "web", "--json"])
        .ok()
        .json();
    assert_eq!(started[0]["agent"], "gastown/crew/max");
    assert_eq!(started[0]["work_dir"], json!(dir.canonicalize().unwrap()));
    env.gt(&["stop", "gastown/max"]).ok();
    assert_eq!(env.sessions(), Vec::<String>::new());
}

#[test]
fn a_server_that_runs_is_opened() {
    let mut env = with_servers(free_port());
    let id = create(&env);
    let browser = env.path("browser");
    fs::write(&browser, "#!/bin/sh\necho \"$1\" > \"$HOME/opened\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&browser, mode).unwrap();
    env.set("BROWSER", browser.to_str().unwrap());
    let started = env.json(&["dev", "start", &id, "web"]);
    env.gt(&["dev", "open", &id]).fails(4);
    let port = u16::try_from(started[0]["port"].as_u64().unwrap()).unwrap();
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let url = format!("http://localhost:{port}/\n");
    assert_eq!(env.gt(&["dev", "open", &id]).ok().stdout, url);
    wait_until("the browser to open it", TIMEOUT, || {
        (fs::read_to_string(env.path("opened")).ok()? == url).then_some(())
    });
}

#[test]
fn dev_command_continues_after_a_failed_init_command() {
    let (env, id) = crate::task::with_project(&format!(
        "[init]\ncommands = ['exit 7']\n\
         [[dev_servers]]\nname = 'web'\nport = {}\ncommand = 'exec sleep 1000'\n",
        free_port()
    ));
    // Every attempt fails: a shell whose init commands failed is not ready for a server.
    for _ in 0..2 {
        let answer = env.gt(&["dev", "start", &id, "web"]).fails(1);
        let hint = format!("`gt dev start {id} web --continue-on-failure` continues without it");
        assert!(answer.stderr.contains(&hint), "{}", answer.stderr);
        assert_eq!(server(&env, &id, "web")["state"], "stopped");
    }
    let started = env.json(&["dev", "start", &id, "web", "--continue-on-failure"]);
    assert_eq!(started[0]["changed"], true, "{started}");
    // After `--continue-on-failure` the init commands are not retried.
    env.gt(&["dev", "restart", &id]).ok();
    assert_eq!(env.json(&["work", "show", &id])["status"], "open");
}

#[test]
fn card_with_only_dev_servers_does_not_need_you() {
    let env = with_servers(free_port());
    let id = create(&env);
    env.gt(&["dev", "start", &id, "web"]).ok();
    let board = env.json(&["board"]);
    let card = &board["cards"][0];
    assert_eq!(card["session"]["only_shell"], true, "{card}");
    assert_eq!(card["session"]["state"], "idle", "{card}");
    assert_ne!(card["column"], "needs_you", "{card}");
    env.gt(&["task", "start", &id]).ok();
    let board = env.json(&["board"]);
    assert_eq!(board["cards"][0]["session"]["only_shell"], Value::Null);
}
