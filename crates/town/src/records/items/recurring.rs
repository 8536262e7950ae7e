//! Recurring work: formulas that are poured at the times of a cron expression.
//!
//! A run is one transaction: it creates the item, queues it in the schedule and records the time, so
//! that a kill neither loses nor repeats a run. An item in beads is created outside of it: the next
//! run takes the item that a killed process has created.

use super::read::{by_id, select, stored};
use super::store::{now, problem};
use super::{ItemDraft, Work, schedule};
use crate::Result;
use gt_core::Problem;
use gt_core::schedule::AssignmentOptions;
use gt_core::work::{Item, ItemStatus, WorkId};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;

/// A recurring entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recurring {
    pub name: String,
    pub cron: String,
    pub formula: String,
    pub rig: String,
    pub vars: BTreeMap<String, String>,
    pub options: AssignmentOptions,
    pub added_at: String,
    /// The actor that added it.
    pub added_by: String,
    /// Its last decision: a run, a skipped run, or its creation.
    pub seen_at: String,
    pub last_at: Option<String>,
    pub last_item: Option<WorkId>,
    pub runs: u32,
    /// Why the last due run was skipped.
    pub last_error: Option<String>,
    /// The item of the last run is not closed.
    pub is_open: bool,
}

/// A run of recurring work to queue.
#[derive(Clone, Debug)]
pub struct RecurringRun<'a> {
    pub entry: &'a Recurring,
    pub draft: ItemDraft,
    pub options: AssignmentOptions,
    pub by: &'a str,
}

impl Work {
    /// Adds an entry. Its times count from now on.
    pub fn add_recurring(&self, new: &Recurring) -> Result<Recurring> {
        let broken = |error| Problem::failed("the entry cannot be stored").caused_by(error);
        let vars = serde_json::to_string(&new.vars).map_err(broken)?;
        let options = serde_json::to_string(&new.options).map_err(broken)?;
        let name = &new.name;
        self.change(|db| {
            let at = now(db)?;
            let added = db
                .execute(
                    "INSERT OR IGNORE INTO recurring
                     (name, cron, formula, rig, vars, options, added_at, added_by, seen_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?7)",
                    params![
                        name,
                        new.cron,
                        new.formula,
                        new.rig,
                        vars,
                        options,
                        at,
                        new.added_by
                    ],
                )
                .map_err(problem)?;
            if added == 0 {
                return Err(
                    Problem::conflict(format!("there is recurring work {name:?} already"))
                        .hint("`--name` gives it another name, `gt schedule remove` removes it"),
                );
            }
            Ok(Recurring {
                added_at: at.clone(),
                seen_at: at,
                ..new.clone()
            })
        })
    }

    /// Removes an entry. Returns whether it was there. Items of its runs stay.
    pub fn remove_recurring(&self, name: &str) -> Result<bool> {
        if !self.has_recurring()? {
            return Ok(false);
        }
        self.change(|db| {
            db.execute("DELETE FROM recurring WHERE name = ?1", [name])
                .map(|removed| removed > 0)
                .map_err(problem)
        })
    }

    /// Returns whether there is any entry.
    pub fn has_recurring(&self) -> Result<bool> {
        match self.open_if_there()? {
            Some(db) => db
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM recurring)")
                .and_then(|mut query| query.query_row([], |row| row.get(0)))
                .map_err(problem),
            None => Ok(false),
        }
    }

    /// Returns all entries by name.
    pub fn recurring(&self) -> Result<Vec<Recurring>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare(
                "SELECT name, cron, formula, rig, vars, options, added_at, added_by, seen_at,
                 last_at, last_item, runs, last_error FROM recurring ORDER BY name",
            )
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| Ok(read(&db, row)))
            .map_err(problem)?;
        rows.map(|row| row.map_err(problem)?).collect()
    }

    /// Creates and queues the item of a run. Returns `None` if another process has decided about
    /// the entry since it was read, or it was removed.
    pub fn queue_recurring(&self, run: &RecurringRun<'_>) -> Result<Option<Item>> {
        let entry = run.entry;
        self.refresh(Some(&run.draft.prefix))?;
        self.change(|db| {
            if !decided(db, entry, None)? {
                return Ok(None);
            }
            let item = match left_by_a_kill(db, run)? {
                Some(item) => item,
                None => self.make(db, &run.draft)?,
            };
            schedule::enqueue(db, &item.id, &entry.rig, &run.options, run.by)?;
            db.execute(
                "UPDATE recurring SET last_at = seen_at, last_item = ?2, runs = runs + 1
                 WHERE name = ?1",
                params![entry.name, item.id.as_str()],
            )
            .map_err(problem)?;
            Ok(Some(item))
        })
    }

    /// Records that a due run was skipped. Returns whether it was due, by the entry as read.
    pub fn skip_recurring(&self, entry: &Recurring, reason: &str) -> Result<bool> {
        self.change(|db| decided(db, entry, Some(reason)))
    }
}

/// Records a decision about an entry, unless there is a later one.
fn decided(db: &Connection, entry: &Recurring, error: Option<&str>) -> Result<bool> {
    db.execute(
        "UPDATE recurring SET seen_at = ?3, last_error = ?4 WHERE name = ?1 AND seen_at = ?2",
        params![entry.name, entry.seen_at, now(db)?, error],
    )
    .map(|changed| changed > 0)
    .map_err(problem)
}

/// Returns the item that a process created for this run before it was killed: it is newer than the
/// last decision, and neither queued nor assigned.
fn left_by_a_kill(db: &Connection, run: &RecurringRun<'_>) -> Result<Option<Item>> {
    let Some(label) = run.draft.labels.first() else {
        return Ok(None);
    };
    // Trackers may record times in seconds.
    let since = run.entry.seen_at.get(.."2026-01-10T12:00:00".len());
    let last = run.entry.last_item.as_ref().map_or("", WorkId::as_str);
    let values = [label.as_str(), since.unwrap_or_default(), last];
    let found = select(
        db,
        "WHERE status = 'open' AND assignee IS NULL AND created_at >= ?2 AND id != ?3
         AND id IN (SELECT item FROM labels WHERE label = ?1)
         AND id NOT IN (SELECT item FROM schedule_queue)
         ORDER BY id LIMIT 1",
        values.map(|value| Value::from(value.to_owned())),
    );
    Ok(found?.pop())
}

fn read(db: &Connection, row: &Row<'_>) -> Result<Recurring> {
    let text = |place: usize| row.get::<_, String>(place).map_err(problem);
    let maybe = |place: usize| row.get::<_, Option<String>>(place).map_err(problem);
    let broken = |error| {
        Problem::failed("the recurring work is damaged")
            .caused_by(error)
            .hint("`gt doctor` checks the town's files")
    };
    let last_item: Option<WorkId> = maybe(10)?.map(|id| stored(&id)).transpose()?;
    let is_open = match &last_item {
        Some(id) => by_id(db, id)?.is_some_and(|item| item.status != ItemStatus::Closed),
        None => false,
    };
    Ok(Recurring {
        name: text(0)?,
        cron: text(1)?,
        formula: text(2)?,
        rig: text(3)?,
        vars: serde_json::from_str(&text(4)?).map_err(broken)?,
        options: serde_json::from_str(&text(5)?).map_err(broken)?,
        added_at: text(6)?,
        added_by: text(7)?,
        seen_at: text(8)?,
        last_at: maybe(9)?,
        last_item,
        runs: row.get(11).map_err(problem)?,
        last_error: maybe(12)?,
        is_open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Clock;

    #[test]
    fn run_is_queued_once_for_each_decision() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at("2026-01-10T12:00:00Z".parse().unwrap());
        let work = Work {
            clock: clock.clone(),
            ..Work::at(folder.path().join("items.db"))
        };
        assert!(!work.remove_recurring("nightly").unwrap());
        let new = Recurring {
            name: "nightly".to_owned(),
            cron: "@daily".to_owned(),
            formula: "review".to_owned(),
            rig: "gastown".to_owned(),
            ..Recurring::default()
        };
        work.add_recurring(&new).unwrap();
        assert!(work.add_recurring(&new).is_err(), "the name is taken");
        let read = || work.recurring().unwrap().remove(0);
        let entry = read();
        clock.advance(std::time::Duration::from_secs(1));
        let run = RecurringRun {
            entry: &entry,
            draft: ItemDraft {
                prefix: "gt".to_owned(),
                title: "Nightly".to_owned(),
                ..ItemDraft::default()
            },
            options: AssignmentOptions::default(),
            by: "gt",
        };
        let item = work.queue_recurring(&run).unwrap().unwrap();
        assert!(work.queue_recurring(&run).unwrap().is_none(), "decided");
        assert!(!work.skip_recurring(&entry, "late").unwrap(), "decided");
        let queue = work.queued_assignments().unwrap();
        assert_eq!(queue.len(), 1);
        assert_eq!(
            (&queue[0].item.id, queue[0].rig.as_str()),
            (&item.id, "gastown")
        );
        let after = read();
        assert_eq!((after.runs, after.is_open), (1, true));
        assert_eq!(after.last_item.as_ref(), Some(&item.id));
        work.close(&item.id, None).unwrap();
        assert!(!read().is_open);
        assert!(work.remove_recurring("nightly").unwrap());
        assert_eq!(work.recurring().unwrap(), []);
    }
}
