//! What our SQLite databases have in common.

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::Path;

/// A log of this many bytes is brought into the database by whoever closes it last.
const LONGEST_LOG: u64 = 128 * 1024;

/// Leaves a short log where it is when the last one closes the database. Every command of
/// ours opens and closes it: without this each would bring its few pages into the database
/// by itself, and wait for the disk four times instead of once. It is not left to grow,
/// since whoever opens the database first has to read all of it.
/// Says whether it stays.
pub(crate) fn keep_log(db: &Connection, path: &Path) -> rusqlite::Result<bool> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let length = Path::new(&log).metadata().map_or(0, |log| log.len());
    if length >= LONGEST_LOG {
        return Ok(false);
    }
    // Only then: nobody remembers between two commands how far it was brought in.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
}
