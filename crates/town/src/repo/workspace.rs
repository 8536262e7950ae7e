//! The folder an agent works in: a worktree of its rig, or a plain folder.
//!
//! `workspace/branches.rs` names the branches of an agent, `workspace/condition.rs` inspects a
//! worktree, `workspace/checkout.rs` puts it on a branch, and `workspace/remove.rs` removes it
//! without losing work, with commits that `workspace/snapshot.rs` makes. Work inside submodules
//! would be lost with the worktree: see `workspace/submodules.rs`.

mod branches;
mod checkout;
mod condition;
pub(crate) mod pause_commit;
mod remove;
pub(crate) mod snapshot;
pub(crate) mod submodules;
mod tasks;

pub(crate) use branches::present_branch;
pub use branches::{IN_FOLDER, branch, branches, current_branch, is_branch_of, work_branch};
pub(crate) use checkout::repair_links;
pub use checkout::{Placed, place, take_back};
pub use condition::{is_broken, is_settled, is_unfinished};
pub(crate) use condition::{is_usable, unfinished_operation};
pub use remove::{
    RemovalError, RemovalResult, Unsaved, clean, kept_branches, remove, save_uncommitted, unsaved,
};
pub use tasks::task_worktree;
pub(crate) use tasks::{WorktreesByBranch, task_by_folder, task_worktree_at_template};

use crate::base::files;
use crate::base::git::{Git, GitError};
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::repo::rig;
use crate::{Result, Town};
use gt_core::role::{Role, RoleConfig};
use gt_core::{Identity, Problem};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for the repository lock: another process may fetch or create a worktree.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time that a start waits for a remote.
const FETCH_LIMIT: Duration = Duration::from_secs(20);

/// Returns the folder of an agent, by its role's pattern.
pub fn path(town: &Town, identity: &Identity, role: &RoleConfig) -> Result<PathBuf> {
    if identity.role() == Role::Agent
        && let Some(dir) =
            crate::catalog::directory::agent_file(town, identity)?.and_then(|file| file.work_dir)
    {
        return Ok(dir);
    }
    if let Some(dir) = task_worktree(town, identity) {
        return Ok(dir);
    }
    let template = &role.session.work_dir;
    let known = ["{town}", "{rig}", "{role}", "{name}"];
    let rest = known
        .iter()
        .fold(template.clone(), |text, word| text.replace(word, ""));
    if rest.contains(['{', '}']) {
        return Err(Problem::usage(format!(
            "the work_dir {template:?} of the role {} holds an unknown placeholder",
            identity.role()
        ))
        .hint("{town}, {rig}, {role} and {name} are filled in"));
    }
    // The town comes last: its path may contain anything, including braces.
    let text = template
        .replace("{rig}", identity.rig().unwrap_or_default())
        .replace("{role}", identity.role().as_str())
        .replace("{name}", identity.name().unwrap_or_default())
        .replace("{town}", town.root_text());
    Ok(town.root().join(text))
}

/// Returns whether the role's folder is a worktree of its rig.
pub fn is_worktree(role: Role) -> bool {
    matches!(role, Role::Crew | Role::Polecat | Role::Refinery)
}

/// Returns git for the folder of an agent. If the folder should be a worktree, git never falls back
/// to the repository of a parent folder, which is not the agent's.
pub(crate) fn git_of<'a>(town: &'a Town, agent: &Identity, dir: &'a Path) -> Git<'a> {
    let git = Git::at(dir, town.around());
    match has_worktree(agent) {
        true => git.only_own_repository(),
        false => git,
    }
}

/// Returns whether the agent's folder should be a worktree.
pub(crate) fn has_worktree(agent: &Identity) -> bool {
    is_worktree(agent.role()) || agent.role() == Role::Task
}

/// Ensures that the agent's folder exists and is usable. Returns warnings, such as a submodule that
/// could not be checked out.
pub fn ensure(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    match identity.rig() {
        Some(_) if is_worktree(identity.role()) => {
            if is_usable(town, dir) {
                return Ok(Vec::new());
            }
            let branch = branches::due(town, identity)?;
            place(town, identity, dir, &branch).map(|placed| placed.warnings)
        }
        _ => files::make_dir(dir).map(|()| Vec::new()),
    }
}

/// Fetches the rig's remote into its repository.
pub fn fetch(town: &Town, rig: &str) -> Result<(), GitError> {
    let repository = rig::repository(town, rig);
    let _lock = lock_repository(town, rig)?;
    Git::at(&repository, town.around())
        .with_time_limit(FETCH_LIMIT)
        .fetch()
}

/// Fetches the rig's remote, with this timeout, for a caller that needs the result. First tries
/// without the lock, so that a slow remote blocks no other process. If that fails, for example
/// because another process fetches the same refs, retries once under the lock.
pub(crate) fn fetch_within(town: &Town, rig: &str, limit: Duration) -> Result<(), GitError> {
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around()).with_time_limit(limit);
    match git.fetch() {
        Err(GitError::Other(_)) => fetch(town, rig),
        fetched => fetched,
    }
}

/// Fetches the rig's remote for a caller that cannot wait. Does nothing while another process
/// changes the repository, and gives up early on a slow remote. Best effort: the next fetch catches
/// up.
pub fn try_fetch(town: &Town, rig: &str) {
    const MOMENT: Duration = Duration::from_secs(3);
    let repository = rig::repository(town, rig);
    if let Ok(Some(_lock)) = FileLock::try_take(&repository_lock(town, rig)) {
        let git = Git::at(&repository, town.around()).with_time_limit(MOMENT);
        let fetched = git.fetch();
        fetched.or_debug(format_args!("{rig} is not fetched"));
    }
}

/// Fetches the rig's remote although no person has asked for it. Never prompts. Skips a rig that
/// another process changes, and holds no lock, so that no other process waits for a slow remote.
/// Best effort: the next fetch catches up.
pub fn fetch_in_background(town: &Town, rig: &str) {
    const LIMIT: Duration = Duration::from_secs(60);
    match FileLock::try_take(&repository_lock(town, rig)) {
        Ok(Some(lock)) => drop(lock),
        _ => return,
    }
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around()).with_time_limit(LIMIT);
    let fetched = git.in_background().fetch();
    fetched.or_debug(format_args!("{rig} is not fetched"));
}

/// Takes the lock that excludes other processes from changing the rig's repository.
pub(crate) fn lock_repository(town: &Town, rig: &str) -> Result<FileLock> {
    FileLock::take(&repository_lock(town, rig), TIMEOUT)
}

fn repository_lock(town: &Town, rig: &str) -> PathBuf {
    // git does not support concurrent changes: of 50 worktrees created concurrently without this
    // lock, 2 failed.
    town.runtime_dir()
        .join("locks")
        .join(format!("repo-{rig}.lock"))
}

#[cfg(test)]
mod tests;
