//! Entries whose repair changes nothing or cannot be merged either, or that the remote refuses: they
//! are retried, and finally escalated.

use crate::Result;
use crate::records::items::Work;
use crate::records::items::change::add_labels;
use crate::records::items::hook::holder;
use crate::records::items::merge_entries::{broken_of, find, must_find, set_queued};
use crate::records::items::read::must_have;
use crate::records::items::store::now;
use crate::records::items::store::problem;
use gt_core::merge::Merge;
use gt_core::tree::ESCALATED;
use gt_core::work::{self, WorkId, appended};
use rusqlite::{Connection, params};

/// Maximum number of attempts for a branch whose repairs change nothing.
const MAX_ATTEMPTS: u32 = 5;
/// Maximum number of attempts for a branch whose repairs change it and cannot be merged either.
const MAX_REPAIRS: u32 = 10;

/// Queues an entry again whose repair was completed without a change. To avoid an endless loop, its
/// item is escalated after the last attempt.
pub(crate) fn requeue_after_repair(db: &Connection, repair: &WorkId) -> Result<Option<WorkId>> {
    let Some(merge) = broken_of(db, repair)? else {
        return Ok(None);
    };
    if merge.attempts < MAX_ATTEMPTS {
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
    /// Escalates an entry that the remote refuses while it accepts others. Returns `None` if
    /// attempts are left.
    pub fn escalate_refused(&self, id: &WorkId, reason: &str) -> Result<Option<Merge>> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if merge.attempts < MAX_ATTEMPTS || !merge.status.is_waiting() {
                return Ok(None);
            }
            db.execute(
                "UPDATE merges SET status = 'failed', reason = ?2, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), reason, self.clock.text()],
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

impl Work {
    /// Escalates an entry whose repairs could not be merged either, and blocks its repair, so that
    /// no further agent is started for it. Returns `None` if attempts are left or an agent has the
    /// repair.
    pub fn give_up_repairs(&self, id: &WorkId) -> Result<Option<Merge>> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            let Some(repair) = merge.repair.as_ref().filter(|_| merge.status.is_broken()) else {
                return Ok(None);
            };
            // Attempts without a repair, as while the remote does not answer, are no reason.
            let is_repaired = merge.branch.ends_with(repair.as_str());
            if !is_repaired || merge.attempts < MAX_REPAIRS || holder(db, repair)?.is_some() {
                return Ok(None);
            }
            db.execute(
                "UPDATE items SET status = 'blocked', assignee = NULL, updated_at = ?2
                 WHERE id = ?1 AND status = 'open'",
                params![repair.as_str(), now(db)?],
            )
            .map_err(problem)?;
            let words = format!(
                "{} was tried {} times, and its repairs could not be merged either: {}",
                merge.branch,
                merge.attempts,
                merge.reason.as_deref().unwrap_or_default()
            );
            wait_for_help(db, &merge, &words)?;
            find(db, id)
        })
    }
}

/// Marks the item of an entry as blocked and escalated, unless it is on a hook.
fn wait_for_help(db: &Connection, merge: &Merge, words: &str) -> Result<()> {
    let item = must_have(db, &merge.item)?;
    if item.status != work::ItemStatus::InProgress || holder(db, &item.id)?.is_some() {
        return Ok(());
    }
    db.execute(
        "UPDATE items SET status = 'blocked', assignee = NULL, notes = ?2, updated_at = ?3
         WHERE id = ?1",
        params![item.id.as_str(), appended(&item.notes, words), now(db)?],
    )
    .map_err(problem)?;
    add_labels(db, &item.id, &[ESCALATED.to_owned()])
}

/// Puts the item of a retried entry back to waiting for the queue, and removes the escalation.
pub(super) fn remove_escalation(db: &Connection, merge: &Merge) -> Result<()> {
    let changed = db
        .execute(
            "UPDATE items SET status = 'in_progress', assignee = ?2, updated_at = ?3
             WHERE id = ?1 AND status = 'blocked'",
            params![merge.item.as_str(), merge.refinery(), now(db)?],
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
