//! Changes and closes work items.

use super::Work;
use super::hook::{holder, on_hook};
use super::merge_steps::withdraw;
use super::protected::{self, ItemChange, check_closing};
use super::read::must_have;
use super::store::problem;
use crate::Result;
use crate::records::items::store::now;
use gt_core::merge::Merge;
use gt_core::work::{Item, ItemStatus, WorkId, appended, check_priority, check_title, check_word};
use gt_core::{Problem, mail};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// Changed fields; unset fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    pub title: Option<String>,
    pub description: Option<String>,
    pub kind: Option<String>,
    pub priority: Option<u8>,
    pub status: Option<ItemStatus>,
    /// An empty value removes it.
    pub assignee: Option<String>,
    pub notes: Option<String>,
    pub append_notes: Option<String>,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
}

impl Patch {
    /// Returns the names of the changed fields.
    pub fn fields(&self) -> Vec<&'static str> {
        let fields = [
            ("title", self.title.is_some()),
            ("description", self.description.is_some()),
            ("type", self.kind.is_some()),
            ("priority", self.priority.is_some()),
            ("status", self.status.is_some()),
            ("assignee", self.assignee.is_some()),
            ("notes", self.notes.is_some() || self.append_notes.is_some()),
            (
                "labels",
                !self.add_labels.is_empty() || !self.remove_labels.is_empty(),
            ),
        ];
        let changed = fields.into_iter().filter(|(_, is_changed)| *is_changed);
        changed.map(|(name, _)| name).collect()
    }
}

/// Result of a change.
#[derive(Clone, Debug)]
pub struct ChangedItem {
    pub item: Item,
    /// Merge that was withdrawn, because the item was reopened.
    pub withdrawn: Option<Merge>,
}

impl Work {
    pub fn update(&self, id: &WorkId, patch: &Patch) -> Result<ChangedItem> {
        self.refresh_for(id)?;
        if let Some(title) = &patch.title {
            check_title(title)?;
        }
        if let Some(kind) = &patch.kind {
            check_word("type", kind)?;
            check_no_mail(kind)?;
        }
        patch.priority.map_or(Ok(()), check_priority)?;
        for label in &patch.add_labels {
            check_word("label", label)?;
        }
        self.change(|db| {
            let item = must_have(db, id)?;
            protected::check_item(db, &item, ItemChange::Update(patch))?;
            let holder = holder(db, id)?;
            check_status(&item, holder.as_deref(), patch.status)?;
            check_assignee(id, holder.as_deref(), patch.assignee.as_deref())?;
            let withdrawn = match patch.status {
                Some(ItemStatus::Open) => withdraw(db, id)?,
                _ => None,
            };
            let notes = match (&patch.notes, &patch.append_notes) {
                (Some(notes), _) => Some(notes.clone()),
                (None, Some(more)) => Some(appended(&item.notes, more)),
                (None, None) => None,
            };
            db.execute(
                "UPDATE items SET title = coalesce(?2, title),
                 description = coalesce(?3, description), type = coalesce(?4, type),
                 priority = coalesce(?5, priority), status = coalesce(?6, status),
                 assignee = CASE WHEN ?7 = '' THEN NULL ELSE coalesce(?7, assignee) END,
                 notes = coalesce(?8, notes), updated_at = ?9 WHERE id = ?1",
                params![
                    id.as_str(),
                    patch.title,
                    patch.description,
                    patch.kind,
                    patch.priority,
                    patch.status.map(ItemStatus::as_str),
                    patch.assignee,
                    notes,
                    self.clock.text(),
                ],
            )
            .map_err(problem)?;
            add_labels(db, id, &patch.add_labels)?;
            for label in &patch.remove_labels {
                db.execute(
                    "DELETE FROM labels WHERE item = ?1 AND label = ?2",
                    params![id.as_str(), label],
                )
                .map_err(problem)?;
            }
            let item = must_have(db, id)?;
            Ok(ChangedItem { item, withdrawn })
        })
    }

    /// Closes an item and takes it off the hook it is on. Idempotent.
    pub fn close(&self, id: &WorkId, reason: Option<&str>) -> Result<Item> {
        self.refresh_for(id)?;
        self.change(|db| {
            check_closing(db, id)?;
            close(db, id, reason)
        })
    }

    /// Closes all items, or none. Changes in beads cannot be rolled back, so its items are closed
    /// one after the other, and those before a refusal stay closed.
    pub fn close_all(&self, ids: &[WorkId], reason: Option<&str>) -> Result<Vec<Item>> {
        let mut ids = ids.to_vec();
        let mut told = BTreeSet::new();
        ids.retain(|id| told.insert(id.clone()));
        let is_in_beads = |id| self.rig_in_beads(id).map(|rig| rig.is_some());
        let in_beads: Result<Vec<bool>> = ids.iter().map(is_in_beads).collect();
        if in_beads?.contains(&true) {
            if let Some(db) = self.open_if_there()? {
                ids.iter().try_for_each(|id| check_closing(&db, id))?;
            }
            // They were refreshed just now, and only this process has changed them since.
            let close = |id: &WorkId| {
                self.change(|db| {
                    check_closing(db, id)?;
                    close(db, id, reason)
                })
            };
            return ids.iter().map(close).collect();
        }
        self.change(|db| {
            ids.iter().try_for_each(|id| check_closing(db, id))?;
            ids.iter().map(|id| close(db, id, reason)).collect()
        })
    }

    pub fn reopen(&self, id: &WorkId) -> Result<ChangedItem> {
        self.refresh_for(id)?;
        self.change(|db| {
            let item = must_have(db, id)?;
            if item.status != ItemStatus::Closed {
                return Err(Problem::conflict(format!(
                    "{id} is not closed but {}",
                    item.status.as_str()
                )));
            }
            protected::check_item(db, &item, ItemChange::Reopen)?;
            let kept = match protected::keeps_assignee(db, &item)? {
                true => item.assignee,
                false => None,
            };
            let withdrawn = withdraw(db, id)?;
            // An item that was closed in beads may still be on a hook.
            let holder = holder(db, id)?;
            let status = match &holder {
                Some(_) => ItemStatus::Hooked,
                None => ItemStatus::Open,
            };
            db.execute(
                "UPDATE items SET status = ?3, closed_at = NULL, close_reason = NULL, updated_at = ?2,
                 assignee = coalesce(?4, ?5, (SELECT recipient FROM letters WHERE item = items.id))
                 WHERE id = ?1",
                params![id.as_str(), self.clock.text(), status.as_str(), holder, kept],
            )
            .map_err(problem)?;
            let item = must_have(db, id)?;
            Ok(ChangedItem { item, withdrawn })
        })
    }
}

/// Refuses the type of mail: a message consists of more than its item, and only sending creates it.
pub(super) fn check_no_mail(kind: &str) -> Result<()> {
    if kind != mail::KIND {
        return Ok(());
    }
    Err(Problem::usage("a message is sent, not created").hint("`gt mail send`"))
}

/// Closes an item within a transaction.
pub(super) fn close(db: &Connection, id: &WorkId, reason: Option<&str>) -> Result<Item> {
    let item = must_have(db, id)?;
    if item.status == ItemStatus::Closed {
        return Ok(item);
    }
    super::hook::take_off(db, id)?;
    let now = now(db)?;
    db.execute(
        "UPDATE items SET status = 'closed', closed_at = ?2, close_reason = ?3,
         updated_at = ?2 WHERE id = ?1",
        params![id.as_str(), now, reason],
    )
    .map_err(problem)?;
    must_have(db, id)
}

/// Refuses statuses that have their own commands, because hooking and closing do more than set the
/// status.
fn check_status(item: &Item, holder: Option<&str>, wanted: Option<ItemStatus>) -> Result<()> {
    let id = &item.id;
    let refuse = |words: &str, hint: String| Err(Problem::usage(words.to_owned()).hint(hint));
    match (item.status, wanted) {
        (_, None) => Ok(()),
        (now, Some(wanted)) if now == wanted => Ok(()),
        (_, Some(ItemStatus::Closed)) => refuse(
            "an item is closed with a reason",
            format!("`gt work close {id}`"),
        ),
        (ItemStatus::Closed, Some(_)) => refuse("it is closed", format!("`gt work reopen {id}`")),
        (_, Some(wanted)) => match (holder, wanted) {
            // The holder may begin it, and may put it back to hooked.
            (Some(_), ItemStatus::Hooked | ItemStatus::InProgress) => Ok(()),
            (Some(holder), _) => Err(on_hook(id, holder)),
            (None, ItemStatus::Hooked) => {
                refuse("an item is hooked by an agent", format!("`gt hook {id}`"))
            }
            (None, _) => Ok(()),
        },
    }
}

/// Refuses another assignee than the agent on whose hook the item is.
fn check_assignee(id: &WorkId, holder: Option<&str>, wanted: Option<&str>) -> Result<()> {
    match (holder, wanted) {
        (Some(holder), Some(wanted)) if holder != wanted => Err(on_hook(id, holder)),
        _ => Ok(()),
    }
}

pub(super) fn add_labels(db: &Connection, id: &WorkId, labels: &[String]) -> Result<()> {
    let mut insert = db
        .prepare_cached("INSERT OR IGNORE INTO labels (item, label) VALUES (?1, ?2)")
        .map_err(problem)?;
    for label in labels {
        insert
            .execute(params![id.as_str(), label])
            .map_err(problem)?;
    }
    Ok(())
}
