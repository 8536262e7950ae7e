//! Submits a task's branch to the merge queue on behalf of a person, and waits for the result.
//!
//! It takes the same steps as the agent's `gt done`, except that the agent keeps running; a polecat
//! still ends with its item. A branch with a known conflict is not queued: the queue would assign
//! the repair to another agent, although the task's worktree is available.

use super::site::TaskSite;
use super::{event_of, wip};
use crate::records::events::Events;
use crate::records::items::Work;
use crate::repo::workspace::unfinished_operation;
use crate::work::hook;
use crate::workflow::done::{self, DoneOptions};
use crate::workflow::merge::{
    self, Base, MergeMessage, MergePlan, RunOptions, Tell, background, queued_ref,
};
use crate::workflow::sling;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::merge::{DoneStatus, Merge, MergeStatus};
use gt_core::work::WorkId;

/// Maximum number of files that an error lists.
const MAX_FILES: usize = 10;

/// Result of [`hand_in`].
#[derive(Clone, Debug)]
pub struct HandedIn {
    pub id: WorkId,
    pub branch: String,
    pub base: String,
    /// Entry of the queue; `None` if it was not queued because of conflicts.
    pub merge: Option<Merge>,
    /// Conflicting files, or the changed files if a command failed.
    pub files: Vec<String>,
    /// Sentence that says where merged work is, and how a person gets it into a checkout.
    pub delivery: String,
}

impl HandedIn {
    pub fn status(&self) -> MergeStatus {
        self.merge
            .as_ref()
            .map_or(MergeStatus::Conflict, |merge| merge.status)
    }
}

/// Returns the plan of [`hand_in`], and whether a person has to confirm it.
pub fn merge_plan(town: &Town, id: &WorkId) -> Result<MergePlan> {
    let site = TaskSite::of_holder(town, id)?;
    let branch = site.own_branch()?;
    check_ready(&site)?;
    Ok(MergePlan::of(town, &site.base()?, &branch, id))
}

/// Submits a task's branch and waits until the queue has processed it.
pub fn hand_in(town: &Town, id: &WorkId, tell: Tell<'_>) -> Result<HandedIn> {
    let site = TaskSite::of_holder(town, id)?;
    let lock = site.lock()?;
    let branch = site.own_branch()?;
    check_ready(&site)?;
    let base = site.base()?;
    base.fetch()?;
    let head = site.head()?;
    let tip = base.tip()?;
    wip::refuse_among(&site, &tip)?;
    done::check_submodules(town, &site.dir, &head, &tip)?;
    if site.count(&head, &tip)? == 0 {
        return Err(Problem::conflict(format!(
            "{branch} has no commits that {} lacks",
            base.branch
        ))
        .hint(format!("`gt task cleanup {id}` ends a task that is done")));
    }
    let mut handed = HandedIn {
        id: id.clone(),
        branch,
        base: base.branch.clone(),
        merge: None,
        files: Vec::new(),
        delivery: base.delivery(),
    };
    if let Some(conflict) = merge::conflict(&base, &head)? {
        handed.files = conflict.files;
        let reason = format!("it conflicts with {}", handed.base);
        let event = event_of(town, "merge_conflict", id, &site.agent)
            .with("branch", handed.branch.clone())
            .with("worker", site.agent.address())
            .with("reason", reason);
        Events::of(town).note(vec![event.with_files(&handed.files)]);
        return Ok(handed);
    }
    let entry = queue(&site, &base, &head)?;
    drop(lock);
    let merge = await_merge(town, &site.rig, &entry, tell)?;
    handed.files.clone_from(&merge.files);
    handed.merge = Some(merge);
    Ok(handed)
}

/// Waits for the queue, which runs in the background and merges the entry even if the caller ends.
/// If the queue is not automatic, this process merges this entry only.
fn await_merge(town: &Town, rig: &str, entry: &WorkId, tell: Tell<'_>) -> Result<Merge> {
    if let Some(log) = background::start(town, rig)? {
        let log = log.display();
        let text = format!("{entry} is being merged in the background; the log is {log}");
        tell(MergeMessage::Progress(&text));
        return background::wait(town, entry);
    }
    let options = RunOptions {
        only: vec![entry.clone()],
        once: false,
    };
    merge::run(town, rig, &options, tell, |_| {})?;
    Work::of(town).merge(entry)
}

/// Refuses a worktree with uncommitted changes or an unfinished git operation.
fn check_ready(site: &TaskSite<'_>) -> Result<()> {
    let id = &site.id;
    if let Some(what) = unfinished_operation(&site.dir) {
        return Err(Problem::conflict(format!("a {what} is under way in {id}"))
            .hint("finish or abort it first"));
    }
    wip::refuse(site)?;
    let changed = site.changed()?;
    if changed.is_empty() {
        return Ok(());
    }
    let are = match changed.len() {
        1 => "1 changed file is".to_owned(),
        count => format!("{count} changed files are"),
    };
    let mut problem = Problem::conflict(format!("{are} not committed in {}", site.dir.display()));
    for file in changed.iter().take(MAX_FILES) {
        problem = problem.cause(file.clone());
    }
    Err(problem.hint("commit what belongs to the work, and remove the rest"))
}

/// Queues the branch with its current commit. Returns the entry.
fn queue(site: &TaskSite<'_>, base: &Base<'_>, head: &str) -> Result<WorkId> {
    let (town, id) = (site.town, &site.id);
    background::request(town, &site.rig);
    let work = Work::of(town);
    let holder = work.holder(id)?;
    sling::check_free(id, holder.as_deref(), &site.agent)?;
    let mut waiting = work.merges(Some(&site.rig), false)?.into_iter();
    let waiting = waiting.find(|merge| merge.item == *id);
    if let (None, Some(waiting)) = (&holder, waiting) {
        // It was submitted before.
        let keep = ["update-ref", &queued_ref(id), head];
        base.git().run(keep)?;
        return match waiting.status.is_broken() {
            true => merge::retry(town, &waiting.id).map(|merge| merge.id),
            false => work.renew_merge(&waiting.id, head).map(|()| waiting.id),
        };
    }
    if holder.is_none() {
        hook::hook_item(town, &site.agent, id)?;
    }
    let options = DoneOptions {
        leaving: DoneStatus::Completed,
        message: None,
        push: false,
        force: false,
        exit: false,
    };
    let done = done::done(town, &site.agent, &options)?;
    done::end(town, &site.agent, done.ends)?;
    done.finished
        .merge
        .ok_or_else(|| Problem::failed(format!("{id} was not queued")))
}
