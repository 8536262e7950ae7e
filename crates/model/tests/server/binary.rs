//! Tests the program around the library.

use crate::client::{Client, TIMEOUT};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn it_says_where_it_listens_and_ends_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut server = Command::new(env!("CARGO_BIN_EXE_gt-fake-model"))
        .args(["--until-eof", "--log"])
        .arg(&log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let port = line
        .trim_end()
        .strip_prefix("listening on http://127.0.0.1:")
        .unwrap_or_else(|| panic!("{line}"));
    assert_eq!(Client::connect(port.parse().unwrap()).get("/").status, 200);
    assert_eq!(gt_model::read_log(&log).unwrap().len(), 1);

    drop(server.stdin.take());
    let began = Instant::now();
    assert!(server.wait().unwrap().success());
    assert!(began.elapsed() < TIMEOUT);
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let taken = gt_model::FakeModel::start(None);
    let port = taken.port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_gt-fake-model"))
        .args(["--port", &port])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("gt-fake-model: "));
}
