//! A damaged index answers correctly without a wait, and is repaired afterwards.

use super::*;
use crate::base::clock::Clock;
use rusqlite::Connection;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Much less than the timeout of the lock.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Checkpoints the log into the database file, so that queries read the file.
fn settle(place: &Place) {
    let db = Connection::open(place.database()).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
}

fn root_page(place: &Place, table: &str) -> (u64, u64) {
    let db = Connection::open(place.database()).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u64 = db.query_row(root, [table], |row| row.get(0)).unwrap();
    let size: u64 = db
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .unwrap();
    ((root - 1) * size, size)
}

fn overwrite(place: &Place, (at, length): (u64, u64)) {
    let file = std::fs::File::options()
        .write(true)
        .open(place.database())
        .unwrap();
    let noise: Vec<u8> = (0..length).map(|n| (n * 7 + 3) as u8).collect();
    file.write_all_at(&noise, at).unwrap();
}

/// Returns an index as a rebuild leaves it, without an open connection.
fn rebuilt(sessions: usize) -> Place {
    let place = Place::with(sessions);
    place.sessions.rebuild().unwrap();
    settle(&place);
    place
}

fn is_whole(place: &Place) {
    let db = Connection::open(place.database()).unwrap();
    let check: String = db
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    assert_eq!(place.sessions.index_disagreement().unwrap(), None);
}

#[test]
fn overwritten_root_pages_are_repaired_at_once() {
    for table in ["records", "lives", "sessions", "read_so_far", "by_time"] {
        let place = rebuilt(300);
        overwrite(&place, root_page(&place, table));
        let began = Instant::now();
        assert_eq!(place.listed(), ids(300), "{table}");
        assert!(began.elapsed() < AT_ONCE, "{table}");
        if table != "sessions" {
            is_whole(&place);
        }
    }
}

#[test]
fn repair_keeps_no_lock_that_a_writer_waits_for() {
    let place = rebuilt(300);
    overwrite(&place, root_page(&place, "records"));
    let began = Instant::now();
    // This runs under the lock of the journal.
    let line = Sessions::ending(id(1), SessionEnd::of(Outcome::Killed), &Clock::default());
    let written = place
        .sessions
        .record_where(vec![((), line)], |(), known| known.is_some())
        .unwrap();
    assert_eq!(written.len(), 1);
    assert!(began.elapsed() < AT_ONCE);
    is_whole(&place);
}

#[test]
fn damage_found_while_catching_up_is_repaired() {
    for table in [
        "lives",
        "records",
        "sqlite_autoindex_lives_1",
        "by_agent",
        "sessions",
    ] {
        let place = rebuilt(300);
        overwrite(&place, root_page(&place, table));
        place.begin(300..303);
        assert_eq!(place.listed(), ids(303), "{table}");
        is_whole(&place);
    }
}

#[test]
fn export_of_a_damaged_index_gives_each_session_once() {
    let place = rebuilt(300);
    // A leaf in the middle of the records: the first records are readable.
    let (_, size) = root_page(&place, "records");
    let db = Connection::open(place.database()).unwrap();
    let length = place.database().metadata().unwrap().len();
    drop(db);
    overwrite(&place, (length / 2 / size * size, size));
    let mut given = Vec::new();
    place
        .sessions
        .for_each(|session| {
            given.push(session.id.clone());
            Ok(())
        })
        .unwrap();
    given.sort();
    assert_eq!(given, ids(300));
}

#[test]
fn archiving_repairs_a_damaged_index() {
    let place = rebuilt(300);
    let lines: Vec<Record> = (0..100)
        .map(|number| {
            let end = SessionEnd {
                at: Some(1_768_700_000),
                ..SessionEnd::of(Outcome::Killed)
            };
            Sessions::ending(id(number), end, &Clock::default())
        })
        .collect();
    place.sessions.journal.append(&lines).unwrap();
    place.listed();
    settle(&place);
    overwrite(&place, root_page(&place, "records"));
    let archived = place
        .sessions
        .archive(&Clock::default().text(), false)
        .unwrap();
    assert_eq!(archived.sessions, 100);
    assert_eq!(place.listed(), ids(300)[100..]);
    is_whole(&place);
}

#[test]
fn several_that_find_it_damaged_all_get_an_answer() {
    let place = rebuilt(300);
    overwrite(&place, root_page(&place, "records"));
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6).map(|_| scope.spawn(|| place.listed())).collect();
        for asked in asking {
            assert_eq!(asked.join().unwrap(), ids(300));
        }
    });
    is_whole(&place);
}

#[test]
fn index_that_lost_rows_without_an_error_is_found_by_a_comparison() {
    type Lose = (&'static str, &'static str);
    let losses: [Lose; 3] = [
        ("DELETE FROM records WHERE life > 5", "have no record"),
        (
            "DELETE FROM records WHERE life > 5; DELETE FROM lives WHERE rowid > 5",
            "15 are missing",
        ),
        (
            "UPDATE lives SET id = 'x' WHERE rowid = 3",
            "1 are missing, 1 are not in the journal",
        ),
    ];
    for (loss, expected) in losses {
        let place = rebuilt(20);
        let db = Connection::open(place.database()).unwrap();
        db.execute_batch(loss).unwrap();
        drop(db);
        let reason = place.sessions.compare_index().unwrap().unwrap();
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(place.listed(), ids(20));
        assert_eq!(place.sessions.compare_index().unwrap(), None);
    }
}

#[test]
fn session_without_its_record_is_noticed_by_the_query() {
    for loss in [
        "DELETE FROM records WHERE life > 5",
        "UPDATE records SET record = '{}' WHERE life = 7",
        "UPDATE records SET record = (SELECT record FROM records WHERE life = 1) WHERE life = 7",
    ] {
        let place = rebuilt(20);
        let db = Connection::open(place.database()).unwrap();
        db.execute_batch(loss).unwrap();
        drop(db);
        let known = place
            .sessions
            .find_known([id(6).as_str()].into_iter())
            .unwrap();
        assert!(known.contains_key(&id(6)), "{loss}");
        assert_eq!(place.listed(), ids(20), "{loss}");
        is_whole(&place);
    }
}

#[test]
fn index_that_lost_entries_is_found_by_comparing_tables() {
    let place = rebuilt(20);
    let db = Connection::open(place.database()).unwrap();
    // The index is created again with fewer entries, as if entries were lost.
    db.execute_batch(
        "DROP INDEX by_time; CREATE INDEX by_time ON lives (started) WHERE started > 1768611605000;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE INDEX by_time ON lives (started)'
         WHERE name = 'by_time'",
    )
    .unwrap();
    drop(db);
    assert_eq!(place.listed().len(), 14, "the query does not notice");
    let reason = place.sessions.compare_tables().unwrap().unwrap();
    assert!(reason.contains("14 of them in by_time"), "{reason}");
    assert_eq!(place.listed(), ids(20));
    assert_eq!(place.sessions.compare_tables().unwrap(), None);
}

#[test]
fn pages_damaged_at_random_are_repaired() {
    // A random generator with a fixed seed: each run damages the same places.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for round in 0..40 {
        let place = rebuilt(120);
        let length = place.database().metadata().unwrap().len();
        for _ in 0..=random(3) {
            let at = random(length);
            overwrite(&place, (at, (1 + random(2000)).min(length - at)));
        }
        place.begin(120..121);
        let began = Instant::now();
        place.sessions.compare_index().unwrap();
        assert_eq!(place.listed(), ids(121), "round {round}");
        assert!(began.elapsed() < AT_ONCE, "round {round}");
    }
}
