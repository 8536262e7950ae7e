//! `a`: attaches to an agent and returns, on a plain terminal, inside tmux, and from another tmux
//! server.

use super::*;
use crate::env::{TIMEOUT, processes_of, signal};
use gt_tmux::testing::wait_until;
use gt_tmux::{Command as Tmux, Server, SessionName, Socket};
use rustix::process::Signal;

/// Returns the sessions that the clients of the town's server show. Leaves out the board's control
/// client, which has no terminal.
fn clients(env: &TestEnv) -> Vec<String> {
    let list = Tmux::new("list-clients").args(["-F", "#{client_control_mode} #{session_name}"]);
    let list = env.tmux(list);
    let people = list.lines().filter_map(|line| line.strip_prefix("0 "));
    people.map(str::to_owned).collect()
}

/// Waits until the terminal shows the agent instead of the board.
#[track_caller]
fn wait_at_agent(env: &TestEnv, board: &Terminal<'_>, id: &str) {
    let container = format!("{id}-az");
    board.until("a client", || clients(env) == [container.as_str()]);
    board.wait("the agent's screen", |screen| {
        screen.contains("? for shortcuts") && !screen.contains("Needs you")
    });
}

/// Returns the frame of the board: its first two lines and its last one.
fn frame(screen: &str) -> Vec<String> {
    let lines: Vec<&str> = screen.trim_end().lines().collect();
    [&lines[..2], &lines[lines.len() - 1..]]
        .concat()
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

#[track_caller]
fn leave(env: &TestEnv, board: &Terminal<'_>, expected: &[String]) {
    board.press(&["C-b", "d"]);
    board.wait("the whole board", |screen| {
        screen.contains("Needs you") && frame(screen) == expected
    });
    assert_eq!(clients(env), [""; 0]);
}

/// Makes the rig and the board learn of the base's new commits.
#[track_caller]
fn show_behind(env: &TestEnv, board: &Terminal<'_>, id: &str, count: u32) {
    env.git(&folder(env, id), &["fetch", "--quiet", "origin"]);
    let note = format!("{count} behind");
    env.gt(&["work", "update", id, "--description", &note]).ok();
    board.wait_text(&format!("↓{count}"));
}

#[test]
fn a_terminal_is_lent_to_the_agent_and_comes_back() {
    let (env, id, dir) = running();
    let board = Terminal::outside(&env, 150, 45);
    board.wait_text("Needs you 1");
    let before = frame(&board.screen());
    board.act("a");
    wait_at_agent(&env, &board, &id);
    // Ctrl-C reaches every process of the terminal; the board ignores it while attached.
    let is_board = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line == concat!(env!("CARGO_BIN_EXE_gt"), "\0board\0").as_bytes()
    };
    // A child of the board has its command line until it runs its own program.
    let pid = wait_until("one process is the board", TIMEOUT, || {
        let mut boards = processes_of(env.home()).into_iter().filter(is_board);
        boards.next().filter(|_| boards.next().is_none())
    });
    signal(pid, Signal::INT);
    leave(&env, &board, &before);
    let own = head(&env, &dir);
    commit_to_base(&env, "theirs", "1\n");
    let base = commit_to_base(&env, "theirs", "2\n");
    // The board may not know of the new commits yet. It asks nevertheless, and inside the board.
    board.act("a");
    board.wait("the question inside the board", |screen| {
        screen.contains("2 commits behind") && screen.contains("Needs you")
    });
    board.press(&["Escape"]);
    board.wait("the whole board", |screen| {
        screen.contains("Needs you") && frame(screen) == before
    });
    show_behind(&env, &board, &id, 2);
    let ask = || {
        board.act("a");
        board.wait_text("Esc: Cancel");
    };
    ask();
    let screen = board.screen();
    let (_, text) = screen.split_once('┌').expect("a box");
    let expected = [
        "↓ Branch Behind main",
        "2 commits behind",
        "Merge main into your branch before attaching?",
        "m: Merge & Attach (pull latest main)",
        "s: Skip & Attach (attach without merge)",
        "Esc: Cancel",
    ];
    let mut rest = text;
    for line in expected {
        let Some((_, after)) = rest.split_once(&format!("│ {line} ")) else {
            panic!("no {line:?} in its place:\n{screen}");
        };
        rest = after;
    }
    board.press(&["Escape"]);
    board.wait("no question", |screen| !screen.contains("Esc: Cancel"));
    assert_eq!((clients(&env), head(&env, &dir)), (Vec::new(), own.clone()));
    ask();
    board.press(&["s"]);
    wait_at_agent(&env, &board, &id);
    assert_eq!(head(&env, &dir), own);
    leave(&env, &board, &before);
    ask();
    board.press(&["m"]);
    wait_at_agent(&env, &board, &id);
    assert_eq!(head(&env, &dir), base);
    leave(&env, &board, &before);
    // With a conflict the board does not attach.
    let own = commit(&env, &dir, "README.md", "ours\n");
    commit_to_base(&env, "README.md", "theirs\n");
    show_behind(&env, &board, &id, 1);
    ask();
    board.press(&["m"]);
    board.wait_text("Conflicts detected. Demo agent started");
    board.wait_text("Needs you");
    assert_eq!(clients(&env), [""; 0]);
    let names = window_names(&env, &format!("{id}-az"));
    assert!(names.contains(&"merge".to_owned()), "{names:?}");
    let text = fs::read_to_string(dir.join("README.md")).unwrap();
    assert!(text.contains("<<<<<<<"), "{text}");
    assert_eq!(head(&env, &dir), own);
}

#[test]
fn inside_tmux_the_client_switches_and_the_board_goes_on() {
    let (env, id, _) = running();
    let socket = env.socket();
    let line = [
        "env",
        "-u",
        "TMUX",
        "-u",
        "TMUX_PANE",
        "tmux",
        "-u",
        "-S",
        socket.to_str().unwrap(),
        "new-session",
        "-s",
        "person",
        "-e",
        &format!("HOME={}", env.home().display()),
        "-e",
        &format!("GT_TMUX_SOCKET={}", socket.display()),
        env!("CARGO_BIN_EXE_gt"),
        "board",
    ];
    let board = Terminal::running(&env, "u", (150, 45), &line);
    board.wait_text("Needs you 1");
    board.act("a");
    wait_at_agent(&env, &board, &id);
    // The board kept running meanwhile.
    let other = create(&env, "Made meanwhile");
    let person = SessionName::try_from("person").unwrap();
    let look = Tmux::new("capture-pane").arg("-p").target(person);
    board.until("the other card on the board", || {
        env.tmux(look.clone()).contains(&other)
    });
    board.press(&["C-b", "L"]);
    board.until("the way back", || clients(&env) == ["person"]);
    board.wait_text("Needs you 1");
    assert!(has_container(&env, &id));
}

#[test]
fn from_another_tmux_the_client_leaves_for_the_agent_and_comes_back() {
    let (env, id, _) = running();
    let own = env.path("own");
    let line = [
        "env",
        "-u",
        "TMUX",
        "-u",
        "TMUX_PANE",
        "tmux",
        "-u",
        "-f",
        "/dev/null",
        "-S",
        own.to_str().unwrap(),
        "new-session",
        "-s",
        "mine",
        env!("CARGO_BIN_EXE_gt"),
        "board",
    ];
    let board = Terminal::running(&env, "u", (150, 45), &line);
    let server = Server::new(Socket::Path(own)).with_config("/dev/null");
    board.find(&id);
    board.wait_text("Needs you 1");
    board.act("a");
    wait_at_agent(&env, &board, &id);
    assert_eq!(server.run(Tmux::new("list-clients")).unwrap(), "");
    board.press(&["C-b", "d"]);
    board.wait_text("Needs you 1");
    assert_eq!(clients(&env), [""; 0]);
    server.run(Tmux::new("kill-server")).unwrap();
}
