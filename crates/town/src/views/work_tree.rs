//! The tree of a work item, for `gt work tree`.

use crate::records::budget;
use crate::records::items::Work;
use crate::workflow::schedule;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::tree::{self, NodeFacts, WorkNode};
use gt_core::work::{Item, WorkId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Maximum depth of a tree. Imported items may be deeper; the rest is left out.
const DEEPEST: usize = 50;

/// Reads an item with all its parts. Molecules and mail do not count as parts.
pub fn read(town: &Town, id: &WorkId) -> Result<WorkNode> {
    let work = Work::of(town);
    let root = work.get(id)?;
    let mut family = Family::default();
    family.add(&work, root.clone(), 0)?;
    let ids: Vec<String> = family.seen.iter().map(WorkId::to_string).collect();
    let facts = TreeFacts::read(town, &work, budget::spent_on(town, &ids)?)?;
    facts.node(&work, root, &family)
}

/// The items of a tree, by their parent.
#[derive(Default)]
struct Family {
    seen: HashSet<WorkId>,
    children: HashMap<WorkId, Vec<Item>>,
}

impl Family {
    fn add(&mut self, work: &Work, item: Item, depth: usize) -> Result<()> {
        if depth > DEEPEST || !self.seen.insert(item.id.clone()) {
            return Ok(());
        }
        let mut children = work.children(&item.id)?;
        children.retain(|child| !self.seen.contains(&child.id));
        for child in &children {
            self.add(work, child.clone(), depth + 1)?;
        }
        self.children.insert(item.id, children);
        Ok(())
    }
}

/// Facts about all items, each read once.
struct TreeFacts {
    costs: BTreeMap<String, f64>,
    queued: HashMap<WorkId, (Option<String>, Option<String>)>,
    merges: HashMap<WorkId, (gt_core::merge::MergeStatus, Option<String>)>,
}

impl TreeFacts {
    fn read(town: &Town, work: &Work, costs: BTreeMap<String, f64>) -> Result<Self> {
        let queued = schedule::waiting(town)?.into_iter();
        let merges = work.merges(None, false)?.into_iter();
        Ok(TreeFacts {
            costs,
            queued: queued
                .map(|(entry, reason)| (entry.item.id, (reason, entry.last_error)))
                .collect(),
            merges: merges
                .map(|merge| (merge.item, (merge.status, merge.reason)))
                .collect(),
        })
    }

    fn node(&self, work: &Work, item: Item, family: &Family) -> Result<WorkNode> {
        let id = &item.id;
        let queued = self.queued.get(id);
        let next = "it starts next".to_owned();
        let facts = NodeFacts {
            holder: work.holder(id)?,
            blockers: work.open_blockers(id)?,
            merge: self.merges.get(id).cloned(),
            queued: queued.map(|(reason, _)| reason.clone().unwrap_or(next)),
            start_error: queued.and_then(|(_, error)| error.clone()),
        };
        let (progress, reason) = tree::progress(&item, &facts);
        let children: Result<Vec<WorkNode>, Problem> = family
            .children
            .get(id)
            .into_iter()
            .flatten()
            .map(|child| self.node(work, child.clone(), family))
            .collect();
        Ok(WorkNode {
            progress,
            reason,
            owner: work.batch(id)?.map(|batch| batch.owner),
            cost: self.costs.get(id.as_str()).copied().unwrap_or_default(),
            holder: facts.holder,
            children: children?,
            item,
        })
    }
}
