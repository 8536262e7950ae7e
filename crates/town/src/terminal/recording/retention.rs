//! Removes old recordings.

use super::{Recordings, file_name};
use crate::Result;
use crate::base::files;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Recordings {
    /// Removes recordings that have not grown for this many days, at most once a day. 0 means
    /// never.
    pub fn remove_if_due(&self, keep_days: u32) -> Result<()> {
        let mark = self.folder.join(".checked");
        let checked = mark.metadata().and_then(|meta| meta.modified());
        let is_recent = checked.is_ok_and(|at| at.elapsed().unwrap_or_default() < DAY);
        if keep_days == 0 || is_recent || !self.folder.is_dir() {
            return Ok(());
        }
        files::write_passing(&mark, b"")?;
        match self.clock.system_time().checked_sub(DAY * keep_days) {
            Some(before) => self.remove_before(before),
            None => Ok(()),
        }
    }

    fn remove_before(&self, before: SystemTime) -> Result<()> {
        let mut by_session: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for (session, _, path) in self.files()? {
            by_session.entry(session).or_default().push(path);
        }
        for (session, paths) in by_session {
            let is_new = |path: &PathBuf| {
                let changed = path.metadata().and_then(|meta| meta.modified());
                changed.is_ok_and(|at| at >= before)
            };
            // The recording of a silent agent does not grow but is in use.
            if paths.iter().any(is_new) || self.is_being_written(&session) {
                continue;
            }
            // The first file is removed last, so that the remaining files are found again after a
            // crash.
            for path in paths.iter().rev() {
                files::remove_if_there(path)?;
            }
        }
        Ok(())
    }

    /// Returns whether a process records that session now.
    fn is_being_written(&self, session: &str) -> bool {
        // Without its file, a recording has not begun or was removed.
        File::open(self.folder.join(file_name(session, 0)))
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_old_and_finished_goes() {
        let dir = tempfile::tempdir().unwrap();
        let recordings = Recordings {
            clock: crate::base::clock::Clock::default(),
            folder: dir.path().to_owned(),
        };
        let names = [
            "old.cast",
            "old.3.cast",
            "half.2.cast",
            "busy.cast",
            "new.cast",
        ];
        for name in names {
            let file = File::create(dir.path().join(name)).unwrap();
            if name != "new.cast" {
                file.set_modified(SystemTime::now() - DAY * 40).unwrap();
            }
        }
        let busy = File::open(dir.path().join("busy.cast")).unwrap();
        busy.lock().unwrap();
        recordings.remove_if_due(0).unwrap();
        assert_eq!(recordings.files().unwrap().len(), names.len());
        recordings.remove_if_due(30).unwrap();
        let left: Vec<String> = recordings
            .files()
            .unwrap()
            .into_iter()
            .map(|f| f.0)
            .collect();
        assert_eq!(left, ["busy", "new"]);
        drop(busy);
        recordings.remove_if_due(30).unwrap();
        assert_eq!(recordings.files().unwrap().len(), 2, "once a day");
        std::fs::remove_file(dir.path().join(".checked")).unwrap();
        recordings.remove_if_due(30).unwrap();
        assert_eq!(recordings.files().unwrap().len(), 1);
    }
}
