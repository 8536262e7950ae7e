//! How far a database has read the journal.

use super::Broken;
use crate::sessions::journal::{Journal, Reading};
use rusqlite::{Connection, OptionalExtension, params};

/// Where a database stands in the journal that is there.
pub(super) struct Position {
    pub(super) reading: Option<Reading>,
    pub(super) read: u64,
}

impl Position {
    pub(super) fn is_current(&self) -> bool {
        self.reading
            .as_ref()
            .is_none_or(|reading| reading.length == self.read)
    }
}

/// Finds the place in the journal, if it is the one that was read. It is known by its
/// first line, and by what stands right before the place.
pub(super) fn how_far(db: &Connection, journal: &Journal) -> Result<Position, Broken> {
    let known: Option<(u64, String, Vec<u8>)> = db
        .query_row("SELECT bytes, first, tail FROM read_so_far", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let reading = journal.open()?;
    let (read, first, tail) = known.unwrap_or_default();
    let is_same = reading.as_ref().is_some_and(|reading| {
        read <= reading.length && first == reading.first && tail == reading.tail_before(read)
    });
    if read > 0 && !is_same {
        return Err(Broken::Damaged("it is of another journal".to_owned()));
    }
    Ok(Position { reading, read })
}

/// Notes that the journal was read so far.
pub(super) fn note(
    db: &Connection,
    journal: &Journal,
    first: &str,
    bytes: u64,
) -> Result<(), Broken> {
    let tail = match journal.open()? {
        // Another one has taken its place meanwhile: this place will fit nowhere.
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
