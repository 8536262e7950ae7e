//! Who holds which item.

use super::Work;
use super::read::{by_id, must_have};
use super::store::problem;
use crate::Result;
use crate::sessions::timestamp;
use gt_core::Problem;
use gt_core::work::{Item, Status, WorkId};
use rusqlite::{Connection, OptionalExtension, params};

/// An item on an agent's hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooked {
    pub agent: String,
    pub item: Item,
    pub since: String,
}

impl Work {
    /// What an agent has on its hook. A failure to look is a failure, and not nothing.
    pub fn hooked(&self, agent: &str) -> Result<Option<Hooked>> {
        match self.open_if_there()? {
            Some(db) => of_agent(&db, agent),
            None => Ok(None),
        }
    }

    /// All hooks, by agent.
    pub fn hooks(&self) -> Result<Vec<(String, WorkId)>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare("SELECT agent, item FROM hooks ORDER BY agent")
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))
            .map_err(problem)?;
        rows.map(|row| {
            let (agent, item) = row.map_err(problem)?;
            Ok((agent, item.parse()?))
        })
        .collect()
    }

    /// Puts an item on an agent's hook. One that is there already stays.
    pub fn hook(&self, agent: &str, id: &WorkId) -> Result<Hooked> {
        self.change(|db| {
            let item = must_have(db, id)?;
            if let Some(present) = of_agent(db, agent)? {
                if present.item.id == *id {
                    return Ok(present);
                }
                return Err(Problem::conflict(format!(
                    "{agent} has {} on its hook",
                    present.item.id
                ))
                .hint(format!("`gt unhook --agent {agent}` takes it off")));
            }
            if let Some(holder) = holder(db, id)? {
                return Err(
                    Problem::conflict(format!("{id} is on the hook of {holder}"))
                        .hint(format!("`gt unhook {id}` takes it off")),
                );
            }
            if matches!(item.status, Status::Closed | Status::Pinned) {
                return Err(Problem::conflict(format!("{id} is {}", item.status.word())));
            }
            let now = timestamp(None);
            db.execute(
                "INSERT INTO hooks (agent, item, since) VALUES (?1, ?2, ?3)",
                params![agent, id.as_str(), now],
            )
            .map_err(problem)?;
            db.execute(
                "UPDATE items SET status = 'hooked', assignee = ?2, updated_at = ?3 WHERE id = ?1",
                params![id.as_str(), agent, now],
            )
            .map_err(problem)?;
            of_agent(db, agent)?.ok_or_else(|| Problem::failed("the hook was not written"))
        })
    }

    /// Takes the item off an agent's hook: it is open again.
    pub fn unhook(&self, agent: &str) -> Result<Option<Hooked>> {
        if !self.exists() {
            return Ok(None);
        }
        self.change(|db| {
            let present = of_agent(db, agent)?;
            if let Some(present) = &present {
                release(db, &present.item.id)?;
            }
            Ok(present)
        })
    }

    /// The same by the item.
    pub fn unhook_item(&self, id: &WorkId) -> Result<Option<Hooked>> {
        self.change(|db| {
            must_have(db, id)?;
            let Some(agent) = holder(db, id)? else {
                return Ok(None);
            };
            let present = of_agent(db, &agent)?;
            release(db, id)?;
            Ok(present)
        })
    }
}

fn release(db: &Connection, id: &WorkId) -> Result<()> {
    take_off(db, id)?;
    db.execute(
        "UPDATE items SET status = 'open', assignee = NULL, updated_at = ?2
         WHERE id = ?1 AND status IN ('hooked', 'in_progress')",
        params![id.as_str(), timestamp(None)],
    )
    .map(drop)
    .map_err(problem)
}

/// Takes an item off whoever's hook it is on, and changes nothing else.
pub(super) fn take_off(db: &Connection, id: &WorkId) -> Result<()> {
    db.execute("DELETE FROM hooks WHERE item = ?1", [id.as_str()])
        .map(drop)
        .map_err(problem)
}

fn holder(db: &Connection, id: &WorkId) -> Result<Option<String>> {
    db.query_row(
        "SELECT agent FROM hooks WHERE item = ?1",
        [id.as_str()],
        |row| row.get(0),
    )
    .optional()
    .map_err(problem)
}

fn of_agent(db: &Connection, agent: &str) -> Result<Option<Hooked>> {
    let found: Option<(String, String)> = db
        .query_row(
            "SELECT item, since FROM hooks WHERE agent = ?1",
            [agent],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
        .map_err(problem)?;
    let Some((id, since)) = found else {
        return Ok(None);
    };
    let item = by_id(db, &id.parse()?)?;
    Ok(item.map(|item| Hooked {
        agent: agent.to_owned(),
        item,
        since,
    }))
}
