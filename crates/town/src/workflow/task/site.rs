//! The worktree of an item, for operations on existing work: that of its task, or of the crew member
//! or polecat that has the item on its hook.

use super::{agent_of, own_container};
use crate::base::git::{Git, WorktreeStatus};
use crate::base::lock::FileLock;
use crate::catalog::roles;
use crate::records::items::Work;
use crate::repo::workspace;
use crate::terminal::containers::Container;
use crate::workflow::merge::Base;
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for the lock of the worktree. A merge with validation does not hold it.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct TaskSite<'a> {
    pub(super) town: &'a Town,
    pub(super) id: WorkId,
    pub(super) agent: Identity,
    pub(super) rig: String,
    pub(super) dir: PathBuf,
}

impl<'a> TaskSite<'a> {
    pub(super) fn of(town: &'a Town, id: &WorkId) -> Result<Self> {
        let (agent, rig) = agent_of(town, id)?;
        let dir = workspace::task_worktree(town, &agent).ok_or_else(|| {
            Problem::not_found(format!("{id} has no worktree"))
                .hint(format!("`gt task start {id}` makes it"))
        })?;
        Ok(TaskSite {
            town,
            id: id.clone(),
            agent,
            rig,
            dir,
        })
    }

    /// Returns the worktree of the agent that has the item on its hook; without one, that of the
    /// item's task.
    pub(super) fn of_holder(town: &'a Town, id: &WorkId) -> Result<Self> {
        let holder = Work::of(town).holder(id)?;
        let holder = holder.and_then(|holder| Identity::from_address(&holder, town.registry()));
        match holder.filter(|agent| workspace::is_worktree(agent.role())) {
            Some(agent) => TaskSite::of_agent(town, id, agent),
            None => TaskSite::of(town, id),
        }
    }

    /// Returns the worktree of a crew member or polecat. The id is only used in messages.
    pub(super) fn of_agent(town: &'a Town, id: &WorkId, agent: Identity) -> Result<Self> {
        if !workspace::is_worktree(agent.role()) {
            return Err(Problem::not_found(format!("{agent} has no worktree")));
        }
        let role = roles::resolve(town, agent.role(), agent.rig())?;
        let dir = workspace::path(town, &agent, &role.value)?;
        if !dir.join(".git").exists() {
            return Err(Problem::not_found(format!("{agent} has no worktree"))
                .hint(format!("`gt start {agent} --create` makes it")));
        }
        let rig = agent.rig().unwrap_or_default().to_owned();
        Ok(TaskSite {
            town,
            id: id.clone(),
            agent,
            rig,
            dir,
        })
    }

    pub(super) fn git(&self) -> Git<'_> {
        Git::at(&self.dir, self.town.around())
    }

    pub(super) fn base(&self) -> Result<Base<'_>> {
        Base::of(self.town, &self.rig)
    }

    /// Returns the branch that is checked out.
    pub(super) fn branch(&self) -> Option<String> {
        workspace::current_branch(self.town, &self.dir)
    }

    /// Returns the branch that is checked out. Fails if there is none.
    pub(super) fn must_have_branch(&self) -> Result<String> {
        self.branch().ok_or_else(|| {
            Problem::conflict(format!("{} is on no branch", self.dir.display()))
                .hint(format!("`git switch {}` there", self.id))
        })
    }

    /// Returns the branch that is checked out. Fails if it is not the task's own, for operations
    /// that publish it under the task's name.
    pub(super) fn own_branch(&self) -> Result<String> {
        let branch = self.must_have_branch()?;
        if workspace::is_branch_of(&self.agent, &branch) {
            return Ok(branch);
        }
        let (id, dir) = (&self.id, self.dir.display());
        let own = match self.agent.role() {
            Role::Polecat => workspace::work_branch(&self.agent, id),
            _ => workspace::present_branch(self.town, &self.agent)?,
        };
        Err(
            Problem::conflict(format!("{dir} is on {branch}, which is not {id}'s own"))
                .hint(format!("`git switch {own}` there goes back to that"))
                .hint(format!(
                    "`git switch -C {own}` makes it what is checked out now"
                )),
        )
    }

    pub(super) fn head(&self) -> Result<String> {
        self.git().run(["rev-parse", "--verify", "HEAD^{commit}"])
    }

    /// Returns the number of commits in `of` that are not in `without`.
    pub(super) fn count(&self, of: &str, without: &str) -> Result<usize> {
        self.git().count([of, &format!("^{without}")])
    }

    /// Returns the uncommitted files, formatted for people.
    pub(super) fn changed(&self) -> Result<Vec<String>> {
        Ok(WorktreeStatus::of_every_file(self.git())?.changed)
    }

    pub(super) fn container(&self) -> Result<Option<Container>> {
        let name = super::container_name(self.town, &self.agent)?;
        own_container(self.town, &self.agent, &name)
    }

    /// Takes the lock that serializes operations on this worktree.
    pub(super) fn lock(&self) -> Result<FileLock> {
        lock(self.town, &self.id)
    }

    /// Takes the lock if it is free; returns `None` otherwise.
    pub(super) fn try_lock(&self) -> Result<Option<FileLock>> {
        FileLock::try_take(&lock_path(self.town, &self.id))
    }
}

/// Takes the lock for operations on the worktree of an item.
pub(super) fn lock(town: &Town, id: &WorkId) -> Result<FileLock> {
    FileLock::take(&lock_path(town, id), TIMEOUT)
}

fn lock_path(town: &Town, id: &WorkId) -> PathBuf {
    let locks = town.runtime_dir().join("locks");
    locks.join(format!("worktree-{id}.lock"))
}
