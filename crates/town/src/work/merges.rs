//! The merge queue: which branches wait, and what became of them.
//!
//! Whoever merges holds the lock of the rig's queue (`crate::merge`). Here every step of
//! it is one transaction, in which the items change together with the queue: an item is
//! closed only when its branch is in the base.

use super::change::{close, insert, random_id};
use super::read::{by_id, must_have};
use super::store::problem;
use super::{Draft, Work};
use crate::Result;
use crate::sessions::timestamp;
use gt_core::Problem;
use gt_core::merge::{Merge, PREFIX, Refusal, Status};
use gt_core::work::{self, Item, WorkId};
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "merges.id, rig, item, branch, commit_id, base, worker, merges.status,
    attempts, reason, files, log, repair, merged_as, merges.created_at, merges.updated_at";

/// A branch that is to be merged.
#[derive(Clone, Debug)]
pub struct Handed {
    pub rig: String,
    pub branch: String,
    pub commit: String,
    pub base: String,
}

/// What a person does with an entry of the queue.
#[derive(Clone, Debug)]
pub struct Rejection<'a> {
    pub reason: &'a str,
    /// The item is open again, and not closed.
    pub reopen: bool,
}

impl Work {
    /// The queue, of one rig or of all: first what waits, the most urgent and oldest
    /// first, and, if all is wanted, what is settled.
    pub fn merges(&self, rig: Option<&str>, all: bool) -> Result<Vec<Merge>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let statement = format!(
            "SELECT {COLUMNS} FROM merges JOIN items ON items.id = item
             WHERE (?1 IS NULL OR rig = ?1)
             AND (?2 OR merges.status NOT IN ('merged', 'rejected'))
             ORDER BY merges.status IN ('merged', 'rejected'), priority,
                 merges.created_at, merges.id"
        );
        let mut statement = db.prepare(&statement).map_err(problem)?;
        let rows = statement
            .query_map(params![rig, all], |row| Ok(merge(row)))
            .map_err(problem)?;
        rows.map(|row| row.map_err(problem)?).collect()
    }

    /// The entry of this id.
    pub fn merge(&self, id: &WorkId) -> Result<Merge> {
        let found = match self.open_if_there()? {
            Some(db) => find(&db, id)?,
            None => None,
        };
        found.ok_or_else(|| not_found(id))
    }

    /// Whether the work on a branch is not in the base yet although it is to go there.
    pub fn is_waiting_to_merge(&self, rig: &str, branch: &str) -> Result<bool> {
        let waiting = self.merges(Some(rig), false)?;
        Ok(waiting.iter().any(|merge| merge.branch == branch))
    }

    /// Takes an entry up. `None` if it does not wait any more.
    pub fn begin_merge(&self, id: &WorkId) -> Result<Option<Merge>> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if !matches!(merge.status, Status::Queued | Status::Merging) {
                return Ok(None);
            }
            db.execute(
                "UPDATE merges SET status = 'merging', attempts = attempts + 1, reason = NULL,
                 files = '[]', log = NULL, merged_as = NULL, updated_at = ?2 WHERE id = ?1",
                params![id.as_str(), timestamp(None)],
            )
            .map_err(problem)?;
            find(db, id)
        })
    }

    /// Notes which commit would bring it into the base, before that is tried.
    pub fn plan_merge(&self, id: &WorkId, merged_as: &str) -> Result<()> {
        self.change(|db| {
            db.execute(
                "UPDATE merges SET merged_as = ?2, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), merged_as, timestamp(None)],
            )
            .map(drop)
            .map_err(problem)
        })
    }

    /// Puts back what could not be merged for reasons that are not its own.
    pub fn put_back_merge(&self, id: &WorkId, reason: &str) -> Result<Merge> {
        self.change(|db| set_queued(db, id, Some(reason)))
    }

    /// It is in the base: what it was made for is closed.
    pub fn settle_merge(&self, id: &WorkId, merged_as: &str) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            db.execute(
                "UPDATE merges SET status = 'merged', merged_as = ?2, reason = NULL, files = '[]',
                 log = NULL, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), merged_as, timestamp(None)],
            )
            .map_err(problem)?;
            let reason = merge.close_reason(merged_as);
            for item in [Some(&merge.item), merge.repair.as_ref()]
                .into_iter()
                .flatten()
            {
                close(db, item, Some(&reason))?;
            }
            must_find(db, id)
        })
    }

    /// It cannot be merged as it is: an item says what is to be repaired.
    pub fn refuse_merge(&self, id: &WorkId, refusal: &Refusal, base_commit: &str) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            let item = must_have(db, &merge.item)?;
            let repair = repair(db, &merge, &item, refusal, base_commit)?;
            let files = serde_json::to_string(&refusal.files).unwrap_or_default();
            db.execute(
                "UPDATE merges SET status = ?2, reason = ?3, files = ?4, log = ?5, repair = ?6,
                 handed = 0, merged_as = NULL, updated_at = ?7 WHERE id = ?1",
                params![
                    id.as_str(),
                    refusal.status.word(),
                    refusal.reason,
                    files,
                    refusal.log.as_ref().map(|(file, _)| file),
                    repair.as_str(),
                    timestamp(None),
                ],
            )
            .map_err(problem)?;
            must_find(db, id)
        })
    }

    /// The repairs of a rig that nobody was given yet.
    pub fn repairs_to_hand_out(&self, rig: &str) -> Result<Vec<(WorkId, Item)>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare(
                "SELECT merges.id, repair FROM merges JOIN items ON items.id = repair
                 WHERE rig = ?1 AND merges.status IN ('conflict', 'failed') AND handed = 0
                 AND items.status = 'open' ORDER BY priority, merges.created_at",
            )
            .map_err(problem)?;
        let rows = query
            .query_map([rig], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(problem)?;
        rows.map(|row| {
            let (id, repair) = row.map_err(problem)?;
            Ok((id.parse()?, must_have(&db, &repair.parse()?)?))
        })
        .collect()
    }

    /// Somebody has the repair now.
    pub fn repair_is_handed_out(&self, id: &WorkId) -> Result<()> {
        self.change(|db| {
            db.execute("UPDATE merges SET handed = 1 WHERE id = ?1", [id.as_str()])
                .map(drop)
                .map_err(problem)
        })
    }

    /// Queues again what could not be merged, as it is now if its branch went on.
    pub fn retry_merge(&self, id: &WorkId, commit: &str) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if !merge.status.is_broken() {
                return Err(Problem::conflict(format!(
                    "{id} is {}, and not waiting for another try",
                    merge.status.word()
                )));
            }
            db.execute(
                "UPDATE merges SET commit_id = ?2 WHERE id = ?1",
                params![id.as_str(), commit],
            )
            .map_err(problem)?;
            set_queued(db, id, None)
        })
    }

    /// It will not be merged; its item is closed, or open again.
    pub fn reject_merge(&self, id: &WorkId, rejection: &Rejection<'_>) -> Result<Merge> {
        self.change(|db| {
            let merge = must_find(db, id)?;
            if merge.status.is_settled() {
                return Err(Problem::conflict(format!(
                    "{id} is {} already",
                    merge.status.word()
                )));
            }
            let now = timestamp(None);
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
            match rejection.reopen && item.status == work::Status::InProgress {
                true => {
                    db.execute(
                        "UPDATE items SET status = 'open', assignee = NULL, notes = ?2,
                         updated_at = ?3 WHERE id = ?1",
                        params![
                            item.id.as_str(),
                            super::change::appended(&item.notes, &words),
                            now
                        ],
                    )
                    .map_err(problem)?;
                }
                false if rejection.reopen => {}
                false => drop(close(db, &merge.item, Some(&words))?),
            }
            must_find(db, id)
        })
    }
}

/// Queues a branch for an item. What waits for that item already, or for the item that
/// this one repairs, is replaced: the later work counts.
pub(super) fn enqueue(
    db: &Connection,
    item: &WorkId,
    worker: &str,
    handed: &Handed,
) -> Result<WorkId> {
    let now = timestamp(None);
    let waiting: Option<String> = db
        .query_row(
            "SELECT id FROM merges WHERE rig = ?1 AND (item = ?2 OR repair = ?2)
             AND status IN ('queued', 'conflict', 'failed') ORDER BY created_at DESC LIMIT 1",
            params![handed.rig, item.as_str()],
            |row| row.get(0),
        )
        .optional()
        .map_err(problem)?;
    if let Some(id) = waiting {
        let id: WorkId = id.parse()?;
        db.execute(
            "UPDATE merges SET branch = ?2, commit_id = ?3, worker = ?4 WHERE id = ?1",
            params![id.as_str(), handed.branch, handed.commit, worker],
        )
        .map_err(problem)?;
        set_queued(db, &id, None)?;
        return Ok(id);
    }
    let id = loop {
        let id = random_id(PREFIX)?;
        if find(db, &id)?.is_none() {
            break id;
        }
    };
    db.execute(
        "INSERT INTO merges (id, rig, item, branch, commit_id, base, worker, status,
         created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', ?8, ?8)",
        params![
            id.as_str(),
            handed.rig,
            item.as_str(),
            handed.branch,
            handed.commit,
            handed.base,
            worker,
            now,
        ],
    )
    .map_err(problem)?;
    Ok(id)
}

fn set_queued(db: &Connection, id: &WorkId, reason: Option<&str>) -> Result<Merge> {
    db.execute(
        "UPDATE merges SET status = 'queued', reason = ?2, files = '[]', log = NULL,
         merged_as = NULL, updated_at = ?3 WHERE id = ?1",
        params![id.as_str(), reason, timestamp(None)],
    )
    .map_err(problem)?;
    must_find(db, id)
}

/// The item of a repair: the one that was made before, or a new one.
fn repair(
    db: &Connection,
    merge: &Merge,
    item: &Item,
    refusal: &Refusal,
    base_commit: &str,
) -> Result<WorkId> {
    let description = refusal.description(merge, base_commit);
    let before = match &merge.repair {
        Some(id) => by_id(db, id)?.filter(|before| before.status != work::Status::Closed),
        None => None,
    };
    let Some(before) = before else {
        let made = insert(
            db,
            &Draft {
                parent: Some(merge.item.clone()),
                title: refusal.title(item),
                description,
                kind: Some("bug".to_owned()),
                priority: Some(item.priority.saturating_sub(1)),
                ..Draft::default()
            },
        )?;
        return Ok(made.id);
    };
    // Whoever has it on the hook goes on with it.
    db.execute(
        "UPDATE items SET description = ?2, updated_at = ?3,
         assignee = CASE WHEN status = 'in_progress' THEN NULL ELSE assignee END,
         status = CASE WHEN status = 'in_progress' THEN 'open' ELSE status END
         WHERE id = ?1",
        params![before.id.as_str(), description, timestamp(None)],
    )
    .map_err(problem)?;
    Ok(before.id)
}

fn find(db: &Connection, id: &WorkId) -> Result<Option<Merge>> {
    let statement = format!("SELECT {COLUMNS} FROM merges WHERE id = ?1");
    let found = db
        .query_row(&statement, [id.as_str()], |row| Ok(merge(row)))
        .optional()
        .map_err(problem)?;
    found.transpose()
}

fn must_find(db: &Connection, id: &WorkId) -> Result<Merge> {
    find(db, id)?.ok_or_else(|| not_found(id))
}

fn not_found(id: &WorkId) -> Problem {
    Problem::not_found(format!("there is no merge {id}")).hint("`gt mq list --all` shows them")
}

fn merge(row: &Row<'_>) -> Result<Merge> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    Ok(Merge {
        id: text(0)?.parse()?,
        rig: text(1)?,
        item: text(2)?.parse()?,
        branch: text(3)?,
        commit: text(4)?,
        base: text(5)?,
        worker: text(6)?,
        status: text(7)?.parse()?,
        attempts: row.get(8).map_err(problem)?,
        reason: maybe(9)?,
        files: serde_json::from_str(&text(10)?)
            .map_err(|error| Problem::failed("a merge cannot be read").caused_by(error))?,
        log: maybe(11)?,
        repair: maybe(12)?.map(|id| id.parse()).transpose()?,
        merged_as: maybe(13)?,
        created_at: text(14)?,
        updated_at: text(15)?,
    })
}
