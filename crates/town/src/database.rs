//! What our SQLite databases have in common.

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::Path;
use std::time::Duration;

/// A log of this many bytes is brought into the database by whoever closes it last.
const LONGEST_LOG: u64 = 128 * 1024;
/// And one of this many already by whoever has time for it.
const LONG_LOG: u64 = LONGEST_LOG / 2;

/// Leaves a short log where it is when the last one closes the database. Every command of
/// ours opens and closes it: without this each would bring its few pages into the database
/// by itself, and wait for the disk four times instead of once. It is not left to grow,
/// since whoever opens the database first has to read all of it.
/// Says whether it stays.
pub(crate) fn keep_log(db: &Connection, path: &Path) -> rusqlite::Result<bool> {
    if log_length(path) >= LONGEST_LOG {
        return Ok(false);
    }
    // Only then: nobody remembers between two commands how far it was brought in.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
}

/// Brings the log in before it is so long that somebody who is waited for has to.
pub(crate) fn tidy(db: &Connection, path: &Path) -> rusqlite::Result<()> {
    if log_length(path) < LONG_LOG {
        return Ok(());
    }
    // Where somebody reads or writes right now, it is left to the next.
    db.busy_timeout(Duration::ZERO)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Distinguishes one boot of the machine from another.
pub(crate) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
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
    fn a_long_log_is_brought_in_by_who_has_time() {
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
        assert!(log_length(&path) > LONG_LOG, "somebody reads it");
        reader.execute_batch("COMMIT").unwrap();
        tidy(&db, &path).unwrap();
        assert_eq!(log_length(&path), 0);
    }
}
