//! Backups of the database of work items: `.work/backups/<time>.db`.
//!
//! Items, mail, hooks and the merge queue are stored nowhere else, so `gt save` and its timer copy
//! them with SQLite's backup API while other processes read and write. A copy is checked, synced
//! and renamed, so that each file there is complete; a damaged database is never backed up.
//! `recover.rs` restores a backup.

use super::Work;
use super::store::problem;
use crate::Result;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{database, files, processes};
use gt_core::Problem;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::backup::{Backup as Copy, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Format of the time in the name of a backup, in UTC: names sort like times.
const NAME: &str = "%Y%m%dT%H%M%S%.3fZ";
/// Number of newest backups that are kept, and number of days of which the newest is kept.
const KEEP_NEWEST: usize = 5;
const KEEP_DAYS: usize = 7;
/// Maximum wait for another process that makes a backup.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum wait for a database that another process keeps locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time between two checks of the database, even if it has not changed.
const CHECK_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// An existing backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    pub at: Timestamp,
}

/// A backup that was just made.
#[derive(Clone, Debug)]
pub struct BackedUp {
    pub path: PathBuf,
    pub items: usize,
    pub bytes: u64,
}

impl Work {
    /// Returns the backups, newest first.
    pub fn backups(&self) -> Vec<Backup> {
        let mut backups: Vec<Backup> = files::entries(&self.backup_folder())
            .filter_map(|entry| backup_at(entry.path()))
            .collect();
        backups.sort_by_key(|backup| std::cmp::Reverse(backup.at));
        backups
    }

    /// Makes a backup. Returns `None` if nothing has changed since the newest, or if there is no
    /// database yet. With `not_before`, the newest must also be at least that old, so that a
    /// database that changes constantly is not copied constantly.
    pub fn back_up(&self, not_before: Option<Duration>) -> Result<Option<BackedUp>> {
        let Some(changed) = self.changed_at()? else {
            return Ok(None);
        };
        if !self.is_backup_due(changed, not_before) {
            return Ok(None);
        }
        let folder = self.backup_folder();
        files::make_dir(&folder)?;
        let _lock = FileLock::take(&folder.join(".lock"), LOCK_TIMEOUT)?;
        // Another process may have made it meanwhile.
        if !self.is_backup_due(changed, not_before) {
            return Ok(None);
        }
        let at = self.clock.now();
        let name = at.to_zoned(TimeZone::UTC).strftime(NAME).to_string();
        let path = folder.join(format!("{name}.db"));
        let temporary = files::temporary_beside(&path);
        let made = self.copy_to(&temporary, changed).and_then(|items| {
            let put = || {
                fs::rename(&temporary, &path)?;
                File::open(&folder)?.sync_all()
            };
            put().map_err(|error| files::io_problem("write", &path, &error))?;
            Ok(items)
        });
        let items = made.inspect_err(|_| {
            remove_with_logs(&temporary).or_warn("a temporary file stays");
        })?;
        self.note_checked();
        self.prune_backups();
        let bytes = path.metadata().map_or(0, |meta| meta.len());
        Ok(Some(BackedUp { path, items, bytes }))
    }

    /// Returns whether the database was created at least so long ago.
    pub(crate) fn is_older_than(&self, age: Duration) -> bool {
        let made = self.mark().metadata().and_then(|meta| meta.modified());
        made.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed >= age))
    }

    /// Checks the database if that was not done for a day, or since the machine was started: most
    /// damage is caused by power failures.
    pub fn check_if_due(&self) -> Result<()> {
        let mark = self.check_mark();
        let checked = mark.metadata().and_then(|meta| meta.modified());
        let is_recent = checked.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < CHECK_EVERY));
        // If the mark cannot be read, the check runs.
        let noted = files::read_if_there(&mark).unwrap_or_default();
        if is_recent && noted == Some(processes::boot_id().unwrap_or_default()) {
            return Ok(());
        }
        if self.check()?.is_some() {
            self.note_checked();
        }
        Ok(())
    }

    /// Returns when the database was last written, by its file and its log; `None` if there is
    /// none.
    fn changed_at(&self) -> Result<Option<SystemTime>> {
        if !self.is_there()? {
            return Ok(None);
        }
        // Either file may be missing.
        let modified = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
        Ok(modified(&self.path).max(modified(&self.beside("db-wal"))))
    }

    fn is_backup_due(&self, changed: SystemTime, not_before: Option<Duration>) -> bool {
        let Some(newest) = self.backups().into_iter().next() else {
            return true;
        };
        // A backup has the modification time of the database that it copies.
        let copied = newest.path.metadata().and_then(|meta| meta.modified());
        let age = self.clock.now().duration_since(newest.at).unsigned_abs();
        // A backup whose time cannot be read is made again.
        copied.ok() != Some(changed) && not_before.is_none_or(|limit| age >= limit)
    }

    /// Copies the database into a new file, checks it, and returns the number of its items.
    fn copy_to(&self, path: &Path, changed: SystemTime) -> Result<usize> {
        let cannot = |error| files::io_problem("write", path, &error);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(cannot)?;
        // A separate connection, without the writes that `open` may need.
        let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_CREATE;
        let copy = || -> rusqlite::Result<std::result::Result<usize, String>> {
            let source = Connection::open_with_flags(&self.path, flags)?;
            source.busy_timeout(BUSY_TIMEOUT)?;
            // Closing this connection must not checkpoint the log.
            let _ = database::keep_log(&source, &self.path)?;
            let mut copied = Connection::open_with_flags(path, flags)?;
            copied.pragma_update(None, "synchronous", "OFF")?;
            let backup = Copy::new(&source, &mut copied)?;
            // In one step: a copy page by page restarts with each concurrent change.
            if backup.step(-1)? != StepResult::Done {
                return Ok(Err("it was locked by another process".to_owned()));
            }
            drop(backup);
            // A single file, without a log beside it.
            copied.pragma_update(None, "journal_mode", "DELETE")?;
            examine(&copied)
        };
        let items = copy().map_err(problem)?.map_err(|reason| {
            Problem::failed("the work items are damaged and were not backed up")
                .cause(reason)
                .hint("`gt doctor` shows details, and `gt doctor --fix` restores the newest backup")
        })?;
        let finish = || {
            file.set_modified(changed)?;
            file.sync_all()
        };
        finish().map_err(cannot)?;
        Ok(items)
    }

    /// Removes superseded backups. An extra file is harmless.
    fn prune_backups(&self) {
        for backup in superseded(&self.backups()) {
            files::remove_if_there(&backup.path).or_warn("an old backup stays");
        }
    }

    fn note_checked(&self) {
        let boot = processes::boot_id().unwrap_or_default();
        // If this fails, the next call checks again.
        let _ = files::write_passing(&self.check_mark(), boot.as_bytes());
    }

    fn check_mark(&self) -> PathBuf {
        self.beside("checked")
    }

    pub(super) fn backup_folder(&self) -> PathBuf {
        self.path.with_file_name("backups")
    }
}

/// Checks that a database is intact and has the expected tables. Returns the number of its items,
/// or the damage.
pub(super) fn examine(db: &Connection) -> rusqlite::Result<std::result::Result<usize, String>> {
    let said: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if said != "ok" {
        return Ok(Err(said.replace('\n', " ")));
    }
    db.query_row("SELECT count(*) FROM items", [], |row| row.get(0))
        .map(Ok)
}

/// Removes a database and SQLite's files beside it.
pub(super) fn remove_with_logs(path: &Path) -> Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        files::remove_if_there(Path::new(&name))?;
    }
    Ok(())
}

fn backup_at(path: PathBuf) -> Option<Backup> {
    let name = path.file_name()?.to_str()?.strip_suffix(".db")?;
    let at = jiff::civil::DateTime::strptime(NAME, name).ok()?;
    // Every time exists in UTC.
    let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some(Backup { path, at })
}

/// Returns the backups that are neither among the newest nor the newest of their day. The input is
/// sorted, newest first.
fn superseded(backups: &[Backup]) -> Vec<Backup> {
    let mut days = Vec::new();
    let mut gone = Vec::new();
    for (number, backup) in backups.iter().enumerate() {
        let day = backup.at.to_zoned(TimeZone::UTC).date();
        let is_newest_of_day = !days.contains(&day) && days.len() < KEEP_DAYS;
        if is_newest_of_day {
            days.push(day);
        }
        if number >= KEEP_NEWEST && !is_newest_of_day {
            gone.push(backup.clone());
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::items::{ItemDraft, ItemQuery};
    use std::os::unix::fs::PermissionsExt;

    fn work(folder: &Path) -> Work {
        Work::at(folder.join(".work/items.db"))
    }

    fn add(work: &Work, title: &str) {
        let draft = ItemDraft {
            prefix: "gt".into(),
            title: title.into(),
            ..ItemDraft::default()
        };
        work.create(&draft).unwrap();
    }

    #[test]
    fn backup_is_made_only_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let work = work(folder.path());
        assert!(work.back_up(None).unwrap().is_none(), "nothing is there");
        assert!(!work.path().parent().unwrap().exists());
        add(&work, "one");
        let made = work.back_up(None).unwrap().unwrap();
        assert_eq!(made.items, 1);
        let mode = made.path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(work.back_up(None).unwrap().is_none(), "nothing has changed");
        add(&work, "two");
        let hour = Some(Duration::from_secs(3600));
        assert!(work.back_up(hour).unwrap().is_none(), "too soon");
        assert_eq!(work.back_up(None).unwrap().unwrap().items, 2);
        assert_eq!(work.backups().len(), 2);
        // One file each, and only the lock beside them.
        let left = fs::read_dir(work.backup_folder()).unwrap().count();
        assert_eq!(left, 3);
    }

    #[test]
    fn backup_has_what_is_only_in_the_log_and_keeps_no_writer_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let work = work(folder.path());
        add(&work, "one");
        let mut writer = Connection::open(work.path()).unwrap();
        let change = writer.transaction().unwrap();
        change
            .execute_batch("UPDATE items SET title = 'half'")
            .unwrap();
        // An uncommitted change is not in the backup.
        let made = work.back_up(None).unwrap().unwrap();
        change.commit().unwrap();
        let copied = Connection::open(&made.path).unwrap();
        let title: String = copied
            .query_row("SELECT title FROM items", [], |row| row.get(0))
            .unwrap();
        assert_eq!(title, "one");
        assert_eq!(work.find(&ItemQuery::default()).unwrap()[0].title, "half");
    }

    #[test]
    fn damaged_database_is_not_backed_up() {
        let folder = tempfile::tempdir().unwrap();
        let work = work(folder.path());
        for number in 0..200 {
            add(&work, &format!("{number} {}", "x".repeat(200)));
        }
        work.back_up(None).unwrap().unwrap();
        let db = Connection::open(work.path()).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        drop(db);
        let length = work.path().metadata().unwrap().len();
        let file = File::options().write(true).open(work.path()).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; 8192], length / 2 / 4096 * 4096)
            .unwrap();
        drop(file);
        let problem = work.back_up(None).unwrap_err();
        assert!(problem.hints()[0].contains("doctor"), "{problem}");
        assert_eq!(work.backups().len(), 1);
        let left = fs::read_dir(work.backup_folder()).unwrap().count();
        assert_eq!(left, 2, "the copy is removed");
        fs::remove_file(work.check_mark()).unwrap();
        assert!(work.check_if_due().is_err());
    }

    #[test]
    fn check_is_due_once_a_day_and_after_a_boot() {
        let folder = tempfile::tempdir().unwrap();
        let work = work(folder.path());
        add(&work, "one");
        work.check_if_due().unwrap();
        let mark = work.check_mark();
        let set_age = |age: Duration| {
            let file = File::options().write(true).open(&mark).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        let is_checked = || {
            let age = mark.metadata().unwrap().modified().unwrap().elapsed();
            age.unwrap() < Duration::from_secs(60)
        };
        set_age(Duration::from_secs(3600));
        work.check_if_due().unwrap();
        assert!(!is_checked(), "an hour ago is recent");
        set_age(CHECK_EVERY);
        work.check_if_due().unwrap();
        assert!(is_checked());
        fs::write(&mark, "another boot").unwrap();
        work.check_if_due().unwrap();
        assert_ne!(fs::read_to_string(&mark).unwrap(), "another boot");
    }

    #[test]
    fn newest_and_one_a_day_are_kept() {
        let backup = |at: &str| backup_at(PathBuf::from(format!("/b/{at}.db"))).unwrap();
        let mut backups: Vec<Backup> = (0..10)
            .map(|minute| backup(&format!("20260120T12{:02}00.000Z", 59 - minute)))
            .collect();
        for day in (1..20).rev() {
            backups.push(backup(&format!("202601{day:02}T180000.000Z")));
            backups.push(backup(&format!("202601{day:02}T060000.000Z")));
        }
        let gone = superseded(&backups);
        let kept: Vec<String> = backups
            .iter()
            .filter(|backup| !gone.contains(backup))
            .map(|backup| backup.at.to_string())
            .collect();
        assert_eq!(kept.len(), KEEP_NEWEST + KEEP_DAYS - 1, "{kept:?}");
        assert_eq!(kept[0], "2026-01-20T12:59:00Z");
        assert_eq!(kept[5..7], ["2026-01-19T18:00:00Z", "2026-01-18T18:00:00Z"]);
        assert_eq!(backup_at("/b/.lock".into()), None);
    }
}
