//! Recovery of a journal that is lost while its index still exists.
//!
//! The index holds every session that it has read. Without the journal it is the only copy, so the
//! index is not rebuilt and no new journal is begun. Every command reports the loss, and `gt doctor
//! --fix` recreates the journal from the index.

use super::journal::Journal;
use super::{Index, Sessions};
use crate::Result;
use gt_core::Problem;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Fails if the journal is missing or empty and the index in this file has sessions.
pub(super) fn check(journal: &Journal, database: &Path) -> Result<()> {
    if !journal.is_gone() {
        return Ok(());
    }
    match sessions_in(database) {
        0 => Ok(()),
        count => {
            let path = journal.path().display();
            let message =
                format!("the journal {path} is missing, and its index has sessions: {count}");
            Err(Problem::failed(message)
                .hint(
                    "restore it from a backup, or run `gt doctor --fix`, which writes it again \
                     from the index",
                )
                .hint(format!(
                    "to begin a new history, remove {}",
                    database.display()
                )))
        }
    }
}

/// Returns the number of sessions in an index of any version; 0 if it cannot be read.
fn sessions_in(database: &Path) -> u64 {
    let count = |db: Connection| {
        db.query_row(
            "SELECT count(*) FROM lives JOIN records ON life = lives.rowid",
            [],
            |row| row.get(0),
        )
    };
    match database.is_file() {
        true => open(database).and_then(count).unwrap_or_default(),
        false => 0,
    }
}

/// Opens an index as it is. Read-only access is not enough, because its log may have to be
/// replayed.
fn open(database: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(database, flags)
}

impl Sessions {
    /// Fails if the journal is lost and the index is not. Called before a line is added, because
    /// the line would begin a new journal.
    pub(super) fn check_journal(&self) -> Result<()> {
        check(&self.journal, &self.folder.join("index.db"))
    }

    /// Returns the error of [`Sessions::check_journal`].
    pub(crate) fn lost_journal(&self) -> Option<Problem> {
        self.check_journal().err()
    }

    /// Recreates a lost journal from the index, and rebuilds the index from it. Returns the number
    /// of sessions.
    pub(crate) fn restore_journal(&self) -> Result<u64> {
        let lock = self.journal.lock()?;
        // Another process may have restored it meanwhile, or a person has.
        if self.lost_journal().is_some() {
            let cannot = |error: rusqlite::Error| {
                Problem::failed("the sessions of the index cannot be read").caused_by(error)
            };
            let db = open(&self.folder.join("index.db")).map_err(cannot)?;
            let mut query = db
                .prepare(
                    "SELECT record FROM lives JOIN records ON life = lives.rowid
                     ORDER BY started, id",
                )
                .map_err(cannot)?;
            let mut rows = query.query([]).map_err(cannot)?;
            self.journal.replace_all(|| match rows.next() {
                Ok(Some(row)) => row.get::<_, String>(0).map(Some).map_err(cannot),
                Ok(None) => Ok(None),
                Err(error) => Err(cannot(error)),
            })?;
        }
        drop(lock);
        Index::rebuild(&self.database, self.sources()).map(|rebuilt| rebuilt.sessions)
    }
}
