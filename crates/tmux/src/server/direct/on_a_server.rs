//! Compares the socket transport with the program: equal commands must get equal answers.

use std::time::Duration;

use super::*;
use crate::testing::{TIMEOUT, TestServer, wait_until};
use crate::{Command, ErrorKind, Server, SessionName, Version};

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

fn say(text: &str) -> Command {
    Command::new("display-message").flag("-p").arg(text)
}

fn new_session(session: &str) -> Command {
    Command::new("new-session").flag("-d").option("-s", session)
}

/// Returns two handles on one server: one uses the program, the other the socket.
fn both(test: &TestServer) -> (Server, Server) {
    let program = test.server().clone().with_program(test.server().program());
    let version = program.version().unwrap();
    (program.clone(), program.with_version(version))
}

/// Runs a batch over the socket. Panics if the batch was left to the program.
fn direct(server: &Server, batch: impl Into<Batch>) -> Result<String, Error> {
    let batch = batch.into();
    let result = capture(server.settings(), &batch, Privacy::Open, || ());
    let result = result.unwrap_or_else(|| panic!("{batch:?} was left to the program"));
    result.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn gives_the_same_answers() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program
        .run([new_session("main"), new_session("other")])
        .unwrap();
    let gone = || Command::new("kill-session").target(name("gone"));
    let batches: Vec<Batch> = vec![
        say("a  b").into(),
        say("ü→🦀;").into(),
        say("two\nlines").into(),
        [say("a"), say(";")].into(),
        Command::new("list-panes").flag("-a").into(),
        Command::new("show-options").flag("-g").into(),
        Command::new("list-keys").into(),
        Command::new("show-environment").flag("-g").into(),
        Command::new("capture-pane")
            .flag("-p")
            .target(name("main"))
            .into(),
        Command::new("has-session").target(name("main")).into(),
        gone().into(),
        [say("before"), gone(), say("after")].into(),
        Batch::from([gone(), say("no")])
            .then_line()
            .then(say("yes")),
        new_session("main").into(),
        Command::new("no-such-command").into(),
        Command::new("list-panes").flag("--bad").into(),
        Command::new("switch-client").target(name("main")).into(),
        Command::new("run-shell").arg("echo out; exit 3").into(),
        Command::new("if-shell")
            .args(["-F", "1", "display-message -p yes"])
            .into(),
        Command::new("new-session")
            .option("-s", "needs a terminal")
            .into(),
    ];
    for batch in batches {
        let expected = program.run(&batch);
        let answer = direct(&socket, batch.clone());
        match (expected, answer) {
            (Ok(expected), Ok(answer)) => assert_eq!(answer, expected, "{batch:?}"),
            (Err(expected), Err(answer)) => assert_eq!(answer.to_string(), expected.to_string()),
            (expected, answer) => panic!("{batch:?}: {expected:?} but {answer:?}"),
        }
    }
}

#[test]
fn long_texts_pass_in_both_directions() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let text = "0123456789 ü\n".repeat(40_000);
    let set = Command::new("set-option").args(["-g", "@long", &text]);
    assert_eq!(direct(&socket, set).unwrap(), "");
    let show = || Command::new("show-options").args(["-gv", "@long"]);
    let shown = direct(&socket, show()).unwrap();
    assert_eq!(shown, format!("{text}\n"));
    assert_eq!(shown, program.run(show()).unwrap());
    let buffer = Command::new("set-buffer").option("-b", "long").arg(&text);
    direct(&socket, buffer).unwrap();
    assert_eq!(
        direct(&socket, Command::new("show-buffer").option("-b", "long")).unwrap(),
        text
    );
}

#[test]
fn bytes_that_are_no_text_arrive() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let file = test.folder().join("bytes");
    let bytes = [b"a\xff\xfe\x80 ".as_slice(), &[0xc3, b'\n', 0x1b]].concat();
    std::fs::write(&file, &bytes).unwrap();
    let load = Command::new("load-buffer")
        .option("-b", "raw")
        .arg(file.to_str().unwrap());
    program.run(load).unwrap();
    let show = Batch::from(Command::new("show-buffer").option("-b", "raw"));
    let shown = capture(socket.settings(), &show, Privacy::Open, || ())
        .unwrap()
        .unwrap();
    assert_eq!(shown, bytes);
    assert_eq!(
        shown,
        exec::capture(program.settings(), &show, Privacy::Open).unwrap()
    );
}

#[test]
fn something_else_is_done_while_the_server_is_at_it() {
    crate::query! {
        struct Named {
            name: String = "#{session_name}",
        }
    }
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let list = || Command::new("list-sessions");
    let mut done = 0;
    let rows: Vec<Named> = socket.rows_while(list(), || done += 1).unwrap();
    assert_eq!((rows[0].name.as_str(), done), ("main", 1));
    let rows: Vec<Named> = program.rows_while(list(), || done += 1).unwrap();
    assert_eq!((rows[0].name.as_str(), done), ("main", 1));
}

#[test]
fn listings_and_private_commands_work_on_it() {
    crate::query! {
        struct Session {
            name: String = "#{session_name}",
        }
    }
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let seen = test.folder().join("seen");
    let pane = format!("printf %s \"$TOKEN\" >{}; exec sleep 1000", seen.display());
    socket
        .run_private(new_session("other").option("-e", "TOKEN=s3cret").arg(pane))
        .unwrap();
    wait_until("the pane has its environment", TIMEOUT, || {
        std::fs::read_to_string(&seen)
            .is_ok_and(|text| text == "s3cret")
            .then_some(())
    });
    let rows: Vec<Session> = socket.rows(Command::new("list-sessions")).unwrap();
    assert_eq!(
        rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
        ["main", "other"]
    );
    assert_eq!(
        socket.run_each([say("a"), say("b")]).unwrap(),
        ["a\n", "b\n"]
    );
    let error = socket
        .run_private(new_session("other").option("-e", "TOKEN=s3cret"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`tmux new-session` failed (exit 1): duplicate session: other"
    );
}

#[test]
fn a_client_brings_the_same_folder_and_environment() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let settings = ["@unused", "update-environment"];
    program
        .run(Command::new("set-option").args(["-g", settings[1], "KEPT SECRET TMUX"]))
        .unwrap();
    let variables = [
        ("PATH", "/bin"),
        ("KEPT", "y"),
        ("SECRET", "x"),
        ("TMUX", "z"),
    ];
    let folder = |server: &Server, session: &str| {
        let server = server
            .clone()
            .with_env(variables)
            .without_env(|name| name == "SECRET");
        let shown = [new_session(session), say("#{session_path}")];
        let environment = Command::new("show-environment").target(name(session));
        [server.run(shown).unwrap(), server.run(environment).unwrap()]
    };
    let (by_socket, by_program) = (folder(&socket, "a"), folder(&program, "b"));
    assert_eq!(by_socket[1], by_program[1]);
    assert!(
        by_socket[1].contains("KEPT=y") && by_socket[1].contains("-SECRET"),
        "{by_socket:?}"
    );
    let path = Command::new("list-sessions").option("-F", "#{session_path}");
    let paths = socket.run(path).unwrap();
    assert_eq!(
        paths
            .lines()
            .collect::<std::collections::HashSet<_>>()
            .len(),
        1,
        "{paths}"
    );
}

#[test]
fn without_a_server_it_says_so_or_leaves_the_start_to_the_program() {
    let test = TestServer::new();
    let (_, socket) = both(&test);
    let absent = direct(&socket, Command::new("list-panes").flag("-a")).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NoServer);
    assert!(!socket.has_session(&name("main")).unwrap());
    assert!(
        capture(
            socket.settings(),
            &new_session("main").into(),
            Privacy::Open,
            || ()
        )
        .is_none()
    );
    assert!(capture(socket.settings(), &say("x").into(), Privacy::Private, || ()).is_none());
    socket.run(new_session("main")).unwrap();
    assert!(socket.has_session(&name("main")).unwrap());
}

#[test]
fn files_are_left_to_the_program() {
    let test = TestServer::new();
    let (_, socket) = both(&test);
    socket.run(new_session("main")).unwrap();
    let file = test.folder().join("saved");
    let save = Command::new("save-buffer")
        .option("-b", "x")
        .arg(file.to_str().unwrap());
    socket
        .run([
            Command::new("set-buffer").option("-b", "x").arg("text"),
            save.clone(),
        ])
        .unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
    // Nested in another command it is refused, with a message.
    let nested = Command::new("if-shell").args(["-F", "1", &save.to_line()]);
    assert!(
        direct(&socket, nested)
            .unwrap_err()
            .to_string()
            .contains("supported")
    );
    assert_eq!(direct(&socket, say("alive")).unwrap(), "alive\n");
}

#[test]
fn a_server_of_another_program_is_left_to_the_program() {
    let test = TestServer::new();
    let (program, _) = both(&test);
    program.run(new_session("main")).unwrap();
    // Equal version but another file than the running one, as after an upgrade or a copy.
    let copy = test.folder().join("tmux");
    std::fs::copy(program.program_path().unwrap(), &copy).unwrap();
    let upgraded = program
        .clone()
        .with_program(&copy)
        .with_version(program.version().unwrap());
    assert!(capture(upgraded.settings(), &say("x").into(), Privacy::Open, || ()).is_none());
    assert_eq!(upgraded.run(say("x")).unwrap(), "x\n");
}

#[test]
fn untested_version_is_left_to_the_program() {
    let test = TestServer::new();
    let (program, _) = both(&test);
    program.run(new_session("main")).unwrap();
    for version in [Version::new(3, 1), Version::new(9, 0), Version::UNRELEASED] {
        let server = program.clone().with_version(version);
        assert!(capture(server.settings(), &say("x").into(), Privacy::Open, || ()).is_none());
    }
}

/// The message header of another version must not harm the server.
#[test]
fn a_wrong_version_does_not_hurt_the_server() {
    let test = TestServer::new();
    let (program, _) = both(&test);
    program.run(new_session("main")).unwrap();
    for version in ["3.3a", "3.8"] {
        let server = program.clone().with_version(version.parse().unwrap());
        // A reading command is retried through the program, so it succeeds.
        assert_eq!(server.run(say("x")).unwrap(), "x\n");
        // Any other command runs at most once.
        let set = Command::new("set-option").args(["-ga", "@count", "1"]);
        let outcome = server.run(set);
        let count = program.run(say("#{@count}")).unwrap();
        let expected = if outcome.is_ok() { "1\n" } else { "\n" };
        assert_eq!(count, expected, "{version}: {outcome:?}");
        program
            .run(Command::new("set-option").args(["-gu", "@count"]))
            .unwrap();
    }
}

#[test]
fn a_command_that_never_ends_is_given_up() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let hasty = socket.with_timeout(Duration::from_millis(50));
    let error = direct(&hasty, Command::new("wait-for").arg("never")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    wait_until("no client is left", TIMEOUT, || {
        program
            .run(Command::new("list-clients"))
            .unwrap()
            .is_empty()
            .then_some(())
    });
}

#[test]
fn the_end_of_the_server_is_an_answer_or_a_loss() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    // The script ends when the test's folder is removed.
    let started = test.folder().join("started");
    let script = format!(
        "touch {0}; while [ -e {0} ]; do sleep 0.02; done",
        started.display()
    );
    let waiting = std::thread::spawn({
        let socket = socket.clone();
        move || direct(&socket, Command::new("run-shell").arg(script))
    });
    wait_until("the server runs the shell", TIMEOUT, || {
        started.exists().then_some(())
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(test.pid().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(
        waiting.join().unwrap().unwrap_err().kind(),
        ErrorKind::ServerLost
    );

    wait_until("no server listens", TIMEOUT, || {
        (!socket.is_running()).then_some(())
    });
    socket.run(new_session("main")).unwrap();
    direct(&socket, Command::new("kill-server")).unwrap();
}

#[test]
fn threads_do_not_get_in_each_others_way() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let socket = socket.clone();
            std::thread::spawn(move || {
                for index in 0..50 {
                    let text = format!("{thread}-{index}");
                    assert_eq!(direct(&socket, say(&text)).unwrap(), format!("{text}\n"));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_stopped_server_is_reported_at_once_on_either_way() {
    use rustix::process::{Pid, Signal, kill_process};
    let test = TestServer::new();
    let (program, socket) = both(&test);
    program.run(new_session("main")).unwrap();
    let pid = test.pid().and_then(|pid| i32::try_from(pid).ok()).unwrap();
    let send = |signal| kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    send(Signal::STOP);
    for server in [&program, &socket] {
        let began = std::time::Instant::now();
        let error = server
            .run(Command::new("list-panes").flag("-a"))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stopped, "{error}");
        assert!(error.to_string().contains(&pid.to_string()), "{error}");
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    send(Signal::CONT);
    assert!(socket.run(say("again")).is_ok());
}

#[test]
fn an_impossible_socket_is_no_server_that_does_not_run() {
    let test = TestServer::new();
    let (program, socket) = both(&test);
    let bad = test.folder().join("no/such/folder/socket");
    for server in [program, socket] {
        let server = server.with_socket(crate::Socket::Path(bad.clone()));
        for command in [Command::new("list-panes").flag("-a"), new_session("main")] {
            let error = server.run(command).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BadSocket, "{error}");
            assert!(error.to_string().contains("there is no folder"), "{error}");
        }
    }
}
