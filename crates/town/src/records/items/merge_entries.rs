//! The entries of the merge queue. `merge_steps.rs` has the steps that change them.

use super::Work;
use super::create::random_id;
use super::read::must_have;
use super::store::problem;
use crate::Result;
use crate::records::items::store::now;
use gt_core::Problem;
use gt_core::merge::{Merge, MergeStatus, PREFIX};
use gt_core::work::{self, Item, WorkId};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Returns the query of the entries of the rig in `?1`, or of all rigs.
fn statement(all: bool) -> String {
    // In the words of the index, which has only entries that are not settled.
    let unsettled = "status NOT IN ('merged', 'rejected', 'withdrawn')";
    let (index, condition) = match all {
        true => ("", String::new()),
        false => (
            "INDEXED BY merges_unsettled",
            format!("AND merges.{unsettled}"),
        ),
    };
    format!(
        "SELECT {COLUMNS} FROM merges {index} CROSS JOIN items ON items.id = item
         WHERE (?1 IS NULL OR rig = ?1) {condition}
         ORDER BY merges.{unsettled} DESC, priority, merges.created_at, merges.id"
    )
}

pub(super) const COLUMNS: &str =
    "merges.id, rig, item, branch, commit_id, base, worker, merges.status,
    attempts, reason, files, log, repair, merged_as, merges.created_at, merges.updated_at, approved";

/// A branch to be merged.
#[derive(Clone, Debug)]
pub struct Handed {
    pub rig: String,
    pub branch: String,
    pub commit: String,
    pub base: String,
}

impl Work {
    /// Returns the queue of one rig or of all: waiting entries first, by priority and age, and with
    /// `all` also the settled ones.
    pub fn merges(&self, rig: Option<&str>, all: bool) -> Result<Vec<Merge>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut statement = db.prepare(&statement(all)).map_err(problem)?;
        let rows = statement
            .query_map(params![rig], |row| Ok(merge(row)))
            .map_err(problem)?;
        rows.map(|row| row.map_err(problem)?).collect()
    }

    /// Returns the entry with this id.
    pub fn merge(&self, id: &WorkId) -> Result<Merge> {
        let found = match self.open_if_there()? {
            Some(db) => find(&db, id)?,
            None => None,
        };
        found.ok_or_else(|| not_found(id))
    }

    /// Returns the entry by which an item, or its repair, is in the queue.
    pub fn merge_of(&self, item: &WorkId) -> Result<Option<Merge>> {
        match self.open_if_there()? {
            Some(db) => of_item(&db, item),
            None => Ok(None),
        }
    }

    /// Updates a waiting entry to a later commit of its branch; one that was held is queued again. An
    /// entry that is being merged stays unchanged.
    pub fn renew_merge(&self, id: &WorkId, commit: &str) -> Result<()> {
        self.change(|db| {
            db.execute(
                "UPDATE merges SET commit_id = ?2, status = 'queued', updated_at = ?3
                 WHERE id = ?1 AND status IN ('queued', 'held') AND commit_id != ?2",
                params![id.as_str(), commit, self.clock.text()],
            )
            .map(drop)
            .map_err(problem)
        })
    }

    /// Returns the entry whose repair has changed nothing so often that its item needs help.
    pub fn merge_that_needs_help(&self, repair: &WorkId) -> Result<Option<Merge>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(None);
        };
        let broken = broken_of(&db, repair)?;
        let item = broken.as_ref().map(|merge| must_have(&db, &merge.item));
        let is_blocked = item
            .transpose()?
            .is_some_and(|item| item.status == work::ItemStatus::Blocked);
        Ok(broken.filter(|_| is_blocked))
    }

    /// Returns the entries that could not be merged and that no agent is repairing, with their
    /// closed or blocked repairs.
    pub fn stuck_merges(&self, rig: Option<&str>) -> Result<Vec<(Merge, Option<Item>)>> {
        let mut stuck = Vec::new();
        for merge in self.merges(rig, false)? {
            if let Some(repair) = self.stuck_with(&merge)? {
                stuck.push((merge, repair));
            }
        }
        Ok(stuck)
    }

    /// Returns the entries that wait for the approval of a person.
    pub fn held_merges(&self) -> Result<Vec<Merge>> {
        let mut merges = self.merges(None, false)?;
        merges.retain(|merge| merge.status == MergeStatus::Held);
        Ok(merges)
    }

    /// Returns the repair of an entry if the entry is stuck; the inner `None` means that it has no
    /// repair.
    pub fn stuck_with(&self, merge: &Merge) -> Result<Option<Option<Item>>> {
        if !merge.status.is_broken() {
            return Ok(None);
        }
        let repair = match &merge.repair {
            Some(repair) => Some(self.get(repair)?),
            None => None,
        };
        // A repair that was submitted as well is assigned to no agent.
        let is_done = |item: &Item| {
            matches!(
                item.status,
                work::ItemStatus::Closed | work::ItemStatus::Blocked
            ) || item.assignee == Some(merge.refinery())
        };
        Ok(repair.as_ref().is_none_or(is_done).then_some(repair))
    }

    /// Returns whether a branch is queued and not in the base yet.
    pub fn is_waiting_to_merge(&self, rig: &str, branch: &str) -> Result<bool> {
        let waiting = self.merges(Some(rig), false)?;
        Ok(waiting.iter().any(|merge| merge.branch == branch))
    }
}

/// Queues a branch for an item. Replaces a waiting entry of that item, or of the item that this one
/// repairs: the later work counts.
pub(super) fn enqueue(
    db: &Connection,
    item: &WorkId,
    worker: &str,
    handed: &Handed,
) -> Result<WorkId> {
    let now = now(db)?;
    let waiting: Option<String> = db
        .query_row(
            "SELECT id FROM merges WHERE rig = ?1 AND (item = ?2 OR repair = ?2)
             AND status IN ('queued', 'held', 'conflict', 'failed')
             ORDER BY created_at DESC LIMIT 1",
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
        let id = random_id(db, PREFIX)?;
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

pub(super) fn set_queued(db: &Connection, id: &WorkId, reason: Option<&str>) -> Result<Merge> {
    db.execute(
        "UPDATE merges SET status = 'queued', reason = ?2, files = '[]', log = NULL,
         merged_as = NULL, updated_at = ?3 WHERE id = ?1",
        params![id.as_str(), reason, now(db)?],
    )
    .map_err(problem)?;
    must_find(db, id)
}

pub(super) fn find(db: &Connection, id: &WorkId) -> Result<Option<Merge>> {
    let statement = format!("SELECT {COLUMNS} FROM merges WHERE id = ?1");
    let found = db
        .query_row(&statement, [id.as_str()], |row| Ok(merge(row)))
        .optional()
        .map_err(problem)?;
    found.transpose()
}

/// Returns the entry by which an item, or its repair, is in the queue.
pub(super) fn of_item(db: &Connection, item: &WorkId) -> Result<Option<Merge>> {
    let statement = format!(
        "SELECT {COLUMNS} FROM merges WHERE (item = ?1 OR repair = ?1)
         AND status NOT IN ('merged', 'rejected', 'withdrawn')
         ORDER BY status = 'merging' DESC, created_at DESC LIMIT 1"
    );
    let found = db
        .query_row(&statement, [item.as_str()], |row| Ok(merge(row)))
        .optional()
        .map_err(problem)?;
    found.transpose()
}

/// Returns the entry that waits for this repair.
pub(super) fn broken_of(db: &Connection, repair: &WorkId) -> Result<Option<Merge>> {
    let statement = format!(
        "SELECT {COLUMNS} FROM merges WHERE repair = ?1 AND status IN ('conflict', 'failed')"
    );
    let found = db
        .query_row(&statement, [repair.as_str()], |row| Ok(merge(row)))
        .optional()
        .map_err(problem)?;
    found.transpose()
}

pub(super) fn must_find(db: &Connection, id: &WorkId) -> Result<Merge> {
    find(db, id)?.ok_or_else(|| not_found(id))
}

fn not_found(id: &WorkId) -> Problem {
    Problem::not_found(format!("there is no merge {id}")).hint("`gt mq list --all` shows them")
}

pub(super) fn merge(row: &Row<'_>) -> Result<Merge> {
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
        approved: maybe(16)?,
    })
}
