//! The state of an agent's worktree when the agent finishes its work.

use crate::base::git::{Git, WorktreeStatus};
use crate::base::or_log::OrLog;
use crate::catalog::roles;
use crate::records::items::Handed;
use crate::repo::workspace;
use crate::repo::workspace::pause_commit;
use crate::workflow::merge::{Base, queued_ref};
use crate::{Result, Town};
use gt_core::merge::DoneStatus;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::path::{Path, PathBuf};

/// Snapshot of an agent's worktree.
pub(super) struct WorktreeSnapshot<'a> {
    pub(super) base: Base<'a>,
    rig: &'a str,
    pub(super) dir: PathBuf,
    pub(super) branch: Option<String>,
    pub(super) commit: String,
    /// Number of commits that are not in the base.
    pub(super) commits: usize,
    pub(super) changed: Vec<String>,
}

impl<'a> WorktreeSnapshot<'a> {
    /// Returns `None` for an agent without a worktree of a rig. To complete an item the worktree
    /// must be readable: without it `gt` cannot tell whether there is something to merge.
    pub(super) fn of(
        town: &'a Town,
        agent: &'a Identity,
        item: Option<&WorkId>,
        leaving: DoneStatus,
    ) -> Result<Option<Self>> {
        let Some(rig) = agent.rig().filter(|_| workspace::has_worktree(agent)) else {
            return Ok(None);
        };
        let role = roles::resolve(town, agent.role(), Some(rig))?.value;
        let dir = workspace::path(town, agent, &role)?;
        let completed = item.filter(|_| leaving == DoneStatus::Completed);
        if completed.is_some() {
            workspace::repair_links(town, agent, &dir)?;
        }
        if !workspace::is_usable(town, &dir) {
            return match completed {
                Some(item) => Err(gone(agent, item, &dir)),
                None => Ok(None),
            };
        }
        let base = Base::of(town, rig)?;
        let git = Git::at(&dir, town.around());
        let status = WorktreeStatus::of_every_file(git)?;
        let commit = status.commit.ok_or_else(|| {
            Problem::conflict(format!("nothing is committed in {}", dir.display()))
        })?;
        let tip = base.tip()?;
        Ok(Some(WorktreeSnapshot {
            branch: status.branch,
            commits: git.count([&commit, &format!("^{tip}")])?,
            changed: status.changed,
            base,
            rig,
            dir,
            commit,
        }))
    }

    /// Returns the branch to merge, if it has commits.
    pub(super) fn handed(&self) -> Option<Handed> {
        Some(Handed {
            rig: self.rig.to_owned(),
            branch: self.branch.clone().filter(|_| self.commits > 0)?,
            commit: self.commit.clone(),
            base: self.base.branch.clone(),
        })
    }

    /// Refuses an unfinished rebase, merge or bisect: it would affect the next user of the
    /// worktree, and the commit checked out during it is not the work.
    pub(super) fn check_whole(&self) -> Result<()> {
        let Some(what) = workspace::unfinished_operation(&self.dir) else {
            return Ok(());
        };
        let back = match what {
            "bisect" => "git bisect reset".to_owned(),
            what => format!("git {what} --abort"),
        };
        Err(
            Problem::conflict(format!("a {what} is under way in {}", self.dir.display()))
                .hint(format!("finish it there, or abort it with `{back}`")),
        )
    }

    /// Refuses to leave commits for the item behind on the agent's own branch while another branch
    /// is checked out. A branch named after the item holds only that item's work. On any other
    /// branch, commits count only if nothing else is submitted. Commits that are queued for other
    /// items are not left behind.
    pub(super) fn check_own_branch(&self, agent: &Identity, item: &WorkId) -> Result<()> {
        let named = match agent.role() {
            Role::Polecat => Some(workspace::work_branch(agent, item)),
            Role::Task => Some(workspace::branch(agent)),
            _ => None,
        };
        let tip_of = |branch: &str| self.base.commit(&format!("refs/heads/{branch}"));
        let general = (self.commits == 0).then(|| workspace::branch(agent));
        let mut found = None;
        let names = named.into_iter().chain(general);
        let names = names.flat_map(|name| {
            // A sandbox has moved the branch into a folder.
            let moved = format!("{name}/{}", workspace::IN_FOLDER);
            [name, moved]
        });
        for branch in names {
            if let Some(tip) = tip_of(&branch)? {
                found = Some((branch, tip));
                break;
            }
        }
        let Some((branch, own)) = found else {
            return Ok(());
        };
        let count = self.base.git().count([
            &own,
            "--not",
            &self.commit,
            &self.base.tip()?,
            &format!("--exclude={}", queued_ref(item)),
            "--glob=refs/gt/queued",
        ])?;
        let commits = match count {
            0 => return Ok(()),
            1 => "a commit".to_owned(),
            count => format!("{count} commits"),
        };
        let (dir, base) = (self.dir.display(), &self.base.branch);
        Err(Problem::conflict(format!(
            "{branch} has {commits} that {base} lacks, and {dir} is not on that branch"
        ))
        .hint(format!("`git switch {branch}` there includes them"))
        .hint(format!(
            "`git branch --force {branch} HEAD` there discards them"
        )))
    }

    /// Refuses a branch that contains the commit of a pause.
    pub(super) fn check_pause(&self, town: &Town, agent: &Identity) -> Result<()> {
        let Some(branch) = self.branch.as_deref() else {
            return Ok(());
        };
        let git = Git::at(&self.dir, town.around());
        match pause_commit::find(git, branch, &self.commit, &self.base.tip()?)? {
            Some(wip) => Err(pause_commit::is_in_branch(
                agent.short_name(),
                &self.dir,
                &wip,
            )),
            None => Ok(()),
        }
    }

    /// Keeps the commit under a ref for the queue, so that it survives changes to its branch.
    pub(super) fn keep_commit(&self, town: &Town, item: &WorkId) -> Result<()> {
        let git = Git::at(&self.dir, town.around());
        git.run(["update-ref", &queued_ref(item), &self.commit])
            .map(drop)
    }

    /// Pushes the branch to the rig's remote if it is the agent's own. The queue merges from the
    /// rig's local repository and does not depend on this push, so it runs without the repository's
    /// lock.
    pub(super) fn push(&self, town: &Town, agent: &Identity) -> Result<bool> {
        let branch = self.branch.as_deref();
        let branch = branch.filter(|branch| workspace::is_branch_of(agent, branch));
        let Some(branch) = branch.filter(|_| self.base.has_remote()) else {
            return Ok(false);
        };
        let known = self.base.known_remote_commit(branch)?;
        let pushed = match known {
            Some(known) if self.has_replaced(town, branch, &known)? => {
                self.base.push_from(&known, &self.commit, branch)
            }
            _ => self.base.push(&self.commit, branch),
        };
        pushed.map_err(|problem| {
            Problem::failed(format!("{branch} could not be pushed")).caused_by_problem(&problem)
        })?;
        Ok(true)
    }

    /// Returns whether the commit was made on this branch here and was replaced since, by an
    /// amendment or a rebase. Commits that others pushed to the branch do not count, even if they
    /// were fetched into it for a while: the reflog records how the branch reached each commit.
    fn has_replaced(&self, town: &Town, branch: &str, commit: &str) -> Result<bool> {
        const MAKING: [&str; 5] = ["commit", "rebase", "cherry-pick", "revert", "am"];
        let git = Git::at(&self.dir, town.around());
        let name = format!("refs/heads/{branch}");
        let had = git.run(["log", "--walk-reflogs", "--format=%H %gs", &name, "--"]);
        let had = had.or_warn(format_args!("the reflog of {branch} cannot be read"));
        let had = had.unwrap_or_default();
        let is_made = |line: &str| {
            let how = line.strip_prefix(commit).map(str::trim_start);
            how.is_some_and(|how| MAKING.iter().any(|word| how.starts_with(word)))
        };
        Ok(had.lines().any(is_made) && !self.base.contains(&self.commit, commit)?)
    }
}

/// Returns the error for a missing worktree of an item that should be completed.
fn gone(agent: &Identity, item: &WorkId, dir: &Path) -> Problem {
    Problem::conflict(format!(
        "the worktree of {agent} is not there: {}",
        dir.display()
    ))
    .hint(format!(
        "put it back, or `gt start {agent}` creates it again, on its branch"
    ))
    .hint(format!(
        "`gt work close {item}` closes it without checking the work"
    ))
}
