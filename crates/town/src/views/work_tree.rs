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
    let mut family = Family::read(&work, &root)?;
    let ids: Vec<String> = family.seen.iter().map(WorkId::to_string).collect();
    let facts = TreeFacts::read(town, &work, budget::spent_on(town, &ids)?)?;
    facts.node(&work, root, &mut family)
}

/// The items of a tree, by their parent.
#[derive(Default)]
struct Family {
    seen: HashSet<WorkId>,
    children: HashMap<WorkId, Vec<Item>>,
}

impl Family {
    /// Reads the parts of an item, one level after another.
    fn read(work: &Work, root: &Item) -> Result<Self> {
        let mut family = Family::default();
        family.seen.insert(root.id.clone());
        // Refreshes items that are kept in beads.
        let mut level = work.children(&root.id)?;
        for _ in 0..DEEPEST {
            level.retain(|item| family.seen.insert(item.id.clone()));
            let ids: Vec<WorkId> = level.iter().map(|item| item.id.clone()).collect();
            for item in level {
                if let Some(parent) = item.parent.clone() {
                    family.children.entry(parent).or_default().push(item);
                }
            }
            if ids.is_empty() {
                break;
            }
            level = work.children_of(&ids)?;
        }
        Ok(family)
    }
}

/// Facts about all items, each read once.
struct TreeFacts {
    costs: BTreeMap<String, f64>,
    holders: HashMap<WorkId, String>,
    owners: HashMap<WorkId, String>,
    queued: HashMap<WorkId, (Option<String>, Option<String>)>,
    merges: HashMap<WorkId, (gt_core::merge::MergeStatus, Option<String>)>,
}

impl TreeFacts {
    fn read(town: &Town, work: &Work, costs: BTreeMap<String, f64>) -> Result<Self> {
        let queued = schedule::waiting(town)?.into_iter();
        let merges = work.merges(None, false)?.into_iter();
        let hooks = work.hooks()?.into_iter();
        Ok(TreeFacts {
            costs,
            holders: hooks.map(|(agent, item)| (item, agent)).collect(),
            owners: work.batch_owners()?,
            queued: queued
                .map(|(entry, reason)| (entry.item.id, (reason, entry.last_error)))
                .collect(),
            merges: merges
                .map(|merge| (merge.item, (merge.status, merge.reason)))
                .collect(),
        })
    }

    fn node(&self, work: &Work, item: Item, family: &mut Family) -> Result<WorkNode> {
        let id = &item.id;
        let queued = self.queued.get(id);
        let next = "it starts next".to_owned();
        let facts = NodeFacts {
            holder: self.holders.get(id).cloned(),
            blockers: match item.deps.is_empty() {
                true => Vec::new(),
                false => work.open_blockers(id)?,
            },
            merge: self.merges.get(id).cloned(),
            queued: queued.map(|(reason, _)| reason.clone().unwrap_or(next)),
            start_error: queued.and_then(|(_, error)| error.clone()),
        };
        let (progress, reason) = tree::progress(&item, &facts);
        let children = family.children.remove(id).unwrap_or_default();
        let children: Result<Vec<WorkNode>, Problem> = children
            .into_iter()
            .map(|child| self.node(work, child, family))
            .collect();
        Ok(WorkNode {
            progress,
            reason,
            owner: self.owners.get(id).cloned(),
            cost: self.costs.get(id.as_str()).copied().unwrap_or_default(),
            holder: facts.holder,
            children: children?,
            item,
        })
    }
}
