//! The queue of assignments that wait for a slot.
//!
//! An entry stays until its item was given to an agent that runs. If the process that starts the
//! agent is killed, the next run of the scheduler finds the entry and continues.

use super::Work;
use super::read::{must_have, stored};
use super::store::{now, problem};
use crate::Result;
use crate::base::clock;
use gt_core::Problem;
use gt_core::schedule::AssignmentOptions;
use gt_core::work::{Item, ItemStatus, WorkId};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

/// An assignment in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedAssignment {
    /// Increases with every new entry.
    pub number: i64,
    pub item: Item,
    pub rig: String,
    pub options: AssignmentOptions,
    pub queued_at: String,
    /// The actor that queued it.
    pub queued_by: String,
    /// Failed starts since it was queued.
    pub failures: u32,
    pub last_error: Option<String>,
    /// Earliest time of the next attempt.
    pub not_before: Option<String>,
    /// The agent on whose hook the item is.
    pub holder: Option<String>,
    /// The item was handed in and waits to be merged.
    pub is_handed_in: bool,
    /// Items that it waits for.
    pub blockers: Vec<WorkId>,
}

impl QueuedAssignment {
    /// Returns whether no agent has the item, and none may get it.
    pub fn is_settled(&self) -> bool {
        let is_over = matches!(self.item.status, ItemStatus::Closed | ItemStatus::Pinned);
        is_over || (self.holder.is_none() && self.is_handed_in)
    }
}

const SELECT: &str = "SELECT number, schedule_queue.item, schedule_queue.rig, options, queued_at,
    queued_by, failures, last_error, not_before, agent,
    EXISTS (SELECT 1 FROM merges WHERE merges.item = schedule_queue.item
        AND merges.status NOT IN ('merged', 'rejected', 'withdrawn')),
    (SELECT json_group_array(blocker ORDER BY blocker) FROM dependencies
        JOIN items AS before ON before.id = blocker AND before.status <> 'closed'
        WHERE dependencies.item = schedule_queue.item)
    FROM schedule_queue JOIN items ON items.id = schedule_queue.item
    LEFT JOIN hooks ON hooks.item = schedule_queue.item";

impl Work {
    /// Puts an assignment into the queue. An item that is there already keeps its place and gets
    /// the new options. Returns whether it is new.
    pub fn enqueue_assignment(
        &self,
        id: &WorkId,
        rig: &str,
        options: &AssignmentOptions,
        by: &str,
    ) -> Result<bool> {
        self.refresh_for(id)?;
        self.change(|db| enqueue(db, id, rig, options, by))
    }

    /// Removes an assignment from the queue. Returns whether it was there. Without an entry it only
    /// reads.
    pub fn dequeue_assignment(&self, id: &WorkId) -> Result<bool> {
        if self.queued_assignment(id)?.is_none() {
            return Ok(false);
        }
        self.change(|db| {
            db.execute("DELETE FROM schedule_queue WHERE item = ?1", [id.as_str()])
                .map(|removed| removed > 0)
                .map_err(problem)
        })
    }

    /// Records a failed start. It is retried at `not_before`. Returns the number of failures.
    pub fn note_failed_assignment(
        &self,
        id: &WorkId,
        error: &str,
        not_before: impl Fn(u32) -> Timestamp,
    ) -> Result<u32> {
        self.change(|db| {
            let failures: Option<u32> = db
                .query_row(
                    "SELECT failures FROM schedule_queue WHERE item = ?1",
                    [id.as_str()],
                    |row| row.get(0),
                )
                .optional()
                .map_err(problem)?;
            let failures = failures.unwrap_or_default().saturating_add(1);
            db.execute(
                "UPDATE schedule_queue SET failures = ?2, last_error = ?3, not_before = ?4
                 WHERE item = ?1",
                params![
                    id.as_str(),
                    failures,
                    error,
                    clock::format(not_before(failures))
                ],
            )
            .map_err(problem)?;
            Ok(failures)
        })
    }

    /// Makes a failed start due, as if its delay had passed.
    #[cfg(test)]
    pub(crate) fn make_assignment_due(&self, id: &WorkId) {
        let due = |db: &rusqlite::Transaction<'_>| {
            let text = "UPDATE schedule_queue SET not_before = NULL WHERE item = ?1";
            db.execute(text, [id.as_str()]).map(drop).map_err(problem)
        };
        self.change(due).unwrap();
    }

    /// Returns whether any assignment is in the queue. One read of an index.
    pub fn has_queued_assignments(&self) -> Result<bool> {
        match self.open_if_there()? {
            Some(db) => db
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM schedule_queue)")
                .and_then(|mut query| query.query_row([], |row| row.get(0)))
                .map_err(problem),
            None => Ok(false),
        }
    }

    /// Returns the queue in the order in which it starts: by priority and position.
    pub fn queued_assignments(&self) -> Result<Vec<QueuedAssignment>> {
        if !self.has_queued_assignments()? {
            return Ok(Vec::new());
        }
        self.refresh(None)?;
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let statement = format!("{SELECT} ORDER BY priority, number");
        let mut statement = db.prepare(&statement).map_err(problem)?;
        let rows = statement
            .query_map([], |row| Ok(read(&db, row)))
            .map_err(problem)?;
        rows.map(|row| row.map_err(problem)?).collect()
    }

    /// Returns the entry of an item.
    pub fn queued_assignment(&self, id: &WorkId) -> Result<Option<QueuedAssignment>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(None);
        };
        db.query_row(
            &format!("{SELECT} WHERE schedule_queue.item = ?1"),
            [id.as_str()],
            |row| Ok(read(&db, row)),
        )
        .optional()
        .map_err(problem)?
        .transpose()
    }
}

/// Puts an assignment into the queue within a transaction. Returns whether it is new.
pub(super) fn enqueue(
    db: &Connection,
    id: &WorkId,
    rig: &str,
    options: &AssignmentOptions,
    by: &str,
) -> Result<bool> {
    let options = serde_json::to_string(options)
        .map_err(|error| Problem::failed("the options cannot be stored").caused_by(error))?;
    must_have(db, id)?;
    let known = db
        .execute(
            "UPDATE schedule_queue SET rig = ?2, options = ?3, failures = 0,
             last_error = NULL, not_before = NULL WHERE item = ?1",
            params![id.as_str(), rig, options],
        )
        .map_err(problem)?;
    if known > 0 {
        return Ok(false);
    }
    db.execute(
        "INSERT INTO schedule_queue (item, rig, options, queued_at, queued_by)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id.as_str(), rig, options, now(db)?, by],
    )
    .map_err(problem)?;
    Ok(true)
}

fn read(db: &Connection, row: &Row<'_>) -> Result<QueuedAssignment> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    let broken = |error| {
        Problem::failed("the schedule is damaged")
            .caused_by(error)
            .hint("`gt doctor` checks the town's files")
    };
    Ok(QueuedAssignment {
        number: row.get(0).map_err(problem)?,
        item: must_have(db, &stored(&text(1)?)?)?,
        rig: text(2)?,
        options: serde_json::from_str(&text(3)?).map_err(broken)?,
        queued_at: text(4)?,
        queued_by: text(5)?,
        failures: row.get(6).map_err(problem)?,
        last_error: maybe(7)?,
        not_before: maybe(8)?,
        holder: maybe(9)?,
        is_handed_in: row.get(10).map_err(problem)?,
        blockers: serde_json::from_str(&text(11)?).map_err(broken)?,
    })
}
