//! The database that is made from the journal: lives are found in it by their fields.
//!
//! It holds nothing of its own. It knows how far it has read, reads on by itself when
//! it is opened, and is made anew when it is missing, damaged, of another version, or
//! of another journal than the one that is there.

use super::journal::{Damage, Journal};
use crate::{Result, files};
use gt_core::Problem;
use gt_core::record::Record;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Raised whenever the tables change: an older database is made anew.
const VERSION: i64 = 1;
/// How long others may write before we.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many lines are added up in memory before they are written.
const PORTION: usize = 20_000;

const TABLES: &str = "
CREATE TABLE read_so_far (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL, first TEXT NOT NULL);
CREATE TABLE lives (
    id TEXT PRIMARY KEY, agent TEXT, rig TEXT, role TEXT, harness TEXT, container TEXT, status TEXT,
    outcome TEXT, work_unit TEXT, chain_id TEXT, parent_id TEXT, harness_session_id TEXT,
    started_at TEXT, ended_at TEXT, record TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIEW sessions AS SELECT
    CASE WHEN agent LIKE 'agent/%' THEN substr(agent, 7) ELSE agent END AS slug,
    harness AS harness_type, record ->> 'cwd' AS working_directory, status,
    record ->> 'initial_prompt' AS initial_prompt,
    unixepoch(started_at) AS created_at, unixepoch(coalesce(ended_at, started_at)) AS updated_at, id
FROM lives;
";
/// Each ends with the time, so that the newest lives of any one are the end of a range.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS by_time ON lives (started_at);
CREATE INDEX IF NOT EXISTS by_agent ON lives (agent, started_at);
CREATE INDEX IF NOT EXISTS by_rig ON lives (rig, started_at);
CREATE INDEX IF NOT EXISTS by_role ON lives (role, started_at);
CREATE INDEX IF NOT EXISTS by_harness ON lives (harness, started_at);
CREATE INDEX IF NOT EXISTS by_status ON lives (status, started_at);
CREATE INDEX IF NOT EXISTS by_outcome ON lives (outcome, started_at);
CREATE INDEX IF NOT EXISTS by_work ON lives (work_unit, started_at);
CREATE INDEX IF NOT EXISTS by_chain ON lives (chain_id, started_at);
";

/// An open database that agrees with the journal.
#[derive(Debug)]
pub(super) struct Index {
    db: Connection,
}

/// What a rebuild found.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    pub lives: u64,
    pub damages: Vec<Damage>,
}

impl Index {
    /// Opens the database and reads what is new in the journal.
    pub(super) fn open(folder: &Path, journal: &Journal) -> Result<Self> {
        let path = folder.join("index.db");
        match Self::open_as_it_is(&path).and_then(|mut index| {
            index.catch_up(journal)?;
            Ok(index)
        }) {
            Ok(index) => Ok(index),
            // Whatever is wrong with it: everything in it is in the journal.
            Err(Broken::Damaged(_)) => Self::rebuild(folder, journal).map(|(index, _)| index),
            Err(Broken::Other(problem)) => Err(problem),
        }
    }

    /// Makes the database anew from the journal.
    pub(super) fn rebuild(folder: &Path, journal: &Journal) -> Result<(Self, Rebuilt)> {
        let path = folder.join("index.db");
        let fresh = folder.join(format!(".index.{}.db", std::process::id()));
        remove_database(&fresh)?;
        let mut rebuilt = Rebuilt::default();
        {
            let mut index = Self::open_as_it_is(&fresh).map_err(Broken::into_problem)?;
            // Nobody else sees it yet, and it is worth nothing until it is whole.
            index
                .db
                .pragma_update(None, "synchronous", "OFF")
                .map_err(|error| sql(&fresh, error))?;
            index
                .read_on(journal, 0, &mut rebuilt.damages)
                .map_err(Broken::into_problem)?;
            let count = "SELECT count(*) FROM lives";
            rebuilt.lives = index
                .db
                .query_row(count, [], |row| row.get(0))
                .map_err(|error| sql(&fresh, error))?;
            index
                .db
                .execute_batch(&format!("{INDEXES} PRAGMA wal_checkpoint(TRUNCATE);"))
                .map_err(|error| sql(&fresh, error))?;
        }
        remove_database(&path)?;
        std::fs::rename(&fresh, &path).map_err(|error| files::cannot("replace", &path, &error))?;
        remove_database(&fresh)?;
        let mut index = Self::open_as_it_is(&path).map_err(Broken::into_problem)?;
        index.catch_up(journal).map_err(Broken::into_problem)?;
        Ok((index, rebuilt))
    }

    fn open_as_it_is(path: &Path) -> Result<Self, Broken> {
        let db = Connection::open(path)?;
        db.busy_timeout(PATIENCE)?;
        let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == VERSION {
            return Ok(Index { db });
        }
        if version != 0 {
            return Err(Broken::Damaged("it is of another version".to_owned()));
        }
        db.pragma_update(None, "journal_mode", "WAL")?;
        let mut index = Index { db };
        let change = index.begin()?;
        // Another process may have been quicker.
        let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == 0 {
            change.execute_batch(TABLES)?;
            change.execute_batch(INDEXES)?;
            change.pragma_update(None, "user_version", VERSION)?;
        }
        change.commit()?;
        private(path)?;
        Ok(index)
    }

    fn begin(&mut self) -> Result<Transaction<'_>, rusqlite::Error> {
        self.db
            .transaction_with_behavior(TransactionBehavior::Immediate)
    }

    pub(super) fn db(&self) -> &Connection {
        &self.db
    }

    /// Reads what is new in the journal.
    fn catch_up(&mut self, journal: &Journal) -> Result<(), Broken> {
        let read = self.read_so_far()?;
        let (bytes, first) = read.unwrap_or_default();
        if bytes == journal.length() {
            return Ok(());
        }
        if bytes > journal.length() || (bytes > 0 && first != first_line(journal)) {
            return Err(Broken::Damaged("it is of another journal".to_owned()));
        }
        self.read_on(journal, bytes, &mut Vec::new())
    }

    fn read_so_far(&self) -> Result<Option<(u64, String)>, rusqlite::Error> {
        self.db
            .query_row("SELECT bytes, first FROM read_so_far", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
    }

    /// Reads the journal from that place on, in one transaction.
    fn read_on(
        &mut self,
        journal: &Journal,
        expected: u64,
        damages: &mut Vec<Damage>,
    ) -> Result<(), Broken> {
        let first = first_line(journal);
        let change = self.begin()?;
        let start = change
            .query_row("SELECT bytes FROM read_so_far", [], |row| row.get(0))
            .optional()?
            .unwrap_or(expected);
        let mut portion: HashMap<String, Record> = HashMap::new();
        let end = journal.read_from(
            start,
            |record| {
                add(&mut portion, record);
                if portion.len() >= PORTION {
                    write(&change, &mut portion).map_err(Broken::into_problem)?;
                }
                Ok(())
            },
            |damage| damages.push(damage),
        )?;
        write(&change, &mut portion)?;
        change.execute(
            "INSERT INTO read_so_far (one, bytes, first) VALUES (1, ?1, ?2)
             ON CONFLICT (one) DO UPDATE SET bytes = ?1, first = ?2",
            params![end, first],
        )?;
        change.commit()?;
        Ok(())
    }
}

/// Adds a line to those of the same life that came just before.
fn add(portion: &mut HashMap<String, Record>, record: Record) {
    match portion.get_mut(&record.id) {
        Some(known) => known.merge(record),
        None => {
            portion.insert(record.id.clone(), record);
        }
    }
}

/// Writes what has been added up. What the database knows of a life stays where the
/// lines say nothing about it.
fn write(change: &Transaction<'_>, portion: &mut HashMap<String, Record>) -> Result<(), Broken> {
    let mut insert = change.prepare_cached(
        "INSERT INTO lives (id, agent, rig, role, harness, container, status, outcome,
         work_unit, chain_id, parent_id, harness_session_id, started_at, ended_at, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
         ON CONFLICT (id) DO UPDATE SET
             agent = coalesce(?2, agent), rig = coalesce(?3, rig), role = coalesce(?4, role),
             harness = coalesce(?5, harness), container = coalesce(?6, container),
             status = coalesce(?7, status), outcome = coalesce(?8, outcome),
             work_unit = coalesce(?9, work_unit), chain_id = coalesce(?10, chain_id),
             parent_id = coalesce(?11, parent_id),
             harness_session_id = coalesce(?12, harness_session_id),
             started_at = coalesce(?13, started_at), ended_at = coalesce(?14, ended_at),
             record = json_patch(record, ?15)",
    )?;
    for (_, life) in portion.drain() {
        let text = serde_json::to_string(&life)
            .map_err(|error| Problem::failed("cannot write a life").caused_by(error))?;
        insert.execute(params![
            life.id,
            life.agent,
            life.rig,
            life.role,
            life.harness,
            life.tmux_session,
            life.status.map(gt_core::record::Status::word),
            life.outcome.map(gt_core::record::Outcome::word),
            life.work_unit,
            life.chain_id,
            life.parent_id,
            life.harness_session_id,
            life.started_at,
            life.ended_at,
            text,
        ])?;
    }
    Ok(())
}

/// One life, by its whole id.
pub(super) fn by_id(db: &Connection, id: &str) -> Result<Option<Record>, rusqlite::Error> {
    let mut query = db.prepare_cached("SELECT record FROM lives WHERE id = ?1")?;
    query
        .query_row([id], |row| row.get::<_, String>(0))
        .optional()
        .map(|text| text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The beginning of the journal: it tells one journal from another.
fn first_line(journal: &Journal) -> String {
    use std::io::BufRead;
    let file = std::fs::File::open(journal.path());
    let line = file.ok().and_then(|file| {
        let mut line = String::new();
        let mut reader = std::io::BufReader::new(file);
        reader.read_line(&mut line).ok().map(|_| line)
    });
    line.unwrap_or_default()
}

fn private(path: &Path) -> Result<(), Problem> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| files::cannot("protect", path, &error))
}

/// A database and what SQLite keeps beside it.
fn remove_database(path: &Path) -> Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        files::remove_if_there(&PathBuf::from(name))?;
    }
    Ok(())
}

fn sql(path: &Path, error: rusqlite::Error) -> Problem {
    Problem::failed(format!("{} cannot be used", path.display())).caused_by(error)
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

    struct Place {
        folder: tempfile::TempDir,
        journal: Journal,
    }

    impl Place {
        fn with(lines: &[Record]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let journal = Journal::in_folder(folder.path());
            journal.append(lines).unwrap();
            Place { folder, journal }
        }

        fn lives(&self) -> Vec<(String, Option<Outcome>)> {
            let index = Index::open(self.folder.path(), &self.journal).unwrap();
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
        let place = Place::with(&[begin("a"), begin("bb")]);
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
        let place = Place::with(&[begin("a"), end("a")]);
        let expected = place.lives();
        let db = place.folder.path().join("index.db");
        let damage: [&dyn Fn(); 4] = [
            &|| {
                std::fs::write(
                    &db,
                    "this is no database, and long enough to be seen as none",
                )
                .unwrap();
            },
            &|| std::fs::write(&db, "").unwrap(),
            &|| remove_database(&db).unwrap(),
            &|| {
                let other = Connection::open(&db).unwrap();
                other.pragma_update(None, "user_version", 99).unwrap();
            },
        ];
        for damage in damage {
            remove_database(&db).unwrap();
            place.lives();
            damage();
            assert_eq!(place.lives(), expected);
        }
    }

    #[test]
    fn another_journal_is_read_from_its_beginning() {
        let place = Place::with(&[begin("a"), begin("bb")]);
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
        let place = Place::with(&[begin("a")]);
        let index = Index::open(place.folder.path(), &place.journal).unwrap();
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
