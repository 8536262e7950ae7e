//! Tests of the control client against a real server.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use super::{Control, Notification, Reconnecting};
use crate::testing::{TIMEOUT, TestServer, wait_until};
use crate::{Batch, Command, ErrorKind, PaneId, Server, SessionName, Socket};

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

fn new_session(session: &str) -> Command {
    Command::new("new-session").flag("-d").option("-s", session)
}

fn say(text: &str) -> Command {
    Command::new("display-message").flag("-p").arg(text)
}

/// Returns the server with its version, so that clients connect to its socket where possible.
fn direct(server: &Server) -> Server {
    let version = server.version().unwrap();
    server.clone().with_version(version)
}

fn started() -> (TestServer, Control) {
    let test = TestServer::new();
    test.server().run(new_session("main")).unwrap();
    let control = direct(test.server()).control(&name("main")).unwrap();
    (test, control)
}

/// Waits for a notification that the closure accepts.
fn expect(
    receiver: &Receiver<Notification>,
    accepts: impl Fn(&Notification) -> bool,
) -> Notification {
    let mut seen = Vec::new();
    while let Ok(notification) = receiver.recv_timeout(TIMEOUT) {
        if accepts(&notification) {
            return notification;
        }
        seen.push(notification);
    }
    panic!("the notification did not come, but {seen:?}");
}

fn clients(test: &TestServer) -> usize {
    let list = Command::new("list-clients");
    test.server()
        .run(list)
        .map_or(0, |clients| clients.lines().count())
}

#[test]
fn is_usable_from_every_thread() {
    fn check<T: Send + Sync>() {}
    check::<Control>();
    check::<Reconnecting>();
}

#[test]
fn answers_like_a_process_of_its_own() {
    let (test, control) = started();
    for command in [
        say("a  b\nc"),
        say("ü;"),
        Command::new("list-commands"),
        Command::new("show-options").flag("-g"),
    ] {
        assert_eq!(
            control.run(&command).unwrap(),
            test.server().run(&command).unwrap()
        );
    }
    let gone = || Command::new("kill-session").target(name("gone"));
    let (here, there) = (
        control.run(gone()).unwrap_err(),
        test.server().run(gone()).unwrap_err(),
    );
    assert_eq!(here.kind(), ErrorKind::NoSuchSession);
    assert_eq!(here.stderr(), there.stderr());
    assert_eq!(
        control
            .run(Command::new("no-such-command"))
            .unwrap_err()
            .kind(),
        ErrorKind::Other
    );
    assert_eq!(
        control.run(say("a\0")).unwrap_err().kind(),
        ErrorKind::Other
    );
    assert_eq!(control.run(Batch::new()).unwrap(), "");
}

/// Without a known version, and on systems other than Linux, the client is a process.
#[test]
fn a_process_answers_like_the_socket() {
    let (test, control) = started();
    let process = test.server().control(&name("main")).unwrap();
    for control in [&control, &process] {
        assert_eq!(control.run(say("a  b\nc")).unwrap(), "a  b\nc\n");
        let gone = Command::new("kill-session").target(name("gone"));
        let error = control.run(gone).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchSession);
    }
    let pids = Command::new("list-clients").option("-F", "#{client_pid}");
    let pids = test.server().run(pids).unwrap();
    let ours = std::process::id().to_string();
    let of_sockets = pids.lines().filter(|pid| *pid == ours).count();
    assert_eq!(pids.lines().count(), 2, "{pids}");
    assert_eq!(of_sockets, usize::from(cfg!(target_os = "linux")));
    let ends = [control.notifications(), process.notifications()];
    test.server().run(Command::new("kill-server")).unwrap();
    for receiver in &ends {
        let is_exit = |note: &Notification| matches!(note, Notification::Exit { .. });
        expect(receiver, is_exit);
    }
}

/// A client that identifies itself like the tmux program crashes a server of 3.3a here.
#[cfg(target_os = "linux")]
#[test]
fn server_survives_clients_that_connect_while_sessions_come_and_go() {
    let (test, _control) = started();
    let server = direct(test.server());
    thread::scope(|scope| {
        for maker in 0..3 {
            let server = &server;
            scope.spawn(move || {
                for round in 0..60 {
                    let session = format!("x{maker}-{round}");
                    let kill = Command::new("kill-session").target(name(&session));
                    server.run([new_session(&session), kill]).unwrap();
                }
            });
        }
        for _ in 0..60 {
            let control = server.control(&name("main")).unwrap();
            assert_eq!(control.run(say("a")).unwrap(), "a\n");
        }
    });
}

#[test]
fn session_keeps_its_environment_when_a_client_attaches() {
    let test = TestServer::new();
    test.server().run(new_session("main")).unwrap();
    let set = Command::new("set-environment").args(["-t", "=main", "DISPLAY", ":7"]);
    test.server().run(set).unwrap();
    for server in [test.server().clone(), direct(test.server())] {
        let control = server.control(&name("main")).unwrap();
        let show = Command::new("show-environment").args(["-t", "=main", "DISPLAY"]);
        assert_eq!(control.run(show).unwrap(), "DISPLAY=:7\n");
    }
}

#[test]
fn lines_fail_as_in_a_process_of_its_own() {
    let (_test, control) = started();
    let gone = || Command::new("kill-session").target(name("gone"));
    assert_eq!(control.run([say("a"), say("b")]).unwrap(), "a\nb\n");
    let batch = Batch::from([say("a"), gone(), say("b")])
        .then_line()
        .then(say("c"));
    assert_eq!(
        control.run(batch).unwrap_err().kind(),
        ErrorKind::NoSuchSession
    );
    assert_eq!(control.run(say("in step")).unwrap(), "in step\n");
}

#[test]
fn commands_inside_commands_do_not_break_the_count() {
    let (test, control) = started();
    let inside = "display-message -p in ; display-message -p side";
    let nested = Command::new("if-shell").args(["-F", "1", inside]);
    assert_eq!(control.run(nested).unwrap(), "in\nside\n");
    let script = test.folder().join("script");
    std::fs::write(
        &script,
        "display-message -p one\ndisplay-message -p two\nkill-session -t =gone\n",
    )
    .unwrap();
    let sourced = control.run(Command::new("source-file").arg(script.to_str().unwrap()));
    assert_eq!(sourced.unwrap_err().kind(), ErrorKind::NoSuchSession);
    control
        .run(Command::new("run-shell").arg("echo outside of any answer"))
        .unwrap();
    assert_eq!(control.run(say("in step")).unwrap(), "in step\n");
}

#[test]
fn hooks_do_not_break_the_count() {
    let (_test, control) = started();
    let notifications = control.notifications();
    let hook = "display-message -p hooked ; kill-session -t =gone";
    let set = Command::new("set-hook").args(["-g", "after-list-sessions", hook]);
    control.run(set).unwrap();
    let list = Command::new("list-sessions").option("-F", "#{session_name}");
    assert_eq!(control.run(list).unwrap(), "main\n");
    assert_eq!(control.run(say("in step")).unwrap(), "in step\n");
    let injected = |note: &Notification| matches!(note, Notification::Injected { .. });
    let expected = Notification::Injected {
        succeeded: true,
        text: "hooked\n".into(),
    };
    assert_eq!(expect(&notifications, injected), expected);
    assert!(matches!(
        expect(&notifications, injected),
        Notification::Injected {
            succeeded: false,
            ..
        }
    ));
}

#[test]
fn many_commands_are_under_way_at_once() {
    let (_test, control) = started();
    let batch: Batch = (0..500).map(|index| say(&format!("<{index}>"))).collect();
    let answers = control.run_all(batch);
    assert_eq!(answers.len(), 500);
    for (index, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), format!("<{index}>\n"));
    }
    let mixed = control.run_all([
        say("a"),
        Command::new("send-keys").target(PaneId(99)),
        say("b"),
    ]);
    let kinds: Vec<_> = mixed
        .iter()
        .map(|answer| answer.as_ref().map_err(crate::Error::kind))
        .collect();
    assert_eq!(
        kinds,
        [
            Ok(&"a\n".to_owned()),
            Err(ErrorKind::NoSuchPane),
            Ok(&"b\n".to_owned())
        ]
    );
}

#[test]
fn threads_get_their_own_answers() {
    let (_test, control) = started();
    let control = Arc::new(control);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let control = Arc::clone(&control);
            thread::spawn(move || {
                for index in 0..100 {
                    let text = format!("{thread}-{index}");
                    assert_eq!(control.run(say(&text)).unwrap(), format!("{text}\n"));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn long_texts_pass_in_both_directions() {
    let (_test, control) = started();
    let text = "0123456789 \n".repeat(40_000);
    control
        .run(Command::new("set-option").args(["-g", "@long", &text]))
        .unwrap();
    let shown = control
        .run(Command::new("show-options").args(["-gv", "@long"]))
        .unwrap();
    assert_eq!(shown, format!("{text}\n"));
}

#[test]
fn says_what_happens() {
    let (test, control) = started();
    let notifications = control.notifications();
    test.server().run(new_session("other")).unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::SessionsChanged)
    });
    test.server()
        .run(
            Command::new("rename-session")
                .target(name("other"))
                .arg("renamed it"),
        )
        .unwrap();
    let renamed = expect(&notifications, |note| {
        matches!(note, Notification::SessionRenamed { .. })
    });
    assert!(matches!(renamed, Notification::SessionRenamed { name, .. } if name == "renamed it"));
    test.server()
        .run(Command::new("new-window").target(name("renamed it")))
        .unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::UnlinkedWindowAdd { .. })
    });
    test.server()
        .run(Command::new("new-window").target(name("main")))
        .unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::WindowAdd { .. })
    });
    test.server()
        .run(Command::new("kill-session").target(name("renamed it")))
        .unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::SessionsChanged)
    });
}

#[test]
fn unread_notifications_do_no_harm() {
    let (test, control) = started();
    let notifications = control.notifications();
    let rename = |index: u32| {
        Command::new("rename-window")
            .target(name("main"))
            .arg(format!("w{index}"))
    };
    for answer in control.run_all((0..3000).map(rename).collect::<Batch>()) {
        answer.unwrap();
    }
    assert_eq!(test.server().run(say("alive")).unwrap(), "alive\n");
    let lagged = expect(&notifications, |note| {
        matches!(note, Notification::Lagged { .. })
    });
    assert!(
        matches!(lagged, Notification::Lagged { lost } if lost > 1000),
        "{lagged:?}"
    );
}

#[test]
fn output_of_panes_is_not_sent() {
    let (test, control) = started();
    let notifications = control.notifications();
    let main = name("main");
    let respawn = Command::new("respawn-pane").flag("-k").target(&main);
    test.server()
        .run(respawn.arg("seq 1 200; exec sleep 1000"))
        .unwrap();
    wait_until("the pane has printed", TIMEOUT, || {
        let screen = control
            .run(Command::new("capture-pane").flag("-p").target(&main))
            .unwrap();
        screen.contains("200").then_some(())
    });
    let printed = notifications
        .try_iter()
        .any(|note| matches!(note, Notification::Output { .. }));
    assert!(!printed);
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let (test, control) = started();
    drop(control);
    assert_eq!(
        test.server().control(&name("mai")).unwrap_err().kind(),
        ErrorKind::NoSuchSession
    );
}

#[test]
fn connecting_starts_no_server() {
    let test = TestServer::new();
    assert_eq!(
        test.server().control(&name("main")).unwrap_err().kind(),
        ErrorKind::NoServer
    );
    assert!(!test.socket_path().exists());
    let missing = test.server().clone().with_program("/nonexistent/tmux");
    assert_eq!(
        missing.control(&name("main")).unwrap_err().kind(),
        ErrorKind::NotInstalled
    );
}

#[test]
fn leaves_without_a_trace() {
    let (test, control) = started();
    assert_eq!(clients(&test), 1);
    drop(control);
    wait_until("the client has left", TIMEOUT, || {
        (clients(&test) == 0).then_some(())
    });
}

#[test]
fn the_end_of_the_server_fails_what_waits() {
    let (test, control) = started();
    let notifications = control.notifications();
    let waiting = control.send(Command::new("wait-for").arg("never"));
    // `kill-server` would wake the waiting clients before the server ends.
    let pid = i32::try_from(test.pid().unwrap()).unwrap();
    let process = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    assert_eq!(
        waiting.wait(TIMEOUT).unwrap_err().kind(),
        ErrorKind::ServerLost
    );
    expect(&notifications, |note| {
        matches!(note, Notification::Exit { .. })
    });
    assert!(!control.is_connected());
    assert_eq!(
        control.run(say("a")).unwrap_err().kind(),
        ErrorKind::ServerLost
    );
}

#[test]
fn no_answer_in_time_is_an_error_and_the_next_one_is_right() {
    let (test, control) = started();
    let waiting = control.send(Command::new("wait-for").arg("go"));
    let error = waiting.wait(Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("wait-for"), "{error}");
    let next = control.send(say("next"));
    test.server()
        .run(Command::new("wait-for").args(["-S", "go"]))
        .unwrap();
    assert_eq!(next.wait(TIMEOUT).unwrap(), "next\n");
}

#[test]
fn errors_name_the_target_and_keep_the_arguments() {
    let (_test, control) = started();
    let error = control
        .run(Command::new("send-keys").target(PaneId(99)).arg("s3cret"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`send-keys %99` failed: can't find pane: %99"
    );
}

#[test]
fn comes_back_after_the_server_did() {
    let test = TestServer::new();
    let again = Reconnecting::new(test.server().clone(), Some(name("main")));
    assert_eq!(again.run(say("a")).unwrap_err().kind(), ErrorKind::NoServer);
    test.server().run(new_session("main")).unwrap();
    let notifications = again.notifications();
    assert_eq!(again.run(say("a")).unwrap(), "a\n");

    test.server().run(Command::new("kill-server")).unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::Exit { .. })
    });
    wait_until("there is no server", TIMEOUT, || {
        (again.run(say("a")).unwrap_err().kind() == ErrorKind::NoServer).then_some(())
    });
    // The preferred session does not exist, but another one does.
    test.server().run(new_session("other")).unwrap();
    assert_eq!(again.run(say("#{client_session}")).unwrap(), "other\n");
    expect(&notifications, |note| {
        matches!(note, Notification::Reconnected)
    });
    test.server().run(new_session("third")).unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::SessionsChanged)
    });
}

#[test]
fn comes_back_after_its_session_closed() {
    let test = TestServer::new();
    test.server()
        .run([new_session("main"), new_session("other")])
        .unwrap();
    let again = Reconnecting::new(test.server().clone(), Some(name("main")));
    let notifications = again.notifications();
    assert_eq!(again.run(say("#{client_session}")).unwrap(), "main\n");
    test.server()
        .run(Command::new("kill-session").target(name("main")))
        .unwrap();
    expect(&notifications, |note| {
        matches!(note, Notification::Exit { .. })
    });
    again.connect().unwrap();
    assert_eq!(again.run(say("#{client_session}")).unwrap(), "other\n");
}

/// Helper process that the next test starts and kills.
#[test]
fn owner_of_a_control_client() {
    let Some(socket) = std::env::var_os("TMUX_TEST_OWNED_SOCKET") else {
        return;
    };
    let program = std::env::var_os("TMUX_TEST_PROGRAM").unwrap_or_else(|| "tmux".into());
    let server = Server::new(Socket::Path(socket.into())).with_program(program);
    let control = server.control(&name("main")).unwrap();
    println!("connected");
    // After the kill the output of this command has no reader, which can block a server.
    loop {
        // Fails after the kill.
        let _ = control.run(Command::new("list-keys"));
    }
}

#[test]
fn the_client_ends_with_its_owner() {
    let test = TestServer::new();
    test.server().run(new_session("main")).unwrap();
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "control::on_a_server::owner_of_a_control_client",
            "--nocapture",
        ])
        .env("TMUX_TEST_OWNED_SOCKET", test.socket_path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the client is connected", TIMEOUT, || {
        (clients(&test) == 1).then_some(())
    });
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the client is gone", TIMEOUT, || {
        (clients(&test) == 0).then_some(())
    });
    assert_eq!(test.server().run(say("alive")).unwrap(), "alive\n");
}
