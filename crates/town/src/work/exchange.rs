//! Work items from elsewhere, and for elsewhere: one JSON object in each line, as
//! beads writes its `issues.jsonl`.

use super::store::problem;
use super::{Query, Work};
use crate::Result;
use crate::sessions::timestamp;
use gt_core::Problem;
use gt_core::work::{Item, Status, WorkId, check_priority, check_title};
use rusqlite::{Connection, params};
use serde_json::Value;

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub new: usize,
    pub updated: usize,
    /// Those that were there already, and no older.
    pub unchanged: usize,
    /// Lines that could not be taken, by number, and why.
    pub skipped: Vec<(usize, String)>,
}

impl Work {
    /// Takes items over, all that can be read or none. One that is there already is
    /// replaced only by a newer one, and never one that is on an agent's hook.
    pub fn import(&self, text: &str) -> Result<Imported> {
        let mut imported = Imported::default();
        let mut items = Vec::new();
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            match read(line) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => {}
                Err(problem) => imported.skipped.push((number + 1, problem.to_string())),
            }
        }
        self.change(|db| {
            // Parents and blockers may come after those that name them.
            db.pragma_update(None, "defer_foreign_keys", "ON")
                .map_err(problem)?;
            for item in &items {
                match super::read::by_id(db, &item.id)? {
                    Some(known)
                        if known.updated_at >= item.updated_at
                            || known.status == Status::Hooked =>
                    {
                        imported.unchanged += 1;
                        continue;
                    }
                    Some(_) => imported.updated += 1,
                    None => imported.new += 1,
                }
                write(db, item)?;
            }
            for item in &items {
                for blocker in &item.deps {
                    db.execute(
                        "INSERT OR IGNORE INTO dependencies (item, blocker)
                         SELECT ?1, id FROM items WHERE id = ?2 AND id <> ?1",
                        params![item.id.as_str(), blocker.as_str()],
                    )
                    .map_err(problem)?;
                }
            }
            // A parent that came with nobody is no parent.
            db.execute(
                "UPDATE items SET parent = NULL WHERE parent IS NOT NULL
                 AND parent NOT IN (SELECT id FROM items)",
                [],
            )
            .map_err(problem)?;
            Ok(())
        })?;
        Ok(imported)
    }

    /// Gives every item as a line.
    pub fn export(&self, mut give: impl FnMut(&Item) -> Result<()>) -> Result<()> {
        let all = self.find(&Query {
            all: true,
            ..Query::default()
        })?;
        all.iter().try_for_each(&mut give)
    }
}

/// Reads a line; `None` for one that only says that an item is gone.
fn read(line: &str) -> Result<Option<Item>> {
    let bad = |error: serde_json::Error| Problem::usage("it is no work item").caused_by(error);
    let mut value: Value = serde_json::from_str(line).map_err(bad)?;
    if value["status"] == "tombstone" || value["deleted_at"].is_string() {
        return Ok(None);
    }
    let known = value["status"].as_str().unwrap_or("open").parse::<Status>();
    // A hook of another town's means nothing here, and other words are theirs.
    let status = match known {
        Ok(Status::Hooked) | Err(_) => Status::Open,
        Ok(status) => status,
    };
    value["status"] = status.word().into();
    let now = Value::from(timestamp(None));
    for field in ["created_at", "updated_at"] {
        // As we write them, so that they can be compared.
        let time = value[field]
            .as_str()
            .and_then(|time| time.parse::<jiff::Timestamp>().ok());
        value[field] = time.map_or_else(|| now.clone(), |time| format!("{time:.3}").into());
    }
    for field in ["description", "notes", "labels", "deps"] {
        if value[field].is_null()
            && let Some(fields) = value.as_object_mut()
        {
            fields.shift_remove(field);
        }
    }
    let dependencies = value["dependencies"].take();
    let mut item: Item = serde_json::from_value(value).map_err(bad)?;
    check_title(&item.title)?;
    check_priority(item.priority)?;
    for dependency in dependencies.as_array().into_iter().flatten() {
        let on = dependency["depends_on_id"].as_str().or(dependency.as_str());
        let Some(on) = on.and_then(|id| id.parse::<WorkId>().ok()) else {
            continue;
        };
        match dependency["type"].as_str() {
            Some("parent-child") => item.parent = Some(on),
            Some("blocks") | None => item.deps.push(on),
            // Others say nothing about the order.
            Some(_) => {}
        }
    }
    Ok(Some(item))
}

fn write(db: &Connection, item: &Item) -> Result<()> {
    db.execute(
        "INSERT INTO items (id, title, description, type, priority, status, assignee, parent,
         notes, ephemeral, created_at, updated_at, closed_at, close_reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
         ON CONFLICT (id) DO UPDATE SET title = ?2, description = ?3, type = ?4, priority = ?5,
         status = ?6, assignee = ?7, parent = ?8, notes = ?9, ephemeral = ?10, created_at = ?11,
         updated_at = ?12, closed_at = ?13, close_reason = ?14",
        params![
            item.id.as_str(),
            item.title,
            item.description,
            item.kind,
            item.priority,
            item.status.word(),
            item.assignee,
            item.parent.as_ref().map(WorkId::as_str),
            item.notes,
            item.ephemeral,
            item.created_at,
            item.updated_at,
            item.closed_at,
            item.close_reason,
        ],
    )
    .map_err(problem)?;
    db.execute("DELETE FROM labels WHERE item = ?1", [item.id.as_str()])
        .map_err(problem)?;
    for label in &item.labels {
        db.execute(
            "INSERT OR IGNORE INTO labels (item, label) VALUES (?1, ?2)",
            params![item.id.as_str(), label],
        )
        .map_err(problem)?;
    }
    Ok(())
}
