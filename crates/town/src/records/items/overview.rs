//! Reads all work in one call, for the board.

use super::read::select;
use super::store::problem;
use super::{Work, molecules};
use crate::Result;
use gt_core::card::PartCount;
use gt_core::mail;
use gt_core::work::{Item, WorkId};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::HashMap;

/// Result of [`Work::overview`].
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Items that are not closed, and recently closed ones. Without mail, molecules and pinned
    /// records.
    pub items: Vec<Item>,
    /// Hooks by agent.
    pub hooks: Vec<(String, WorkId)>,
    /// Progress of items that have parts.
    pub parts: HashMap<WorkId, PartCount>,
    /// The rigs of items that are kept in beads.
    pub rigs: HashMap<WorkId, String>,
}

impl Work {
    /// Returns the items that are not closed, and those closed since that time (RFC 3339, in UTC).
    pub fn overview(&self, closed_since: &str) -> Result<Overview> {
        self.refresh(None)?;
        let hooks = self.hooks()?;
        let Some(db) = self.open_if_there()? else {
            return Ok(Overview::default());
        };
        let rest = format!(
            "WHERE type <> '{}' AND status <> 'pinned' AND {}
             AND (status <> 'closed' OR closed_at >= ?1) ORDER BY priority, created_at, id",
            mail::KIND,
            molecules::IS_WORK
        );
        Ok(Overview {
            items: select(&db, &rest, [Value::from(closed_since.to_owned())])?,
            hooks,
            parts: parts(&db)?,
            rigs: match self.beads {
                Some(_) => rigs(&db)?,
                None => HashMap::new(),
            },
        })
    }
}

fn parts(db: &Connection) -> Result<HashMap<WorkId, PartCount>> {
    let text = format!(
        "SELECT parent, sum(status = 'closed'), count(*) FROM items
         WHERE parent IS NOT NULL AND {} GROUP BY parent",
        molecules::IS_WORK
    );
    let mut query = db.prepare(&text).map_err(problem)?;
    let rows = query
        .query_map([], |row| {
            let parts = PartCount {
                closed: row.get(1)?,
                all: row.get(2)?,
            };
            Ok((row.get::<_, String>(0)?, parts))
        })
        .map_err(problem)?;
    rows.map(|row| {
        let (id, parts) = row.map_err(problem)?;
        Ok((id.parse()?, parts))
    })
    .collect()
}

fn rigs(db: &Connection) -> Result<HashMap<WorkId, String>> {
    let mut query = db.prepare("SELECT item, rig FROM beads").map_err(problem)?;
    let rows = query
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .map_err(problem)?;
    rows.map(|row| {
        let (id, rig): (String, String) = row.map_err(problem)?;
        Ok((id.parse()?, rig))
    })
    .collect()
}
