//! Detects whether the database of work items exists, and creates the first one.
//!
//! It is built under a temporary name and renamed atomically, and a marker file records that it
//! existed. If the database is missing, this tells a new town from one whose disk is not mounted or
//! whose file was removed. Only a new town has no work.

use super::Work;
use super::store::{TIMEOUT, migrate, problem};
use crate::Result;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use rusqlite::Connection;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Hint for a database that is gone or invalid.
pub(super) const RESTORE: &str = "`gt doctor --fix` restores the newest backup of .work/backups; without one, remove .work to begin without any work";

impl Work {
    /// Returns whether anything was ever written. A place that cannot be read is an error, not an
    /// empty database.
    pub(super) fn is_there(&self) -> Result<bool> {
        match self.path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.check_never_there() {
                    Ok(()) => Ok(false),
                    // The marker is written after the database: another process may have created
                    // both meanwhile.
                    Err(_) if self.path.symlink_metadata().is_ok() => Ok(true),
                    Err(problem) => Err(problem),
                }
            }
            Err(error) => Err(unreachable(&self.path, &error)),
        }
    }

    /// Fails if a database was there and is gone.
    fn check_never_there(&self) -> Result<()> {
        let folder = self.folder();
        match folder.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreachable(folder, &error)),
            // A symbolic link may lead to a disk that is not mounted.
            Ok(_) => match folder.metadata() {
                Ok(_) => {}
                Err(error) => return Err(unreachable(folder, &error)),
            },
        }
        // SQLite would apply a leftover log to the next database.
        for left in [self.mark(), self.beside("db-wal")] {
            if left.symlink_metadata().is_ok() {
                return Err(Problem::failed("the work items are gone")
                    .cause(format!(
                        "there is {}, but no {}",
                        left.display(),
                        self.path.display()
                    ))
                    .hint(RESTORE));
            }
        }
        Ok(())
    }

    /// Creates the database if there never was one. A kill at any moment leaves none, or a complete
    /// one.
    pub(super) fn create_first(&self) -> Result<()> {
        files::make_dir(self.folder())?;
        let _lock = FileLock::take(&self.beside("new.lock"), TIMEOUT)?;
        // Another process may have created it meanwhile.
        if self.is_there()? {
            return Ok(());
        }
        let new = self.beside("new");
        for left in ["new", "new-journal", "new-wal", "new-shm"] {
            files::remove_if_there(&self.beside(left))?;
        }
        let cannot = |error: io::Error| files::io_problem("write", &new, &error);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&new);
        drop(file.map_err(cannot)?);
        build(&new).map_err(problem)?;
        let put = || {
            File::open(&new)?.sync_all()?;
            fs::rename(&new, &self.path)?;
            File::open(self.folder())?.sync_all()
        };
        put().map_err(cannot)
    }

    /// Writes the marker that the database exists. Written after it, so that a killed process never
    /// leaves a marker without a database.
    pub(super) fn note_there(&self) {
        let mark = self.mark();
        if mark.symlink_metadata().is_ok() {
            return;
        }
        // If this fails, a removed database is not noticed; the next call retries.
        let mut options = OpenOptions::new();
        let made = options.create(true).append(true).mode(0o600).open(mark);
        made.or_warn("the marker of the work items is not written");
    }

    /// Returns the path of the marker, which is also the lock for migrations.
    pub(super) fn mark(&self) -> PathBuf {
        self.beside("lock")
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }
}

/// Builds the database without syncing; the caller syncs it before the rename.
fn build(path: &Path) -> rusqlite::Result<()> {
    let mut db = Connection::open(path)?;
    db.pragma_update(None, "synchronous", "OFF")?;
    migrate(&mut db)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.close().map_err(|(_, error)| error)
}

fn unreachable(path: &Path, error: &io::Error) -> Problem {
    Problem::failed("the work items cannot be reached")
        .cause(format!("{}: {error}", path.display()))
        .hint("check who owns it, and whether its disk is mounted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::items::{ItemDraft, ItemQuery};
    use std::os::unix::fs::symlink;

    fn work(folder: &Path) -> Work {
        Work::at(folder.join(".work/items.db"))
    }

    fn make(work: &Work) {
        let draft = ItemDraft {
            prefix: "gt".into(),
            title: "There".into(),
            ..ItemDraft::default()
        };
        work.create(&draft).unwrap();
    }

    fn count(work: &Work) -> Result<usize> {
        work.find(&ItemQuery::default()).map(|items| items.len())
    }

    #[test]
    fn a_first_database_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let work = work(folder.path());
        assert_eq!(count(&work).unwrap(), 0);
        assert!(!work.folder().exists(), "a look makes nothing");
        // State after a kill before the database was complete.
        files::make_dir(work.folder()).unwrap();
        for left in ["new", "new.lock", "new-journal"] {
            fs::write(work.beside(left), "half").unwrap();
        }
        assert_eq!(count(&work).unwrap(), 0);
        make(&work);
        assert!(!work.beside("new").exists() && !work.beside("new-wal").exists());
        assert_eq!(count(&work).unwrap(), 1);
        // State after a kill before the marker was written.
        let moved = Work::at(folder.path().join("moved/items.db"));
        fs::rename(work.folder(), moved.folder()).unwrap();
        fs::remove_file(moved.mark()).unwrap();
        assert_eq!(count(&moved).unwrap(), 1);
        assert!(moved.mark().exists());
    }

    #[test]
    fn missing_or_damaged_database_is_an_error() {
        type Harm = fn(&Work);
        let harms: [(&str, Harm); 6] = [
            ("removed", |work| fs::remove_file(&work.path).unwrap()),
            ("removed with its mark", |work| {
                fs::write(work.beside("db-wal"), "left").unwrap();
                fs::remove_file(work.mark()).unwrap();
                fs::remove_file(&work.path).unwrap();
            }),
            ("empty", |work| {
                let _ = fs::remove_file(work.beside("db-wal"));
                fs::remove_file(&work.path).unwrap();
                fs::write(&work.path, "").unwrap();
            }),
            ("a link to nothing", |work| {
                fs::remove_file(&work.path).unwrap();
                symlink("/nowhere/items.db", &work.path).unwrap();
            }),
            ("a folder's link to nothing", |work| {
                fs::remove_dir_all(work.folder()).unwrap();
                symlink("/nowhere", work.folder()).unwrap();
            }),
            ("a file", |work| {
                fs::remove_dir_all(work.folder()).unwrap();
                fs::write(work.folder(), "").unwrap();
            }),
        ];
        for (name, harm) in harms {
            let folder = tempfile::tempdir().unwrap();
            let work = work(folder.path());
            make(&work);
            harm(&work);
            for found in [
                count(&work).map(drop),
                work.hooked("mayor").map(drop),
                work.unhook("mayor").map(drop),
                work.export(|_| Ok(())),
            ] {
                let problem = found.expect_err(name);
                assert_eq!(
                    problem.kind(),
                    gt_core::ProblemKind::Failed,
                    "{name}: {problem}"
                );
                assert!(!problem.hints().is_empty(), "{name}: {problem}");
            }
            // No other database is created in its place.
            let empty = work.path.metadata().map_or(0, |meta| meta.len());
            assert_eq!(empty, 0, "{name}");
        }
    }
}
