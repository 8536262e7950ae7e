//! What an agent leaves in its worktree.

use crate::git::{Git, Status};
use crate::merge::{Base, queued_ref};
use crate::work::Handed;
use crate::{Result, Town, roles, task, workspace};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::path::PathBuf;

/// An agent's worktree, as it stands.
pub(super) struct Worktree<'a> {
    base: Base<'a>,
    rig: &'a str,
    pub(super) dir: PathBuf,
    pub(super) branch: Option<String>,
    pub(super) commit: String,
    /// Commits that are not in the base.
    pub(super) commits: usize,
    pub(super) changed: Vec<String>,
}

impl<'a> Worktree<'a> {
    /// `None` for one that works in no worktree of a rig.
    pub(super) fn of(town: &'a Town, agent: &'a Identity) -> Result<Option<Self>> {
        let has_one = workspace::is_worktree(agent.role()) || agent.role() == Role::Task;
        let Some(rig) = agent.rig().filter(|_| has_one) else {
            return Ok(None);
        };
        let role = roles::resolve(town, agent.role(), Some(rig))?.value;
        let dir = workspace::path(town, agent, &role)?;
        if !dir.join(".git").exists() {
            return Ok(None);
        }
        let base = Base::of(town, rig)?;
        let git = Git::at(&dir, town.around());
        let status = Status::of_every_file(git)?;
        let commit = status.commit.ok_or_else(|| {
            Problem::conflict(format!("nothing is committed in {}", dir.display()))
        })?;
        let tip = base.tip()?;
        let count = git.run(["rev-list", "--count", &commit, &format!("^{tip}")])?;
        Ok(Some(Worktree {
            branch: status.branch,
            commits: count.parse().unwrap_or(usize::MAX),
            changed: status.changed,
            base,
            rig,
            dir,
            commit,
        }))
    }

    /// What there is to merge.
    pub(super) fn handed(&self) -> Option<Handed> {
        Some(Handed {
            rig: self.rig.to_owned(),
            branch: self.branch.clone().filter(|_| self.commits > 0)?,
            commit: self.commit.clone(),
            base: self.base.branch.clone(),
        })
    }

    /// Refuses what has the commit of a pause in it.
    pub(super) fn check_pause(&self, town: &Town, agent: &Identity) -> Result<()> {
        let Some(branch) = self.branch.as_deref() else {
            return Ok(());
        };
        let git = Git::at(&self.dir, town.around());
        match task::pause_among(git, branch, &self.commit, &self.base.tip()?)? {
            Some(wip) => Err(task::pause_is_among(agent.short_name(), &self.dir, &wip)),
            None => Ok(()),
        }
    }

    /// Keeps the commit for the queue, whatever becomes of its branch.
    pub(super) fn keep(&self, town: &Town, item: &WorkId) -> Result<()> {
        let git = Git::at(&self.dir, town.around());
        git.run(["update-ref", &queued_ref(item), &self.commit])
            .map(drop)
    }

    /// Pushes the branch to the rig's remote, if it is the agent's own. The queue works
    /// from the rig's own copy, so nothing depends on it, and nobody waits for it: it is
    /// done without the repository's lock.
    pub(super) fn push(&self, agent: &Identity) -> Result<bool> {
        let branch = self.branch.as_deref();
        let branch = branch.filter(|branch| workspace::is_branch_of(agent, branch));
        let Some(branch) = branch.filter(|_| self.base.has_remote()) else {
            return Ok(false);
        };
        self.base.push(&self.commit, branch).map_err(|problem| {
            Problem::failed(format!("{branch} could not be pushed")).caused_by_problem(&problem)
        })?;
        Ok(true)
    }
}
