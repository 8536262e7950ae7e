//! Compares the index with the journal that it was built from.

use super::{Index, IndexError, read_position};
use crate::records::sessions::hash;
use crate::records::sessions::journal::Journal;

/// Amount of the journal that a comparison reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::records::sessions) enum Depth {
    /// Nothing: only the tables of the index must agree with each other.
    Tables,
    /// All that the index has read.
    Journal,
}

/// Indexes that have an entry for every session.
const WHOLE_INDEXES: [&str; 8] = [
    "sqlite_autoindex_lives_1",
    "by_time",
    "by_role",
    "by_harness",
    "by_chain",
    "by_agent",
    "by_rig",
    "by_outcome",
];

impl Index {
    /// Returns how the index disagrees with the journal. It compares a snapshot, so other processes
    /// may write to both meanwhile.
    pub(in crate::records::sessions) fn disagreement(
        &self,
        journal: &Journal,
        depth: Depth,
    ) -> Result<Option<String>, IndexError> {
        let view = self.db().unchecked_transaction()?;
        let count = |query: &str| view.query_row(query, [], |row| row.get::<_, u64>(0));
        let incomplete = count(
            "SELECT count(*) FROM lives LEFT JOIN records ON life = lives.rowid
             WHERE life IS NULL",
        )?;
        if incomplete > 0 {
            return Ok(Some(format!("{incomplete} sessions have no record")));
        }
        // An index that has lost entries yields fewer sessions and no error.
        let all = count("SELECT count(*) FROM lives NOT INDEXED")?;
        for index in WHOLE_INDEXES {
            // SQLite would answer `count(*)` from the smallest index, regardless of `INDEXED BY`.
            let there = count(&format!(
                "SELECT count(+rowid) FROM lives INDEXED BY {index}"
            ))?;
            if there != all {
                return Ok(Some(format!(
                    "{all} sessions, and {there} of them in {index}"
                )));
            }
        }
        if depth == Depth::Tables {
            return Ok(None);
        }
        let position = read_position(&view, journal)?;
        let written = match position.reading {
            Some(reading) => reading.ids_before(position.read)?,
            None => std::collections::HashSet::new(),
        };
        let mut query = view.prepare("SELECT id FROM lives")?;
        let mut rows = query.query([])?;
        let (mut there, mut strange) = (0, 0_usize);
        while let Some(row) = rows.next()? {
            there += 1;
            strange += usize::from(!written.contains(&hash(&row.get::<_, String>(0)?)));
        }
        let missing = written.len() - (there - strange).min(written.len());
        Ok((missing > 0 || strange > 0).then(|| {
            format!(
                "the journal has {} sessions and the index {there}: {missing} are missing, \
                 {strange} are not in the journal",
                written.len()
            )
        }))
    }
}
