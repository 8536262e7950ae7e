//! The worktree of a task: at the place of the project's template, on the branch of its item.

use crate::base::git::Git;
use crate::repo::rig;
use crate::repo::workspace::{self, Placed};
use crate::{Result, Town};
use gt_core::{Identity, Problem};
use std::path::Path;

/// A worktree, and the changes made for it.
#[derive(Debug, Default)]
pub(super) struct TaskWorktree {
    /// `None` if it existed and is used unchanged.
    pub(super) placed: Option<Placed>,
    pub(super) warning: Option<String>,
}

/// Finds or creates the worktree.
pub(super) fn place(town: &Town, agent: &Identity, dir: &Path) -> Result<TaskWorktree> {
    let branch = workspace::branch(agent);
    let rig = agent.rig().unwrap_or_default();
    if dir.join(".git").exists() {
        check_whose(town, rig, dir)?;
        if workspace::is_unfinished(dir) {
            let repository = rig::repository(town, rig);
            let target = dir.to_string_lossy().into_owned();
            // Git was killed while creating it, so it contains no work.
            Git::at(&repository, town.around())
                .run(["worktree", "remove", "--force", "--force", "--", &target])?;
        } else {
            let now = workspace::current_branch(town, dir);
            let is_own = |now: &String| workspace::is_branch_of(agent, now);
            let warning = (!now.as_ref().is_some_and(is_own)).then(|| {
                let now = now.unwrap_or_else(|| "no branch".to_owned());
                format!("its worktree is on {now}, not on {branch}; it is used as it is")
            });
            return Ok(TaskWorktree {
                placed: None,
                warning,
            });
        }
    }
    Ok(TaskWorktree {
        placed: Some(workspace::place(town, agent, dir, &branch)?),
        warning: None,
    })
}

/// Refuses a folder that is a worktree of another repository. A worktree with broken links passes;
/// it is repaired later.
fn check_whose(town: &Town, rig: &str, dir: &Path) -> Result<()> {
    let git = Git::at(dir, town.around());
    // git cannot follow broken links. The repair reports a folder that is not a worktree.
    let Ok(common) = git.run(["rev-parse", "--git-common-dir"]) else {
        return Ok(());
    };
    let own = rig::repository(town, rig);
    let is_own = match (dir.join(common).canonicalize(), own.canonicalize()) {
        (Ok(common), Ok(own)) => common == own,
        _ => false,
    };
    if is_own {
        return Ok(());
    }
    Err(Problem::conflict(format!(
        "{} is a worktree of another repository than the rig {rig}'s",
        dir.display()
    ))
    .hint("move it away, or set `path_template` in the project's .gt.toml"))
}
