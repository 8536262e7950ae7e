//! Moves old sessions into the archive.

use super::index::IndexError;
use super::query::EndedMonth;
use super::{Sessions, query};
use crate::Result;
use crate::base::files;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use gt_core::record::Record;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

/// Sessions that were moved, or would be.
#[derive(Clone, Debug, Default)]
pub struct Archived {
    pub sessions: usize,
    pub files: Vec<String>,
}

impl Sessions {
    /// Moves the sessions that ended before that time (RFC 3339) out of the journal. At any time the
    /// sessions of one month are in memory, as many as one file of the archive has.
    pub fn archive(&self, before: &str, dry_run: bool) -> Result<Archived> {
        files::make_dir(&self.folder)?;
        let _lock = self.journal.lock()?;
        let mut index = self.open()?;
        let months = match query::months_ended_before(&index, before) {
            Err(broken @ IndexError::Damaged(_)) => {
                index = self.repaired(index, &broken)?;
                query::months_ended_before(&index, before)
            }
            months => months,
        };
        let months = months.map_err(Problem::from)?;
        let archived = Archived {
            sessions: months.iter().map(|month| month.sessions).sum(),
            files: months.iter().map(EndedMonth::file).collect(),
        };
        if dry_run || months.is_empty() {
            return Ok(archived);
        }
        let mut gone = HashSet::new();
        for month in &months {
            let sessions = match query::ended_in(&index, month) {
                Err(broken @ IndexError::Damaged(_)) => {
                    index = self.repaired(index, &broken)?;
                    query::ended_in(&index, month)
                }
                sessions => sessions,
            };
            let sessions = sessions.map_err(Problem::from)?;
            let lines: Result<BTreeMap<String, String>> = sessions
                .iter()
                .map(|session| Ok((session.id.clone(), self.with_detail(session)?)))
                .collect();
            self.archive.add(&month.file(), lines?)?;
            gone.extend(sessions.into_iter().map(|session| session.id));
        }
        self.journal.keep_only(|id| !gone.contains(id))?;
        let mut noted = Ok(());
        for month in &months {
            noted = query::ended_in(&index, month)
                .and_then(|sessions| index.note_archived(&month.file(), &sessions));
            if noted.is_err() {
                break;
            }
        }
        match noted.and_then(|()| index.note_journal(&self.journal)) {
            Err(broken @ IndexError::Damaged(_)) => drop(self.repaired(index, &broken)?),
            noted => noted.map_err(Problem::from)?,
        }
        for id in gone {
            // The details are in the archive now; a file that cannot be removed does no harm.
            for path in [&self.detail_path(&id), self.step_lines(&id).path()] {
                files::remove_if_there(path).or_warn("a file of an archived session stays");
            }
        }
        Ok(archived)
    }

    /// Archives old sessions by the town's setting, at most once a day.
    pub fn archive_if_due(&self, keep_days: u32) -> Result<()> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let mark = self.archive.folder().join(".checked");
        let age = |time: SystemTime| time.elapsed().unwrap_or_default();
        let checked = mark.metadata().and_then(|meta| meta.modified());
        if keep_days == 0 || checked.is_ok_and(|time| age(time) < DAY) {
            return Ok(());
        }
        files::write_passing(&mark, b"")?;
        let before = self.clock.now() - jiff::SignedDuration::from_hours(24 * i64::from(keep_days));
        self.archive(&format!("{before:.3}"), false).map(drop)
    }

    fn with_detail(&self, session: &Record) -> Result<String> {
        let cannot = |error| Problem::failed("cannot write a session").caused_by(error);
        let mut document = serde_json::to_value(session).map_err(cannot)?;
        let detail = files::read_if_there(&self.detail_path(&session.id))?;
        if let Some(text) = detail {
            // Text that is not JSON is kept as a string.
            document["detail"] = serde_json::from_str(&text).unwrap_or(Value::String(text));
        }
        Ok(document.to_string())
    }

    /// Returns the details of a session beside its record: its commits, its steps and its timeline.
    pub fn detail(&self, id: &str) -> Result<Option<Value>> {
        if let Some(text) = files::read_if_there(&self.detail_path(id))? {
            let lost = format!("the details of the session {id} are lost");
            return Ok(serde_json::from_str(&text).or_warn(lost));
        }
        let Some(file) = self.ask(|index| query::archived_in(index, id))? else {
            return Ok(None);
        };
        let found = self.archive.read(&file, &[id.to_owned()])?;
        Ok(found.into_iter().find_map(|mut session| {
            Some(session["detail"].take()).filter(|detail| !detail.is_null())
        }))
    }

    pub(crate) fn detail_path(&self, id: &str) -> std::path::PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}
