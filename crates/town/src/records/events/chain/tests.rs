use crate::base::settings::KrcSettings;
use crate::records::events::{EventQuery, Events};
use crate::records::retention::EventRetention;
use gt_core::event::Event;
use std::path::PathBuf;

struct Log {
    _folder: tempfile::TempDir,
    events: Events,
    path: PathBuf,
    head: PathBuf,
}

fn log(count: usize) -> Log {
    let folder = tempfile::tempdir().unwrap();
    let log = Log {
        events: Events::in_folder(folder.path()),
        path: folder.path().join(".events.jsonl"),
        head: folder.path().join(".runtime/events/head"),
        _folder: folder,
    };
    log.add(count);
    log
}

impl Log {
    fn add(&self, count: usize) {
        for _ in 0..count {
            self.events
                .append(vec![Event::emitted("one", "a")])
                .unwrap();
        }
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.path).unwrap();
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    fn set(&self, lines: &[String]) {
        std::fs::write(&self.path, lines.concat()).unwrap();
    }

    fn broken(&self) -> Option<String> {
        let report = self.events.verify().unwrap();
        report
            .broken
            .map(|it| format!("{}: {}", it.line, it.reason))
    }

    fn prune(&self) {
        let settings = KrcSettings {
            minimum_kept: 2,
            ttl: [("one".to_owned(), crate::base::settings::Length(0))].into(),
            ..KrcSettings::default()
        };
        let root = self.path.parent().unwrap().to_owned();
        EventRetention::new(root, settings).prune(false).unwrap();
    }
}

#[test]
fn events_of_concurrent_writers_are_one_chain() {
    let log = log(0);
    assert_eq!(log.broken(), None);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| log.add(25));
        }
        for _ in 0..5 {
            assert_eq!(log.broken(), None);
            log.prune();
        }
    });
    assert_eq!(log.broken(), None);
    assert!(log.events.verify().unwrap().head.seq >= 100);
}

#[test]
fn log_of_an_earlier_version_stays_valid() {
    let log = log(0);
    std::fs::write(&log.path, "{\"ts\":\"\",\"type\":\"old\"}\n").unwrap();
    assert_eq!(log.broken(), None);
    log.add(2);
    let report = log.events.verify().unwrap();
    assert_eq!(
        (report.unchained, report.head.seq, report.broken),
        (1, 2, None)
    );
}

#[test]
fn write_that_was_cut_off_or_whose_head_is_old_is_valid() {
    let log = log(3);
    let before = std::fs::read(&log.head).unwrap();
    log.add(1);
    let mut lines = log.lines();
    std::fs::write(&log.head, before).unwrap();
    lines.push("{\"ts\":\"20".to_owned());
    log.set(&lines);
    assert_eq!(log.broken(), None);
    log.add(1);
    assert_eq!(log.broken(), None);
    assert_eq!(log.lines().len(), 5);
}

#[test]
fn events_after_a_break_do_not_hide_it() {
    type Change = fn(&mut Vec<String>);
    let changes: [(Change, &str); 4] = [
        (|it| it.truncate(3), "4: event 4 is missing"),
        (|it| drop(it.remove(1)), "2: event 2 is missing"),
        (|it| it.clear(), "1: events 1 to 4 are missing"),
        (|it| it.push("{}\n".into()), "5: the line has no hash"),
    ];
    for (change, expected) in changes {
        let log = log(4);
        let mut lines = log.lines();
        change(&mut lines);
        log.set(&lines);
        log.add(4);
        assert_eq!(log.broken().as_deref(), Some(expected));
        // A prune records it.
        log.prune();
        let found = log.broken().unwrap();
        assert!(
            found.contains("a prune has found a break at line "),
            "{found}"
        );
        let accepted = log
            .events
            .accept_break(Event::emitted("events_accepted", "ann"));
        assert!(accepted.unwrap().is_some());
        assert_eq!(log.broken(), None);
        log.add(1);
        log.prune();
        assert_eq!(log.broken(), None);
    }
}

#[test]
fn missing_head_is_a_break_until_it_is_accepted() {
    for text in [None, Some("")] {
        let log = log(2);
        match text {
            Some(text) => std::fs::write(&log.head, text).unwrap(),
            None => std::fs::remove_file(&log.head).unwrap(),
        }
        log.add(1);
        log.prune();
        assert!(
            log.broken()
                .unwrap()
                .contains("the file with the last hash is ")
        );
        let accept = || {
            log.events
                .accept_break(Event::emitted("events_accepted", "ann"))
        };
        assert!(accept().unwrap().is_some());
        assert_eq!((log.broken(), accept().unwrap()), (None, None));
    }
}

#[test]
fn pruned_log_is_valid_and_its_changes_are_found() {
    let log = log(9);
    log.prune();
    log.add(1);
    assert_eq!(log.broken(), None);
    let found = log.events.find(&EventQuery::default()).unwrap();
    let kinds: Vec<&str> = found.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["one", "one", "krc_prune", "one"]);
    let mut lines = log.lines();
    lines.remove(0);
    log.set(&lines);
    let expected = "2: the lines before it are not those that a prune has kept";
    assert_eq!(log.broken().as_deref(), Some(expected));
}

/// Prints the cost of an append: `cargo nextest run --run-ignored all --no-capture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_an_append() {
    let log = log(1);
    for _ in 0..5 {
        let begun = std::time::Instant::now();
        log.add(2_000);
        eprintln!("{:?} per event", begun.elapsed() / 2_000);
    }
}
