//! Going to an agent: outside tmux and inside it. Leaving for another server is not tested yet.

use crate::env::{PATIENCE, TestEnv};
use gt_tmux::testing::{TestServer, wait_until};
use gt_tmux::{Command as Tmux, SessionName};

fn client_of(env: &TestEnv) -> String {
    env.tmux(Tmux::new("list-clients").args(["-F", "#{session_name} #{client_readonly}"]))
}

/// A terminal: a pane of another tmux server, in which `gt` is typed.
fn terminal(env: &TestEnv, outer: &TestServer, line: &str, inside: bool) {
    let unset = if inside { "" } else { "unset TMUX TMUX_PANE; " };
    let home = env.home().display();
    let socket = env.socket();
    let shell = format!(
        "{unset}export HOME='{home}' GT_TMUX_SOCKET='{}'; {line}; exec sleep 1000",
        socket.display()
    );
    outer
        .server()
        .run_private(
            Tmux::new("new-session").args(["-d", "-s", "t", "-x", "100", "-y", "30", &shell]),
        )
        .unwrap();
}

#[test]
fn outside_tmux_the_terminal_attaches() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon"]).ok();
    assert!(
        env.gt(&["attach", "mayor"])
            .fails(2)
            .stderr
            .contains("needs a terminal")
    );
    let outer = TestServer::new();
    let gt = env!("CARGO_BIN_EXE_gt");
    terminal(
        &env,
        &outer,
        &format!("'{gt}' attach mayor --read-only"),
        false,
    );
    wait_until("the client is with the mayor", PATIENCE, || {
        (client_of(&env) == "hq-mayor 1").then_some(())
    });
    assert_eq!(env.agent("mayor")["attached"], true);
}

#[test]
fn inside_tmux_the_client_switches() {
    let env = TestEnv::with_town();
    env.gt(&["start", "mayor", "deacon"]).ok();
    let outer = TestServer::new();
    let gt = env!("CARGO_BIN_EXE_gt");
    // A client of the town's server, inside a pane of the outer one.
    terminal(&env, &outer, &format!("'{gt}' attach mayor"), false);
    wait_until("the client is with the mayor", PATIENCE, || {
        (client_of(&env) == "hq-mayor 0").then_some(())
    });
    // From inside the mayor's container: the same server.
    let name = SessionName::try_from("hq-mayor").unwrap();
    let line = format!("'{gt}' attach deacon");
    env.tmux(Tmux::new("new-window").target(name).arg(line));
    wait_until("the client has switched to the deacon", PATIENCE, || {
        (client_of(&env) == "hq-deacon 0").then_some(())
    });
    let menu = env.gt(&["agents", "menu", "--print"]).ok().stdout;
    assert!(
        menu.starts_with("mayor") && menu.contains("deacon"),
        "{menu}"
    );
}
