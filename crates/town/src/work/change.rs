//! Making, changing and closing work items.

use super::Work;
use super::read::{by_id, must_have};
use super::store::problem;
use crate::Result;
use crate::sessions::timestamp;
use gt_core::work::{
    Item, LENGTH, Status, USUAL_KIND, USUAL_PRIORITY, WorkId, check_priority, check_title,
    check_word,
};
use gt_core::{Problem, mail};
use rusqlite::{Connection, params};

/// A new item, as somebody wants it.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The prefix of its rig; of a child its parent's.
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

/// What is to be different; what is not set stays.
#[derive(Clone, Debug, Default)]
pub struct Patch {
    pub title: Option<String>,
    pub description: Option<String>,
    pub kind: Option<String>,
    pub priority: Option<u8>,
    pub status: Option<Status>,
    /// An empty one takes it away.
    pub assignee: Option<String>,
    pub notes: Option<String>,
    pub append_notes: Option<String>,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
}

impl Work {
    pub fn create(&self, draft: &Draft) -> Result<Item> {
        if let Some(parent) = &draft.parent {
            self.refresh_for(parent)?;
        }
        for blocker in &draft.deps {
            self.refresh_for(blocker)?;
        }
        self.change(|db| self.make(db, draft))
    }

    /// Makes an item as a part of a greater change, where its rig has its items.
    pub(super) fn make(&self, db: &Connection, draft: &Draft) -> Result<Item> {
        match self.beads_for(db, draft)? {
            Some((beads, rig)) => {
                let draft = as_item(db, draft)?;
                super::beads::create(beads, rig, db, &draft)
            }
            None => insert(db, draft),
        }
    }

    pub fn update(&self, id: &WorkId, patch: &Patch) -> Result<Item> {
        self.refresh_for(id)?;
        if let Some(title) = &patch.title {
            check_title(title)?;
        }
        if let Some(kind) = &patch.kind {
            check_word("type", kind)?;
            check_no_letter(kind)?;
        }
        patch.priority.map_or(Ok(()), check_priority)?;
        for label in &patch.add_labels {
            check_word("label", label)?;
        }
        self.change(|db| {
            let item = must_have(db, id)?;
            check_status(&item, patch.status)?;
            if patch.kind.is_some() {
                check_no_letter(&item.kind)?;
            }
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
                    patch.status.map(Status::word),
                    patch.assignee,
                    notes,
                    timestamp(None),
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
            must_have(db, id)
        })
    }

    /// Closes an item and takes it from whoever's hook it is on. One that is closed
    /// already stays as it is.
    pub fn close(&self, id: &WorkId, reason: Option<&str>) -> Result<Item> {
        self.refresh_for(id)?;
        self.change(|db| close(db, id, reason))
    }

    pub fn reopen(&self, id: &WorkId) -> Result<Item> {
        self.refresh_for(id)?;
        self.change(|db| {
            let item = must_have(db, id)?;
            if item.status != Status::Closed {
                return Err(Problem::conflict(format!(
                    "{id} is not closed but {}",
                    item.status.word()
                )));
            }
            db.execute(
                "UPDATE items SET status = 'open', closed_at = NULL, close_reason = NULL, updated_at = ?2,
                 assignee = (SELECT recipient FROM letters WHERE item = items.id)
                 WHERE id = ?1",
                params![id.as_str(), timestamp(None)],
            )
            .map_err(problem)?;
            must_have(db, id)
        })
    }
}

/// A letter is more than an item of this type.
fn check_no_letter(kind: &str) -> Result<()> {
    if kind != mail::KIND {
        return Ok(());
    }
    Err(Problem::usage("a letter is written, and stays a letter").hint("`gt mail send`"))
}

/// Checks a draft, and gives its type and priority.
fn check(draft: &Draft) -> Result<(&str, u8)> {
    check_title(&draft.title)?;
    let kind = draft.kind.as_deref().unwrap_or(USUAL_KIND);
    check_word("type", kind)?;
    check_no_letter(kind)?;
    let priority = draft.priority.unwrap_or(USUAL_PRIORITY);
    check_priority(priority)?;
    for label in &draft.labels {
        check_word("label", label)?;
    }
    Ok((kind, priority))
}

/// A draft as the item that beads is to make; the id is beads' own in the end.
fn as_item(db: &Connection, draft: &Draft) -> Result<Item> {
    let (kind, priority) = check(draft)?;
    for blocker in &draft.deps {
        must_have(db, blocker)?;
    }
    Ok(Item {
        id: random_id("new")?,
        title: draft.title.clone(),
        description: draft.description.clone(),
        kind: kind.to_owned(),
        priority,
        status: Status::Open,
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

/// Makes an item in the town's own tables, as a part of a greater change.
pub(super) fn insert(db: &Connection, draft: &Draft) -> Result<Item> {
    let (kind, priority) = check(draft)?;
    let id = match &draft.parent {
        // The numbers of its parts are given by beads.
        Some(parent) if super::beads::rig_of(db, parent)?.is_some() => {
            free_id(db, prefix_for(draft, parent))?
        }
        Some(parent) => next_child(db, &must_have(db, parent)?.id)?,
        None => free_id(db, &draft.prefix)?,
    };
    let now = timestamp(None);
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

/// Closes an item, as a part of a greater change.
pub(super) fn close(db: &Connection, id: &WorkId, reason: Option<&str>) -> Result<Item> {
    let item = must_have(db, id)?;
    if item.status == Status::Closed {
        return Ok(item);
    }
    super::hook::take_off(db, id)?;
    let now = timestamp(None);
    db.execute(
        "UPDATE items SET status = 'closed', closed_at = ?2, close_reason = ?3,
         updated_at = ?2 WHERE id = ?1",
        params![id.as_str(), now, reason],
    )
    .map_err(problem)?;
    must_have(db, id)
}

/// Hooks and closings have commands of their own, which do more than set a word.
fn check_status(item: &Item, wanted: Option<Status>) -> Result<()> {
    let id = &item.id;
    let refuse = |words: &str, hint: String| Err(Problem::usage(words.to_owned()).hint(hint));
    match (item.status, wanted) {
        (_, None) => Ok(()),
        (now, Some(wanted)) if now == wanted => Ok(()),
        (_, Some(Status::Hooked)) => {
            refuse("an item is hooked by an agent", format!("`gt hook {id}`"))
        }
        (_, Some(Status::Closed)) => refuse(
            "an item is closed with a reason",
            format!("`gt work close {id}`"),
        ),
        (Status::Closed, Some(_)) => refuse("it is closed", format!("`gt work reopen {id}`")),
        // Whoever has it on its hook has begun with it.
        (Status::Hooked, Some(Status::InProgress)) => Ok(()),
        (Status::Hooked, Some(_)) => {
            refuse("it is on an agent's hook", format!("`gt unhook {id}`"))
        }
        _ => Ok(()),
    }
}

pub(super) fn add_labels(db: &Connection, id: &WorkId, labels: &[String]) -> Result<()> {
    for label in labels {
        db.execute(
            "INSERT OR IGNORE INTO labels (item, label) VALUES (?1, ?2)",
            params![id.as_str(), label],
        )
        .map_err(problem)?;
    }
    Ok(())
}

fn prefix_for<'a>(draft: &'a Draft, parent: &'a WorkId) -> &'a str {
    match draft.prefix.as_str() {
        "" => parent.as_str().split('-').next().unwrap_or_default(),
        prefix => prefix,
    }
}

/// Notes with a line more.
pub(super) fn appended(notes: &str, more: &str) -> String {
    match notes {
        "" => more.to_owned(),
        notes => format!("{notes}\n{more}"),
    }
}

/// An id that nothing has: five random letters, and others if they are taken.
pub(super) fn free_id(db: &Connection, prefix: &str) -> Result<WorkId> {
    loop {
        let id = random_id(prefix)?;
        if by_id(db, &id)?.is_none() {
            return Ok(id);
        }
    }
}

pub(super) fn random_id(prefix: &str) -> Result<WorkId> {
    let random = uuid::Uuid::new_v4().into_bytes();
    let mut letters = [0; LENGTH];
    letters.copy_from_slice(&random[..LENGTH]);
    WorkId::new(prefix, letters).as_str().parse()
}

fn next_child(db: &Connection, parent: &WorkId) -> Result<WorkId> {
    let mut query = db
        .prepare("SELECT id FROM items WHERE parent = ?1")
        .map_err(problem)?;
    let ids = query
        .query_map([parent.as_str()], |row| row.get::<_, String>(0))
        .map_err(problem)?;
    let mut last = 0;
    for id in ids {
        let id = id.map_err(problem)?;
        let number = id
            .rsplit_once('.')
            .and_then(|(_, number)| number.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    Ok(parent.child(last + 1))
}
