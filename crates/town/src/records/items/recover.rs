//! Replaces a damaged or missing database of items with a backup.
//!
//! The damaged files are kept in a folder beside it. Items that the backup lacks are reported if
//! they are still found in the damaged file, the events or the journal.

use super::Work;
use super::backup::{Backup, examine, remove_with_logs};
use super::store::{LATEST, TIMEOUT, problem, version};
use crate::Result;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Result of a recovery.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// When the backup was made.
    pub at: Timestamp,
    pub items: usize,
    /// Folder of the damaged files, if there were any.
    pub aside: Option<PathBuf>,
    /// Items that the damaged file still lists and the backup lacks.
    pub missing: Vec<String>,
}

impl Work {
    /// Describes the damage of the database, if a backup can repair it. Returns `None` for other
    /// failures: an unreachable place, missing permissions, or a database of a newer gt.
    pub fn damage(&self) -> Option<String> {
        match self.path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_missing = self.folder().is_dir() && self.is_there().is_err();
                is_missing.then(|| format!("{} is gone", self.path.display()))
            }
            Ok(meta) if meta.is_file() => damage_in(&self.path),
            _ => None,
        }
    }

    /// Returns the newest intact backup, with the number of its items.
    pub fn newest_whole_backup(&self) -> Option<(Backup, usize)> {
        let mut backups = self.backups().into_iter();
        backups.find_map(|backup| {
            let items = whole_items(&backup.path)?;
            Some((backup, items))
        })
    }

    /// Restores the newest intact backup. A kill at any moment leaves the damaged database, no
    /// database, or the restored one. The damaged files are kept in a folder beside it.
    pub fn recover(&self) -> Result<Recovered> {
        let _lock = FileLock::take(&self.mark(), TIMEOUT)?;
        // Another process may have restored it meanwhile.
        if self.damage().is_none() {
            return Err(Problem::conflict("the work items are intact again"));
        }
        let (backup, items) = self.newest_whole_backup().ok_or_else(|| {
            Problem::not_found(format!(
                "there is no intact backup in {}",
                self.backup_folder().display()
            ))
            .hint("remove .work to begin without any work")
        })?;
        let fresh = files::temporary_beside(&self.path);
        let made = self.prepare(&backup.path, &fresh);
        made.inspect_err(|_| {
            remove_with_logs(&fresh).or_warn("a temporary file stays");
        })?;
        let aside = self.set_aside()?;
        let put = || {
            fs::rename(&fresh, &self.path)?;
            File::open(self.folder())?.sync_all()
        };
        put().map_err(|error| files::io_problem("restore", &self.path, &error))?;
        let missing = aside.as_deref().map_or_else(Vec::new, |aside| {
            let before = ids(&aside.join(file_name(&self.path)));
            let after = ids(&self.path);
            before.difference(&after).cloned().collect()
        });
        Ok(Recovered {
            at: backup.at,
            items,
            aside,
            missing,
        })
    }

    /// Returns the ids of all items.
    pub(crate) fn item_ids(&self) -> BTreeSet<String> {
        ids(&self.path)
    }

    /// Prepares a database from a backup: private, in WAL mode, and synced.
    fn prepare(&self, backup: &Path, fresh: &Path) -> Result<()> {
        let cannot = |error| files::io_problem("write", fresh, &error);
        fs::copy(backup, fresh).map_err(cannot)?;
        files::make_private(fresh)?;
        let convert = || -> rusqlite::Result<()> {
            let db = Connection::open(fresh)?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.close().map_err(|(_, error)| error)
        };
        convert().map_err(problem)?;
        File::open(fresh)
            .and_then(|file| file.sync_all())
            .map_err(cannot)
    }

    /// Moves the damaged files into a separate folder, the write-ahead log first: if it stayed
    /// behind, SQLite would apply it to the restored database.
    fn set_aside(&self) -> Result<Option<PathBuf>> {
        let all = ["db-wal", "db-shm", "db-journal", "db"].map(|end| self.beside(end));
        if all.iter().all(|path| path.symlink_metadata().is_err()) {
            return Ok(None);
        }
        let now = self.clock.text().replace([':', '.'], "-");
        let aside = self.folder().join(format!("damaged-{now}"));
        files::make_dir(&aside)?;
        for path in all {
            match fs::rename(&path, aside.join(file_name(&path))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(files::io_problem("move aside", &path, &error));
                }
                _ => {}
            }
        }
        Ok(Some(aside))
    }
}

fn file_name(path: &Path) -> &std::ffi::OsStr {
    path.file_name().unwrap_or_default()
}

fn damage_in(path: &Path) -> Option<String> {
    let look = || -> rusqlite::Result<Option<String>> {
        let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE;
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(TIMEOUT)?;
        let version = version(&db)?;
        if version == 0 {
            return Ok(Some(format!("{} holds none", path.display())));
        }
        match version > LATEST {
            true => Ok(None),
            false => examine(&db).map(std::result::Result::err),
        }
    };
    match look() {
        Ok(damage) => damage,
        Err(error) => match error.sqlite_error_code() {
            // These errors are caused by the path, another process or the machine, not by the
            // content.
            Some(
                ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::PermissionDenied
                | ErrorCode::ReadOnly
                | ErrorCode::SystemIoFailure,
            ) => None,
            _ => Some(error.to_string()),
        },
    }
}

/// Returns the number of items in a backup, if it is intact and its version is known.
fn whole_items(path: &Path) -> Option<usize> {
    let damaged = format!("{} cannot be read", path.display());
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let db = db.or_warn(&damaged)?;
    let known = 1..=LATEST;
    if !known.contains(&version(&db).or_warn(&damaged)?) {
        return None;
    }
    match examine(&db).or_warn(&damaged)? {
        Ok(items) => Some(items),
        Err(damage) => {
            tracing::warn!("{damaged}: {damage}");
            None
        }
    }
}

/// Returns the ids of all items that can be read.
fn ids(path: &Path) -> BTreeSet<String> {
    let mut ids: BTreeSet<String> = BTreeSet::new();
    let mut read = |from: &str| -> rusqlite::Result<()> {
        let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE;
        let db = Connection::open_with_flags(path, flags)?;
        let mut query = db.prepare(from)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            ids.insert(row.get(0)?);
        }
        Ok(())
    };
    // If the table is damaged, the index may be intact, and vice versa.
    for query in [
        "SELECT id FROM items NOT INDEXED",
        "SELECT id FROM items INDEXED BY items_by_status ORDER BY status",
    ] {
        read(query).or_debug("not all ids can be read");
    }
    ids.into_iter()
        .filter(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_graphic()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::items::{ItemDraft, ItemQuery};
    use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

    const TITLE: &str = "a title that is long enough to fill pages, and then some more of it";

    fn with_items(count: usize) -> (tempfile::TempDir, Work) {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join(".work/items.db"));
        add(&work, count);
        (folder, work)
    }

    fn add(work: &Work, count: usize) {
        for number in 0..count {
            let draft = ItemDraft {
                prefix: "gt".into(),
                title: format!("{number} {TITLE}"),
                ..ItemDraft::default()
            };
            work.create(&draft).unwrap();
        }
    }

    fn count(work: &Work) -> Result<usize> {
        work.find(&ItemQuery::default()).map(|items| items.len())
    }

    /// Checkpoints the log and overwrites a part of the file.
    fn harm(work: &Work, at: u64, noise: &[u8]) {
        let db = Connection::open(work.path()).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        drop(db);
        let file = File::options().write(true).open(work.path()).unwrap();
        file.write_all_at(noise, at).unwrap();
    }

    #[test]
    fn damaged_or_missing_database_is_restored_and_kept_aside() {
        type Harm = fn(&Work);
        let harms: [(&str, Harm); 5] = [
            ("overwritten header", |work| harm(work, 0, &[0x5a; 100])),
            ("overwritten page", |work| harm(work, 4096, &[0x5a; 4096])),
            ("cut", |work| {
                harm(work, 0, b"SQLite format 3\0");
                let file = File::options().write(true).open(work.path()).unwrap();
                file.set_len(5000).unwrap();
            }),
            ("emptied", |work| {
                harm(work, 0, b"SQLite format 3\0");
                fs::write(work.path(), "").unwrap();
            }),
            ("removed", |work| fs::remove_file(work.path()).unwrap()),
        ];
        for (name, harm) in harms {
            let (_folder, work) = with_items(60);
            work.back_up(None).unwrap().unwrap();
            add(&work, 2);
            assert_eq!(work.damage(), None, "{name}");
            harm(&work);
            assert!(work.damage().is_some(), "{name}");
            let recovered = work.recover().unwrap();
            assert_eq!(recovered.items, 60, "{name}");
            assert_eq!(count(&work).unwrap(), 60, "{name}");
            assert_eq!(work.damage(), None, "{name}");
            assert_eq!(work.check().unwrap(), Some(60), "{name}");
            let aside = recovered.aside.map(|aside| aside.join("items.db").exists());
            assert_eq!(
                aside.unwrap_or(name == "removed"),
                name != "removed" || aside.is_none()
            );
            let mode = work.path().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            // The restored database accepts changes.
            add(&work, 1);
            assert_eq!(count(&work).unwrap(), 61, "{name}");
            assert!(work.recover().is_err(), "{name}: it is whole");
        }
    }

    #[test]
    fn recovery_names_the_items_that_the_backup_lacks() {
        let (_folder, work) = with_items(3);
        work.back_up(None).unwrap().unwrap();
        add(&work, 2);
        let all: BTreeSet<String> = ids(work.path());
        let db = Connection::open(work.path()).unwrap();
        // A quick check finds this table damaged, while the items can still be read.
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'merges'";
        let root: u64 = db.query_row(root, [], |row| row.get(0)).unwrap();
        drop(db);
        harm(&work, (root - 1) * 4096, &[0x5a; 4096]);
        let recovered = work.recover().unwrap();
        let left = ids(work.path());
        let lost: Vec<String> = all.difference(&left).cloned().collect();
        assert_eq!((recovered.missing.len(), recovered.missing), (2, lost));
    }

    #[test]
    fn newest_backup_that_is_whole_is_taken() {
        let (_folder, work) = with_items(20);
        work.back_up(None).unwrap().unwrap();
        add(&work, 1);
        let newest = work.back_up(None).unwrap().unwrap();
        fs::write(
            &newest.path,
            "no database, but long enough to look like one",
        )
        .unwrap();
        fs::remove_file(work.path()).unwrap();
        assert_eq!(work.recover().unwrap().items, 20);
    }

    #[test]
    fn place_that_cannot_be_reached_is_not_restored() {
        let (_folder, work) = with_items(1);
        work.back_up(None).unwrap().unwrap();
        fs::remove_file(work.path()).unwrap();
        symlink("/nowhere/items.db", work.path()).unwrap();
        assert_eq!(work.damage(), None);
        let (folder, work) = with_items(1);
        assert_eq!(work.damage(), None);
        fs::remove_file(work.path()).unwrap();
        assert!(work.damage().is_some());
        assert!(
            work.recover()
                .unwrap_err()
                .message()
                .contains("no intact backup")
        );
        let empty = Work::at(folder.path().join("other/items.db"));
        assert_eq!(empty.damage(), None, "nothing was ever written");
    }
}
