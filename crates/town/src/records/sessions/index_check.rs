//! Checks whether the index agrees with the journal.

use super::index::{Depth, Index, IndexError};
use super::journal::Damage;
use super::{Sessions, hash};
use crate::Result;
use crate::base::files;
use gt_core::Problem;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Length in bytes up to which a journal is read in a few milliseconds.
const SHORT_JOURNAL: u64 = 4 * 1024 * 1024;
/// Result of reading the whole journal.
#[derive(Clone, Debug, Default)]
pub struct JournalState {
    pub sessions: usize,
    pub damages: Vec<Damage>,
    /// The newest start or end, RFC 3339 in UTC.
    pub newest: Option<String>,
    /// The last line is incomplete: a crash has cut it off, or another process is writing it.
    pub is_torn: bool,
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Sessions {
    /// Compares the index with the journal and rebuilds it if they disagree. Returns the reason for
    /// the rebuild. A long journal is compared at most once a day; otherwise only the tables of the
    /// index are compared with each other, at most once an hour.
    pub fn compare_index(&self) -> Result<Option<String>> {
        let length = self.journal.path().metadata().map_or(0, |meta| meta.len());
        if length <= SHORT_JOURNAL || self.is_comparison_due() {
            return self.compare_now();
        }
        let mark = self.tables_mark();
        if is_newer(&mark, HOUR) || is_newer(&self.comparison_mark(), HOUR) {
            return Ok(None);
        }
        let reason = self.compare(Depth::Tables)?;
        files::write_passing(&mark, b"")?;
        Ok(reason)
    }

    /// Compares only the tables of the index with each other, without reading the journal, and
    /// rebuilds the index if they disagree. Returns the reason for the rebuild.
    pub(crate) fn compare_tables(&self) -> Result<Option<String>> {
        self.compare(Depth::Tables)
    }

    /// Compares the index with the journal, at most once a day.
    pub(crate) fn compare_if_due(&self) -> Result<()> {
        match self.is_comparison_due() {
            true => self.compare_now().map(drop),
            false => Ok(()),
        }
    }

    pub(crate) fn compare_now(&self) -> Result<Option<String>> {
        let reason = self.compare(Depth::Journal)?;
        files::write_passing(&self.comparison_mark(), b"")?;
        Ok(reason)
    }

    fn is_comparison_due(&self) -> bool {
        !is_newer(&self.comparison_mark(), DAY)
    }

    fn comparison_mark(&self) -> PathBuf {
        self.folder.join(".compared")
    }

    fn tables_mark(&self) -> PathBuf {
        self.folder.join(".compared-tables")
    }

    fn compare(&self, depth: Depth) -> Result<Option<String>> {
        let index = self.open()?;
        let reason = match index.disagreement(&self.journal, depth) {
            Ok(None) => return Ok(None),
            Ok(Some(reason)) | Err(IndexError::Damaged(reason)) => reason,
            // Another process is moving sessions into the archive and has not noted it yet.
            Err(IndexError::Outdated(_)) => return Ok(None),
            Err(broken) => return Err(broken.into()),
        };
        self.repaired(index, &IndexError::Damaged(reason.clone()))?;
        Ok(Some(reason))
    }

    /// Returns how the index disagrees with the journal, without a repair. Opening repairs an index
    /// that cannot be opened.
    pub(crate) fn index_disagreement(&self) -> Result<Option<String>> {
        let index: Index = self.open()?;
        match index.disagreement(&self.journal, Depth::Journal) {
            Ok(reason) => Ok(reason),
            Err(IndexError::Damaged(reason)) => Ok(Some(reason)),
            Err(IndexError::Outdated(_)) => Ok(None),
            Err(broken) => Err(broken.into()),
        }
    }

    /// Reads the whole journal; returns `None` if there is none yet.
    pub fn examine_journal(&self) -> Result<Option<JournalState>> {
        let Some(reading) = self.journal.open()? else {
            return Ok(None);
        };
        let mut state = JournalState::default();
        let mut ids = HashSet::new();
        let length = reading.length;
        let mut damages = Vec::new();
        let end = reading.for_each_from(
            0,
            |record| {
                ids.insert(hash(&record.id));
                let newest = state.newest.take();
                state.newest = newest.max(record.started_at).max(record.ended_at);
                Ok::<(), Problem>(())
            },
            &mut |damage| damages.push(damage),
        )?;
        state.sessions = ids.len();
        state.damages = damages;
        state.is_torn = end < length;
        Ok(Some(state))
    }

    /// Moves unreadable lines of the journal into `index.damaged` beside it. Returns their number
    /// and that file.
    pub(crate) fn set_aside_damaged(&self) -> Result<(usize, PathBuf)> {
        let _lock = self.journal.lock()?;
        self.journal.set_aside_damaged()
    }
}

/// Returns whether a file was written within this time.
fn is_newer(mark: &Path, time: Duration) -> bool {
    let written = mark.metadata().and_then(|meta| meta.modified());
    // A time in the future means that the clock was set back since.
    written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::town;
    use gt_core::record::Record;
    use std::fs::File;
    use std::time::SystemTime;

    #[test]
    fn tables_of_a_long_history_are_compared_once_an_hour() {
        let (_folder, town) = town();
        let sessions = Sessions::of(&town);
        let prompt = "x".repeat(100_000);
        let line = |at: usize| Record {
            agent: Some("agent/a".to_owned()),
            initial_prompt: Some(prompt.clone()),
            ..Record::about(format!("{at}"))
        };
        let lines: Vec<Record> = (0..50).map(line).collect();
        sessions.record(&lines).unwrap();
        assert_eq!(sessions.compare_index().unwrap(), None);
        let index = sessions.folder.join("index.db");
        let db = rusqlite::Connection::open(index).unwrap();
        db.execute_batch("DELETE FROM records WHERE life = 1")
            .unwrap();
        drop(db);
        assert_eq!(
            sessions.compare_index().unwrap(),
            None,
            "it was just compared"
        );
        let before = SystemTime::now() - 2 * HOUR;
        let mark = File::options().write(true).open(sessions.comparison_mark());
        mark.unwrap().set_modified(before).unwrap();
        let reason = sessions.compare_index().unwrap();
        assert_eq!(reason.as_deref(), Some("1 sessions have no record"));
        assert_eq!(sessions.compare_index().unwrap(), None);
    }
}
