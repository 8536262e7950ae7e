//! The database that is made from the journal: lives are found in it by their fields.
//!
//! It holds nothing of its own. It knows how far it has read, reads on by itself when
//! it is opened, and is made anew when it is missing, damaged, of another version, or
//! of another journal than the one that is there ([`rebuild`]).

mod portion;
mod rebuild;

use super::archive::Archive;
use super::journal::{Damage, Journal, Reading};
use crate::lock::FileLock;
use crate::{Result, files};
use gt_core::Problem;
use gt_core::record::Record;
use portion::Row;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Raised whenever the tables change: an older database is made anew.
const VERSION: i64 = 4;
/// How long others may write before we.
const PATIENCE: Duration = Duration::from_secs(30);

/// Times are milliseconds since the epoch. The table holds only what is asked for, so
/// that it is quickly read; the lives themselves stand beside it.
const TABLES: &str = "
CREATE TABLE read_so_far (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL, first TEXT NOT NULL);
CREATE TABLE lives (
    id TEXT PRIMARY KEY, agent TEXT, rig TEXT, role TEXT, harness TEXT, status TEXT, outcome TEXT,
    work_unit TEXT, chain_id TEXT, started INTEGER, ended INTEGER,
    tokens INTEGER, cost REAL, commits INTEGER
);
CREATE TABLE records (life INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE archived (id TEXT PRIMARY KEY, chain_id TEXT, work_unit TEXT, file TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX archived_by_chain ON archived (chain_id);
CREATE INDEX archived_by_work ON archived (work_unit) WHERE work_unit IS NOT NULL;
CREATE VIEW sessions AS SELECT
    CASE WHEN agent LIKE 'agent/%' THEN substr(agent, 7) ELSE agent END AS slug,
    harness AS harness_type, record ->> 'cwd' AS working_directory, status,
    record ->> 'initial_prompt' AS initial_prompt,
    started / 1000 AS created_at, coalesce(ended, started) / 1000 AS updated_at, id
FROM lives JOIN records ON life = lives.rowid;
";
/// Each ends with the time, so that the newest lives of any one are the end of a range.
/// Those that run are few, and so is their index. In these a rebuild adds at a few
/// places, while it waits for the reader of the journal anyway.
const EARLY_INDEXES: &str = "
CREATE INDEX by_time ON lives (started);
CREATE INDEX by_role ON lives (role, started);
CREATE INDEX by_harness ON lives (harness, started);
CREATE INDEX by_running ON lives (started) WHERE status = 'running';
CREATE INDEX by_chain ON lives (chain_id, started);
";
/// These a rebuild makes when all is there.
const LATE_INDEXES: &str = "
CREATE INDEX by_agent ON lives (agent, started);
CREATE INDEX by_rig ON lives (rig, started);
CREATE INDEX by_outcome ON lives (outcome, started);
CREATE INDEX by_work ON lives (work_unit, started) WHERE work_unit IS NOT NULL;
";

/// An open database that agrees with the journal.
#[derive(Debug)]
pub(super) struct Index {
    db: Connection,
    /// Nobody replaces the file while it is held. Dropped after the connection.
    _lock: FileLock,
}

/// What a rebuild found.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    pub lives: u64,
    pub archived: u64,
    pub damages: Vec<Damage>,
}

/// The files of a database.
struct Place {
    path: PathBuf,
    lock: PathBuf,
}

impl Place {
    fn at(path: &Path) -> Self {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        Place {
            path: path.to_owned(),
            lock: lock.into(),
        }
    }
}

impl Index {
    /// Opens the database and reads what is new in the journal.
    pub(super) fn open(path: &Path, journal: &Journal, archive: &Archive) -> Result<Self> {
        let place = Place::at(path);
        match Self::open_current(&place, journal) {
            Ok(index) => Ok(index),
            // Whatever is wrong with it: everything in it is in the journal.
            Err(Broken::Damaged(_)) => Self::repair(&place, journal, archive),
            Err(Broken::Other(problem)) => Err(problem),
        }
    }

    /// Makes the database anew from the journal.
    pub(super) fn rebuild(path: &Path, journal: &Journal, archive: &Archive) -> Result<Rebuilt> {
        let place = Place::at(path);
        let _lock = FileLock::take(&place.lock, PATIENCE)?;
        rebuild::replace(&place.path, journal, archive)
    }

    fn open_current(place: &Place, journal: &Journal) -> Result<Self, Broken> {
        let lock = FileLock::share(&place.lock, PATIENCE)?;
        let mut index = Index {
            db: open_as_it_is(&place.path)?,
            _lock: lock,
        };
        index.catch_up(journal)?;
        Ok(index)
    }

    fn repair(place: &Place, journal: &Journal, archive: &Archive) -> Result<Self> {
        {
            let _lock = FileLock::take(&place.lock, PATIENCE)?;
            // Of several that found it damaged, one makes it anew.
            let is_mended = open_as_it_is(&place.path)
                .and_then(|db| how_far(&db, journal))
                .is_ok();
            if !is_mended {
                rebuild::replace(&place.path, journal, archive)?;
            }
        }
        Self::open_current(place, journal).map_err(Broken::into_problem)
    }

    pub(super) fn db(&self) -> &Connection {
        &self.db
    }

    /// Notes that lives have moved into a file of the archive, and the journal that is
    /// there without them.
    pub(super) fn note_archived(
        &mut self,
        moved: &BTreeMap<String, Vec<Record>>,
        journal: &Journal,
    ) -> Result<()> {
        let mut change = || -> Result<(), Broken> {
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
                note_position(&change, reading.length, &reading.first)?;
            }
            change.commit()?;
            Ok(())
        };
        change().map_err(Broken::into_problem)
    }

    /// Reads what is new in the journal, in one transaction.
    fn catch_up(&mut self, journal: &Journal) -> Result<(), Broken> {
        if how_far(&self.db, journal)?.is_current() {
            return Ok(());
        }
        let change = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have read on meanwhile.
        let position = how_far(&change, journal)?;
        read_on(&change, position)?;
        change.commit()?;
        Ok(())
    }
}

fn open_as_it_is(path: &Path) -> Result<Connection, Broken> {
    let mut db = Connection::open(path)?;
    db.busy_timeout(PATIENCE)?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == VERSION {
        return Ok(db);
    }
    if version != 0 {
        return Err(Broken::Damaged("it is of another version".to_owned()));
    }
    private(path)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been quicker.
    let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        for statements in [TABLES, EARLY_INDEXES, LATE_INDEXES] {
            change.execute_batch(statements)?;
        }
        change.pragma_update(None, "user_version", VERSION)?;
    }
    change.commit()?;
    Ok(db)
}

/// Where a database stands in the journal that is there.
struct Position {
    reading: Option<Reading>,
    read: u64,
}

impl Position {
    fn is_current(&self) -> bool {
        self.reading
            .as_ref()
            .is_none_or(|reading| reading.length == self.read)
    }
}

fn how_far(db: &Connection, journal: &Journal) -> Result<Position, Broken> {
    let known: Option<(u64, String)> = db
        .query_row("SELECT bytes, first FROM read_so_far", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let reading = journal.open()?;
    let (read, first) = known.unwrap_or_default();
    let is_same = match &reading {
        Some(reading) => read <= reading.length && first == reading.first,
        None => false,
    };
    if read > 0 && !is_same {
        return Err(Broken::Damaged("it is of another journal".to_owned()));
    }
    Ok(Position { reading, read })
}

/// Reads the journal from that position on.
fn read_on(db: &Connection, position: Position) -> Result<(), Broken> {
    let Some(reading) = position.reading else {
        return Ok(());
    };
    let first = reading.first.clone();
    let write = |rows: Vec<Row>| portion::write(db, &rows).map_err(Broken::into_problem);
    let end = portion::read(reading, position.read, write, &mut |_| {})?;
    note_position(db, end, &first)?;
    Ok(())
}

fn note_position(db: &Connection, bytes: u64, first: &str) -> Result<(), rusqlite::Error> {
    db.execute(
        "INSERT INTO read_so_far (one, bytes, first) VALUES (1, ?1, ?2)
         ON CONFLICT (one) DO UPDATE SET bytes = ?1, first = ?2",
        params![bytes, first],
    )
    .map(drop)
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
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.as_millisecond())
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

fn private(path: &Path) -> Result<(), Problem> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| files::cannot("protect", path, &error))
}

/// What went wrong: with the database itself, which can be made anew, or otherwise.
#[derive(Debug)]
enum Broken {
    Damaged(String),
    Other(Problem),
}

impl Broken {
    fn into_problem(self) -> Problem {
        match self {
            Broken::Damaged(what) => Problem::failed("the index of lives is damaged").cause(what),
            Broken::Other(problem) => problem,
        }
    }
}

impl From<Problem> for Broken {
    fn from(problem: Problem) -> Self {
        Broken::Other(problem)
    }
}

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, ReadOnly};
        match error.sqlite_error_code() {
            Some(DatabaseBusy | DatabaseLocked | DiskFull | ReadOnly | CannotOpen) => {
                Broken::Other(Problem::failed("the index of lives cannot be used").caused_by(error))
            }
            _ => Broken::Damaged(error.to_string()),
        }
    }
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

        fn archive(&self) -> Archive {
            Archive::in_folder(self.folder.path())
        }

        fn lives(&self) -> Vec<(String, Option<Outcome>)> {
            let index = Index::open(&self.database(), &self.journal, &self.archive()).unwrap();
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
    fn anybody_can_read_the_table_of_the_document() {
        let place = Lives::with(&[begin("a")]);
        let index = Index::open(&place.database(), &place.journal, &place.archive()).unwrap();
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
