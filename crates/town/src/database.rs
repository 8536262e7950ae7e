//! What our SQLite databases have in common.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// Pages in the log after which a change brings them into the database.
const LOG_PAGES: u32 = 40;

/// Leaves the log where it is when the last one closes the database. Every command of ours
/// opens and closes it: without this each would bring its few pages into the database by
/// itself, and wait for the disk four times instead of once. The log stays small, since
/// whoever opens the database next reads through it.
pub(crate) fn keep_log(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)
}
