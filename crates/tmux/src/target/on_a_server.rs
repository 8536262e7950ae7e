//! Checks on a real server that a target matches exactly what it names.

use proptest::test_runner::{Config, TestRunner};

use crate::testing::TestServer;
use crate::{Command, PaneId, Server, SessionId, SessionName, Target, query};

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

fn create(server: &Server, session: &SessionName) {
    let command = Command::new("new-session")
        .flag("-d")
        .option("-s", session.to_format());
    server.run(command.args(["-x", "80", "-y", "24"])).unwrap();
}

/// Returns every kind of command that takes a session by name, with its required arguments.
fn commands(target: &Target) -> Vec<Command> {
    let on = |command: &'static str| Command::new(command).target(target);
    vec![
        on("has-session"),
        on("set-environment").args(["A", "b"]),
        on("show-environment"),
        on("list-windows"),
        on("list-clients"),
        on("lock-session"),
        on("list-panes"),
        on("list-panes").flag("-s"),
        on("set-option").args(["@a", "b"]),
        on("set-option").args(["-w", "@a", "b"]),
        on("set-option").args(["-p", "@a", "b"]),
        on("show-options"),
        on("set-window-option").args(["@a", "b"]),
        on("set-hook").args(["session-renamed[9]", "list-panes"]),
        on("show-hooks"),
        on("send-keys").arg("a"),
        on("capture-pane").flag("-p"),
        on("new-window").flag("-d"),
        on("split-window").flag("-d"),
        on("rename-window").arg("a"),
        on("select-window"),
        on("select-pane"),
        on("resize-window").args(["-x", "80"]),
        on("resize-pane"),
        on("pipe-pane"),
        on("clear-history"),
        on("copy-mode"),
        on("respawn-pane").flag("-k"),
        on("rename-session").arg("foo"),
        Command::new("new-session").flag("-d").target(target),
        on("kill-window").flag("-a"),
        on("kill-pane").flag("-a"),
        on("kill-session"),
    ]
}

#[test]
fn every_command_finds_the_session_that_is_there() {
    let test = TestServer::new();
    create(test.server(), &name("foo-2"));
    create(test.server(), &name("foo"));
    for command in commands(&name("foo").into()) {
        test.server()
            .run(&command)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(test.server().has_session(&name("foo-2")).unwrap());
}

#[test]
fn no_command_takes_the_beginning_of_a_name_for_the_name() {
    let test = TestServer::new();
    create(test.server(), &name("foo-2"));
    for command in commands(&name("foo").into()) {
        // `new-session` takes an unknown session for the name of a new group.
        if command.name() == "new-session" {
            continue;
        }
        let result = test.server().run(&command);
        assert!(result.is_err(), "{} hit foo-2", command.to_line());
    }
    let windows = test
        .server()
        .run(Command::new("list-windows").target(name("foo-2")))
        .unwrap();
    assert_eq!(windows.lines().count(), 1);
}

query! {
    struct Ids {
        session: SessionId = "#{session_id}",
        pane: PaneId = "#{pane_id}",
        name: String = "#{session_name}",
    }
}

#[test]
fn ids_find_what_they_name() {
    let test = TestServer::new();
    create(test.server(), &name("foo-2"));
    create(test.server(), &name("foo"));
    let rows: Vec<Ids> = test
        .server()
        .rows(Command::new("list-panes").flag("-a"))
        .unwrap();
    for row in rows {
        for target in [Target::from(row.session), Target::from(row.pane)] {
            let found: Vec<Ids> = test
                .server()
                .rows(Command::new("list-panes").target(&target))
                .unwrap();
            assert_eq!(found[0].name, row.name, "{target:?}");
        }
        let found = Command::new("has-session").target(row.session);
        assert!(test.server().run(found).is_ok());
    }
    assert!(
        test.server()
            .run(Command::new("has-session").target(SessionId(99)))
            .is_err()
    );
}

#[test]
fn a_session_is_found_by_the_name_it_was_given() {
    let test = TestServer::new();
    let server = test.server();
    create(server, &name("zzz"));
    let odd = [
        "-x", "=a", "==", "%1", "@1", "{mouse}", "{last}", "~", "!", "+", "-", "*", "?", "[a]",
        "a b", "#", "%H", ";", "a;",
    ];
    for text in odd {
        check(server, &name(text));
    }
    let text = proptest::string::string_regex("[ -~äßλ日本🦀]{1,12}").unwrap();
    let mut runner = TestRunner::new(Config {
        cases: 40,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&text, |text| {
            if let Ok(session) = SessionName::new(text) {
                check(server, &session);
            }
            Ok(())
        })
        .unwrap();
}

fn check(server: &Server, session: &SessionName) {
    create(server, session);
    let rows: Vec<Ids> = server
        .rows(Command::new("list-panes").target(session))
        .unwrap();
    assert_eq!(rows[0].name, session.as_str());
    server
        .run([
            Command::new("has-session").target(session),
            Command::new("set-option").target(session).args(["@a", "b"]),
            Command::new("send-keys").target(session).arg("a"),
            Command::new("kill-session").target(session),
        ])
        .unwrap_or_else(|error| panic!("{session:?}: {error}"));
    assert!(!server.has_session(session).unwrap());
}
