//! Entries of the queue that are repaired without a change, or that a remote does not take:
//! tried again, and at last left to somebody who can help.

use crate::Result;
use crate::when::timestamp;
use crate::work::Work;
use crate::work::change::add_labels;
use crate::work::finish::ESCALATED;
use crate::work::hook::holder;
use crate::work::merges::{broken_of, find, must_find, set_queued};
use crate::work::read::must_have;
use crate::work::store::problem;
use gt_core::merge::Merge;
use gt_core::work::{self, WorkId, appended};
use rusqlite::{Connection, params};

/// So often a branch is tried, if those who repair it change nothing.
const MOST_ATTEMPTS: u32 = 5;

/// What becomes of the entry whose repair was done without a change: whoever did it found
/// nothing to repair, so it is tried again. That may go on for ever, so at last its item
/// waits for somebody's help.
pub(crate) fn try_again(db: &Connection, repair: &WorkId) -> Result<Option<WorkId>> {
    let Some(merge) = broken_of(db, repair)? else {
        return Ok(None);
    };
    if merge.attempts < MOST_ATTEMPTS {
        return set_queued(db, &merge.id, None).map(|merge| Some(merge.id));
    }
    let words = format!(
        "{} was tried {} times, and its repair changed nothing: {}",
        merge.branch,
        merge.attempts,
        merge.reason.as_deref().unwrap_or_default()
    );
    wait_for_help(db, &merge, &words)?;
    Ok(None)
}

impl Work {
    /// What a remote has not taken, and takes others: after some tries it waits for somebody's
    /// help. `None` if it is not so far.
    pub fn leave_to_help(&self, id: &WorkId, reason: &str) -> Result<Option<Merge>> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if merge.attempts < MOST_ATTEMPTS || !merge.status.is_waiting() {
                return Ok(None);
            }
            db.execute(
                "UPDATE merges SET status = 'failed', reason = ?2, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), reason, timestamp(None)],
            )
            .map_err(problem)?;
            let words = format!(
                "{} was tried {} times: {reason}",
                merge.branch, merge.attempts
            );
            wait_for_help(db, &merge, &words)?;
            find(db, id)
        })
    }
}

/// The item of an entry waits for somebody's help, unless somebody works on it.
fn wait_for_help(db: &Connection, merge: &Merge, words: &str) -> Result<()> {
    let item = must_have(db, &merge.item)?;
    if item.status != work::Status::InProgress || holder(db, &item.id)?.is_some() {
        return Ok(());
    }
    db.execute(
        "UPDATE items SET status = 'blocked', assignee = NULL, notes = ?2, updated_at = ?3
         WHERE id = ?1",
        params![
            item.id.as_str(),
            appended(&item.notes, words),
            timestamp(None)
        ],
    )
    .map_err(problem)?;
    add_labels(db, &item.id, &[ESCALATED.to_owned()])
}

/// The item of an entry that is tried once more waits for the queue, and for no help.
pub(super) fn has_been_helped(db: &Connection, merge: &Merge) -> Result<()> {
    let changed = db
        .execute(
            "UPDATE items SET status = 'in_progress', assignee = ?2, updated_at = ?3
             WHERE id = ?1 AND status = 'blocked'",
            params![merge.item.as_str(), merge.refinery(), timestamp(None)],
        )
        .map_err(problem)?;
    if changed > 0 {
        db.execute(
            "DELETE FROM labels WHERE item = ?1 AND label = ?2",
            params![merge.item.as_str(), ESCALATED],
        )
        .map_err(problem)?;
    }
    Ok(())
}
