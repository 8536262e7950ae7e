//! Reads all work in one call, for the board.

use super::read::{by_id, select};
use super::store::problem;
use super::{Work, molecules};
use crate::Result;
use gt_core::card::PartCount;
use gt_core::mail;
use gt_core::work::{Item, ItemStatus, WorkId};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::HashMap;

/// Maximum number of items of each kind on a board: more cannot be looked through, and a card costs
/// time.
const MOST_OPEN: usize = 1_000;
const MOST_CLOSED: usize = 200;

/// Result of [`Work::overview`].
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Items that are not closed, and recently closed ones. Without mail, molecules and pinned
    /// records. The most urgent ones, up to the limits.
    pub items: Vec<Item>,
    /// Whether there are more items than the limits allow.
    pub has_more: bool,
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
        let (mut items, has_more_open) = open_items(&db)?;
        let (closed, has_more_closed) = closed_items(&db, closed_since)?;
        items.extend(closed);
        let on_hooks: Vec<Item> = hooks
            .iter()
            .filter(|(_, id)| has_more_open && !items.iter().any(|item| item.id == *id))
            .map(|(_, id)| by_id(&db, id))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .filter(|item| item.kind != mail::KIND && item.status != ItemStatus::Closed)
            .collect();
        items.extend(on_hooks);
        items.sort_by(|a, b| {
            (a.priority, &a.created_at, &a.id).cmp(&(b.priority, &b.created_at, &b.id))
        });
        Ok(Overview {
            parts: parts(&db, &items)?,
            items,
            has_more: has_more_open || has_more_closed,
            hooks,
            rigs: match self.beads {
                Some(_) => rigs(&db)?,
                None => HashMap::new(),
            },
        })
    }
}

/// Returns the items that are not closed, the most urgent first, and whether there are more.
fn open_items(db: &Connection) -> Result<(Vec<Item>, bool)> {
    let rest = format!(
        "INDEXED BY items_not_closed WHERE type <> '{}' AND status <> 'closed'
         AND +status <> 'pinned' AND {} ORDER BY priority, created_at, id LIMIT ?1",
        mail::KIND,
        molecules::IS_WORK
    );
    at_most(db, &rest, MOST_OPEN, [])
}

/// Returns the items that were closed since a time, the newest first, and whether there are more.
fn closed_items(db: &Connection, since: &str) -> Result<(Vec<Item>, bool)> {
    let rest = format!(
        "INDEXED BY items_by_closing WHERE type <> '{}' AND status = 'closed' AND {}
         AND closed_at >= ?2 ORDER BY closed_at DESC LIMIT ?1",
        mail::KIND,
        molecules::IS_WORK
    );
    at_most(db, &rest, MOST_CLOSED, [Value::from(since.to_owned())])
}

/// Returns the items of a query with the limit `?1`, and whether there are more.
fn at_most<const N: usize>(
    db: &Connection,
    rest: &str,
    most: usize,
    values: [Value; N],
) -> Result<(Vec<Item>, bool)> {
    let limit = Value::from(i64::try_from(most + 1).unwrap_or(-1));
    let mut items = select(db, rest, [limit].into_iter().chain(values))?;
    let has_more = items.len() > most;
    items.truncate(most);
    Ok((items, has_more))
}

/// Returns the progress of those items that have parts.
fn parts(db: &Connection, items: &[Item]) -> Result<HashMap<WorkId, PartCount>> {
    let text = format!(
        "SELECT sum(status = 'closed'), count(*) FROM items WHERE parent = ?1 AND {}",
        molecules::IS_WORK
    );
    let mut query = db.prepare(&text).map_err(problem)?;
    let mut parts = HashMap::new();
    for item in items {
        let part: PartCount = query
            .query_row([item.id.as_str()], |row| {
                Ok(PartCount {
                    closed: row.get::<_, Option<u32>>(0)?.unwrap_or_default(),
                    all: row.get(1)?,
                })
            })
            .map_err(problem)?;
        if part.all > 0 {
            parts.insert(item.id.clone(), part);
        }
    }
    Ok(parts)
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
