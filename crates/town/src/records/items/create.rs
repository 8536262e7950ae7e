//! Creates work items: in the town's tables, or in the beads of their rig.

use super::Work;
use super::change::{add_labels, check_no_mail};
use super::protected::{self, ItemChange};
use super::read::{by_id, must_have};
use super::store::problem;
use crate::Result;
use crate::records::items::store::now;
use gt_core::work::{
    Item, ItemStatus, LENGTH, USUAL_KIND, USUAL_PRIORITY, WorkId, check_priority, check_title,
    check_word,
};
use rusqlite::{Connection, params};

/// Description of a new item.
#[derive(Clone, Debug, Default)]
pub struct ItemDraft {
    /// Prefix of its rig; a child has its parent's.
    pub prefix: String,
    pub parent: Option<WorkId>,
    pub title: String,
    pub description: String,
    pub kind: Option<String>,
    pub priority: Option<u8>,
    pub assignee: Option<String>,
    pub labels: Vec<String>,
    pub deps: Vec<WorkId>,
    pub ephemeral: bool,
}

impl Work {
    pub fn create(&self, draft: &ItemDraft) -> Result<Item> {
        if let Some(parent) = &draft.parent {
            self.refresh_for(parent)?;
        }
        for blocker in &draft.deps {
            self.refresh_for(blocker)?;
        }
        self.change(|db| self.make(db, draft))
    }

    /// Creates an item within a transaction, in the place where its rig keeps items.
    pub(super) fn make(&self, db: &Connection, draft: &ItemDraft) -> Result<Item> {
        match self.beads_for(db, draft)? {
            Some((beads, rig)) => {
                let draft = as_item(db, draft)?;
                super::beads::create(beads, rig, db, &draft)
            }
            None => insert(db, draft),
        }
    }
}

/// Checks a draft, and returns its type and priority.
fn check<'d>(db: &Connection, draft: &'d ItemDraft) -> Result<(&'d str, u8)> {
    if let Some(parent) = &draft.parent {
        protected::check(db, parent, ItemChange::Part)?;
    }
    for blocker in &draft.deps {
        protected::check(db, blocker, ItemChange::Await)?;
    }
    check_title(&draft.title)?;
    let kind = draft.kind.as_deref().unwrap_or(USUAL_KIND);
    check_word("type", kind)?;
    check_no_mail(kind)?;
    let priority = draft.priority.unwrap_or(USUAL_PRIORITY);
    check_priority(priority)?;
    for label in &draft.labels {
        check_word("label", label)?;
    }
    Ok((kind, priority))
}

/// Converts a draft into the item to create in beads, which assigns the final id.
fn as_item(db: &Connection, draft: &ItemDraft) -> Result<Item> {
    let (kind, priority) = check(db, draft)?;
    Ok(Item {
        id: random_id(db, "new")?,
        title: draft.title.clone(),
        description: draft.description.clone(),
        design: String::new(),
        acceptance_criteria: String::new(),
        kind: kind.to_owned(),
        priority,
        status: ItemStatus::Open,
        assignee: draft.assignee.clone(),
        labels: draft.labels.clone(),
        parent: draft.parent.clone(),
        deps: draft.deps.clone(),
        notes: String::new(),
        ephemeral: draft.ephemeral,
        created_at: String::new(),
        updated_at: String::new(),
        closed_at: None,
        close_reason: None,
    })
}

/// Creates an item in the town's tables, within a transaction.
pub(super) fn insert(db: &Connection, draft: &ItemDraft) -> Result<Item> {
    let (kind, priority) = check(db, draft)?;
    let id = match &draft.parent {
        // Beads numbers the parts of its items.
        Some(parent) if super::beads::rig_of(db, parent)?.is_some() => {
            free_id(db, prefix_for(draft, parent))?
        }
        Some(parent) => next_child(db, &must_have(db, parent)?.id)?,
        None => free_id(db, &draft.prefix)?,
    };
    let now = now(db)?;
    db.execute(
        "INSERT INTO items (id, title, description, type, priority, status, assignee,
         parent, ephemeral, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, 'open', ?6, ?7, ?8, ?9, ?9)",
        params![
            id.as_str(),
            draft.title,
            draft.description,
            kind,
            priority,
            draft.assignee,
            draft.parent.as_ref().map(WorkId::as_str),
            draft.ephemeral,
            now,
        ],
    )
    .map_err(problem)?;
    add_labels(db, &id, &draft.labels)?;
    for blocker in &draft.deps {
        super::dependencies::add(db, &id, blocker)?;
    }
    must_have(db, &id)
}

fn prefix_for<'a>(draft: &'a ItemDraft, parent: &'a WorkId) -> &'a str {
    match draft.prefix.as_str() {
        "" => parent.as_str().split('-').next().unwrap_or_default(),
        prefix => prefix,
    }
}

/// Returns an unused id with five random letters.
pub(super) fn free_id(db: &Connection, prefix: &str) -> Result<WorkId> {
    loop {
        let id = random_id(db, prefix)?;
        if by_id(db, &id)?.is_none() {
            return Ok(id);
        }
    }
}

pub(super) fn random_id(db: &Connection, prefix: &str) -> Result<WorkId> {
    let random = db.query_row("SELECT gt_random()", [], |row| {
        row.get::<_, [u8; LENGTH]>(0)
    });
    WorkId::new(prefix, random.map_err(problem)?)
        .as_str()
        .parse()
}

fn next_child(db: &Connection, parent: &WorkId) -> Result<WorkId> {
    // By their ids, because an imported item may have no parent. The range covers all ids that
    // continue with a dot: the slash is the next character after it.
    let mut query = db
        .prepare("SELECT id FROM items WHERE id > ?1 || '.' AND id < ?1 || '/'")
        .map_err(problem)?;
    let ids = query
        .query_map([parent.as_str()], |row| row.get::<_, String>(0))
        .map_err(problem)?;
    let taken: rusqlite::Result<Vec<String>> = ids.collect();
    let taken = taken.map_err(problem)?;
    Ok(parent.next_child(taken.iter().map(String::as_str)))
}
