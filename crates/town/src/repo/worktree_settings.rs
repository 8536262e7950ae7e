//! Gives each worktree of a rig a configuration file of its own, by `extensions.worktreeConfig`.
//!
//! With the extension, git reads `core.bare` of the shared file for every worktree, so the setting
//! moves to the file of the clone. Git before 2.49 does not look there from a worktree: it takes the
//! clone for a checkout of the branch that its HEAD names, and `git switch` to that branch fails. So
//! that HEAD is detached.

use super::rig;
use crate::base::git::{self, Git};
use crate::{Result, Town};
use gt_core::Problem;
use std::fs;
use std::path::Path;

/// Settings that would apply to every worktree if the shared file had them.
const LEADING: &[&str] = &["core.bare", "core.worktree"];

/// Returns whether the worktrees of a rig have configuration files of their own. A rig without a
/// default branch in the registry counts: the HEAD of its clone names it.
pub(crate) fn are_separate(town: &Town, rig: &str) -> bool {
    let repository = rig::repository(town, rig);
    let entry = town.registry().rigs.get(rig);
    entry.is_none_or(|entry| entry.default_branch.is_none())
        || !repository.join("config").is_file()
        || is_done(&repository)
}

fn is_done(repository: &Path) -> bool {
    let config = repository.join("config");
    let is_on = git::setting(&config, "extensions.worktreeconfig");
    // A HEAD that cannot be read is reported by git.
    let head = fs::read_to_string(repository.join("HEAD")).unwrap_or_default();
    let is_bare = git::setting(&repository.join("config.worktree"), "core.bare");
    is_on.as_deref() == Some("true")
        && is_bare.as_deref() == Some("true")
        && LEADING
            .iter()
            .all(|key| git::setting(&config, key).is_none())
        && !head.starts_with("ref: ")
}

/// Separates the settings of a clone's worktrees. Each step is atomic and leaves a repository in
/// which all commands work, so an interrupted change is completed by the next call. The caller holds
/// the lock of the repository.
pub(crate) fn separate(git: Git<'_>, repository: &Path, branch: &str) -> Result<()> {
    if is_done(repository) {
        return Ok(());
    }
    let remote = format!("refs/remotes/origin/{branch}");
    let commit = match git.commit("HEAD")? {
        Some(commit) => Some(commit),
        None => git.commit(&remote)?,
    };
    let commit = commit.ok_or_else(|| {
        Problem::failed(format!("{} has no commit", repository.display()))
            .hint("`gt doctor` checks every rig")
    })?;
    git.run(["update-ref", "--no-deref", "HEAD", &commit])?;
    let [own, shared] = ["config.worktree", "config"].map(|name| repository.join(name));
    let [own, shared] = [own, shared].map(|path| path.to_string_lossy().into_owned());
    let bare = ["--replace-all", "core.bare", "true"];
    git.run([&["config", "--file", &own], &bare[..]].concat())?;
    for key in LEADING {
        if git::setting(&repository.join("config"), key).is_some() {
            // Without `core.bare`, git takes a folder that is not called `.git` for bare.
            git.run(["config", "--file", &shared, "--unset-all", key])?;
        }
    }
    let on = ["config", "--file", &shared, "extensions.worktreeConfig"];
    git.run([&on[..], &["true"]].concat()).map(drop)
}

/// Separates the settings of a rig that an earlier version of `gt` has added. The caller holds the
/// lock of the repository.
pub(crate) fn separate_existing(town: &Town, rig: &str) -> Result<()> {
    if are_separate(town, rig) {
        return Ok(());
    }
    let entry = rig::entry(town, rig)?;
    let branch = entry.default_branch.as_deref().unwrap_or_default();
    let repository = rig::repository(town, rig);
    separate(Git::at(&repository, town.around()), &repository, branch)
}

#[cfg(test)]
mod tests;
