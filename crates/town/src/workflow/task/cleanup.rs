//! Ends a task: removes its container, worktree and branches, and closes or reopens its item.
//!
//! The plan is made and reported first. Then the steps run in an order in which a killed process
//! leaves a state that the next call completes. Work that exists nowhere else is not removed; with
//! `force` it is saved under `refs/gt/saved/`. A branch of the remote is deleted only if it is in
//! the base, or with `force`, which saves its commits as well.

use super::site::lock;
use super::{agent_of, event_of, project, wip};
use crate::base::fault;
use crate::base::git::Git;
use crate::lifecycle::restore;
use crate::lifecycle::stop::{self, StopOptions};
use crate::records::events::Events;
use crate::records::items::Work;
use crate::repo::workspace::{self, Unsaved};
use crate::repo::{init_step, rig};
use crate::terminal::{containers, dev_servers};
use crate::work::{checkpoint, hook};
use crate::workflow::merge::Base;
use crate::workflow::polecat::{claim, refuse_caller};
use crate::{Result, Town};
use gt_core::work::{ItemStatus, WorkId};
use gt_core::{Identity, Problem};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Fault points at which a test can kill the process, each named after the step just completed.
pub const FAULT_POINTS: &[&str] = &[
    "cleanup.stopped",
    "cleanup.saved",
    "cleanup.removed",
    "cleanup.remote",
    "cleanup.forgotten",
    "cleanup.released",
];

#[derive(Clone, Copy, Debug, Default)]
pub struct CleanupOptions {
    /// Close the item instead of reopening it.
    pub close: bool,
    /// Remove work that exists nowhere else; it is saved under `refs/gt/saved/`.
    pub force: bool,
}

/// Plan of a cleanup.
#[derive(Clone, Debug)]
pub struct CleanupPlan {
    pub id: WorkId,
    pub agent: Identity,
    pub steps: Vec<CleanupStep>,
    /// Things that remain, with the reasons.
    pub kept: Vec<String>,
    /// Reason why the cleanup is refused.
    pub refusal: Option<Problem>,
    pub warnings: Vec<String>,
    dir: PathBuf,
    remote: Option<RemoteBranch>,
}

/// One step of a cleanup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupStep {
    pub action: CleanupAction,
    /// Object of the action: a name or a path.
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupAction {
    StopContainer,
    SaveWork,
    RemoveWorktree,
    DeleteRemoteBranch,
    DeleteBranch,
    CloseItem,
    OpenItem,
}

impl CleanupAction {
    /// Returns the name for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            CleanupAction::StopContainer => "stop_container",
            CleanupAction::SaveWork => "save_work",
            CleanupAction::RemoveWorktree => "remove_worktree",
            CleanupAction::DeleteRemoteBranch => "delete_remote_branch",
            CleanupAction::DeleteBranch => "delete_branch",
            CleanupAction::CloseItem => "close_item",
            CleanupAction::OpenItem => "open_item",
        }
    }

    /// Returns the words for people, which precede the object.
    pub fn words(self) -> &'static str {
        match self {
            CleanupAction::StopContainer => "stop everything in the container",
            CleanupAction::SaveWork => "keep under refs/gt/saved/",
            CleanupAction::RemoveWorktree => "remove the worktree",
            CleanupAction::DeleteRemoteBranch => "delete the remote's branch",
            CleanupAction::DeleteBranch => "delete the branch",
            CleanupAction::CloseItem => "close the item",
            CleanupAction::OpenItem => "take off its hook, and open again, the item",
        }
    }
}

/// Branch of the remote, with its commit there.
#[derive(Clone, Debug)]
struct RemoteBranch {
    name: String,
    commit: String,
    is_merged: bool,
}

/// Result of [`cleanup`].
#[derive(Clone, Debug)]
pub struct Cleaned {
    pub plan: CleanupPlan,
    /// Refs under which work was saved.
    pub saved: Vec<String>,
}

/// Returns the steps of a cleanup, in order. Changes nothing of the task.
pub fn cleanup_plan(town: &Town, id: &WorkId, options: CleanupOptions) -> Result<CleanupPlan> {
    let (agent, rig) = agent_of(town, id)?;
    let base = Base::of(town, &rig)?;
    let mut plan = CleanupPlan {
        id: id.clone(),
        agent: agent.clone(),
        steps: Vec::new(),
        kept: Vec::new(),
        refusal: None,
        warnings: Vec::new(),
        dir: PathBuf::new(),
        remote: None,
    };
    let mut steps = Vec::new();
    let mut step = |action: CleanupAction, what: String| steps.push(CleanupStep { action, what });
    if let Some(container) = containers::of_agent(town, &agent)? {
        step(CleanupAction::StopContainer, container.name().to_owned());
    }
    let remote = look_at_remote(town, &agent, &base, &mut plan)?;
    let found = workspace::task_worktree(town, &agent);
    plan.dir = match &found {
        Some(dir) => dir.clone(),
        None => no_worktree(town, &agent, &rig),
    };
    let unsaved = workspace::unsaved(town, &agent, &plan.dir)?;
    let is_refused = !unsaved.is_nothing() && !options.force;
    if is_refused {
        plan.refusal = Some(refusal(id, &unsaved));
    }
    if !unsaved.is_nothing() && options.force {
        step(CleanupAction::SaveWork, unsaved.describe());
    }
    if let Some(dir) = &found {
        step(CleanupAction::RemoveWorktree, dir.display().to_string());
    }
    let staying = workspace::kept_branches(town, &agent, &plan.dir)?;
    for (branch, _) in workspace::branches(town, &agent)? {
        match staying.contains(&branch) {
            true => plan.kept.push(format!(
                "the branch {branch}: it waits to be merged, or is checked out elsewhere"
            )),
            false => step(CleanupAction::DeleteBranch, branch),
        }
    }
    if let Some(remote) = remote {
        match remote.is_merged || options.force {
            true => {
                step(CleanupAction::DeleteRemoteBranch, remote.name.clone());
                plan.remote = Some(remote);
            }
            false => plan.kept.push(format!(
                "the remote's branch {}: it is not in {}",
                remote.name, base.branch
            )),
        }
    }
    let work = Work::of(town);
    // If the item is gone, its task can still be removed.
    let is_open = work
        .lookup(id)?
        .is_some_and(|item| item.status != ItemStatus::Closed);
    let is_held = work.holder(id)? == Some(agent.address());
    if options.close && is_open {
        step(CleanupAction::CloseItem, id.to_string());
    } else if is_held {
        step(CleanupAction::OpenItem, id.to_string());
    }
    plan.steps = steps;
    Ok(plan)
}

/// Runs a cleanup, with a plan made under the locks.
pub fn cleanup(town: &Town, id: &WorkId, options: CleanupOptions) -> Result<Cleaned> {
    let (agent, rig) = agent_of(town, id)?;
    refuse_caller(town, &agent)?;
    let _lock = lock(town, id)?;
    // Prevents a concurrent start.
    let _claim = claim::agent(town, &agent)?;
    let plan = cleanup_plan(town, id, options)?;
    if let Some(refusal) = plan.refusal {
        return Err(refusal);
    }
    // A cancelled plan may be incomplete.
    town.around().cancel.check()?;
    end(town, &agent)?;
    restore::forget(town, &agent)?;
    fault::point(town, "cleanup.stopped");
    let base = Base::of(town, &rig)?;
    let mut saved = Vec::new();
    if let Some(remote) = &plan.remote {
        saved.extend(save_remote(&base, &agent, remote)?);
    }
    fault::point(town, "cleanup.saved");
    // Checks for unsaved work again: the agent may have worked until it was stopped.
    let removed = workspace::remove(town, &agent, &plan.dir, options.force)?;
    saved.extend(removed.saved);
    fault::point(town, "cleanup.removed");
    if let Some(remote) = &plan.remote {
        base.remove_remote(&[(&remote.name, &remote.commit)])
            .map_err(|problem| {
                Problem::failed(format!("the remote's {} could not be deleted", remote.name))
                    .caused_by_problem(&problem)
                    .hint("run it again: finished steps are skipped")
            })?;
    }
    fault::point(town, "cleanup.remote");
    forget(town, &agent, &rig, &plan.dir)?;
    fault::point(town, "cleanup.forgotten");
    let work = Work::of(town);
    let closes = |step: &CleanupStep| step.action == CleanupAction::CloseItem;
    if plan.steps.iter().any(closes) {
        work.close(id, Some("cleaned up"))?;
    } else if work.holder(id)? == Some(agent.address()) {
        hook::take_off_item(town, id)?;
    }
    fault::point(town, "cleanup.released");
    let done = plan
        .steps
        .iter()
        .map(|step| Value::from(step.action.as_str()));
    let event = event_of(town, "cleanup", id, &agent)
        .with("steps", done.collect::<Vec<Value>>())
        .with("saved", (!saved.is_empty()).then(|| json!(saved)));
    Events::of(town).note(vec![event]);
    Ok(Cleaned { plan, saved })
}

/// Returns the place where the worktree would be. If another owner's folder is there, returns a
/// path that does not exist.
fn no_worktree(town: &Town, agent: &Identity, rig: &str) -> PathBuf {
    let nowhere = town.runtime_dir().join("tmp").join("no-worktree");
    let project = project::of_rig(town, rig);
    let place = project.and_then(|it| project::worktree(town, rig, agent.short_name(), &it));
    match place {
        Ok(place) if !place.exists() => place,
        _ => nowhere,
    }
}

/// Returns the task's branch at the remote. Adds a warning if the remote cannot be reached.
fn look_at_remote(
    town: &Town,
    agent: &Identity,
    base: &Base<'_>,
    plan: &mut CleanupPlan,
) -> Result<Option<RemoteBranch>> {
    if !base.has_remote() {
        return Ok(None);
    }
    let name = workspace::present_branch(town, agent)?;
    // Fetch first, so that it is known what is merged there.
    let asked = base.fetch().map_err(Problem::from);
    let asked = asked.and_then(|()| base.remote_commit(&name));
    let known = format!("refs/remotes/origin/{name}");
    let commit = match asked {
        Ok(commit) => commit,
        Err(problem) => {
            town.around().cancel.check()?;
            plan.warnings.push(format!(
                "the remote cannot be reached, and is not changed: {problem}"
            ));
            return Ok(None);
        }
    };
    let Some(commit) = commit else {
        // It was deleted there. The local copy must not count as saved elsewhere.
        let repository = rig::repository(town, agent.rig().unwrap_or_default());
        let git = Git::at(&repository, town.around());
        git.run(["update-ref", "-d", &known])?;
        return Ok(None);
    };
    if let Err(problem) = base.check_not_checked_out(&name) {
        plan.kept
            .push(format!("the remote's branch {name}: {problem}"));
        return Ok(None);
    }
    Ok(Some(RemoteBranch {
        is_merged: base.contains(&base.tip()?, &commit)?,
        name,
        commit,
    }))
}

fn refusal(id: &WorkId, unsaved: &Unsaved) -> Problem {
    let problem = Problem::conflict(format!(
        "{id} has work that exists nowhere else: {}",
        unsaved.describe()
    ));
    let problem = unsaved.located(problem);
    problem
        .hint(format!(
            "`gt task merge {id}` brings it into the base, `gt task pr {id}` onto the remote"
        ))
        .hint("with `--force` it is kept under refs/gt/saved/, and the rest goes")
}

fn end(town: &Town, agent: &Identity) -> Result<()> {
    stop::stop_one(town, agent, StopOptions::default())
}

/// Saves commits that only the remote's branch has, before that branch is deleted.
fn save_remote(base: &Base<'_>, agent: &Identity, remote: &RemoteBranch) -> Result<Option<String>> {
    if remote.is_merged {
        return Ok(None);
    }
    let stamp = base.clock().now().as_millisecond();
    let name = format!("refs/gt/saved/{}/{stamp}-remote", agent.short_name());
    base.git()
        .uncancellable()
        .run(["update-ref", &name, &remote.commit])?;
    Ok(Some(name))
}

/// Removes the records about a task.
fn forget(town: &Town, agent: &Identity, rig: &str, dir: &Path) -> Result<()> {
    dev_servers::forget(town, dir)?;
    checkpoint::clear(town, agent)?;
    let repository = rig::repository(town, rig);
    let branch = workspace::branch(agent);
    let moved = format!("{branch}/{}", workspace::IN_FOLDER);
    for branch in [branch, moved] {
        wip::forget_branch(Git::at(&repository, town.around()).uncancellable(), &branch)?;
    }
    match std::fs::remove_dir_all(init_step::folder(town, agent)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::failed("the records of its start cannot be removed").caused_by(error))
        }
        _ => Ok(()),
    }
}
