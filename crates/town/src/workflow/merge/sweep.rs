//! Removes branches and refs that are no longer needed after a merge.
//!
//! Nothing depends on it: a branch that is checked out, or cannot be removed, is left for the next
//! run.

use super::Base;
use crate::Town;
use crate::base::or_log::OrLog;
use crate::records::items::Work;
use crate::repo::workspace::{self, is_branch_of};
use gt_core::Identity;
use gt_core::merge::{Merge, MergeStatus};
use gt_core::work::{self, WorkId};

/// Returns the ref that keeps a queued commit, independent of its branch.
pub(crate) fn queued_ref(item: &WorkId) -> String {
    format!("refs/gt/queued/{item}")
}

/// Removes merged branches of workers that are not checked out, here and at the remote.
pub(super) fn sweep(town: &Town, rig: &str, base: &Base<'_>) {
    let work = Work::of(town);
    let merges = work.merges(Some(rig), true);
    let Some(merges) = merges.or_warn(format_args!("the merged branches of {rig} stay")) else {
        return;
    };
    let gone = sweep_here(town, rig, base, &work, &merges);
    // Without the lock, so that a slow remote blocks no other process.
    let _ = base.remove_remote(&gone);
}

/// Removes the merged branches in the rig's repository. Returns the branches and commits to remove
/// at the remote.
fn sweep_here(
    town: &Town,
    rig: &str,
    base: &Base<'_>,
    work: &Work,
    merges: &[Merge],
) -> Vec<(String, String)> {
    let mut gone: Vec<(String, String)> = Vec::new();
    let stay = format!("the merged branches of {rig} stay");
    let Some(_lock) = workspace::lock_repository(town, rig).or_warn(&stay) else {
        return gone;
    };
    let git = base.git();
    let refs = git.run([
        "for-each-ref",
        "--format=%(refname) %(objectname) %(worktreepath)",
        "refs/heads",
        "refs/remotes/origin",
        "refs/gt/queued",
    ]);
    let Some(refs) = refs.or_warn(&stay) else {
        return gone;
    };
    // Returns the commit of a ref, and the worktree in which it is checked out or an empty text.
    let find = |wanted: &str| {
        refs.lines().find_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            let (commit, worktree) = rest.split_once(' ').unwrap_or((rest, ""));
            (name == wanted).then_some((commit, worktree))
        })
    };
    let tip = base.tip().or_warn(&stay);
    let remove = |name: &str, commit: &str| {
        let removed = git.run(["update-ref", "-d", name, commit]);
        removed.or_warn(format_args!("{name} stays")).is_some()
    };
    for merge in merges.iter().filter(|merge| merge.status.is_settled()) {
        for item in [Some(&merge.item), merge.repair.as_ref()]
            .into_iter()
            .flatten()
        {
            // While the item is open, this ref may belong to a new submission that is not in the
            // queue yet.
            let kept = queued_ref(item);
            let is_waiting = |other: &Merge| {
                !other.status.is_settled()
                    && (other.item == *item || other.repair.as_ref() == Some(item))
            };
            if let Some((commit, _)) = find(&kept)
                && is_closed(work, item)
                && !merges.iter().any(is_waiting)
            {
                remove(&kept, commit);
            }
        }
        if merge.status != MergeStatus::Merged {
            continue;
        }
        // A branch that the worker had only checked out belongs to another owner and stays.
        let worker = Identity::from_address(&merge.worker, town.registry());
        let is_own = worker.is_some_and(|worker| is_branch_of(&worker, &merge.branch));
        if is_own && merge.branch != base.branch {
            let is_it = |commit: &str| commit == merge.commit;
            gone.extend(let_go(&merge.branch, find, remove, is_it));
        }
        // A repair replaces a polecat's branch; its commits are in the base.
        for branch in of_polecats(&refs, merge) {
            let is_in = |commit: &str| {
                let tip = tip.as_deref();
                tip.is_some_and(|tip| base.contains(tip, commit).or_warn(&stay) == Some(true))
            };
            gone.extend(let_go(branch, find, remove, is_in));
        }
    }
    gone.sort();
    gone.dedup();
    gone
}

/// Removes a branch if it is not checked out and its commit may go. Returns the branch with the
/// remote's commit, if that may go as well.
fn let_go<'r>(
    branch: &str,
    find: impl Fn(&str) -> Option<(&'r str, &'r str)>,
    remove: impl Fn(&str, &str) -> bool,
    may_go: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    let local = format!("refs/heads/{branch}");
    let is_free = match find(&local) {
        Some((commit, "")) => may_go(commit) && remove(&local, commit),
        // A polecat leaves its worktree on the merged branch until its next item; the pushed branch
        // is not needed until then.
        Some(_) => branch.starts_with("polecat/"),
        None => true,
    };
    let (commit, _) = find(&format!("refs/remotes/origin/{branch}"))?;
    (is_free && may_go(commit)).then(|| (branch.to_owned(), commit.to_owned()))
}

/// Returns the branches that polecats created for the item of an entry or for its repair, except
/// the entry's branch.
fn of_polecats<'r>(refs: &'r str, merge: &Merge) -> Vec<&'r str> {
    let mut found: Vec<&str> = Vec::new();
    for line in refs.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let places = ["refs/heads/", "refs/remotes/origin/"];
        let branch = places.iter().find_map(|place| name.strip_prefix(place));
        let item = branch.and_then(|branch| branch.strip_prefix("polecat/")?.split_once('/'));
        let (Some(branch), Some((_, item))) = (branch, item) else {
            continue;
        };
        let is_its = |id: &WorkId| id.as_str() == item;
        let is_its = is_its(&merge.item) || merge.repair.as_ref().is_some_and(is_its);
        if is_its && branch != merge.branch && !found.contains(&branch) {
            found.push(branch);
        }
    }
    found
}

fn is_closed(work: &Work, item: &WorkId) -> bool {
    work.get(item)
        .is_ok_and(|item| item.status == work::ItemStatus::Closed)
}
