//! The position up to which a database has read the journal.

use super::IndexError;
use crate::base::processes::boot_id;
use crate::records::sessions::journal::{Journal, JournalReader};
use rusqlite::{Connection, OptionalExtension, params};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The position of a database in the present journal.
pub(super) struct Position {
    pub(super) reading: Option<JournalReader>,
    pub(super) read: u64,
    /// The database survives a power failure.
    pub(super) is_on_disk: bool,
}

impl Position {
    pub(super) fn is_current(&self) -> bool {
        self.reading
            .as_ref()
            .is_none_or(|reading| reading.length == self.read)
    }
}

/// Returns the position, if the present journal is the one that was read. The journal is recognised
/// by its first line and by the bytes before the position.
pub(super) fn read_position(db: &Connection, journal: &Journal) -> Result<Position, IndexError> {
    let known: Option<(u64, String, Vec<u8>, Option<String>)> = db
        .query_row(
            "SELECT bytes, first, tail, boot FROM read_so_far",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .optional()?;
    let reading = journal.open()?;
    let (read, first, tail, boot) = known.unwrap_or_default();
    if boot.is_some() && boot != boot_id() {
        return Err(IndexError::Outdated(
            "the machine went down before it was on the disk".to_owned(),
        ));
    }
    let is_same = reading.as_ref().is_some_and(|reading| {
        read <= reading.length && first == reading.first && tail == reading.tail_before(read)
    });
    if read > 0 && !is_same {
        return Err(IndexError::Outdated("it is of another journal".to_owned()));
    }
    Ok(Position {
        reading,
        read,
        is_on_disk: boot.is_none(),
    })
}

/// Notes that the journal was read up to this position.
pub(super) fn note(
    db: &Connection,
    journal: &Journal,
    first: &str,
    bytes: u64,
) -> Result<(), IndexError> {
    let tail = match journal.open()? {
        // Another journal has replaced it meanwhile. An empty tail matches no position.
        Some(reading) if reading.first != first => Vec::new(),
        Some(reading) => reading.tail_before(bytes),
        None => Vec::new(),
    };
    db.execute(
        "INSERT INTO read_so_far (one, bytes, first, tail) VALUES (1, ?1, ?2, ?3)
         ON CONFLICT (one) DO UPDATE SET bytes = ?1, first = ?2, tail = ?3",
        params![bytes, first, tail],
    )?;
    Ok(())
}

/// Notes that the database was written without a sync: it is invalid after a reboot. Returns
/// whether the boot id is known, so that this could be noted.
pub(super) fn note_unsynced(db: &Connection) -> Result<bool, IndexError> {
    let Some(boot) = boot_id() else {
        return Ok(false);
    };
    db.execute("UPDATE read_so_far SET boot = ?1", [boot])?;
    Ok(true)
}

/// Removes that note once the database is old enough and synced to the disk.
pub(super) fn note_synced(db: &Connection, path: &Path) -> Result<(), IndexError> {
    const WRITTEN_AFTER: Duration = Duration::from_secs(60);
    let age = path.metadata().and_then(|meta| meta.modified());
    let is_old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > WRITTEN_AFTER));
    if is_old && File::open(path).and_then(|file| file.sync_data()).is_ok() {
        db.execute("UPDATE read_so_far SET boot = NULL", [])?;
    }
    Ok(())
}
