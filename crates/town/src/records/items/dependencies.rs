//! Dependencies between items.

use super::Work;
use super::protected::{self, ItemChange};
use super::read::must_have;
use super::store::problem;
use crate::Result;
use crate::records::items::store::now;
use gt_core::Problem;
use gt_core::work::{Item, WorkId};
use rusqlite::{Connection, params};

impl Work {
    /// Records that an item can only be begun when another is closed.
    pub fn add_dependency(&self, id: &WorkId, blocker: &WorkId) -> Result<Item> {
        self.refresh_for(id)?;
        self.refresh_for(blocker)?;
        self.change(|db| {
            protected::check(db, id, ItemChange::Wait)?;
            add(db, id, blocker)?;
            touch(db, id)?;
            must_have(db, id)
        })
    }

    pub fn remove_dependency(&self, id: &WorkId, blocker: &WorkId) -> Result<Item> {
        self.refresh_for(id)?;
        self.change(|db| {
            protected::check(db, id, ItemChange::Wait)?;
            let removed = db
                .execute(
                    "DELETE FROM dependencies WHERE item = ?1 AND blocker = ?2",
                    params![id.as_str(), blocker.as_str()],
                )
                .map_err(problem)?;
            if removed == 0 {
                return Err(Problem::not_found(format!(
                    "{id} does not wait for {blocker}"
                )));
            }
            touch(db, id)?;
            must_have(db, id)
        })
    }
}

/// Adds a dependency, unless it would close a cycle.
pub(super) fn add(db: &Connection, id: &WorkId, blocker: &WorkId) -> Result<()> {
    if id == blocker {
        return Err(Problem::conflict(format!("{id} cannot wait for itself")));
    }
    protected::check(db, blocker, ItemChange::Await)?;
    if waits_for(db, blocker, id)? {
        return Err(Problem::conflict(format!(
            "{blocker} waits for {id} already"
        )));
    }
    insert(db, id, blocker)
}

/// Returns whether an item waits for another, directly or indirectly, or is that item.
pub(super) fn waits_for(db: &Connection, id: &WorkId, other: &WorkId) -> Result<bool> {
    db.query_row(
        "WITH RECURSIVE before (id) AS (
             SELECT ?1 UNION SELECT blocker FROM dependencies JOIN before ON item = before.id)
         SELECT EXISTS (SELECT 1 FROM before WHERE id = ?2)",
        params![id.as_str(), other.as_str()],
        |row| row.get(0),
    )
    .map_err(problem)
}

/// Returns whether a new dependency would close a cycle. That requires that other items wait for
/// `id`, which is checked first, because it is cheaper than walking the graph.
pub(super) fn closes_cycle(db: &Connection, id: &WorkId, blocker: &WorkId) -> Result<bool> {
    let is_awaited: bool = db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM dependencies WHERE blocker = ?1)")
        .and_then(|mut query| query.query_row([id.as_str()], |row| row.get(0)))
        .map_err(problem)?;
    Ok(id == blocker || (is_awaited && waits_for(db, blocker, id)?))
}

/// Inserts a dependency that closes no cycle.
pub(super) fn insert(db: &Connection, id: &WorkId, blocker: &WorkId) -> Result<()> {
    db.execute(
        "INSERT OR IGNORE INTO dependencies (item, blocker) VALUES (?1, ?2)",
        params![id.as_str(), blocker.as_str()],
    )
    .map(drop)
    .map_err(problem)
}

fn touch(db: &Connection, id: &WorkId) -> Result<()> {
    db.execute(
        "UPDATE items SET updated_at = ?2 WHERE id = ?1",
        params![id.as_str(), now(db)?],
    )
    .map(drop)
    .map_err(problem)
}
