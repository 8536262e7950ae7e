//! Common settings of our SQLite databases.

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::Path;
use std::time::Duration;

/// Size in bytes at which the last process to close the database checkpoints the log.
const LONGEST_LOG: u64 = 128 * 1024;
/// Size at which [`tidy`] checkpoints the log in the background.
const LONG_LOG: u64 = LONGEST_LOG / 2;

/// Disables the checkpoint on close while the log is short. Every command opens and closes the
/// database: otherwise each would checkpoint its few pages, and sync four times instead of once.
/// The log must not grow without limit, because the first process to open the database reads all of
/// it. Returns whether the log stays.
pub(crate) fn keep_log(db: &Connection, path: &Path) -> rusqlite::Result<bool> {
    if log_length(path) >= LONGEST_LOG {
        return Ok(false);
    }
    // Disabled only for a short log: the checkpoint's progress is not stored between commands.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
}

/// Checkpoints the log before it is so long that an interactive command has to.
pub(crate) fn tidy(db: &Connection, path: &Path) -> rusqlite::Result<()> {
    if log_length(path) < LONG_LOG {
        return Ok(());
    }
    // Does not wait for a concurrent reader or writer: the next call retries.
    db.busy_timeout(Duration::ZERO)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn log_length(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).metadata().map_or(0, |log| log.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_log_is_checkpointed_once_no_process_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        assert!(keep_log(&db, &path).unwrap());
        db.execute_batch("CREATE TABLE x (x)").unwrap();
        let short = log_length(&path);
        tidy(&db, &path).unwrap();
        assert!(0 < short && log_length(&path) == short, "not worth it");
        db.execute("INSERT INTO x VALUES (zeroblob(?1))", [LONG_LOG])
            .unwrap();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM x").unwrap();
        tidy(&db, &path).unwrap();
        assert!(log_length(&path) > LONG_LOG, "another process reads it");
        reader.execute_batch("COMMIT").unwrap();
        tidy(&db, &path).unwrap();
        assert_eq!(log_length(&path), 0);
    }
}
