//! Gathers items that are assigned together under one parent: a batch.
//!
//! [`crate::records::items`] stores batches, [`crate::supervision::batches`] lands them.

use crate::records::items::{BatchParent, ItemDraft, Work};
use crate::repo::rig;
use crate::workflow::sling;
use crate::{Result, Town};
use gt_core::mail::PERSON;
use gt_core::work::{Item, ItemStatus, LONGEST_TITLE, WorkId};
use std::collections::BTreeSet;

/// The batch that a caller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchChoice {
    /// A batch if there are several items: their common parent, or a new one.
    Several,
    /// This item, or a new one with this title.
    Named(String),
    None,
}

/// Result of [`gather`].
#[derive(Clone, Debug, Default)]
pub struct GatheredBatch {
    pub batch: Option<Item>,
    /// Why several items do not form a batch.
    pub warning: Option<String>,
}

/// Makes the items the children of a batch, except those that no longer need an agent.
pub fn gather(town: &Town, items: &[&Item], choice: &BatchChoice) -> Result<GatheredBatch> {
    let mut members = Vec::new();
    for item in items {
        if sling::check_unfinished(town, item).is_ok() {
            members.push(*item);
        }
    }
    let is_wanted = match choice {
        BatchChoice::Several => members.len() > 1,
        BatchChoice::Named(_) => !members.is_empty(),
        BatchChoice::None => false,
    };
    if !is_wanted {
        return Ok(GatheredBatch::default());
    }
    let parent = match choice {
        BatchChoice::Named(name) => named(town, name, &members)?,
        _ => match common(town, &members)? {
            Ok(parent) => parent,
            Err(warning) => {
                return Ok(GatheredBatch {
                    batch: None,
                    warning: Some(warning),
                });
            }
        },
    };
    let ids: Vec<WorkId> = members.iter().map(|item| item.id.clone()).collect();
    let owner = town.around().var("GT_ROLE").unwrap_or(PERSON);
    let batch = Work::of(town).join_batch(&parent, &ids, owner)?;
    Ok(GatheredBatch {
        batch: Some(batch),
        warning: None,
    })
}

/// Returns the item with this id, or a new one with this title. Text with a known prefix is an id.
fn named(town: &Town, name: &str, members: &[&Item]) -> Result<BatchParent> {
    let Ok(id) = name.parse::<WorkId>() else {
        return new(town, name.to_owned(), members);
    };
    let is_of_town = name.starts_with(&format!("{}-", rig::TOWN_PREFIX));
    if Work::of(town).lookup(&id)?.is_some()
        || is_of_town
        || town.registry().split(id.as_str()).is_some()
    {
        return Ok(BatchParent::Existing(id));
    }
    new(town, name.to_owned(), members)
}

/// Returns the common parent of items, a new one if none has a parent, or the reason why there is
/// no batch.
fn common(town: &Town, members: &[&Item]) -> Result<Result<BatchParent, String>> {
    let parents: BTreeSet<Option<&str>> = members
        .iter()
        .map(|item| item.parent.as_ref().map(WorkId::as_str))
        .collect();
    let parent = members.first().and_then(|item| item.parent.clone());
    match (parents.len(), parent) {
        (1, None) => Ok(Ok(new(town, title(members), members)?)),
        (1, Some(parent)) => {
            let is_open = Work::of(town).get(&parent)?.status != ItemStatus::Closed;
            Ok(match is_open {
                true => Ok(BatchParent::Existing(parent)),
                false => Err(format!("no batch: {parent}, their parent, is closed")),
            })
        }
        _ => Ok(Err(
            "no batch: the items are parts of different items".to_owned()
        )),
    }
}

fn new(town: &Town, title: String, members: &[&Item]) -> Result<BatchParent> {
    let mut prefixes = BTreeSet::new();
    for item in members {
        // An item in beads cannot name the batch there, so the batch belongs to the town.
        let rig = match Work::of(town).rig_in_beads(&item.id)? {
            Some(_) => None,
            None => town.registry().split(item.id.as_str()),
        };
        let rig = rig.map_or(rig::TOWN_PREFIX, |(rig, _)| rig);
        prefixes.insert(rig::work_prefix(town, rig)?);
    }
    let prefix = match prefixes.len() {
        1 => prefixes.pop_first(),
        _ => None,
    };
    Ok(BatchParent::New(ItemDraft {
        prefix: prefix.unwrap_or_else(|| rig::TOWN_PREFIX.to_owned()),
        title,
        priority: members.iter().map(|item| item.priority).min(),
        ..ItemDraft::default()
    }))
}

fn title(members: &[&Item]) -> String {
    let more = format!(" and {} more", members.len().saturating_sub(1));
    let room = LONGEST_TITLE.saturating_sub(more.len());
    let first = members.first().map_or("", |item| item.title.as_str());
    first.chars().take(room).chain(more.chars()).collect()
}
