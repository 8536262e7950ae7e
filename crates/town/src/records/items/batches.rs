//! Batches: items that were assigned together, as the children of one parent item.
//!
//! Membership is the parent field of the items; the table has the owner of the batch and whether
//! its end was announced. A batch lands when the last child is closed: one transaction closes the
//! parent and writes the mail about it, so the mail is neither lost nor written twice. The caller
//! (`crate::supervision::batches`) announces a landed batch until [`Work::batch_told`] records it.

use super::change::close;
use super::create::insert;
use super::hook::holder;
use super::molecules::IS_WORK;
use super::protected::{self, ItemChange};
use super::read::{must_have, select, stored};
use super::store::{now, problem};
use super::{ItemDraft, MailDraft, Work, mailbox, messages};
use crate::Result;
use crate::base::or_log::OrLog;
use gt_core::Problem;
use gt_core::card::PartCount;
use gt_core::mail::{self, Mail};
use gt_core::work::{Item, ItemStatus, WorkId};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;

/// Type of items that exist only as the parent of a batch.
pub const KIND: &str = "batch";

/// Parent of a batch.
#[derive(Clone, Debug)]
pub enum BatchParent {
    /// A new item, of the type [`KIND`].
    New(ItemDraft),
    /// An item that is there already.
    Existing(WorkId),
}

/// A batch and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkBatch {
    pub item: WorkId,
    /// The person or agent that assigned its items last.
    pub owner: String,
    pub landed_at: Option<String>,
}

/// A landed batch whose announcement is not recorded yet.
#[derive(Clone, Debug)]
pub struct LandedBatch {
    pub item: Item,
    pub owner: String,
    pub landed_at: String,
    pub parts: PartCount,
    /// The mail about it, written when it landed.
    pub mail: Option<Mail>,
}

impl Work {
    /// Makes items the children of a batch, which it creates if needed. Fails if an item is a part
    /// of another one; then nothing is changed.
    pub fn join_batch(&self, parent: &BatchParent, items: &[WorkId], owner: &str) -> Result<Item> {
        if let BatchParent::Existing(id) = parent {
            self.refresh_for(id)?;
        }
        items.iter().try_for_each(|id| self.refresh_for(id))?;
        self.change(|db| {
            let batch = match parent {
                BatchParent::New(draft) => begin(db, draft)?,
                BatchParent::Existing(id) => usable(db, id)?,
            };
            for id in items {
                join(db, &batch.id, id)?;
            }
            db.execute(
                "INSERT OR REPLACE INTO batches (item, owner, at) VALUES (?1, ?2, ?3)",
                params![batch.id.as_str(), owner, now(db)?],
            )
            .map_err(problem)?;
            must_have(db, &batch.id)
        })
    }

    /// Returns the batch of which this item is the parent.
    pub fn batch(&self, id: &WorkId) -> Result<Option<WorkBatch>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(None);
        };
        db.query_row(
            "SELECT owner, landed_at FROM batches WHERE item = ?1",
            [id.as_str()],
            |row| {
                Ok(WorkBatch {
                    item: id.clone(),
                    owner: row.get(0)?,
                    landed_at: row.get(1)?,
                })
            },
        )
        .optional()
        .map_err(problem)
    }

    /// Returns the children of an item that are work, in the order in which they were created.
    pub fn children(&self, id: &WorkId) -> Result<Vec<Item>> {
        self.refresh_for(id)?;
        match self.open_if_there()? {
            Some(db) => children(&db, id),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the children of all these items that are work, in the order in which they were
    /// created. Reads no beads: the caller has refreshed them.
    pub(crate) fn children_of(&self, ids: &[WorkId]) -> Result<Vec<Item>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let rest = format!(
            "WHERE parent IN (SELECT value FROM json_each(?1)) AND type <> '{}' AND {IS_WORK}
             ORDER BY created_at, id",
            mail::KIND
        );
        let ids: Vec<&str> = ids.iter().map(WorkId::as_str).collect();
        select(
            &db,
            &rest,
            [Value::from(serde_json::json!(ids).to_string())],
        )
    }

    /// Returns the owners of all batches.
    pub(crate) fn batch_owners(&self) -> Result<HashMap<WorkId, String>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(HashMap::new());
        };
        let mut query = db
            .prepare("SELECT item, owner FROM batches")
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
            .map_err(problem)?;
        rows.map(|row| {
            let (id, owner) = row.map_err(problem)?;
            Ok((stored(&id)?, owner))
        })
        .collect()
    }

    /// Returns whether a batch has not landed, or was not announced. One read of an index.
    pub fn has_unsettled_batches(&self) -> Result<bool> {
        match self.open_if_there()? {
            Some(db) => db
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM batches WHERE told = 0)")
                .and_then(|mut query| query.query_row([], |row| row.get(0)))
                .map_err(problem),
            None => Ok(false),
        }
    }

    /// Returns the batches that can land: all their children are closed, or the parent is.
    pub fn batches_to_land(&self) -> Result<Vec<WorkBatch>> {
        // Batches of the other rigs can still land.
        self.refresh(None)
            .or_warn("the batches of a rig with beads wait");
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare("SELECT item, owner FROM batches WHERE landed_at IS NULL ORDER BY at, item")
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
            .map_err(problem)?;
        let mut ready = Vec::new();
        for row in rows {
            let (item, owner): (String, String) = row.map_err(problem)?;
            let item: WorkId = stored(&item)?;
            if is_complete(&db, &item)? || is_closed(&db, &item)? {
                ready.push(WorkBatch {
                    item,
                    owner,
                    landed_at: None,
                });
            }
        }
        Ok(ready)
    }

    /// Lands a batch: closes its parent, unless that is on a hook, and writes the mail to the
    /// recipient. Returns whether it has landed now. If the parent was closed before, the batch was
    /// given up, and no mail is written.
    pub fn land_batch(&self, id: &WorkId, draft: &MailDraft, recipient: &str) -> Result<bool> {
        let draft = draft.checked()?;
        self.change(|db| {
            let is_waiting: bool = db
                .query_row(
                    "SELECT EXISTS (SELECT 1 FROM batches WHERE item = ?1 AND landed_at IS NULL)",
                    [id.as_str()],
                    |row| row.get(0),
                )
                .map_err(problem)?;
            if !is_waiting {
                return Ok(false);
            }
            let at = now(db)?;
            if is_closed(db, id)? {
                db.execute(
                    "UPDATE batches SET landed_at = ?2, told = 1 WHERE item = ?1",
                    params![id.as_str(), at],
                )
                .map_err(problem)?;
                return Ok(false);
            }
            if !is_complete(db, id)? {
                return Ok(false);
            }
            if holder(db, id)?.is_none() {
                close(db, id, Some("all its items have landed"))?;
            }
            let mail = messages::write(db, &draft, recipient, ItemStatus::Open)?;
            db.execute(
                "UPDATE batches SET landed_at = ?2, mail = ?3 WHERE item = ?1",
                params![id.as_str(), at, mail.as_str()],
            )
            .map_err(problem)?;
            Ok(true)
        })
    }

    /// Returns the batches that have landed and whose announcement is not recorded.
    pub fn batches_to_announce(&self) -> Result<Vec<LandedBatch>> {
        let Some(db) = self.open_if_there()? else {
            return Ok(Vec::new());
        };
        let mut query = db
            .prepare(
                "SELECT item, owner, landed_at, mail FROM batches
                 WHERE told = 0 AND landed_at IS NOT NULL ORDER BY landed_at, item",
            )
            .map_err(problem)?;
        let rows = query
            .query_map([], |row| {
                let item: String = row.get(0)?;
                let mail: Option<String> = row.get(3)?;
                Ok((item, row.get(1)?, row.get(2)?, mail))
            })
            .map_err(problem)?;
        rows.map(|row| {
            let (item, owner, landed_at, mail) = row.map_err(problem)?;
            let item = must_have(&db, &stored(&item)?)?;
            // The recipient may have deleted it.
            let mail = mail.and_then(|id| mailbox::by_id(&db, &id.parse().ok()?).ok());
            Ok(LandedBatch {
                parts: parts(&db, &item.id)?,
                item,
                owner,
                landed_at,
                mail,
            })
        })
        .collect()
    }

    /// Records that a landed batch was announced.
    pub fn batch_told(&self, id: &WorkId) -> Result<()> {
        self.change(|db| {
            db.execute("UPDATE batches SET told = 1 WHERE item = ?1", [id.as_str()])
                .map(drop)
                .map_err(problem)
        })
    }
}

/// Creates the parent of a batch. It is in progress, so that no agent takes it for work.
fn begin(db: &Connection, draft: &ItemDraft) -> Result<Item> {
    let draft = ItemDraft {
        kind: Some(KIND.to_owned()),
        ..draft.clone()
    };
    let item = insert(db, &draft)?;
    db.execute(
        "UPDATE items SET status = 'in_progress' WHERE id = ?1",
        [item.id.as_str()],
    )
    .map_err(problem)?;
    Ok(item)
}

/// Returns an item that can be the parent of a batch.
fn usable(db: &Connection, id: &WorkId) -> Result<Item> {
    let item = must_have(db, id)?;
    protected::check_item(db, &item, ItemChange::Part)?;
    match item.status {
        ItemStatus::Closed => {
            let hint = format!("`gt work reopen {id}`, or `--batch TITLE` makes a new one");
            Err(Problem::conflict(format!("{id} is closed")).hint(hint))
        }
        _ => Ok(item),
    }
}

fn join(db: &Connection, batch: &WorkId, id: &WorkId) -> Result<()> {
    let item = must_have(db, id)?;
    match &item.parent {
        Some(parent) if parent == batch => return Ok(()),
        Some(parent) => {
            return Err(Problem::conflict(format!(
                "{id} is a part of {parent}, and cannot be one of {batch}"
            ))
            .hint(format!("`--batch {parent}`, or sling it without a batch")));
        }
        None => {}
    }
    let is_above: bool = db
        .query_row(
            "WITH RECURSIVE above (id) AS (
                 SELECT ?1 UNION SELECT parent FROM items JOIN above USING (id)
                 WHERE parent IS NOT NULL)
             SELECT EXISTS (SELECT 1 FROM above WHERE id = ?2)",
            params![batch.as_str(), id.as_str()],
            |row| row.get(0),
        )
        .map_err(problem)?;
    if is_above {
        return Err(Problem::conflict(format!(
            "{batch} is a part of {id}, and cannot be its batch"
        )));
    }
    db.execute(
        "UPDATE items SET parent = ?2, updated_at = ?3 WHERE id = ?1",
        params![id.as_str(), batch.as_str(), now(db)?],
    )
    .map(drop)
    .map_err(problem)
}

fn children(db: &Connection, id: &WorkId) -> Result<Vec<Item>> {
    let rest = format!(
        "WHERE parent = ?1 AND type <> '{}' AND {IS_WORK} ORDER BY created_at, id",
        mail::KIND
    );
    select(db, &rest, [Value::from(id.to_string())])
}

fn parts(db: &Connection, id: &WorkId) -> Result<PartCount> {
    let text = format!(
        "SELECT count(*), coalesce(sum(status = 'closed'), 0) FROM items
         WHERE parent = ?1 AND type <> '{}' AND {IS_WORK}",
        mail::KIND
    );
    db.query_row(&text, [id.as_str()], |row| {
        Ok(PartCount {
            all: row.get(0)?,
            closed: row.get(1)?,
        })
    })
    .map_err(problem)
}

fn is_complete(db: &Connection, id: &WorkId) -> Result<bool> {
    let parts = parts(db, id)?;
    Ok(parts.all > 0 && parts.closed == parts.all)
}

fn is_closed(db: &Connection, id: &WorkId) -> Result<bool> {
    Ok(must_have(db, id)?.status == ItemStatus::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(title: &str) -> ItemDraft {
        ItemDraft {
            prefix: "gt".to_owned(),
            title: title.to_owned(),
            ..ItemDraft::default()
        }
    }

    fn mail() -> MailDraft {
        MailDraft::new("gt", "Landed", "")
    }

    fn count_mail(work: &Work) -> usize {
        let query = super::super::MailQuery {
            recipient: Some("human".to_owned()),
            ..super::super::MailQuery::default()
        };
        work.messages(&query).unwrap().len()
    }

    #[test]
    fn batch_lands_once_when_its_last_item_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let items = ["a", "b"].map(|title| work.create(&draft(title)).unwrap().id);
        assert!(!work.has_unsettled_batches().unwrap());
        let parent = BatchParent::New(draft("Both"));
        let batch = work.join_batch(&parent, &items, "human").unwrap();
        assert_eq!(
            (batch.kind.as_str(), batch.status),
            (KIND, ItemStatus::InProgress)
        );
        assert_eq!(work.children(&batch.id).unwrap().len(), 2);
        let owner = work.batch(&batch.id).unwrap().unwrap().owner;
        assert_eq!(owner, "human");
        let land = || work.land_batch(&batch.id, &mail(), "human").unwrap();
        work.close(&items[0], None).unwrap();
        assert_eq!(work.batches_to_land().unwrap(), []);
        assert!(!land(), "an item is open");
        work.close(&items[1], None).unwrap();
        assert_eq!(work.batches_to_land().unwrap().len(), 1);
        assert!(land());
        assert!(!land(), "it has landed");
        assert_eq!(count_mail(&work), 1);
        let batch = work.get(&batch.id).unwrap();
        assert_eq!(batch.status, ItemStatus::Closed);
        let landed = work.batches_to_announce().unwrap();
        assert_eq!(landed.len(), 1);
        assert!(landed[0].mail.is_some());
        assert_eq!((landed[0].parts.closed, landed[0].parts.all), (2, 2));
        work.batch_told(&batch.id).unwrap();
        assert!(!work.has_unsettled_batches().unwrap());
        // A closed batch takes no more items; a reopened one lands again.
        let late = work.create(&draft("late")).unwrap().id;
        let again = BatchParent::Existing(batch.id.clone());
        let join = || work.join_batch(&again, std::slice::from_ref(&late), "mayor");
        assert!(join().is_err());
        work.reopen(&batch.id).unwrap();
        join().unwrap();
        assert_eq!(work.batches_to_land().unwrap(), []);
        work.close(&late, None).unwrap();
        assert_eq!(work.batches_to_land().unwrap()[0].owner, "mayor");
    }

    #[test]
    fn batch_whose_parent_was_closed_is_not_announced() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let items = ["a", "b"].map(|title| work.create(&draft(title)).unwrap().id);
        let parent = BatchParent::New(draft("Both"));
        let batch = work.join_batch(&parent, &items, "human").unwrap();
        work.close(&batch.id, Some("not needed")).unwrap();
        assert_eq!(work.batches_to_land().unwrap().len(), 1);
        assert!(!work.land_batch(&batch.id, &mail(), "human").unwrap());
        assert_eq!(count_mail(&work), 0);
        assert!(!work.has_unsettled_batches().unwrap());
    }

    #[test]
    fn item_of_another_parent_does_not_join() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::at(folder.path().join("items.db"));
        let epic = work.create(&draft("epic")).unwrap().id;
        let part = ItemDraft {
            parent: Some(epic.clone()),
            ..draft("part")
        };
        let part = work.create(&part).unwrap().id;
        let free = work.create(&draft("free")).unwrap().id;
        let both = [free.clone(), part.clone()];
        let refused = work.join_batch(&BatchParent::New(draft("Both")), &both, "human");
        let said = refused.unwrap_err().to_string();
        assert!(said.contains(&format!("a part of {epic}")), "{said}");
        assert_eq!(work.get(&free).unwrap().parent, None, "nothing changed");
        work.join_batch(&BatchParent::Existing(epic.clone()), &both, "human")
            .unwrap();
        assert_eq!(work.children(&epic).unwrap().len(), 2);
        // An item cannot be above itself.
        let of_part = BatchParent::Existing(part);
        assert!(work.join_batch(&of_part, &[epic], "human").is_err());
    }
}
