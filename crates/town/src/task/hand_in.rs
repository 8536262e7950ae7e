//! Handing a task's branch to the merge queue on a person's behalf, and seeing it through.
//!
//! It is what the agent's own `gt done` does, except that the agent stays. A branch that is
//! known to be in conflict is not queued: the queue would have another agent repair it,
//! where the task's own worktree is at hand.

use super::site::Site;
use super::{event_of, wip};
use crate::done::{self, DoneOptions};
use crate::events::Events;
use crate::merge::{self, Base, MergePlan, Note, RunOptions, Tell, background, queued_ref};
use crate::work::Work;
use crate::workspace::half_done;
use crate::{Result, Town, hook, sling};
use gt_core::Problem;
use gt_core::merge::{Leaving, Merge, Status};
use gt_core::work::WorkId;

/// So many files are named.
const MOST_FILES: usize = 10;

/// What came of it.
#[derive(Clone, Debug)]
pub struct HandedIn {
    pub id: WorkId,
    pub branch: String,
    pub base: String,
    /// The entry of the queue; `None` where it was not queued, because of conflicts.
    pub merge: Option<Merge>,
    /// What is in conflict, or what it changes, where a command has failed.
    pub files: Vec<String>,
    /// Where merged work is, and how it gets into the checkout of a person.
    pub delivery: String,
}

impl HandedIn {
    pub fn status(&self) -> Status {
        self.merge
            .as_ref()
            .map_or(Status::Conflict, |merge| merge.status)
    }
}

/// Says what [`hand_in`] would do, and whether a person has to confirm it.
pub fn merge_plan(town: &Town, id: &WorkId) -> Result<MergePlan> {
    let site = Site::of(town, id)?;
    let branch = site.own_branch()?;
    check_ready(&site)?;
    Ok(MergePlan::of(town, &site.base()?, &branch, id))
}

/// Hands in a task's branch and works the queue off for it.
pub fn hand_in(town: &Town, id: &WorkId, tell: Tell<'_>) -> Result<HandedIn> {
    let site = Site::of(town, id)?;
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
            "{branch} has nothing that {} has not",
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
    let merge = see_through(town, &site.rig, &entry, tell)?;
    handed.files.clone_from(&merge.files);
    handed.merge = Some(merge);
    Ok(handed)
}

/// Waits for the queue, which runs in the background; the entry is merged also if the person
/// leaves. Where the queue is not automatic, this process merges the entry, and no other.
fn see_through(town: &Town, rig: &str, entry: &WorkId, tell: Tell<'_>) -> Result<Merge> {
    if let Some(log) = background::start(town, rig)? {
        let log = log.display();
        let text = format!("{entry} is being merged in the background; the log is {log}");
        tell(Note::Progress(&text));
        return background::wait(town, entry);
    }
    let options = RunOptions {
        only: vec![entry.clone()],
        once: false,
    };
    merge::run(town, rig, &options, tell, |_| {})?;
    Work::of(town).merge(entry)
}

/// Refuses what is not ready to be merged.
fn check_ready(site: &Site<'_>) -> Result<()> {
    let id = &site.id;
    if let Some(what) = half_done(&site.dir) {
        return Err(Problem::conflict(format!("a {what} is under way in {id}"))
            .hint("finish it, or take it back, first"));
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
    for file in changed.iter().take(MOST_FILES) {
        problem = problem.cause(file.clone());
    }
    Err(problem.hint("commit what belongs to the work, and remove the rest"))
}

/// Puts the branch into the queue, as it is now. Gives its entry.
fn queue(site: &Site<'_>, base: &Base<'_>, head: &str) -> Result<WorkId> {
    let (town, id) = (site.town, &site.id);
    background::request(town, &site.rig);
    let work = Work::of(town);
    let holder = work.holder(id)?;
    sling::check_free(id, holder.as_deref(), &site.agent)?;
    let mut waiting = work.merges(Some(&site.rig), false)?.into_iter();
    let waiting = waiting.find(|merge| merge.item == *id);
    if let (None, Some(waiting)) = (&holder, waiting) {
        // It was handed in before.
        let keep = ["update-ref", &queued_ref(id), head];
        base.git().run(keep)?;
        return match waiting.status.is_broken() {
            true => merge::retry(town, &waiting.id).map(|merge| merge.id),
            false => work.renew_merge(&waiting.id, head).map(|()| waiting.id),
        };
    }
    if holder.is_none() {
        hook::put(town, &site.agent, id)?;
    }
    let options = DoneOptions {
        leaving: Leaving::Completed,
        said: None,
        push: false,
        force: false,
        exit: false,
    };
    let done = done::done(town, &site.agent, &options)?;
    done::end(town, &site.agent, false)?;
    done.finished
        .merge
        .ok_or_else(|| Problem::failed(format!("{id} was not queued")))
}
