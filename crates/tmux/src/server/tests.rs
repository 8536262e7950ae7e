//! Tests of one-shot commands against a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::testing::{TIMEOUT, TestServer, wait_until};
use crate::{Batch, Command, ErrorKind, Server, SessionName, Socket};

fn name(text: &str) -> SessionName {
    SessionName::new(text).unwrap()
}

fn new_session(session: &str) -> Command {
    Command::new("new-session")
        .flag("-d")
        .option("-s", name(session).to_format())
}

fn say(text: &str) -> Command {
    Command::new("display-message").flag("-p").arg(text)
}

/// Starts a server with one session, `main`.
fn started() -> TestServer {
    let test = TestServer::new();
    test.server().run(new_session("main")).unwrap();
    test
}

/// Creates a tmux wrapper that records its argument vector in a file. Returns both paths.
fn recording_program(test: &TestServer) -> (PathBuf, PathBuf) {
    let (program, record) = (test.folder().join("tmux"), test.folder().join("argv"));
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >>{}\nps -o pid=,pgid= -p $$ >{}.group\nexec {} \"$@\"\n",
        record.display(),
        record.display(),
        test.server().program().display(),
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    (program, record)
}

#[test]
fn gives_what_tmux_prints() {
    let test = started();
    assert_eq!(test.server().run(say("a  b")).unwrap(), "a  b\n");
    assert_eq!(test.server().run([say("a"), say("b;")]).unwrap(), "a\nb;\n");
    assert_eq!(test.server().run(Batch::new()).unwrap(), "");
}

#[test]
fn text_that_is_not_ascii_passes_whatever_the_locale() {
    let test = started();
    let server = test.server().clone().with_env([
        ("PATH", std::env::var("PATH").unwrap()),
        ("LANG", "C".into()),
    ]);
    assert_eq!(server.run(say("ü→🦀")).unwrap(), "ü→🦀\n");
}

#[test]
fn errors_have_a_kind_and_tell_all() {
    let test = TestServer::new();
    let server = test.server();
    let list = || Command::new("list-panes").flag("-a");
    assert_eq!(server.run(list()).unwrap_err().kind(), ErrorKind::NoServer);
    assert!(!server.is_running());
    server.run(new_session("main")).unwrap();
    assert!(server.is_running());

    let error = server.run(new_session("main")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    assert_eq!(error.exit_code(), Some(1));
    assert_eq!(
        error.to_string(),
        "`tmux new-session -d -s main` failed (exit 1): duplicate session: main"
    );

    let missing = |command: Command| server.run(command).unwrap_err().kind();
    assert_eq!(
        missing(Command::new("send-keys").target(crate::PaneId(99))),
        ErrorKind::NoSuchPane
    );
    assert_eq!(
        missing(Command::new("kill-window").target(crate::WindowId(99))),
        ErrorKind::NoSuchWindow
    );
    assert_eq!(
        missing(Command::new("kill-session").target(name("gone"))),
        ErrorKind::NoSuchSession
    );
    assert_eq!(
        missing(
            Command::new("set-option")
                .target(name("gone"))
                .args(["@a", "b"])
        ),
        ErrorKind::NoSuchSession
    );
    assert_eq!(
        missing(Command::new("detach-client").option("-t", "gone")),
        ErrorKind::NoSuchClient
    );
    assert_eq!(
        missing(Command::new("switch-client").target(name("main"))),
        ErrorKind::NoSuchClient
    );
    assert_eq!(missing(Command::new("no-such-command")), ErrorKind::Other);
    assert_eq!(missing(say("a\0b")), ErrorKind::Other);

    server.run(Command::new("kill-server")).unwrap();
    wait_until("the server is gone", TIMEOUT, || {
        (server.run(list()).unwrap_err().kind() == ErrorKind::NoServer).then_some(())
    });
}

#[test]
fn a_missing_program_is_not_a_missing_server() {
    let server = Server::new(Socket::Default).with_program("/nonexistent/tmux");
    assert_eq!(
        server.run(say("a")).unwrap_err().kind(),
        ErrorKind::NotInstalled
    );
    assert_eq!(
        server.version().unwrap_err().kind(),
        ErrorKind::NotInstalled
    );
}

#[test]
fn a_server_that_ends_in_the_middle_is_lost() {
    let test = started();
    let server = test.server().clone();
    let waiting = thread::spawn(move || server.run(Command::new("wait-for").arg("never")));
    wait_until("the other client waits", TIMEOUT, || {
        let clients = test.server().run(Command::new("list-clients")).is_ok();
        clients.then_some(())
    });
    let pid = test.pid().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let kind = waiting.join().unwrap().unwrap_err().kind();
    // The client may not have connected yet.
    assert!(
        matches!(kind, ErrorKind::ServerLost | ErrorKind::NoServer),
        "{kind:?}"
    );
}

#[test]
fn a_command_that_never_ends_is_given_up() {
    let test = started();
    let server = test
        .server()
        .clone()
        .with_timeout(Duration::from_millis(60));
    let error = server
        .run(Command::new("wait-for").arg("never"))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(test.server().run(say("still there")).is_ok());
    let late = test.server().clone().with_deadline(Instant::now());
    let began = Instant::now();
    let error = late.run(Command::new("wait-for").arg("never")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "not the usual time"
    );
}

#[test]
fn outputs_of_commands_are_separated() {
    let test = started();
    let outputs = test
        .server()
        .run_each([say("a\nb"), new_session("other"), say(""), say("c")])
        .unwrap();
    assert_eq!(outputs, ["a\nb\n", "", "\n", "c\n"]);
    assert_eq!(
        test.server().run_each(Batch::new()).unwrap(),
        Vec::<String>::new()
    );
    let error = test
        .server()
        .run_each([say("a"), Command::new("kill-session").target(name("gone"))]);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NoSuchSession);
}

#[test]
fn outputs_before_the_server_ends_are_separated() {
    let test = started();
    let outputs = test
        .server()
        .run_each([say("a"), Command::new("kill-session").target(name("main"))]);
    assert_eq!(outputs.unwrap(), ["a\n", ""]);
}

#[test]
fn private_commands_show_nowhere() {
    let test = TestServer::new();
    let (program, record) = recording_program(&test);
    let server = test.server().clone().with_program(program);
    let seen = test.folder().join("seen");
    let pane = format!("printf %s \"$TOKEN\" >{}; exec sleep 1000", seen.display());
    let session = new_session("main")
        .option("-e", "TOKEN=s3cret $HOME;")
        .arg(pane);
    let shown = server.run_private([session, say("done")]).unwrap();
    assert_eq!(shown, "done\n");
    assert!(!fs::read_to_string(&record).unwrap().contains("s3cret"));
    wait_until("the pane has seen its environment", TIMEOUT, || {
        fs::read_to_string(&seen)
            .is_ok_and(|text| text == "s3cret $HOME;")
            .then_some(())
    });

    let duplicate = new_session("main").option("-e", "TOKEN=s3cret");
    let error = server.run_private(duplicate).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Duplicate);
    assert_eq!(
        error.to_string(),
        "`tmux new-session` failed (exit 1): duplicate session: main"
    );
    let unknown = server
        .run_private(Command::new("no-such-command").arg("s3cret"))
        .unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("unknown command: no-such-command"),
        "{unknown}"
    );
    assert!(!format!("{unknown:?}").contains("s3cret"));
}

#[test]
fn clients_have_a_process_group_of_their_own() {
    let test = TestServer::new();
    let (program, record) = recording_program(&test);
    test.server()
        .clone()
        .with_program(program)
        .run(new_session("main"))
        .unwrap();
    let line = fs::read_to_string(record.with_extension("group")).unwrap();
    let ids: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn long_commands_take_another_way() {
    let test = started();
    let text = "0123456789".repeat(30_000);
    let set = || Command::new("set-buffer").option("-b", "long").arg(&text);
    let show = || Command::new("show-buffer").option("-b", "long");
    assert_eq!(test.server().run([set(), show()]).unwrap(), text);
    assert_eq!(test.server().run_private([set(), show()]).unwrap(), text);
    let outputs = test.server().run_each([set(), say("after")]).unwrap();
    assert_eq!(outputs, ["", "after\n"]);

    let quiet = TestServer::new();
    let error = quiet.server().run(set()).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::NoServer,
        "a long command starts no server either"
    );
    quiet.server().run([new_session("main"), set()]).unwrap();
}

#[test]
fn a_failure_ends_its_line_only() {
    let test = started();
    let fails = || Command::new("kill-session").target(name("gone"));
    let mark = |key: &str| Command::new("set-option").flag("-g").args([key, "1"]);
    let batch = Batch::from([mark("@a"), fails(), mark("@b")])
        .then_line()
        .then(mark("@c"));
    assert_eq!(
        test.server().run(&batch).unwrap_err().kind(),
        ErrorKind::NoSuchSession
    );
    let set = test.server().run(say("#{@a},#{@b},#{@c}")).unwrap();
    assert_eq!(set, "1,,1\n");
}

#[test]
fn one_batch_leaves_no_gap_for_a_command_that_ends_at_once() {
    let test = TestServer::new();
    for index in 0..10 {
        let session = format!("s{index}");
        let remain = Command::new("set-option")
            .target(name(&session))
            .args(["remain-on-exit", "on"]);
        test.server()
            .run([new_session(&session).arg("true"), remain])
            .unwrap();
        assert!(test.server().has_session(&name(&session)).unwrap());
    }
}

#[test]
fn dropped_variables_do_not_reach_a_new_server() {
    let test = TestServer::new();
    let path = std::env::var("PATH").unwrap();
    let variables = [
        ("PATH", path.as_str()),
        ("TMUX", "/x,1,0"),
        ("TMUX_PANE", "%0"),
        ("SECRET", "x"),
        ("KEPT", "y"),
    ];
    let server = test
        .server()
        .clone()
        .with_env(variables)
        .without_env(|name| name == "SECRET");
    server.run(new_session("main")).unwrap();
    let environment = server
        .run(Command::new("show-environment").flag("-g"))
        .unwrap();
    assert!(environment.contains("KEPT=y"));
    assert!(!environment.contains("SECRET"));
    assert!(!environment.contains("TMUX"), "{environment}");
}

#[test]
fn a_name_is_found_where_tmux_puts_it() {
    let test = TestServer::new();
    let server = Server::new(Socket::Name("named".into()))
        .with_program(test.server().program())
        .with_tmpdir(test.folder())
        .with_config("/dev/null");
    server.run(new_session("main")).unwrap();
    let shown = server.run(say("#{socket_path}")).unwrap();
    assert_eq!(shown.trim_end(), server.socket_path().to_str().unwrap());
    server.run(Command::new("kill-server")).unwrap();
}

#[test]
fn has_session_is_exact_and_needs_no_server() {
    let test = TestServer::new();
    assert!(!test.server().has_session(&name("foo")).unwrap());
    test.server().run(new_session("foo-2")).unwrap();
    assert!(!test.server().has_session(&name("foo")).unwrap());
    assert!(test.server().has_session(&name("foo-2")).unwrap());
}

#[test]
fn the_version_is_new_enough() {
    let version = TestServer::new().server().version().unwrap();
    version.check_minimum().unwrap();
}

#[test]
fn an_attach_is_left_to_the_caller() {
    let server = Server::new(Socket::Path("/x/y".into())).with_config("/dev/null");
    let attach = server.attach_command(name("foo"));
    let arguments: Vec<_> = attach.get_args().collect();
    assert_eq!(
        arguments,
        [
            "-u",
            "-S",
            "/x/y",
            "-f",
            "/dev/null",
            "attach-session",
            "-E",
            "-t",
            "=foo"
        ]
    );
}
