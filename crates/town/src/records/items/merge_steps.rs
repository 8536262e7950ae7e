//! The steps by which the merge queue is processed.
//!
//! The caller holds the lock of the rig's queue (`crate::workflow::merge`). Each step is one transaction that
//! changes the items together with the queue: an item is closed only when its branch is in the
//! base.

mod help;
mod withdrawal;

pub(super) use help::requeue_after_repair;
pub(super) use withdrawal::{check_not_handed_in, withdraw};

use super::change::close;
use super::hook::holder;
use super::merge_entries::{find, must_find, set_queued};
use super::read::{by_id, must_have, select};
use super::store::problem;
use super::{ItemDraft, Work};
use crate::Result;
use gt_core::Problem;
use gt_core::merge::{Merge, MergeRefusal, MergeStatus, list_some};
use gt_core::work::{self, Item, WorkId, appended};
use help::remove_escalation;
use rusqlite::types::Value;
use rusqlite::{Connection, params};

/// Rejection of an entry.
#[derive(Clone, Debug)]
pub struct Rejection<'a> {
    pub reason: &'a str,
    /// Reopen the item instead of closing it.
    pub reopen: bool,
}

impl Work {
    /// Begins to merge an entry. Returns `None` if it no longer waits.
    pub fn begin_merge(&self, id: &WorkId) -> Result<Option<Merge>> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if !merge.status.is_waiting() {
                return Ok(None);
            }
            db.execute(
                "UPDATE merges SET status = 'merging', attempts = attempts + 1, reason = NULL,
                 files = '[]', log = NULL, merged_as = NULL, updated_at = ?2 WHERE id = ?1",
                params![id.as_str(), self.clock.text()],
            )
            .map_err(problem)?;
            find(db, id)
        })
    }

    /// Records the commit that would bring the entry into the base, before the base is moved.
    pub fn plan_merge(&self, id: &WorkId, merged_as: &str) -> Result<()> {
        self.change(|db| {
            db.execute(
                "UPDATE merges SET merged_as = ?2, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), merged_as, self.clock.text()],
            )
            .map(drop)
            .map_err(problem)
        })
    }

    /// Puts an entry back into the queue that could not be merged for external reasons.
    pub fn put_back_merge(&self, id: &WorkId, reason: &str) -> Result<Merge> {
        self.change(|db| set_queued(db, id, Some(reason)))
    }

    /// Records that an entry is in the base, and closes its item and its repair. An item that is on
    /// a hook stays open.
    pub fn settle_merge(&self, id: &WorkId, merged_as: &str) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            db.execute(
                "UPDATE merges SET status = 'merged', merged_as = ?2, reason = NULL, files = '[]',
                 log = NULL, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), merged_as, self.clock.text()],
            )
            .map_err(problem)?;
            let reason = merge.close_reason(merged_as);
            for item in [Some(&merge.item), merge.repair.as_ref()]
                .into_iter()
                .flatten()
            {
                if holder(db, item)?.is_none() {
                    close(db, item, Some(&reason))?;
                }
            }
            must_find(db, id)
        })
    }

    /// Records that an entry cannot be merged, and creates an item for its repair.
    pub fn refuse_merge(
        &self,
        id: &WorkId,
        refusal: &MergeRefusal,
        base_commit: &str,
    ) -> Result<Merge> {
        self.refresh_for(&self.merge(id)?.item)?;
        self.change(|db| {
            let merge = must_find(db, id)?;
            let item = must_have(db, &merge.item)?;
            let repair = self.repair(db, &merge, &item, refusal, base_commit)?;
            // Cannot fail for a list of texts.
            let files = serde_json::to_string(&refusal.files).unwrap_or_default();
            db.execute(
                "UPDATE merges SET status = ?2, reason = ?3, files = ?4, log = ?5, repair = ?6,
                 handed = EXISTS (SELECT 1 FROM hooks WHERE hooks.item = ?6),
                 merged_as = NULL, updated_at = ?7 WHERE id = ?1",
                params![
                    id.as_str(),
                    refusal.status.as_str(),
                    refusal.reason,
                    files,
                    refusal.log.as_ref().map(|(file, _)| file),
                    repair.as_str(),
                    self.clock.text(),
                ],
            )
            .map_err(problem)?;
            must_find(db, id)
        })
    }

    /// Returns the repairs of a rig that were not assigned, not completely assigned, or given back.
    pub fn repairs_to_hand_out(&self, rig: &str) -> Result<Vec<(WorkId, Item)>> {
        if !self.is_there()? {
            return Ok(Vec::new());
        }
        self.change(|db| {
            // An open repair was given back by its agent.
            db.execute(
                "UPDATE merges SET handed = 0 WHERE rig = ?1 AND handed = 1
                 AND repair IN (SELECT id FROM items WHERE status = 'open')",
                [rig],
            )
            .map_err(problem)?;
            let mut query = db
                .prepare(
                    "SELECT merges.id, repair FROM merges JOIN items ON items.id = repair
                     WHERE rig = ?1 AND merges.status IN ('conflict', 'failed') AND handed = 0
                     AND items.status IN ('open', 'hooked') ORDER BY priority, merges.created_at",
                )
                .map_err(problem)?;
            let rows = query
                .query_map([rig], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
                })
                .map_err(problem)?;
            rows.map(|row| {
                let (id, repair) = row.map_err(problem)?;
                Ok((id.parse()?, must_have(db, &repair.parse()?)?))
            })
            .collect()
        })
    }

    /// Records that the repair is assigned.
    pub fn repair_is_handed_out(&self, id: &WorkId) -> Result<()> {
        self.change(|db| {
            db.execute("UPDATE merges SET handed = 1 WHERE id = ?1", [id.as_str()])
                .map(drop)
                .map_err(problem)
        })
    }

    /// Queues an entry again that could not be merged, with the given commit.
    pub fn retry_merge(&self, id: &WorkId, commit: &str) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if !merge.status.is_broken() {
                return Err(Problem::conflict(format!(
                    "{id} is {}, and not waiting for another try",
                    merge.status.as_str()
                )));
            }
            db.execute(
                "UPDATE merges SET commit_id = ?2 WHERE id = ?1",
                params![id.as_str(), commit],
            )
            .map_err(problem)?;
            remove_escalation(db, &merge)?;
            set_queued(db, id, None)
        })
    }

    /// Records that an entry changes protected files and waits for the approval of a person.
    pub fn hold_merge(&self, id: &WorkId, files: &[String]) -> Result<Merge> {
        self.change(|db| {
            // Cannot fail for a list of texts.
            let names = serde_json::to_string(files).unwrap_or_default();
            let reason = format!("it changes protected files: {}", list_some(files));
            db.execute(
                "UPDATE merges SET status = 'held', reason = ?2, files = ?3, merged_as = NULL,
                 updated_at = ?4 WHERE id = ?1",
                params![id.as_str(), reason, names, self.clock.text()],
            )
            .map_err(problem)?;
            must_find(db, id)
        })
    }

    /// Approves the changes of protected files in the present commit of an entry, and queues the
    /// entry.
    pub fn approve_merge(&self, id: &WorkId) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if merge.status != MergeStatus::Held {
                return Err(Problem::conflict(format!(
                    "{id} is {}, and waits for no approval",
                    merge.status.as_str()
                )));
            }
            db.execute(
                "UPDATE merges SET approved = commit_id WHERE id = ?1",
                [id.as_str()],
            )
            .map_err(problem)?;
            set_queued(db, id, None)
        })
    }

    /// Records that an entry will not be merged, and closes or reopens its item.
    pub fn reject_merge(&self, id: &WorkId, rejection: &Rejection<'_>) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if merge.status.is_settled() {
                return Err(Problem::conflict(format!(
                    "{id} is {} already",
                    merge.status.as_str()
                )));
            }
            let now = self.clock.text();
            db.execute(
                "UPDATE merges SET status = 'rejected', reason = ?2, updated_at = ?3
                 WHERE id = ?1",
                params![id.as_str(), rejection.reason, now],
            )
            .map_err(problem)?;
            let words = format!("{} was not merged: {}", merge.branch, rejection.reason);
            if let Some(repair) = &merge.repair {
                close(db, repair, Some(&words))?;
            }
            let item = must_have(db, &merge.item)?;
            let is_held = holder(db, &item.id)?.is_some();
            let waits = matches!(
                item.status,
                work::ItemStatus::InProgress | work::ItemStatus::Blocked
            );
            match rejection.reopen && waits {
                // An agent works on the item, independent of the submitted branch.
                _ if is_held => {}
                true => {
                    db.execute(
                        "UPDATE items SET status = 'open', assignee = NULL, notes = ?2,
                         updated_at = ?3 WHERE id = ?1",
                        params![item.id.as_str(), appended(&item.notes, &words), now],
                    )
                    .map_err(problem)?;
                }
                false if rejection.reopen => {}
                false => drop(close(db, &merge.item, Some(&words))?),
            }
            must_find(db, id)
        })
    }

    /// Returns the item of a repair: the existing one, or a new one.
    fn repair(
        &self,
        db: &Connection,
        merge: &Merge,
        item: &Item,
        refusal: &MergeRefusal,
        base_commit: &str,
    ) -> Result<WorkId> {
        let description = refusal.description(merge, base_commit);
        let before = match &merge.repair {
            Some(id) => by_id(db, id)?.filter(|before| before.status != work::ItemStatus::Closed),
            // A process may have been killed after it created the repair in beads.
            None => select(
                db,
                "WHERE parent = ?1 AND title = ?2 AND status = 'open'
                 AND id NOT IN (SELECT repair FROM merges WHERE repair IS NOT NULL)
                 ORDER BY id LIMIT 1",
                [item.id.to_string(), refusal.title(item)].map(Value::from),
            )?
            .pop(),
        };
        let Some(before) = before else {
            let made = self.make(
                db,
                &ItemDraft {
                    parent: Some(merge.item.clone()),
                    title: refusal.title(item),
                    description,
                    kind: Some("bug".to_owned()),
                    priority: Some(item.priority.saturating_sub(1)),
                    ..ItemDraft::default()
                },
            )?;
            return Ok(made.id);
        };
        db.execute(
            "UPDATE items SET description = ?2, updated_at = ?3 WHERE id = ?1",
            params![before.id.as_str(), description, self.clock.text()],
        )
        .map_err(problem)?;
        // An agent that has it on the hook keeps it.
        if before.status == work::ItemStatus::InProgress && holder(db, &before.id)?.is_none() {
            db.execute(
                "UPDATE items SET assignee = NULL, status = 'open' WHERE id = ?1",
                [before.id.as_str()],
            )
            .map_err(problem)?;
        }
        Ok(before.id)
    }
}
