//! Rebuilds the database, as fast as the journal can be read.
//!
//! The new database is built beside the old one and replaces it when it is complete. No other
//! process sees it earlier, so it needs no rollback journal, and most indexes are created after the
//! table is filled, which is faster. It is not synced either: until the system has written it, a
//! note says in which boot of the machine it was built.

use super::portion::{self, Fill, SessionLines};
use super::position::{self, Position, read_position};
use super::schema::{EARLY_INDEXES, LATE_INDEXES, TABLES};
use super::{IndexError, Rebuilt, Sources, archived, mark, milliseconds, slugs};
use crate::Result;
use crate::base::files;
use crate::records::sessions::archive::Archive;
use crate::records::sessions::journal::{Damage, Journal};
use gt_core::Problem;
use gt_core::record::Record;
use rusqlite::Connection;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Memory for SQLite during a rebuild, in KiB: enough to sort the indexes of a million sessions.
const MEMORY_KIB: i64 = 256 * 1024;

/// Replaces the database. The caller must hold its lock.
pub(super) fn replace(path: &Path, sources: Sources<'_>) -> Result<Rebuilt> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    // A rebuild that was killed may have left files.
    remove_database(&fresh)?;
    let rebuilt = make(&fresh, sources).map_err(|broken| {
        // The next rebuild removes it first.
        let _ = remove_database(&fresh);
        Problem::from(broken)
    })?;
    // If this process is killed here, the database is missing and the next query builds it.
    remove_database(path)?;
    std::fs::rename(&fresh, path).map_err(|error| files::io_problem("replace", path, &error))?;
    Ok(rebuilt)
}

fn make(path: &Path, sources: Sources<'_>) -> Result<Rebuilt, IndexError> {
    let db = Connection::open(path)?;
    files::make_private(path)?;
    db.pragma_update(None, "page_size", 8192)?;
    for (pragma, value) in [("journal_mode", "OFF"), ("locking_mode", "EXCLUSIVE")] {
        db.pragma_update(None, pragma, value)?;
    }
    db.pragma_update(None, "synchronous", "OFF")?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "cache_size", -MEMORY_KIB)?;
    db.pragma_update(None, "threads", 2)?;
    let rebuilt = fill(&db, sources)?;
    let is_noted = position::note_unsynced(&db)?;
    // The mode in which other processes use it; the file stores it.
    db.pragma_update(None, "journal_mode", "WAL")?;
    drop(db);
    if !is_noted {
        let sync = File::open(path).and_then(|file| file.sync_data());
        sync.map_err(|error| files::io_problem("write", path, &error))?;
    }
    Ok(rebuilt)
}

/// Fills an empty database.
pub(super) fn fill(db: &Connection, sources: Sources<'_>) -> Result<Rebuilt, IndexError> {
    let mut rebuilt = Rebuilt::default();
    db.execute_batch("BEGIN")?;
    db.execute_batch(TABLES)?;
    db.execute_batch(EARLY_INDEXES)?;
    let position = read_position(db, sources.journal)?;
    rebuilt.damages = read_all(db, sources.journal, position)?;
    rebuilt.archived = read_archive(db, sources.archive, &mut rebuilt.damages)?;
    db.execute_batch(LATE_INDEXES)?;
    slugs::fill(db)?;
    mark(db)?;
    db.execute_batch("COMMIT")?;
    rebuilt.sessions = db.query_row("SELECT count(*) FROM lives", [], |row| row.get(0))?;
    Ok(rebuilt)
}

/// Reads the whole journal: one thread reads and merges, the other writes.
fn read_all(
    db: &Connection,
    journal: &Journal,
    position: Position,
) -> Result<Vec<Damage>, IndexError> {
    let Some(reading) = position.reading else {
        return Ok(Vec::new());
    };
    let first = reading.first.clone();
    let (give, rows) = std::sync::mpsc::sync_channel::<Vec<SessionLines>>(2);
    // Written rows go back to the reader: memory is freed fastest by the thread that allocated it.
    let (give_back, written_rows) = std::sync::mpsc::channel::<Vec<SessionLines>>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut damages = Vec::new();
            let give = |rows| {
                let written = written_rows.try_iter().flatten();
                let spare: Vec<String> = written.map(SessionLines::into_text).collect();
                // The writer has stopped and reports the reason itself.
                give.send(rows)
                    .map_err(|_| Problem::failed("the index of sessions was not written"))?;
                Ok::<_, Problem>(spare)
            };
            portion::read(reading, 0, give, &mut |damage| damages.push(damage))
                .map(|end| (end, damages))
        });
        let written = rows.iter().try_for_each(|rows| {
            portion::write(db, &rows, Fill::Anew)?;
            // The reader has ended, and needs no more buffers.
            let _ = give_back.send(rows);
            Ok::<(), IndexError>(())
        });
        drop(rows);
        let read = reader.join();
        written?;
        let (end, damages) =
            read.map_err(|_| Problem::failed("the journal of sessions was not read"))??;
        position::note(db, journal, &first, end)?;
        Ok(damages)
    })
}

/// Notes the sessions that are in the archive and not in the journal.
fn read_archive(
    db: &Connection,
    archive: &Archive,
    damages: &mut Vec<Damage>,
) -> Result<u64, IndexError> {
    let mut count = 0;
    for file in archive.files() {
        let read = archive.for_each(&file, |id, line| {
            let is_open = super::by_id(db, id)?;
            // `for_each` logs a line that is not a record.
            if is_open.is_none()
                && let Ok(session) = serde_json::from_str::<Record>(line)
            {
                archived(db, &session, &file)?;
                let time = |text: &Option<String>| text.as_deref().and_then(milliseconds);
                slugs::note_archived(
                    db,
                    &session,
                    time(&session.started_at),
                    time(&session.ended_at),
                )?;
                count += 1;
            }
            Ok::<(), IndexError>(())
        });
        match read {
            Ok(()) => {}
            // A damaged file must not prevent the others from being read.
            Err(IndexError::Other(problem)) => damages.push(Damage {
                line: 0,
                reason: problem.to_string(),
            }),
            Err(broken) => return Err(broken),
        }
    }
    Ok(count)
}

/// Removes a database and the files that SQLite keeps beside it.
pub(super) fn remove_database(path: &Path) -> Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        files::remove_if_there(&PathBuf::from(name))?;
    }
    Ok(())
}
