//! Checks on a real server that escaped text comes out unchanged, and that nothing in it runs.

use super::{escape, escape_message, escape_time};
use crate::testing::{TIMEOUT, TestServer, wait_until};
use crate::{Command, Server, SessionName, query};

const TEXTS: &[&str] = &[
    "#{pid}",
    "#[fg=red]x",
    "##[fg=red]x",
    "###[x",
    "#",
    "##",
    "###",
    "#S",
    "#,",
    "#}",
    "%H",
    "%%",
    "100%",
    "#{?a,b,c}",
    "#{",
    "#(",
    "a#",
    "#H%M#[bold]",
    "#{E:x}",
    "#[",
    "x#[#{pid}]",
];

fn start(server: &Server) -> SessionName {
    let main = SessionName::new("main").unwrap();
    server
        .run(
            Command::new("new-session")
                .flag("-d")
                .option("-s", "main")
                .args(["-x", "100", "-y", "10"]),
        )
        .unwrap();
    main
}

fn with_job(test: &TestServer) -> (Vec<String>, std::path::PathBuf) {
    let file = test.folder().join("touched");
    let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    texts.push(format!("#(touch {})", file.display()));
    (texts, file)
}

query! {
    struct WindowName {
        name: String = "#{window_name}",
    }
}

#[test]
fn escaped_text_in_a_command_is_literal() {
    let test = TestServer::new();
    let server = test.server();
    start(server);
    let (texts, file) = with_job(&test);
    for text in &texts {
        server
            .run(Command::new("new-window").option("-n", escape(text)))
            .unwrap();
        let message = server
            .run(
                Command::new("display-message")
                    .flag("-p")
                    .arg(escape_message(text)),
            )
            .unwrap();
        assert_eq!(message.strip_suffix('\n'), Some(text.as_str()));
    }
    let rows: Vec<WindowName> = server.rows(Command::new("list-windows")).unwrap();
    let names: Vec<&str> = rows[1..].iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, texts);
    assert!(!file.exists());
}

#[test]
fn a_session_is_named_literally() {
    let test = TestServer::new();
    let server = test.server();
    let (texts, file) = with_job(&test);
    for text in texts
        .iter()
        .filter(|text| SessionName::new(text.as_str()).is_ok())
    {
        let name = SessionName::new(text.as_str()).unwrap();
        server
            .run(
                Command::new("new-session")
                    .flag("-d")
                    .option("-s", name.to_format()),
            )
            .unwrap();
        assert!(server.has_session(&name).unwrap(), "{name}");
    }
    assert!(!file.exists());
}

/// Runs a client of the inner server in a pane of the outer one, which captures the drawn text.
#[test]
fn escaped_text_in_a_drawn_format_is_literal() {
    let (inner, outer) = (TestServer::new(), TestServer::new());
    let main = start(inner.server());
    let (texts, file) = with_job(&inner);
    let global =
        |key: &str, value: String| Command::new("set-option").flag("-g").arg(key).arg(value);
    inner
        .server()
        .run([
            global("status-left-length", "100".into()),
            global("status-right", String::new()),
            global("window-status-format", String::new()),
            global("window-status-current-format", String::new()),
        ])
        .unwrap();
    let attach = inner.server().attach_command(&main);
    let words: Vec<String> = std::iter::once(attach.get_program())
        .chain(attach.get_args())
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    let session = Command::new("new-session")
        .flag("-d")
        .option("-s", "main")
        .args(["-x", "100", "-y", "10", "--"]);
    outer.server().run(session.args(words)).unwrap();

    for text in texts.iter().map(String::as_str).chain(["the last"]) {
        let drawn = format!("<{text}>");
        inner
            .server()
            .run(global("status-left", escape_time(&drawn)))
            .unwrap();
        wait_until(&format!("the status line shows {drawn}"), TIMEOUT, || {
            let screen = outer
                .server()
                .run(Command::new("capture-pane").flag("-p").target(&main))
                .unwrap();
            screen
                .lines()
                .last()
                .is_some_and(|line| line.starts_with(&drawn))
                .then_some(())
        });
    }
    assert!(!file.exists());
}
