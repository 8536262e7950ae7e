//! `gt attach` to agents that gt did not start.

use super::Desk;
use crate::attach::{terminal, wait_shown};
use crate::env::{TIMEOUT, TestEnv};
use gt_tmux::Command as Tmux;
use gt_tmux::testing::{TestServer, wait_until};
use std::path::Path;

const GT: &str = env!("CARGO_BIN_EXE_gt");

/// Waits until a client of the desk's server is attached to the container.
fn wait_client(desk: &Desk<'_>, container: &str) {
    wait_until(&format!("a client at {container}"), TIMEOUT, || {
        let clients = desk.tmux(&["list-clients", "-F", "#{session_name}"]);
        (clients == container).then_some(())
    });
}

fn check_attach(env: &TestEnv, socket: &Path) {
    let desk = Desk::open(env, socket);
    let pid = desk.start_program("")["pid"].to_string();
    // Another pane is active, and then another window.
    desk.tmux(&[
        "split-window",
        "-t",
        "=desk:",
        "echo beside; exec sleep 1000",
    ]);
    desk.tmux(&["new-window", "-t", "=desk:", "sh"]);
    env.json(&["adopt", &pid, "--name", "helper"]);
    let outer = TestServer::new();
    terminal(env, &outer, &format!("'{GT}' attach helper"));
    wait_client(&desk, "agent_helper");
    wait_shown(&outer, "? for shortcuts");
    let active = desk.tmux(&[
        "display-message",
        "-p",
        "-t",
        "=agent_helper:",
        "#{pane_id}",
    ]);
    assert_eq!(env.agent("agent/helper")["pane"], active.as_str());
    assert_eq!(env.agent("agent/helper")["attached"], true);
    // The person's session stays at its window.
    let window = desk.tmux(&["display-message", "-p", "-t", "=desk:", "#{window_index}"]);
    assert_eq!(window, "1");
}

#[test]
fn adopted_agent_is_attached() {
    let env = TestEnv::with_town();
    check_attach(&env, &env.socket());
}

#[test]
fn adopted_agent_on_another_server_is_attached() {
    let env = TestEnv::with_town();
    check_attach(&env, &env.path("other"));
}

#[test]
fn orphan_is_attached_by_its_slug_and_by_its_new_one() {
    let env = TestEnv::with_town();
    let new = Tmux::new("new-session").args(["-d", "-s", "agent_helper"]);
    env.tmux(new.args(["--", GT, "demo-agent"]));
    env.wait_screen("agent/helper", "? for shortcuts");
    let outer = TestServer::new();
    terminal(&env, &outer, &format!("'{GT}' attach helper"));
    let clients = || env.tmux(Tmux::new("list-clients").args(["-F", "#{session_name}"]));
    wait_until("a client at agent_helper", TIMEOUT, || {
        (clients() == "agent_helper").then_some(())
    });
    assert_eq!(env.agent("agent/helper")["attached"], true);
    let target = gt_tmux::SessionName::try_from("agent_helper").unwrap();
    let rename = Tmux::new("rename-session").target(target);
    env.tmux(rename.arg("agent_other"));
    assert_eq!(env.agent("agent/other")["attached"], true);
    let second = TestServer::new();
    terminal(&env, &second, &format!("'{GT}' attach other --read-only"));
    wait_until("both clients at agent_other", TIMEOUT, || {
        (clients() == "agent_other\nagent_other").then_some(())
    });
    terminal_fails(&env);
}

/// Checks that the old slug names no agent.
fn terminal_fails(env: &TestEnv) {
    let answer = env.gt(&["attach", "agent/helper"]).fails(3);
    assert!(answer.stderr.contains("is not running"), "{answer:?}");
}
