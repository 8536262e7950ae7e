//! The merge queue: merges the finished branches of a rig one after the other, without an agent.
//!
//! A branch is merged with the base in memory, the rig's commands validate the result, and only
//! then the base moves to exactly that commit. The base therefore never contains a commit that was
//! not validated, even if a process is killed. A branch that cannot be merged becomes an item for
//! an agent. The entries of the queue are stored by `crate::records::items`.

mod announce;
pub mod background;
mod base;
mod batch;
mod capture;
mod combine;
mod consent;
mod pull;
mod queue;
mod remote;
mod repair;
mod requests;
mod resources;
mod sweep;
mod validate;

pub(crate) use base::Base;
pub(crate) use combine::{BEADS, Combined, Conflict, Pair, combine};
pub use consent::MergePlan;
pub use pull::{Pulled, pull};
pub(crate) use sweep::queued_ref;
pub use validate::missing_submodules;

use crate::base::estop;
use crate::base::lock::{self, FileLock};
use crate::base::or_log::OrLog;
use crate::messaging::escalate::{self, NewEscalation};
use crate::records::events::Events;
use crate::records::items::{Rejection, Work};
use crate::repo::rig;
use crate::{Result, Town};
use batch::{BatchOutcome, BatchSize};
use gt_core::escalation::Severity;
use gt_core::event::Event;
use gt_core::merge::{Merge, MergeRefusal, MergeStatus, short};
use gt_core::work::WorkId;
use gt_core::{Caller, Problem};
use queue::{EntryOutcome, LockedQueue};
use std::time::Duration;

/// Fault points at which a test kills a run, each named after the step just completed.
pub const FAULT_POINTS: &[&str] = &[
    "mq.begun",
    "mq.built",
    "mq.validated",
    "mq.advanced",
    "mq.recorded",
    "mq.swept",
];

/// Fault points of a run in which a branch cannot be merged.
pub const REFUSAL_FAULT_POINTS: &[&str] = &["mq.begun", "mq.refused", "mq.handed"];

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Merge only these entries; empty means all.
    pub only: Vec<WorkId>,
    /// Merge at most one entry of each rig.
    pub once: bool,
}

/// Message to the caller during a run.
#[derive(Clone, Copy, Debug)]
pub enum MergeMessage<'a> {
    Progress(&'a str),
    /// A failure that does not affect the merge itself.
    Warning(&'a str),
}

/// Callback that receives the messages of a run.
pub type Tell<'a> = &'a dyn Fn(MergeMessage<'_>);

/// Merges the waiting entries of a rig. `give` receives each result as soon as it is known,
/// including those before a failure.
pub fn run(
    town: &Town,
    rig: &str,
    options: &RunOptions,
    tell: Tell<'_>,
    mut give: impl FnMut(Merge),
) -> Result<()> {
    rig::check_not_parked(town, rig)?;
    estop::check(town, Some(rig))?;
    let _turn = lock_queue(town, rig, tell)?;
    run_locked(town, rig, options, tell, &mut give)
}

/// Merges the waiting entries while the caller holds the lock of the queue.
fn run_locked(
    town: &Town,
    rig: &str,
    options: &RunOptions,
    tell: Tell<'_>,
    mut give: impl FnMut(Merge),
) -> Result<()> {
    rig::check_not_parked(town, rig)?;
    estop::check(town, Some(rig))?;
    let work = Work::of(town);
    let base = Base::of(town, rig)?;
    let queue = LockedQueue {
        town,
        rig,
        work: &work,
        base: &base,
        tell,
        has_published: std::cell::Cell::new(false),
    };
    // Also if this run validates nothing: otherwise the commands of a killed run would keep
    // running.
    validate::end_leftovers(town, rig);
    let result = merge_waiting(&queue, options, &mut give);
    queue.finish_up();
    result
}

/// Merges the entries, several together if the rig's settings say so. An entry that the remote
/// refuses does not block the others; its problem is returned after all of them.
fn merge_waiting(
    queue: &LockedQueue<'_>,
    options: &RunOptions,
    give: &mut impl FnMut(Merge),
) -> Result<()> {
    let LockedQueue {
        town, rig, work, ..
    } = queue;
    queue.begin()?;
    let mut seen: Vec<WorkId> = Vec::new();
    let mut not_taken: Vec<(Merge, Problem)> = Vec::new();
    let mut has_taken = false;
    let size = BatchSize::new(match options.once {
        true => 1,
        false => town.settings().merge_of(rig).batch,
    });
    loop {
        let mut waiting = work.merges(Some(rig), false)?;
        waiting.retain(|merge| {
            merge.status.is_waiting()
                && !seen.contains(&merge.id)
                && (options.only.is_empty() || options.only.contains(&merge.id))
        });
        if options.once && !seen.is_empty() {
            break;
        }
        town.around().cancel.check()?;
        estop::check(town, Some(rig))?;
        match queue.merge_together(&waiting, &size)? {
            BatchOutcome::Merged(merged) => {
                has_taken = true;
                merged.into_iter().for_each(&mut *give);
                continue;
            }
            BatchOutcome::Failed => continue,
            BatchOutcome::TooSmall => {}
        }
        let Some(next) = waiting.into_iter().next() else {
            break;
        };
        seen.push(next.id.clone());
        match queue.merge_one(&next)? {
            EntryOutcome::Of(merge) => {
                if merge.status != MergeStatus::Merged {
                    size.restore();
                }
                has_taken |= merge.status == MergeStatus::Merged;
                give(merge);
            }
            EntryOutcome::OfNothing => {}
            EntryOutcome::NotTaken(merge, problem) => not_taken.push((merge, problem)),
        }
    }
    let mut first = None;
    for (merge, problem) in not_taken {
        // The remote accepts other entries, so it refuses this one in particular.
        let left = match has_taken {
            true => work.escalate_refused(&merge.id, problem.message())?,
            false => None,
        };
        if let Some(merge) = &left {
            let event = town.event("escalation_raised").by_gt();
            // The entry itself is marked already.
            escalate(town, merge, event).or_warn("a merge is not escalated");
        }
        give(left.unwrap_or(merge));
        first.get_or_insert(problem);
    }
    first.map_or(Ok(()), Err)
}

/// Predicts the result of each waiting entry, without running the commands of the rig.
pub fn predict(
    town: &Town,
    rig: &str,
    only: &[WorkId],
) -> Result<Vec<(Merge, Option<MergeRefusal>)>> {
    let base = Base::of(town, rig)?;
    let mut tip = base.tip()?;
    let mut foreseen = Vec::new();
    for merge in Work::of(town).merges(Some(rig), false)? {
        let is_meant = only.is_empty() || only.contains(&merge.id);
        if !is_meant || !merge.status.is_waiting() {
            continue;
        }
        let refusal = match base.combine(&tip, &merge.commit, "foreseen")? {
            Combined::Commit(commit) => {
                tip = commit;
                None
            }
            other => other.refusal(&base.branch),
        };
        foreseen.push((merge, refusal));
    }
    Ok(foreseen)
}

/// Returns the conflict between a commit and the base, if there is one.
pub(crate) fn conflict(base: &Base<'_>, commit: &str) -> Result<Option<Conflict>> {
    match base.combine(&base.tip()?, commit, "foreseen")? {
        Combined::Commit(_) => Ok(None),
        Combined::Conflict(conflict) => Ok(Some(conflict)),
        Combined::Unrelated => Err(Problem::conflict(format!(
            "it has no history in common with {}",
            base.branch
        ))),
    }
}

/// Queues an entry again that could not be merged, with the current commit of its branch if the
/// branch has advanced.
pub fn retry(town: &Town, id: &WorkId) -> Result<Merge> {
    let work = Work::of(town);
    let merge = work.merge(id)?;
    let base = Base::of(town, &merge.rig)?;
    let commit = match base.commit(&format!("refs/heads/{}", merge.branch))? {
        Some(now) if base.contains(&now, &merge.commit)? => now,
        _ => merge.commit,
    };
    let merge = work.retry_merge(id, &commit)?;
    escalate::resolve(town, &escalation_key(id), "queued again")?;
    Ok(merge)
}

/// Approves an entry that changes protected files, and queues it. Only a person may: the files
/// decide what runs before a merge.
pub fn approve(town: &Town, id: &WorkId) -> Result<Merge> {
    let caller = town.caller();
    if !matches!(caller, Caller::Person(_)) {
        return Err(Problem::conflict(format!("{caller} may not approve {id}"))
            .hint("only a person may approve changes of protected files"));
    }
    let held = Work::of(town).merge(id)?;
    let approved = Work::of(town).approve_merge(id)?;
    let event = town
        .event("merge_approved")
        .with("merge", held.id.to_string())
        .with("bead", held.item.to_string())
        .with("branch", held.branch.clone())
        .with("worker", held.worker.clone())
        .with("reason", held.reason.clone());
    Events::of(town).note(vec![event]);
    escalate::resolve(town, &escalation_key(id), "approved")?;
    Ok(approved)
}

/// Returns the changes of an entry against its base, as git prints them.
pub fn diff(town: &Town, id: &WorkId) -> Result<String> {
    let merge = Work::of(town).merge(id)?;
    let base = Base::of(town, &merge.rig)?;
    let range = format!("{}...{}", base.tip()?, merge.commit);
    base.git()
        .run(["diff", "--no-ext-diff", "--no-color", &range, "--"])
}

/// Removes an entry from the queue permanently.
pub fn reject(town: &Town, id: &WorkId, rejection: &Rejection<'_>) -> Result<Merge> {
    let work = Work::of(town);
    let merge = work.merge(id)?;
    let path = lock_path(town, &merge.rig);
    let Some(_lock) = FileLock::try_take(&path)? else {
        let holder = lock::holder(&path).map_or_else(String::new, |pid| format!(" ({pid})"));
        return Err(Problem::conflict(format!(
            "the queue of {} is being merged by another gt{holder}",
            merge.rig
        ))
        .hint("try again when it is done"));
    };
    validate::end_leftovers(town, &merge.rig);
    // Read again, now that no other process can change it.
    let merge = work.merge(id)?;
    refuse_landed(town, &work, &merge)?;
    let repair = merge.repair.as_ref();
    let holder = repair
        .map(|repair| work.holder(repair))
        .transpose()?
        .flatten();
    let rejected = work.reject_merge(id, rejection)?;
    note(town, &rejected, MergeStatus::Rejected);
    escalate::resolve(town, &escalation_key(id), "rejected")?;
    if let (Some(repair), Some(holder)) = (repair, &holder) {
        repair::cancel_repair(town, holder, repair, rejection.reason);
    }
    Ok(rejected)
}

/// Refuses to reject an entry that is already in the base: a process was killed before it recorded
/// the merge. Records the merge instead.
fn refuse_landed(town: &Town, work: &Work, merge: &Merge) -> Result<()> {
    if merge.status.is_settled() {
        return Ok(());
    }
    let base = Base::of(town, &merge.rig)?;
    let fetched = base.fetch_for_queue();
    // After a possible push only the remote knows whether the entry is merged.
    if merge.status == MergeStatus::Merging && merge.merged_as.is_some() {
        fetched?;
    }
    let Some(merged_as) = base.landing(merge)? else {
        return Ok(());
    };
    work.settle_merge(&merge.id, &merged_as)?;
    announce::announce(town, &merge.rig, Some(&base), &|_| {});
    Err(Problem::conflict(format!(
        "{} is merged: {} has it, by {}",
        merge.id,
        base.branch,
        short(&merged_as)
    ))
    .hint(format!(
        "{} is closed with it; `git revert` undoes it",
        merge.item
    )))
}

fn lock_path(town: &Town, rig: &str) -> std::path::PathBuf {
    town.runtime_dir()
        .join("locks")
        .join(format!("merge-{rig}.lock"))
}

/// Waits for the lock of the rig's queue, and reports once which process holds it.
fn lock_queue(town: &Town, rig: &str, tell: Tell<'_>) -> Result<FileLock> {
    let path = lock_path(town, rig);
    let mut is_told = false;
    loop {
        if let Some(lock) = FileLock::try_take(&path)? {
            return Ok(lock);
        }
        if !is_told {
            let holder = lock::holder(&path).map_or_else(String::new, |pid| format!(" ({pid})"));
            let text = format!("waiting: another gt{holder} merges in {rig}");
            tell(MergeMessage::Progress(&text));
            is_told = true;
        }
        town.around().cancel.check()?;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes the event of an entry that is withdrawn because its item was reopened.
pub fn emit_withdrawn(town: &Town, merge: &Merge) {
    note(town, merge, MergeStatus::Withdrawn);
}

/// Raises the escalation of an entry that repairs could not fix.
pub(crate) fn escalate(town: &Town, merge: &Merge, event: Event) -> Result<()> {
    let event = event
        .with("branch", merge.branch.clone())
        .with("merge", merge.id.to_string())
        .with("reason", merge.reason.clone());
    let reason = merge.reason.as_deref().unwrap_or("repairs did not help");
    let new = NewEscalation {
        severity: Severity::High,
        message: format!(
            "{} of {} cannot be merged: {reason}",
            merge.branch, merge.item
        ),
        source: "merge",
        item: Some(merge.item.clone()),
        agent: Some(merge.worker.clone()),
        key: Some(escalation_key(&merge.id)),
    };
    escalate::raise_with(town, &new, event).map(drop)
}

fn escalation_key(merge: &WorkId) -> String {
    format!("merge:{merge}")
}

fn note(town: &Town, merge: &Merge, became: MergeStatus) {
    let event = announce::event(town, &format!("merge_{}", became.as_str()), merge);
    Events::of(town).note(vec![event]);
}

#[cfg(test)]
mod tests;
