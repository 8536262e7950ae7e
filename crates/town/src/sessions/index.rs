//! The database that is made from the journal: lives are found in it by their fields.
//!
//! It holds nothing of its own. It knows how far it has read, reads on by itself when
//! it is opened, and is made anew when it is missing, damaged, of another version, or
//! of another journal than the one that is there ([`rebuild`]). Where the disk is full
//! a question is answered from memory.

mod broken;
mod portion;
mod position;
mod rebuild;
mod schema;

pub(super) use broken::Broken;

use super::archive::Archive;
use super::journal::{Damage, Journal};
use crate::lock::FileLock;
use crate::opened::Opened;
use crate::surroundings::Patience;
use crate::{Result, database, files};
use gt_core::Problem;
use gt_core::record::Record;
use portion::{Fill, Row};
use position::{Position, how_far};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use schema::{APPLICATION, EARLY_INDEXES, LATE_INDEXES, TABLES, VERSION};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long others may write before we.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open database that agrees with the journal.
#[derive(Debug)]
pub(super) struct Index {
    db: Opened,
    /// Nobody replaces the file while it is held. Dropped after the connection.
    _lock: Option<FileLock>,
}

/// What a rebuild found.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    pub lives: u64,
    pub archived: u64,
    pub damages: Vec<Damage>,
}

/// The files of a database.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: PathBuf,
    lock: PathBuf,
    /// Somebody named the file, which may be anything.
    is_given: bool,
    patience: Patience,
}

/// What a database is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) journal: &'a Journal,
    pub(super) archive: &'a Archive,
}

impl Sources<'_> {
    fn is_empty(self) -> Result<bool> {
        Ok(self.journal.open()?.is_none() && self.archive.files().is_empty())
    }
}

impl Place {
    pub(super) fn at(path: &Path, is_given: bool) -> Self {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        Place {
            path: path.to_owned(),
            lock: lock.into(),
            is_given,
            patience: Patience::default(),
        }
    }

    /// The same for somebody who has only so much of it.
    pub(super) fn with_patience(self, patience: Patience) -> Self {
        Place { patience, ..self }
    }

    fn patience(&self) -> Duration {
        self.patience.at_most(PATIENCE)
    }

    /// Refuses a file of somebody's own: a damaged index would be replaced.
    fn check(&self) -> Result<()> {
        const MARK_AT: usize = 68;
        if !self.is_given || self.path.metadata().is_ok_and(|meta| meta.len() == 0) {
            return Ok(());
        }
        let mut file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(files::cannot("open", &self.path, &error)),
        };
        let mut head = [0; MARK_AT + 4];
        let is_ours = file.read_exact(&mut head).is_ok()
            && head.starts_with(b"SQLite format 3\0")
            && head[MARK_AT..] == APPLICATION.to_be_bytes();
        if is_ours {
            return Ok(());
        }
        Err(
            Problem::conflict(format!("{} is no index of gt's", self.path.display()))
                .hint("name another file: this one would be overwritten"),
        )
    }
}

impl Index {
    /// Opens the database and reads what is new in the journal.
    pub(super) fn open(place: &Place, sources: Sources<'_>) -> Result<Self> {
        place.check()?;
        match Self::open_current(place, sources) {
            Ok(index) => Ok(index),
            // Whatever is wrong with it: everything in it is in the journal.
            Err(Broken::Damaged(_)) => Self::repair(place, sources, Repair::IfStillNeeded),
            Err(Broken::NoRoom(_)) => Self::in_memory(sources),
            Err(Broken::Other(problem)) => Err(problem),
        }
    }

    /// The same when a question has found it damaged.
    pub(super) fn open_anew(place: &Place, sources: Sources<'_>) -> Result<Self> {
        Self::repair(place, sources, Repair::Now)
    }

    /// Makes the database anew from the journal.
    pub(super) fn rebuild(place: &Place, sources: Sources<'_>) -> Result<Rebuilt> {
        place.check()?;
        let _lock = FileLock::take(&place.lock, place.patience())?;
        rebuild::replace(&place.path, sources)
    }

    fn open_current(place: &Place, sources: Sources<'_>) -> Result<Self, Broken> {
        let lock = FileLock::share(&place.lock, place.patience())?;
        let db = match Opened::kept(&place.path) {
            Some(db) => {
                db.busy_timeout(place.patience())?;
                db
            }
            None => {
                let (db, is_kept) = open_as_it_is(place, sources)?;
                Opened::new(db, &place.path, is_kept)
            }
        };
        let mut index = Index {
            db,
            _lock: Some(lock),
        };
        index.catch_up(&place.path, sources.journal)?;
        Ok(index)
    }

    fn repair(place: &Place, sources: Sources<'_>, repair: Repair) -> Result<Self> {
        {
            let _lock = FileLock::take(&place.lock, place.patience())?;
            // Of several that found it damaged, one makes it anew.
            let is_mended = repair == Repair::IfStillNeeded
                && open_as_it_is(place, sources)
                    .and_then(|(db, _)| how_far(&db, sources.journal))
                    .is_ok();
            if !is_mended {
                rebuild::replace(&place.path, sources)?;
            }
        }
        Self::open_current(place, sources).map_err(Broken::into_problem)
    }

    /// An index for one question, where there is no room for it on the disk.
    fn in_memory(sources: Sources<'_>) -> Result<Self> {
        let make = || -> Result<Connection, Broken> {
            let db = Connection::open_in_memory()?;
            rebuild::fill(&db, sources)?;
            Ok(db)
        };
        Ok(Index {
            db: Opened::new(
                make().map_err(Broken::into_problem)?,
                Path::new(":memory:"),
                false,
            ),
            _lock: None,
        })
    }

    pub(super) fn db(&self) -> &Connection {
        &self.db
    }

    /// The last thing that is done with it; best effort.
    pub(super) fn tidy(self) {
        let _ = database::tidy(&self.db, self.db.path());
    }

    /// Notes that lives have moved into a file of the archive, and the journal that is
    /// there without them.
    pub(super) fn note_archived(
        &mut self,
        moved: &BTreeMap<String, Vec<Record>>,
        journal: &Journal,
    ) -> Result<(), Broken> {
        let change = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (file, lives) in moved {
            for life in lives {
                archived(&change, life, file)?;
                change.execute(
                    "DELETE FROM records WHERE life = (SELECT rowid FROM lives WHERE id = ?1)",
                    [&life.id],
                )?;
                change.execute("DELETE FROM lives WHERE id = ?1", [&life.id])?;
            }
        }
        if let Some(reading) = journal.open()? {
            position::note(&change, journal, &reading.first, reading.length)?;
        }
        change.commit()?;
        Ok(())
    }

    /// Reads what is new in the journal, in one transaction.
    fn catch_up(&mut self, path: &Path, journal: &Journal) -> Result<(), Broken> {
        let position = how_far(&self.db, journal)?;
        if !position.is_on_disk {
            position::note_synced(&self.db, path)?;
        }
        if position.is_current() {
            return Ok(());
        }
        let change = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have read on meanwhile.
        let position = how_far(&change, journal)?;
        read_on(&change, journal, position)?;
        change.commit()?;
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Repair {
    IfStillNeeded,
    Now,
}

/// Opens it, and says whether it may be kept open.
fn open_as_it_is(place: &Place, sources: Sources<'_>) -> Result<(Connection, bool), Broken> {
    let path = place.path.as_path();
    let mut db = Connection::open(path)?;
    db.busy_timeout(place.patience())?;
    let is_kept = database::keep_log(&db, path)?;
    // The journal is on the disk before: what is lost here is read again from there.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == VERSION {
        return Ok((db, is_kept));
    }
    // A new one for what is there already is quicker made at once.
    if version != 0 || !sources.is_empty()? {
        return Err(Broken::Damaged("it is of another version".to_owned()));
    }
    files::make_private(path)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been quicker.
    let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        for statements in [TABLES, EARLY_INDEXES, LATE_INDEXES] {
            change.execute_batch(statements)?;
        }
        mark(&change)?;
    }
    change.commit()?;
    Ok((db, is_kept))
}

/// Says that the database is whole, and ours.
fn mark(db: &Connection) -> Result<(), rusqlite::Error> {
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", VERSION)
}

/// Reads the journal from that position on.
fn read_on(db: &Connection, journal: &Journal, position: Position) -> Result<(), Broken> {
    let Some(reading) = position.reading else {
        return Ok(());
    };
    let first = reading.first.clone();
    let write = |rows: Vec<Row>| portion::write(db, &rows, Fill::On).map(|()| Vec::new());
    let end = portion::read(reading, position.read, write, &mut |_| {})?;
    position::note(db, journal, &first, end)
}

/// Notes in which file of the archive a life is, unless it is in the journal.
fn archived(db: &Connection, life: &Record, file: &str) -> Result<(), rusqlite::Error> {
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO archived (id, chain_id, work_unit, file) VALUES (?1, ?2, ?3, ?4)",
    )?;
    insert
        .execute(params![life.id, life.chain_id, life.work_unit, file])
        .map(drop)
}

/// A time of a record, as the database holds it.
pub(super) fn milliseconds(time: &str) -> Option<i64> {
    own_milliseconds(time).or_else(|| {
        let time: jiff::Timestamp = time.parse().ok()?;
        Some(time.as_millisecond())
    })
}

/// The same for a time that is written as we write it, `2026-01-17T01:00:00.000Z`: in a
/// rebuild there are millions of them.
fn own_milliseconds(time: &str) -> Option<i64> {
    let bytes: &[u8; 24] = time.as_bytes().try_into().ok()?;
    let is_ours = [
        (4, b'-'),
        (7, b'-'),
        (10, b'T'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
        (23, b'Z'),
    ]
    .iter()
    .all(|(place, sign)| bytes[*place] == *sign);
    let number = |range: std::ops::Range<usize>| {
        bytes[range].iter().try_fold(0_i64, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    if !is_ours || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since the epoch, with a year that begins in March, so that the day that is
    // sometimes there is its last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468;
    let seconds = days * 86_400 + number(11..13)? * 3_600 + number(14..16)? * 60 + number(17..19)?;
    Some(seconds * 1_000 + number(20..23)?)
}

/// One life, by its whole id.
pub(super) fn by_id(db: &Connection, id: &str) -> Result<Option<Record>, rusqlite::Error> {
    let mut query = db.prepare_cached(
        "SELECT record FROM lives JOIN records ON life = lives.rowid WHERE id = ?1",
    )?;
    query
        .query_row([id], |row| row.get::<_, String>(0))
        .optional()
        .map(|text| text.and_then(|text| serde_json::from_str(&text).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_core::record::{Outcome, Status};

    struct Lives {
        folder: tempfile::TempDir,
        journal: Journal,
    }

    impl Lives {
        fn with(lines: &[Record]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let journal = Journal::in_folder(folder.path());
            journal.append(lines).unwrap();
            Lives { folder, journal }
        }

        fn database(&self) -> PathBuf {
            self.folder.path().join("index.db")
        }

        fn open(&self) -> Index {
            let sources = Sources {
                journal: &self.journal,
                archive: &Archive::in_folder(self.folder.path()),
            };
            Index::open(&Place::at(&self.database(), false), sources).unwrap()
        }

        fn lives(&self) -> Vec<(String, Option<Outcome>)> {
            let index = self.open();
            let mut query = index.db().prepare("SELECT id FROM lives").unwrap();
            let ids = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
            ids.map(|id| {
                let life = by_id(index.db(), &id.unwrap()).unwrap().unwrap();
                (life.id, life.outcome)
            })
            .collect()
        }
    }

    fn begin(id: &str) -> Record {
        Record {
            agent: Some("gastown/crew/max".into()),
            started_at: Some(format!("2026-01-17T01:00:0{}.000Z", id.len())),
            status: Some(Status::Running),
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
        let place = Lives::with(&[begin("a"), begin("bb")]);
        assert_eq!(place.lives(), [("a".into(), None), ("bb".into(), None)]);
        place.journal.append(&[end("a"), begin("ccc")]).unwrap();
        let killed = Some(Outcome::Killed);
        let all = [
            ("a".into(), killed),
            ("bb".into(), None),
            ("ccc".into(), None),
        ];
        assert_eq!(place.lives(), all);
    }

    #[test]
    fn whatever_happens_to_it_it_is_made_anew() {
        let place = Lives::with(&[begin("a"), end("a")]);
        let expected = place.lives();
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
            place.lives();
            damage();
            assert_eq!(place.lives(), expected);
            let mended = Connection::open(&db).unwrap();
            let mode = mended.pragma_query_value(None, "journal_mode", |row| row.get(0));
            assert_eq!(mode, Ok("wal".to_owned()));
        }
    }

    #[test]
    fn another_journal_is_read_from_its_beginning() {
        let place = Lives::with(&[begin("a"), begin("bb")]);
        place.lives();
        std::fs::remove_file(place.journal.path()).unwrap();
        place.journal.append(&[begin("ccc")]).unwrap();
        assert_eq!(place.lives(), [("ccc".into(), None)]);
        place
            .journal
            .append(&[begin("dddd"), begin("eeeee")])
            .unwrap();
        assert_eq!(place.lives().len(), 3);
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
            let time = crate::sessions::timestamp(Some(seconds));
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
    fn one_that_never_reached_the_disk_is_made_anew_after_the_machine_went_down() {
        let place = Lives::with(&[begin("a")]);
        let expected = place.lives();
        let boot = |index: &Index| -> Option<String> {
            let boot = "SELECT boot FROM read_so_far";
            index.db().query_row(boot, [], |row| row.get(0)).unwrap()
        };
        let index = place.open();
        let this = boot(&index);
        let change = "UPDATE lives SET outcome = 'done'; UPDATE read_so_far SET boot = 'another'";
        index.db().execute_batch(change).unwrap();
        drop(index);
        assert_eq!(place.lives(), expected);
        assert_eq!(boot(&place.open()), this);
    }

    #[test]
    fn a_journal_that_was_cut_and_went_on_is_another() {
        let place = Lives::with(&[begin("a"), begin("bb")]);
        place.lives();
        let text = std::fs::read(place.journal.path()).unwrap();
        std::fs::write(place.journal.path(), &text[..text.len() - 20]).unwrap();
        place
            .journal
            .append(&[begin("ccc"), begin("dddd"), begin("eeeee")])
            .unwrap();
        let ids: Vec<String> = place.lives().into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["a", "ccc", "dddd", "eeeee"]);
    }

    #[test]
    fn a_file_of_somebodys_own_is_refused() {
        let place = Lives::with(&[begin("a")]);
        let sources = Sources {
            journal: &place.journal,
            archive: &Archive::in_folder(place.folder.path()),
        };
        let file = place.folder.path().join("mine");
        let given = Place::at(&file, true);
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

    #[test]
    fn anybody_can_read_the_table_of_the_document() {
        let place = Lives::with(&[begin("a")]);
        let index = place.open();
        let row: (String, String, i64) = index
            .db()
            .query_row("SELECT slug, status, created_at FROM sessions", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(
            row,
            ("gastown/crew/max".into(), "running".into(), 1_768_611_601)
        );
    }
}
