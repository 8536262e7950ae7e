//! Every session of the journal gets both of its rows, whatever row number SQLite assigns.

use super::*;

fn ids(place: &TestJournal) -> Vec<String> {
    place.sessions().into_iter().map(|(id, _)| id).collect()
}

#[test]
fn session_read_again_after_a_rollback_is_listed() {
    let place = TestJournal::with(&[begin("a")]);
    let index = place.open();
    // A catch-up that finds the disk full leaves the connection like this: it is kept, and its last
    // row number is that of a row that was rolled back.
    index
        .db()
        .execute_batch("BEGIN; INSERT INTO lives (id) VALUES ('bb'); ROLLBACK")
        .unwrap();
    drop(index);
    place.journal.append(&[begin("bb")]).unwrap();
    assert_eq!(ids(&place), ["a", "bb"]);
}

#[test]
fn session_that_gets_the_number_of_a_deleted_row_is_listed() {
    let place = TestJournal::with(&[]);
    place.journal.append(&[begin("a")]).unwrap();
    drop(place.open());
    place.journal.append(&[begin("bb")]).unwrap();
    drop(place.open());
    let other = Connection::open(place.database()).unwrap();
    let delete = "DELETE FROM records WHERE life = (SELECT rowid FROM lives WHERE id = 'bb');
        DELETE FROM lives WHERE id = 'bb'";
    other.execute_batch(delete).unwrap();
    drop(other);
    place.journal.append(&[begin("ccc")]).unwrap();
    assert_eq!(ids(&place), ["a", "ccc"]);
}

#[test]
fn first_session_after_a_torn_first_line_is_listed() {
    let place = TestJournal::with(&[]);
    std::fs::write(place.journal.path(), "{\"id\":\"tor").unwrap();
    assert_eq!(ids(&place), [] as [&str; 0]);
    place.journal.append(&[begin("a")]).unwrap();
    assert_eq!(ids(&place), ["a"]);
}

#[test]
fn a_torn_last_line_makes_no_reader_write() {
    let place = TestJournal::with(&[begin("a")]);
    drop(place.open());
    let mut text = std::fs::read(place.journal.path()).unwrap();
    text.extend(b"{\"id\":\"tor");
    std::fs::write(place.journal.path(), text).unwrap();
    let other = Connection::open(place.database()).unwrap();
    let version = || -> i64 {
        let version = other.pragma_query_value(None, "data_version", |row| row.get(0));
        version.unwrap()
    };
    let before = version();
    drop(place.open());
    assert_eq!(version(), before);
}

#[test]
fn session_without_a_record_causes_a_rebuild() {
    let place = TestJournal::with(&[begin("a"), begin("bb")]);
    let index = place.open();
    index.db().execute_batch("DELETE FROM records").unwrap();
    drop(index);
    place.journal.append(&[end("a")]).unwrap();
    let killed = Some(Outcome::Killed);
    assert_eq!(
        place.sessions(),
        [("a".into(), killed), ("bb".into(), None)]
    );
}

#[test]
fn incremental_read_of_a_session_equals_a_full_read() {
    let died = Record {
        lost: Some(true),
        failed_start: Some(true),
        exit_code: Some(1),
        ended_at: Some("2026-01-17T02:00:00.000Z".into()),
        status: Some(SessionStatus::Stopped),
        ..end("a")
    };
    let revived = Record {
        status: Some(SessionStatus::Running),
        ..Record::about("a")
    };
    let place = TestJournal::with(&[begin("a")]);
    drop(place.open());
    place.journal.append(&[died]).unwrap();
    drop(place.open());
    place.journal.append(&[revived]).unwrap();
    let session = || by_id(place.open().db(), "a").unwrap();
    let read_on = session();
    rebuild::remove_database(&place.database()).unwrap();
    assert_eq!(read_on, session());
    assert_eq!(read_on.unwrap().lost, None);
}
