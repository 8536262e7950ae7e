//! Tests of following a log that is written to and pruned meanwhile.

use super::{Follow, StreamServer, socket_in};
use crate::Cancel;
use crate::base::settings::{KrcSettings, Length};
use crate::records::events::{EventQuery, Events};
use crate::records::retention::EventRetention;
use gt_core::ProblemKind;
use gt_core::event::Event;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A server that runs in a thread.
struct Running {
    cancel: Cancel,
    thread: Option<JoinHandle<crate::Result<()>>>,
}

impl Running {
    fn start(root: &Path) -> Self {
        let server = StreamServer::bind_in(root).unwrap();
        let cancel = Cancel::default();
        let told = cancel.clone();
        let thread = Some(std::thread::spawn(move || server.run(&told)));
        Running { cancel, thread }
    }

    fn stop(&mut self) {
        self.cancel.flag().store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.flag().store(true, Ordering::Relaxed);
    }
}

fn write(root: &Path, numbers: std::ops::Range<u64>) {
    let events = numbers.map(|n| Event::emitted("count", "a").with("n", n));
    Events::in_folder(root).append(events.collect()).unwrap();
}

/// Adds events that a prune can drop, and prunes.
fn prune(root: &Path) {
    let old = vec![Event::emitted("junk", "a"); 3];
    Events::in_folder(root).append(old).unwrap();
    let settings = KrcSettings {
        minimum_kept: 0,
        ttl: [("junk".to_owned(), Length(0))].into(),
        ..KrcSettings::default()
    };
    let retention = EventRetention::new(root.to_owned(), settings);
    assert!(retention.prune(false).unwrap().files[0].removed >= 3);
}

fn begin(root: &Path) -> Follow {
    let query = EventQuery {
        kinds: vec!["count".into()],
        limit: Some(2),
        ..EventQuery::default()
    };
    Follow::begin_in(root, query, &mut |_| Ok(())).unwrap()
}

fn number(event: &Event) -> u64 {
    event.payload["n"].as_u64().unwrap()
}

/// Returns the numbers that arrive, up to `last`.
fn until(follow: &mut Follow, last: u64) -> Vec<u64> {
    let began = Instant::now();
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        assert!(began.elapsed() < TIMEOUT, "{seen:?}");
        let found = follow.next(Duration::from_millis(100)).unwrap();
        seen.extend(found.iter().map(number));
    }
    seen
}

fn all(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn the_file_is_followed_across_prunes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, 0..5);
    let query = EventQuery {
        limit: Some(2),
        ..EventQuery::default()
    };
    let mut before = Vec::new();
    let mut give = |event: Event| {
        before.push(number(&event));
        Ok(())
    };
    let any = EventQuery::default();
    Follow::begin_in(root, query, &mut give).unwrap();
    Follow::begin_in(root, any, &mut give).unwrap();
    assert_eq!(before, [3, 4, 0, 1, 2, 3, 4]);
    let mut follow = begin(root);
    assert!(!follow.is_from_server());
    write(root, 5..7);
    assert_eq!(until(&mut follow, 6), [5, 6]);
    // Events before and after the prune, none of which was read in between.
    write(root, 7..9);
    prune(root);
    write(root, 9..11);
    prune(root);
    write(root, 11..12);
    assert_eq!(until(&mut follow, 11), all(7..12));
}

#[test]
fn a_file_that_is_not_there_yet_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let mut follow = begin(folder.path());
    write(folder.path(), 0..3);
    assert_eq!(until(&mut follow, 2), [0, 1, 2]);
}

#[test]
fn server_streams_events_and_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, 0..2);
    let _server = Running::start(root);
    let mode = socket_in(root).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stream = UnixStream::connect(socket_in(root)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next =
        || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["kind"], "hello");
    write(root, 2..3);
    let told = next();
    assert_eq!(
        (&told["kind"], &told["event"]["payload"]["n"]),
        (&"event".into(), &2.into())
    );
    assert!(told["cursor"].is_string());
    std::fs::write(root.join(".sessions/index.jsonl"), "{\"id\":\"a\"}\n").unwrap();
    let told = next();
    assert_eq!(
        (&told["kind"], &told["session"]["id"]),
        (&"session".into(), &"a".into())
    );
}

#[test]
fn a_listener_outlives_prunes_and_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, 0..2);
    let mut server = Running::start(root);
    let mut follow = begin(root);
    assert!(follow.is_from_server());
    write(root, 2..4);
    prune(root);
    write(root, 4..6);
    assert_eq!(until(&mut follow, 5), all(2..6));
    server.stop();
    assert!(!socket_in(root).exists(), "it is removed at the end");
    write(root, 6..8);
    prune(root);
    write(root, 8..9);
    assert_eq!(until(&mut follow, 8), all(6..9));
    assert!(!follow.is_from_server());
}

#[test]
fn there_is_one_server_and_a_dead_one_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join(".runtime")).unwrap();
    // A killed server leaves a socket that no process listens on.
    drop(std::os::unix::net::UnixListener::bind(socket_in(root)).unwrap());
    assert!(!begin(root).is_from_server());
    let _server = Running::start(root);
    assert!(begin(root).is_from_server());
    let problem = StreamServer::bind_in(root).unwrap_err();
    assert_eq!(problem.kind(), ProblemKind::Conflict);
    assert!(begin(root).is_from_server(), "the first one still listens");
}

#[test]
fn slow_reader_does_not_block_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let _server = Running::start(root);
    let mut slow = UnixStream::connect(socket_in(root)).unwrap();
    let mut follow = begin(root);
    assert!(follow.is_from_server());
    let large = "x".repeat(10_000);
    let mut seen = 0;
    for n in 0..40 {
        let event = Event::emitted("count", "a")
            .with("n", n)
            .with("text", large.as_str());
        let ten = vec![event; 10];
        Events::in_folder(root).append(ten).unwrap();
        let began = Instant::now();
        while seen < 10 * (n + 1) {
            assert!(began.elapsed() < TIMEOUT, "{seen} after {n}");
            seen += follow.next(Duration::from_millis(100)).unwrap().len();
        }
    }
    assert!(follow.is_from_server());
    slow.set_read_timeout(Some(TIMEOUT)).unwrap();
    // It was disconnected: the bytes in the kernel's buffer still arrive, and then the end.
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.len() < 4_000_000, "{}", rest.len());
}
