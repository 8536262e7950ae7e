//! The index of sessions: a database that is built from the journal, for queries by field.
//!
//! All its data is also in the journal or the archive. It records the position up to which it has
//! read the journal, and reads the lines after that when it is opened. It is rebuilt if it is
//! missing, damaged, of another version or of another journal ([`rebuild`]). If the disk is full,
//! queries use a database in memory.

mod comparison;
mod error;
mod portion;
mod position;
mod rebuild;
mod schema;
mod slugs;

pub(super) use comparison::Depth;
pub(super) use error::IndexError;

use super::archive::Archive;
use super::journal::{Damage, Journal};
use super::recovery;
use crate::Result;
use crate::base::lock::FileLock;
use crate::base::open_database::{FileId, PooledConnection};
use crate::base::surroundings::Deadline;
use crate::base::{database, files, time};
use gt_core::Problem;
use gt_core::record::Record;
use gt_core::usage::DailyUsage;
use portion::{Fill, SessionLines};
use position::{Position, read_position};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use schema::{APPLICATION, EARLY_INDEXES, LATE_INDEXES, TABLES, VERSION};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for other writers.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of times that one call replaces an index that it cannot open.
const REPAIRS: usize = 2;

/// An open database that agrees with the journal.
#[derive(Debug)]
pub(super) struct Index {
    db: PooledConnection,
    /// Prevents other processes from replacing the file. Dropped after the connection.
    _lock: Option<FileLock>,
}

/// Result of a rebuild.
#[derive(Clone, Debug, Default)]
pub struct Rebuilt {
    pub sessions: u64,
    pub archived: u64,
    pub damages: Vec<Damage>,
}

/// The files of a database.
#[derive(Clone, Debug)]
pub(super) struct IndexFile {
    path: PathBuf,
    lock: PathBuf,
    /// The caller named the file, so it may be any file.
    is_given: bool,
    deadline: Deadline,
}

/// Data that a database is built from.
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

impl IndexFile {
    pub(super) fn at(path: &Path, is_given: bool) -> Self {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        IndexFile {
            path: path.to_owned(),
            lock: lock.into(),
            is_given,
            deadline: Deadline::default(),
        }
    }

    /// Limits all waiting to this deadline.
    pub(super) fn with_deadline(self, deadline: Deadline) -> Self {
        IndexFile { deadline, ..self }
    }

    fn timeout(&self) -> Duration {
        self.deadline.at_most(TIMEOUT)
    }

    /// Fails if the caller named a file that is not an index: opening it would find it damaged and
    /// replace it.
    fn check(&self) -> Result<()> {
        const MARK_AT: usize = 68;
        if !self.is_given || self.path.metadata().is_ok_and(|meta| meta.len() == 0) {
            return Ok(());
        }
        let mut file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(files::io_problem("open", &self.path, &error)),
        };
        let mut head = [0; MARK_AT + 4];
        let is_ours = file.read_exact(&mut head).is_ok()
            && head.starts_with(b"SQLite format 3\0")
            && head[MARK_AT..] == APPLICATION.to_be_bytes();
        if is_ours {
            return Ok(());
        }
        Err(Problem::conflict(format!(
            "{} is not a session index of gt",
            self.path.display()
        ))
        .hint("name another file: this one would be overwritten"))
    }
}

impl Index {
    /// Opens the database and reads the new lines of the journal. A damaged database is rebuilt
    /// first, which loses nothing: all its data is in the journal or the archive.
    pub(super) fn open(place: &IndexFile, sources: Sources<'_>) -> Result<Self> {
        place.check()?;
        recovery::check(sources.journal, &place.path)?;
        let mut attempts = REPAIRS;
        loop {
            let (broken, file) = match Self::open_current(place, sources) {
                Ok(index) => return Ok(index),
                Err(failed) => failed,
            };
            match broken {
                IndexError::Damaged(_) | IndexError::Outdated(_) if attempts > 0 => {
                    attempts -= 1;
                    Self::repair(place, sources, &broken, file)?;
                }
                IndexError::NoRoom(_) => return Self::in_memory(sources),
                broken => return Err(broken.into()),
            }
        }
    }

    /// Rebuilds the database after a query has found it damaged, and opens it. The caller must drop
    /// the damaged index first: otherwise this waits for the lock that the caller itself holds.
    pub(super) fn open_repaired(
        place: &IndexFile,
        sources: Sources<'_>,
        broken: &IndexError,
        damaged: Option<FileId>,
    ) -> Result<Self> {
        Self::repair(place, sources, broken, damaged)?;
        Self::open(place, sources)
    }

    /// Rebuilds the database from the journal.
    pub(super) fn rebuild(place: &IndexFile, sources: Sources<'_>) -> Result<Rebuilt> {
        place.check()?;
        recovery::check(sources.journal, &place.path)?;
        let _lock = FileLock::take(&place.lock, place.timeout())?;
        rebuild::replace(&place.path, sources)
    }

    /// Opens the database as it is and catches up. An error carries the identity of the file.
    fn open_current(
        place: &IndexFile,
        sources: Sources<'_>,
    ) -> Result<Self, (IndexError, Option<FileId>)> {
        let lock = FileLock::share(&place.lock, place.timeout())
            .map_err(|problem| (problem.into(), None))?;
        // The lock is held until the file is identified, so that no other process replaces it
        // before.
        let opened = Self::open_locked(place, sources);
        match opened {
            Ok(db) => Ok(Index {
                db,
                _lock: Some(lock),
            }),
            Err(broken) => Err((broken, FileId::of(&place.path))),
        }
    }

    fn open_locked(
        place: &IndexFile,
        sources: Sources<'_>,
    ) -> Result<PooledConnection, IndexError> {
        let mut db = match PooledConnection::take_idle(&place.path) {
            Some(db) => {
                db.busy_timeout(place.timeout())?;
                db
            }
            None => {
                let (db, is_kept) = open_as_it_is(place, sources)?;
                PooledConnection::new(db, &place.path, is_kept)
            }
        };
        catch_up(&mut db, &place.path, sources.journal)?;
        Ok(db)
    }

    /// Rebuilds the database, unless another process has done so since it was found broken: then
    /// another file is in its place, or the file agrees with the journal again.
    fn repair(
        place: &IndexFile,
        sources: Sources<'_>,
        broken: &IndexError,
        damaged: Option<FileId>,
    ) -> Result<()> {
        let _lock = FileLock::take(&place.lock, place.timeout())?;
        let is_repaired = match broken {
            IndexError::Outdated(_) => open_as_it_is(place, sources)
                .and_then(|(db, _)| read_position(&db, sources.journal))
                .is_ok(),
            _ => FileId::of(&place.path) != damaged,
        };
        if !is_repaired {
            rebuild::replace(&place.path, sources)?;
        }
        Ok(())
    }

    /// Returns the identity of the file, which no process can replace while this index is open.
    pub(super) fn file(&self) -> Option<FileId> {
        FileId::of(self.db.path())
    }

    /// Builds an index in memory for one query when the disk is full.
    fn in_memory(sources: Sources<'_>) -> Result<Self> {
        let make = || -> Result<Connection, IndexError> {
            let db = Connection::open_in_memory()?;
            rebuild::fill(&db, sources)?;
            Ok(db)
        };
        Ok(Index {
            db: PooledConnection::new(make().map_err(Problem::from)?, Path::new(":memory:"), false),
            _lock: None,
        })
    }

    pub(super) fn db(&self) -> &Connection {
        &self.db
    }

    /// Checkpoints the log and closes the index.
    pub(super) fn tidy(self) {
        // If this fails, the next change checkpoints the log.
        let _ = database::tidy(&self.db, self.db.path());
    }

    /// Records that sessions were moved to a file of the archive.
    pub(super) fn note_archived(
        &mut self,
        file: &str,
        sessions: &[Record],
    ) -> Result<(), IndexError> {
        let change = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        for session in sessions {
            archived(&change, session, file)?;
            change
                .prepare_cached(
                    "DELETE FROM records WHERE life = (SELECT rowid FROM lives WHERE id = ?1)",
                )?
                .execute([&session.id])?;
            change
                .prepare_cached("DELETE FROM lives WHERE id = ?1")?
                .execute([&session.id])?;
        }
        change.commit()?;
        Ok(())
    }

    /// Records the position in a journal that was rewritten without archived sessions.
    pub(super) fn note_journal(&mut self, journal: &Journal) -> Result<(), IndexError> {
        let change = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let Some(reading) = journal.open()? {
            position::note(&change, journal, &reading.first, reading.length)?;
        }
        change.commit()?;
        Ok(())
    }
}

/// Reads the new lines of the journal in one transaction.
fn catch_up(db: &mut Connection, path: &Path, journal: &Journal) -> Result<(), IndexError> {
    let position = read_position(db, journal)?;
    if !position.is_on_disk {
        position::note_synced(db, path)?;
    }
    if position.is_current() {
        return Ok(());
    }
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have caught up meanwhile.
    let position = read_position(&change, journal)?;
    read_on(&change, journal, position)?;
    change.commit()?;
    Ok(())
}

/// Opens the database as it is. Returns also whether the connection may be kept open.
fn open_as_it_is(
    place: &IndexFile,
    sources: Sources<'_>,
) -> Result<(Connection, bool), IndexError> {
    let path = place.path.as_path();
    let mut db = Connection::open(path)?;
    db.busy_timeout(place.timeout())?;
    // Makes SQLite report damaged pages as errors in more cases, instead of returning wrong
    // results.
    db.pragma_update(None, "cell_size_check", true)?;
    let is_kept = database::keep_log(&db, path)?;
    // A power failure may lose the last changes; they are read again from the journal, which is
    // synced.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == VERSION {
        return Ok((db, is_kept));
    }
    // A rebuild is faster than reading existing sources into an empty database.
    if version != 0 || !sources.is_empty()? {
        return Err(IndexError::Outdated("it is of another version".to_owned()));
    }
    files::make_private(path)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have created the tables first.
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

/// Marks the database as complete and as ours.
fn mark(db: &Connection) -> Result<(), rusqlite::Error> {
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", VERSION)
}

/// Reads the journal from a position to its end.
fn read_on(db: &Connection, journal: &Journal, position: Position) -> Result<(), IndexError> {
    let Some(reading) = position.reading else {
        return Ok(());
    };
    let first = reading.first.clone();
    let write = |rows: Vec<SessionLines>| portion::write(db, &rows, Fill::On).map(|()| Vec::new());
    let end = portion::read(reading, position.read, write, &mut |_| {})?;
    // No complete line is new. Storing the same position again would make every reader a writer.
    if end == position.read {
        return Ok(());
    }
    position::note(db, journal, &first, end)
}

/// Stores the archive file that a session is in, and the session's usage per item, so that the
/// total of an item can be computed without reading that file.
fn archived(db: &Connection, session: &Record, file: &str) -> Result<(), rusqlite::Error> {
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO archived (id, chain_id, work_unit, file, taken)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let taken = session.work_unit.as_ref().map(|_| {
        serde_json::json!({"usage": session.usage, "earlier_work": session.earlier_work})
            .to_string()
    });
    insert.execute(params![
        session.id,
        session.chain_id,
        session.work_unit,
        file,
        taken
    ])?;
    db.prepare_cached("DELETE FROM daily WHERE id = ?1")?
        .execute([&session.id])?;
    let whole = session.daily.is_none().then_some(session.usage.as_ref());
    let started = session.started_at.as_deref().and_then(time::local_day);
    let whole = whole.flatten().zip(started);
    let whole = whole.map(|(usage, day)| DailyUsage::of(&day, usage));
    let parts = session.daily.iter().flatten().chain(&whole);
    note_daily(db, session, parts)?;
    note_earlier_work(db, session)
}

/// Stores the usage of a session by day and model.
fn note_daily<'a>(
    db: &Connection,
    session: &Record,
    parts: impl IntoIterator<Item = &'a DailyUsage>,
) -> Result<(), rusqlite::Error> {
    let mut parts = parts.into_iter().peekable();
    if parts.peek().is_none() {
        return Ok(());
    }
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO daily (id, day, model, agent, rig, tokens, unpriced, cost)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for part in parts {
        insert.execute(params![
            session.id,
            part.day,
            part.model.as_deref().unwrap_or_default(),
            session.agent,
            session.rig,
            part.tokens,
            part.unpriced_tokens,
            part.cost_usd,
        ])?;
    }
    Ok(())
}

/// Stores the items that a session had before its present one.
fn note_earlier_work(db: &Connection, session: &Record) -> Result<(), rusqlite::Error> {
    if session.earlier_work.is_none() {
        return Ok(());
    }
    let mut insert =
        db.prepare_cached("INSERT OR IGNORE INTO earlier_work (work_unit, id) VALUES (?1, ?2)")?;
    for entry in session.earlier_work.iter().flatten() {
        insert.execute([&entry.work_unit, &session.id])?;
    }
    Ok(())
}

/// Converts a timestamp of a record to milliseconds since the epoch, as the database stores it.
pub(super) fn milliseconds(time: &str) -> Option<i64> {
    own_milliseconds(time).or_else(|| {
        let time: jiff::Timestamp = time.parse().ok()?;
        Some(time.as_millisecond())
    })
}

/// Parses a timestamp in our own format, `2026-01-17T01:00:00.000Z`. A rebuild parses millions of
/// them, for which the general parser is too slow.
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
    // Days since the epoch. The year begins in March, so that a leap day is its last day.
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

/// Parses the record of a session. Fails if the row has no record or the record of another session:
/// SQLite does not detect such damage.
pub(super) fn record(id: String, text: Option<String>) -> Result<Record, IndexError> {
    let damaged = |reason: String| IndexError::Damaged(format!("the record of {id}: {reason}"));
    let text = text.ok_or_else(|| damaged("it is missing".to_owned()))?;
    let session: Record =
        serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    match session.id == id {
        true => Ok(session.without_cleared()),
        false => Err(damaged(format!("it is of {}", session.id))),
    }
}

/// Returns the session with this full id.
pub(super) fn by_id(db: &Connection, id: &str) -> Result<Option<Record>, IndexError> {
    let mut query = db.prepare_cached(
        "SELECT id, record FROM lives LEFT JOIN records ON life = lives.rowid WHERE id = ?1",
    )?;
    let found = query
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.map(|(id, text)| record(id, text)).transpose()
}

#[cfg(test)]
mod tests;
