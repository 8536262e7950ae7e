mod rows;
mod slugs;

use super::*;
use crate::base::time;
use gt_core::record::{Outcome, SessionStatus};

struct TestJournal {
    folder: tempfile::TempDir,
    journal: Journal,
}

impl TestJournal {
    fn with(lines: &[Record]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::in_folder(folder.path());
        journal.append(lines).unwrap();
        TestJournal { folder, journal }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("index.db")
    }

    fn open(&self) -> Index {
        let sources = Sources {
            journal: &self.journal,
            archive: &Archive::in_folder(self.folder.path()),
        };
        Index::open(&IndexFile::at(&self.database(), false), sources).unwrap()
    }

    fn sessions(&self) -> Vec<(String, Option<Outcome>)> {
        let index = self.open();
        let mut query = index.db().prepare("SELECT id FROM lives").unwrap();
        let ids = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        ids.map(|id| {
            let session = by_id(index.db(), &id.unwrap()).unwrap().unwrap();
            (session.id, session.outcome)
        })
        .collect()
    }
}

fn begin(id: &str) -> Record {
    Record {
        agent: Some("gastown/crew/max".into()),
        started_at: Some(format!("2026-01-17T01:00:0{}.000Z", id.len())),
        status: Some(SessionStatus::Running),
        ..Record::about(id)
    }
}

fn end(id: &str) -> Record {
    Record {
        outcome: Some(Outcome::Killed),
        ..Record::about(id)
    }
}

#[test]
fn it_reads_on_by_itself() {
    let place = TestJournal::with(&[begin("a"), begin("bb")]);
    assert_eq!(place.sessions(), [("a".into(), None), ("bb".into(), None)]);
    place.journal.append(&[end("a"), begin("ccc")]).unwrap();
    let killed = Some(Outcome::Killed);
    let all = [
        ("a".into(), killed),
        ("bb".into(), None),
        ("ccc".into(), None),
    ];
    assert_eq!(place.sessions(), all);
}

#[test]
fn damaged_or_missing_index_is_rebuilt() {
    let place = TestJournal::with(&[begin("a"), end("a")]);
    let expected = place.sessions();
    let db = place.database();
    let damage: [&dyn Fn(); 4] = [
        &|| {
            std::fs::write(
                &db,
                "this is no database, and long enough to be seen as none",
            )
            .unwrap();
        },
        &|| std::fs::write(&db, "").unwrap(),
        &|| rebuild::remove_database(&db).unwrap(),
        &|| {
            let other = Connection::open(&db).unwrap();
            other.pragma_update(None, "user_version", 99).unwrap();
        },
    ];
    for damage in damage {
        rebuild::remove_database(&db).unwrap();
        place.sessions();
        damage();
        assert_eq!(place.sessions(), expected);
        let mended = Connection::open(&db).unwrap();
        let mode = mended.pragma_query_value(None, "journal_mode", |row| row.get(0));
        assert_eq!(mode, Ok("wal".to_owned()));
    }
}

#[test]
fn another_journal_is_read_from_its_beginning() {
    let place = TestJournal::with(&[begin("a"), begin("bb")]);
    place.sessions();
    std::fs::remove_file(place.journal.path()).unwrap();
    place.journal.append(&[begin("ccc")]).unwrap();
    assert_eq!(place.sessions(), [("ccc".into(), None)]);
    place
        .journal
        .append(&[begin("dddd"), begin("eeeee")])
        .unwrap();
    assert_eq!(place.sessions().len(), 3);
}

#[test]
fn times_are_read_as_they_are_written() {
    for seconds in [
        0,
        951_782_399,
        951_782_400,
        1_709_164_800,
        1_768_611_601,
        4_107_542_399,
    ] {
        let time = time::timestamp(seconds);
        assert_eq!(own_milliseconds(&time), Some(seconds * 1_000), "{time}");
    }
    assert_eq!(
        milliseconds("2026-01-17T02:00:00.5+01:00"),
        Some(1_768_611_600_500)
    );
    for text in [
        "2026-01-17T01:00:00.0000",
        "2026-13-17T01:00:00.000Z",
        "2026-01-17 01:00:00.000Z",
        "x",
    ] {
        assert_eq!(own_milliseconds(text), None, "{text}");
    }
}

#[test]
fn index_that_never_reached_the_disk_is_rebuilt_after_a_power_failure() {
    let place = TestJournal::with(&[begin("a")]);
    let expected = place.sessions();
    let boot = |index: &Index| -> Option<String> {
        let boot = "SELECT boot FROM read_so_far";
        index.db().query_row(boot, [], |row| row.get(0)).unwrap()
    };
    let index = place.open();
    let this = boot(&index);
    let change = "UPDATE lives SET outcome = 'done'; UPDATE read_so_far SET boot = 'another'";
    index.db().execute_batch(change).unwrap();
    drop(index);
    assert_eq!(place.sessions(), expected);
    assert_eq!(boot(&place.open()), this);
}

#[test]
fn a_journal_that_was_cut_and_went_on_is_another() {
    let place = TestJournal::with(&[begin("a"), begin("bb")]);
    place.sessions();
    let text = std::fs::read(place.journal.path()).unwrap();
    std::fs::write(place.journal.path(), &text[..text.len() - 20]).unwrap();
    place
        .journal
        .append(&[begin("ccc"), begin("dddd"), begin("eeeee")])
        .unwrap();
    let ids: Vec<String> = place.sessions().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["a", "ccc", "dddd", "eeeee"]);
}

#[test]
fn file_that_is_no_database_of_gt_is_refused() {
    let place = TestJournal::with(&[begin("a")]);
    let sources = Sources {
        journal: &place.journal,
        archive: &Archive::in_folder(place.folder.path()),
    };
    let file = place.folder.path().join("mine");
    let given = IndexFile::at(&file, true);
    std::fs::write(&file, "my notes").unwrap();
    assert!(Index::open(&given, sources).is_err());
    assert!(Index::rebuild(&given, sources).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "my notes");
    std::fs::remove_file(&file).unwrap();
    let theirs = Connection::open(&file).unwrap();
    theirs.execute_batch("CREATE TABLE mine (a)").unwrap();
    drop(theirs);
    assert!(Index::open(&given, sources).is_err());
    std::fs::remove_file(&file).unwrap();
    assert!(Index::open(&given, sources).is_ok(), "a new one is made");
    assert!(Index::open(&given, sources).is_ok(), "and known again");
}
