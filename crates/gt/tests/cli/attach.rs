//! `gt attach` outside tmux, inside tmux, and from one server to another.

use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::testing::{TestServer, wait_until};
use gt_tmux::{Command as Tmux, SessionName};
use insta::assert_snapshot;

const GT: &str = env!("CARGO_BIN_EXE_gt");

fn client_of(env: &TestEnv) -> String {
    env.tmux(Tmux::new("list-clients").args(["-F", "#{session_name} #{client_readonly}"]))
}

fn wait_client(env: &TestEnv, wanted: &str) {
    wait_until(&format!("the client is at {wanted:?}"), TIMEOUT, || {
        (client_of(env) == wanted).then_some(())
    });
}

fn session(name: &str) -> SessionName {
    SessionName::try_from(name).unwrap()
}

/// Opens a pane that runs a line as in a person's shell.
fn pane(env: &TestEnv, server: &TestServer, name: &str, line: &str) {
    let home = env.home().display();
    let socket = env.socket();
    let shell = format!(
        "export HOME='{home}' GT_TMUX_SOCKET='{}'; {line}; exec sleep 1000",
        socket.display()
    );
    let new = Tmux::new("new-session").args(["-d", "-s", name, "-x", "100", "-y", "30", &shell]);
    server.server().run_private(new).unwrap();
}

/// Opens a terminal that looks to its program as if it were outside tmux.
pub(crate) fn terminal(env: &TestEnv, outer: &TestServer, line: &str) {
    pane(env, outer, "t", &format!("unset TMUX TMUX_PANE; {line}"));
}

pub(crate) fn press(outer: &TestServer, keys: &[&str]) {
    let send = Tmux::new("send-keys")
        .target(session("t"))
        .args(keys.iter().copied());
    outer.server().run(send).unwrap();
}

pub(crate) fn wait_shown(outer: &TestServer, text: &str) {
    wait_until(&format!("{text:?} in the terminal"), TIMEOUT, || {
        let capture = Tmux::new("capture-pane").arg("-p").target(session("t"));
        outer
            .server()
            .run(capture)
            .unwrap()
            .contains(text)
            .then_some(())
    });
}

/// Starts a person's own tmux server with a client in a terminal.
fn users_own_tmux(env: &TestEnv, outer: &TestServer) -> TestServer {
    let own = TestServer::new();
    pane(env, &own, "mine", "true");
    let attach = format!("tmux -S '{}' attach-session", own.socket_path().display());
    terminal(env, outer, &attach);
    wait_until("the user's own client", TIMEOUT, || {
        let clients = own.server().run(Tmux::new("list-clients")).unwrap();
        (!clients.is_empty()).then_some(())
    });
    own
}

/// Runs `gt` in a new window of the user's own session.
fn in_own_tmux(own: &TestServer, env: &TestEnv, line: &str) {
    let shell = format!(
        "HOME='{}' GT_TMUX_SOCKET='{}' '{GT}' {line}",
        env.home().display(),
        env.socket().display()
    );
    let new = Tmux::new("new-window").target(session("mine")).arg(shell);
    own.server().run(new).unwrap();
}

#[test]
fn outside_tmux_the_terminal_attaches() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon"]).ok();
    assert_snapshot!(env.snapshot(&["attach", "mayor"]), @"
    exit code: 2
    --- stderr
    error: attaching needs a terminal
    hint: `gt peek hq-mayor` shows its screen
    ");
    let outer = TestServer::new();
    terminal(&env, &outer, &format!("'{GT}' attach mayor --read-only"));
    wait_client(&env, "hq-mayor 1");
    assert_eq!(env.agent("mayor")["attached"], true);
}

#[test]
fn inside_tmux_the_client_switches() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon"]).ok();
    let outer = TestServer::new();
    // A client of the town's server, inside a pane of the outer server.
    terminal(&env, &outer, &format!("'{GT}' attach mayor"));
    wait_client(&env, "hq-mayor 0");
    // From inside the mayor's container, on the same server.
    let line = format!("'{GT}' attach deacon");
    env.tmux(
        Tmux::new("new-window")
            .target(session("hq-mayor"))
            .arg(line),
    );
    wait_client(&env, "hq-deacon 0");
    let menu = env.gt(&["agents", "menu", "--print"]).ok().stdout;
    assert!(
        menu.starts_with("mayor") && menu.contains("deacon"),
        "{menu}"
    );
}

#[test]
fn handoff_with_watch_attaches_to_the_next_session() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon"]).ok();
    assert_snapshot!(env.snapshot(&["handoff", "deacon", "--force", "--watch"]), @"
    exit code: 2
    --- stderr
    error: attaching needs a terminal
    hint: `gt peek hq-deacon` shows its screen
    ");
    let record = || env.agent("deacon")["session"].clone();
    let first = record();
    assert!(first.is_string());
    let outer = TestServer::new();
    terminal(&env, &outer, &format!("'{GT}' attach mayor"));
    wait_client(&env, "hq-mayor 0");
    let line = format!("'{GT}' handoff deacon --force --watch");
    env.tmux(
        Tmux::new("new-window")
            .target(session("hq-mayor"))
            .arg(line),
    );
    wait_client(&env, "hq-deacon 0");
    assert_ne!(record(), first, "it was handed over");
}

#[test]
fn from_another_server_the_client_leaves_it_and_attaches() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let outer = TestServer::new();
    let own = users_own_tmux(&env, &outer);
    in_own_tmux(&own, &env, "attach mayor --read-only");
    wait_client(&env, "hq-mayor 1");
    let left = own.server().run(Tmux::new("list-clients")).unwrap();
    assert_eq!(left, "", "its own server has no client any more");
    assert!(
        own.server()
            .run(Tmux::new("list-sessions"))
            .unwrap()
            .contains("mine")
    );
}

#[test]
fn the_menu_brings_a_client_of_another_server_to_an_agent() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon"]).ok();
    let outer = TestServer::new();
    let own = users_own_tmux(&env, &outer);
    in_own_tmux(&own, &env, "agents menu");
    wait_shown(&outer, "deacon  ");
    press(&outer, &["2"]);
    wait_client(&env, "hq-deacon 0");
}

#[test]
fn the_menu_knows_the_servers_of_other_towns() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let other = env.path("other");
    let other_socket = env.path("s2");
    let in_other = |args: &[&str]| {
        let output = env
            .gt_command(args)
            .env("GT_ROOT", &other)
            .env("GT_TMUX_SOCKET", &other_socket)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    in_other(&["init", "other", "--harness", "demo", "--sandbox", "none"]);
    in_other(&["start", "deacon"]);
    assert_snapshot!(env.snapshot(&["agents", "menu", "--print"]), @"
    exit code: 0
    --- stdout
    mayor  [STATE]
    other: deacon
    ");
    assert!(in_other(&["agents", "menu", "--print"]).contains("gt: mayor"));

    // A client of the first town switches to an agent of the second town, on the other server.
    let outer = TestServer::new();
    terminal(&env, &outer, &format!("'{GT}' attach mayor"));
    wait_client(&env, "hq-mayor 0");
    press(&outer, &["C-b", "g"]);
    wait_shown(&outer, "other: deacon");
    press(&outer, &["2"]);
    let there = gt_tmux::Server::new(gt_tmux::Socket::Path(other_socket.clone()));
    wait_until("the client is on the other server", TIMEOUT, || {
        let clients = there.run(Tmux::new("list-clients").args(["-F", "#{session_name}"]));
        (clients.unwrap().trim_end() == "hq-deacon").then_some(())
    });
    in_other(&["down", "--all"]);
    assert_snapshot!(env.snapshot(&["agents", "menu", "--print"]), @"
    exit code: 0
    --- stdout
    mayor  [STATE]
    ");
}

#[test]
fn the_status_key_opens_a_pop_up_that_any_key_closes() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor"]).ok();
    let outer = TestServer::new();
    terminal(&env, &outer, &format!("'{GT}' attach mayor"));
    wait_client(&env, "hq-mayor 0");
    press(&outer, &["C-b", "a"]);
    wait_shown(&outer, "Agents: 1 ");
    press(&outer, &["q"]);
    wait_until("the pop-up is closed", TIMEOUT, || {
        let capture = Tmux::new("capture-pane").arg("-p").target(session("t"));
        (!outer.server().run(capture).unwrap().contains("Agents: 1 ")).then_some(())
    });
}
