//! The tree of a work item: the item with its parts, their progress and cost.
//!
//! Pure: `town::views::work_tree` collects the facts about each item.

use crate::card::PartCount;
use crate::merge::MergeStatus;
use crate::work::{Item, ItemStatus, WorkId};

/// Label of items that were left for help.
pub const ESCALATED: &str = "escalated";

/// Facts about one item that decide its progress.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// The agent on whose hook the item is.
    pub holder: Option<String>,
    pub blockers: Vec<WorkId>,
    /// Entry of the merge queue that is not settled, with its reason.
    pub merge: Option<(MergeStatus, Option<String>)>,
    /// Why it waits in the schedule.
    pub queued: Option<String>,
    /// Error of its last start from the schedule.
    pub start_error: Option<String>,
}

/// Progress of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemProgress {
    /// Closed: merged, or ended in another way.
    Landed,
    /// Help is needed: it was escalated, or its merge or its start failed.
    Failed,
    /// Submitted; the merge queue has it.
    Merging,
    Working,
    /// In the schedule.
    Queued,
    /// Other items must be closed first.
    Blocked,
    Open,
}

impl ItemProgress {
    pub fn as_str(self) -> &'static str {
        match self {
            ItemProgress::Landed => "landed",
            ItemProgress::Failed => "failed",
            ItemProgress::Merging => "merging",
            ItemProgress::Working => "working",
            ItemProgress::Queued => "queued",
            ItemProgress::Blocked => "blocked",
            ItemProgress::Open => "open",
        }
    }
}

/// Returns the progress of an item, and the reason if it does not advance.
pub fn progress(item: &Item, facts: &NodeFacts) -> (ItemProgress, Option<String>) {
    let is_escalated = item.labels.iter().any(|label| label == ESCALATED);
    match (item.status, &facts.merge) {
        (ItemStatus::Closed, _) => return (ItemProgress::Landed, None),
        (ItemStatus::Blocked, _) if is_escalated => {
            return (ItemProgress::Failed, Some("it was escalated".to_owned()));
        }
        (_, Some((status, reason))) if status.is_broken() => {
            let what = match status {
                MergeStatus::Conflict => "the merge has conflicts",
                _ => "the merge failed",
            };
            let reason = reason.as_ref().map(|reason| format!("{what}: {reason}"));
            return (
                ItemProgress::Failed,
                Some(reason.unwrap_or_else(|| what.to_owned())),
            );
        }
        (_, Some((_, reason))) => return (ItemProgress::Merging, reason.clone()),
        _ => {}
    }
    if facts.holder.is_some() {
        return (ItemProgress::Working, None);
    }
    if let Some(error) = &facts.start_error {
        let reason = format!("the last start failed: {error}");
        return (ItemProgress::Failed, Some(reason));
    }
    if let Some(reason) = &facts.queued {
        return (ItemProgress::Queued, Some(reason.clone()));
    }
    if !facts.blockers.is_empty() {
        let names: Vec<&str> = facts.blockers.iter().map(WorkId::as_str).collect();
        return (
            ItemProgress::Blocked,
            Some(format!("it waits for {}", names.join(", "))),
        );
    }
    match item.status {
        ItemStatus::InProgress => (ItemProgress::Working, None),
        ItemStatus::Blocked => (ItemProgress::Blocked, None),
        _ => (ItemProgress::Open, None),
    }
}

/// An item of a tree, with its parts.
#[derive(Clone, Debug)]
pub struct WorkNode {
    pub item: Item,
    pub progress: ItemProgress,
    pub reason: Option<String>,
    pub holder: Option<String>,
    /// The owner, if it is a batch.
    pub owner: Option<String>,
    /// Spending on the item itself, in US dollars.
    pub cost: f64,
    pub children: Vec<WorkNode>,
}

impl WorkNode {
    /// Returns the spending on the item and its parts.
    pub fn total_cost(&self) -> f64 {
        let parts: f64 = self.children.iter().map(WorkNode::total_cost).sum();
        self.cost + parts
    }

    /// Returns how many of its direct parts are closed; `None` without parts.
    pub fn parts(&self) -> Option<PartCount> {
        let count = |nodes: usize| u32::try_from(nodes).unwrap_or(u32::MAX);
        let landed = |node: &&WorkNode| node.progress == ItemProgress::Landed;
        (!self.children.is_empty()).then(|| PartCount {
            closed: count(self.children.iter().filter(landed).count()),
            all: count(self.children.len()),
        })
    }

    /// Returns the direct parts that need help.
    pub fn failed(&self) -> Vec<&WorkNode> {
        let failed = |node: &&WorkNode| node.progress == ItemProgress::Failed;
        self.children.iter().filter(failed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(status: ItemStatus) -> Item {
        let text = r#"{"id":"gt-a","title":"T","status":"open","created_at":"","updated_at":""}"#;
        Item {
            status,
            ..serde_json::from_str(text).unwrap()
        }
    }

    #[test]
    fn progress_shows_what_needs_help_first() {
        let check = |item: &Item, facts: NodeFacts, expected: (ItemProgress, Option<&str>)| {
            let (found, reason) = progress(item, &facts);
            assert_eq!((found, reason.as_deref()), expected);
        };
        let open = item(ItemStatus::Open);
        let none = NodeFacts::default;
        check(&open, none(), (ItemProgress::Open, None));
        check(
            &item(ItemStatus::Closed),
            none(),
            (ItemProgress::Landed, None),
        );
        check(
            &item(ItemStatus::Blocked),
            none(),
            (ItemProgress::Blocked, None),
        );
        let help = Item {
            labels: vec![ESCALATED.to_owned()],
            ..item(ItemStatus::Blocked)
        };
        check(
            &help,
            none(),
            (ItemProgress::Failed, Some("it was escalated")),
        );
        let merge = |status, reason: Option<&str>| NodeFacts {
            merge: Some((status, reason.map(str::to_owned))),
            ..none()
        };
        let held = item(ItemStatus::InProgress);
        check(
            &held,
            merge(MergeStatus::Queued, None),
            (ItemProgress::Merging, None),
        );
        check(
            &held,
            merge(MergeStatus::Failed, Some("`make` failed")),
            (
                ItemProgress::Failed,
                Some("the merge failed: `make` failed"),
            ),
        );
        check(
            &held,
            merge(MergeStatus::Conflict, None),
            (ItemProgress::Failed, Some("the merge has conflicts")),
        );
        let queued = NodeFacts {
            queued: Some("no slot".to_owned()),
            blockers: vec!["gt-b".parse().unwrap()],
            ..none()
        };
        check(
            &open,
            queued.clone(),
            (ItemProgress::Queued, Some("no slot")),
        );
        let failed = NodeFacts {
            start_error: Some("no git".to_owned()),
            ..queued.clone()
        };
        let reason = "the last start failed: no git";
        check(&open, failed.clone(), (ItemProgress::Failed, Some(reason)));
        let working = NodeFacts {
            holder: Some("gastown/polecats/Toast".to_owned()),
            ..failed
        };
        check(
            &item(ItemStatus::Hooked),
            working,
            (ItemProgress::Working, None),
        );
        let blocked = NodeFacts {
            queued: None,
            ..queued
        };
        check(
            &open,
            blocked,
            (ItemProgress::Blocked, Some("it waits for gt-b")),
        );
    }

    #[test]
    fn cost_and_progress_are_summed() {
        let node = |status, cost, children| {
            let item = item(status);
            let (progress, reason) = progress(&item, &NodeFacts::default());
            WorkNode {
                item,
                progress,
                reason,
                holder: None,
                owner: None,
                cost,
                children,
            }
        };
        let repair = node(ItemStatus::Open, 0.25, Vec::new());
        let done = node(ItemStatus::Closed, 0.5, Vec::new());
        let left = node(ItemStatus::Open, 1.0, vec![repair]);
        let batch = node(ItemStatus::InProgress, 0.0, vec![done, left]);
        assert!((batch.total_cost() - 1.75).abs() < 1e-9);
        assert_eq!(batch.parts(), Some(PartCount { closed: 1, all: 2 }));
        assert_eq!(batch.children[0].parts(), None);
        assert!(batch.failed().is_empty());
    }
}
