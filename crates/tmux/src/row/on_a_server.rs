//! Listings in which every value that an untrusted program can set is hostile.

use std::fs;
use std::path::PathBuf;

use crate::testing::{TIMEOUT, TestServer, wait_until};
use crate::{Command, ErrorKind, PaneId, SessionName};

crate::query! {
    /// Fields that an untrusted program can set, between fields that it cannot.
    struct PaneRow {
        session: String = "#{session_name}",
        title: String = "#{pane_title}",
        path: PathBuf = "#{pane_current_path}",
        note: String = "#{@note}",
        id: PaneId = "#{pane_id}",
        pid: Option<u32> = "#{pane_pid}",
        dead: bool = "#{pane_dead}",
        nothing: Option<String> = "#{@nothing}",
    }
}

const NOTE: &str = "a\nb\tc $HOME \\$x \u{1b}[31m\n%end 1 2 1\n0123456789abcdef01234567 ü";

#[test]
fn hostile_values_come_back_whole() {
    let test = TestServer::new();
    let server = test.server();
    let session = SessionName::new("main").unwrap();
    let folder = test
        .folder()
        .join("new\nline\ttab 0123456789abcdef01234567 ü %end 1 2 1");
    fs::create_dir(&folder).unwrap();
    let start = Command::new("new-session")
        .flag("-d")
        .option("-s", "main")
        .option("-c", crate::format::escape(folder.to_str().unwrap()))
        .arg("printf '\\033]2;ti\\ttle #{pid}\\033\\\\'; exec sleep 1000");
    let note = Command::new("set-option")
        .target(&session)
        .args(["@note", NOTE]);
    let other = Command::new("new-session").flag("-d").option("-s", "other");
    server.run_private([start, note, other]).unwrap();
    let control = server.control(&session).unwrap();

    let list = || Command::new("list-panes").flag("-a");
    wait_until("the title is set and the program runs", TIMEOUT, || {
        let rows: Vec<PaneRow> = server.rows(list()).unwrap();
        (rows[0].title.starts_with("ti") && rows[0].path == folder).then_some(())
    });
    let one_shot: Vec<PaneRow> = server.rows(list()).unwrap();
    let persistent: Vec<PaneRow> = control.rows(list()).unwrap();
    let mut expected = NOTE.to_owned();
    if server.version().unwrap().escapes_output() {
        expected = expected.replace('\u{1b}', "\\033");
    }
    for rows in [one_shot, persistent] {
        assert_eq!(rows.len(), 2);
        let first = &rows[0];
        assert_eq!((first.session.as_str(), &first.note), ("main", &expected));
        assert!(first.title.ends_with("tle #{pid}"), "{:?}", first.title);
        assert_eq!(first.path, folder);
        assert!(first.pid.is_some() && !first.dead);
        assert_eq!(first.nothing, None);
        assert_eq!((rows[1].session.as_str(), rows[1].id), ("other", PaneId(1)));
    }
}

#[test]
fn without_a_server_there_is_an_error_and_not_an_empty_list() {
    let test = TestServer::new();
    let rows = test
        .server()
        .rows::<PaneRow>(Command::new("list-panes").flag("-a"));
    assert_eq!(rows.unwrap_err().kind(), ErrorKind::NoServer);
}

#[test]
fn bytes_that_are_no_text_harm_no_other_field() {
    use std::os::unix::ffi::OsStrExt;
    let test = TestServer::new();
    let folder = test
        .folder()
        .join(std::ffi::OsStr::from_bytes(b"x\xff\xfey"));
    fs::create_dir(&folder).unwrap();
    let script = test.folder().join("go");
    fs::write(&script, b"cd x*; exec sleep 1000\n").unwrap();
    let start = Command::new("new-session").flag("-d").option("-s", "main");
    let folder = test.folder().to_str().unwrap();
    test.server()
        .run(start.option("-c", folder).args(["sh", "go"]))
        .unwrap();
    let row = wait_until("the program is in the folder", TIMEOUT, || {
        let rows: Vec<PaneRow> = test
            .server()
            .rows(Command::new("list-panes").flag("-a"))
            .unwrap();
        rows.into_iter()
            .find(|row| row.path.to_str().unwrap().contains("/x"))
    });
    let ending = match test.server().version().unwrap().escapes_output() {
        true => "/x\\377\\376y",
        false => "/x\u{fffd}\u{fffd}y",
    };
    assert!(
        row.path.to_str().unwrap().ends_with(ending),
        "{:?}",
        row.path
    );
    assert_eq!(row.id, PaneId(0));
}
