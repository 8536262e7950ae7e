//! The condition of a worktree: whether git knows it, whether its creation was completed, and
//! whether an operation in it is unfinished.
//!
//! The git commands here ignore Ctrl-C: an interrupted check would report an intact worktree as
//! broken.

use super::submodules;
use crate::base::git::{Git, own_dir};
use crate::{Result, Town};
use std::fs;
use std::path::Path;

/// Returns whether a folder is a worktree that git knows.
pub(crate) fn is_usable(town: &Town, dir: &Path) -> bool {
    let git = Git::at(dir, town.around()).uncancellable();
    // git prints the path from here to the top level of the repository. It is empty for a worktree,
    // and not empty if the repository is that of a parent folder.
    let up = || git.run(["rev-parse", "--show-cdup"]);
    dir.join(".git").exists() && up().is_ok_and(|up| up.is_empty())
}

/// Returns whether a folder has files and is no longer a worktree. A lone `.git` link does not
/// count as work.
pub fn is_broken(town: &Town, dir: &Path) -> bool {
    let is_work = |entry: fs::DirEntry| {
        let is_link = entry.file_name() == ".git" && entry.path().is_file();
        !is_link
    };
    let has_files = dir
        .read_dir()
        .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_work)));
    has_files && !is_usable(town, dir)
}

/// Reason why git does not remove a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// git locks a worktree while it creates it, and was killed.
    Git,
    /// Another process or a person has locked it, for this reason.
    Other(String),
}

pub(super) fn lock_of(dir: &Path) -> Option<Lock> {
    // A worktree that is not locked has no such file.
    let reason = fs::read_to_string(own_dir(dir)?.join("locked")).ok()?;
    Some(match reason.trim() {
        "initializing" => Lock::Git,
        reason => Lock::Other(reason.to_owned()),
    })
}

/// Returns whether git was killed while it created the worktree. Such a worktree contains no work.
pub fn is_unfinished(dir: &Path) -> bool {
    // git writes the index last. A missing index alone is no proof, because the files of a complete
    // worktree may still be work: git's own lock must exist, too.
    let has_index = own_dir(dir).is_some_and(|own| own.join("index").exists());
    !has_index && lock_of(dir) == Some(Lock::Git)
}

/// Returns the unfinished operation of a worktree, as git calls it.
pub(crate) fn unfinished_operation(dir: &Path) -> Option<&'static str> {
    const SIGNS: [(&str, &str); 6] = [
        ("MERGE_HEAD", "merge"),
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    let own = own_dir(dir)?;
    let mut signs = SIGNS.iter();
    signs
        .find(|(file, _)| own.join(file).exists())
        .map(|(_, word)| *word)
}

/// Returns the commits in which git keeps uncommitted changes during a rebase or merge: they are on
/// no branch, and are removed with the worktree.
pub(super) fn autostashed(dir: &Path) -> Vec<String> {
    const PLACES: &[&str] = &[
        "rebase-merge/autostash",
        "rebase-apply/autostash",
        "MERGE_AUTOSTASH",
    ];
    let own = own_dir(dir);
    let own = own
        .iter()
        .flat_map(|own| PLACES.iter().map(|it| own.join(it)));
    // Usually these files do not exist.
    let found = own.filter_map(|path| fs::read_to_string(path).ok());
    let ids = found.map(|text| text.trim().to_owned());
    ids.filter(|id| !id.is_empty()).collect()
}

/// Returns whether a worktree can be put on another branch without losing anything: nothing is
/// changed, no operation is unfinished, and every commit is on a branch, or on a remote branch for
/// a submodule.
pub fn is_settled(town: &Town, dir: &Path) -> Result<bool> {
    if !is_usable(town, dir) || is_unfinished(dir) || unfinished_operation(dir).is_some() {
        return Ok(false);
    }
    let git = Git::at(dir, town.around());
    let loose = ["HEAD", "--not", "--branches", "--remotes"];
    let changes = git.run(["status", "--porcelain", "--untracked-files=all"])?;
    if !changes.is_empty() || git.count(loose)? > 0 {
        return Ok(false);
    }
    if has_submodules(dir) {
        for submodule in submodules::of(town, dir)? {
            if submodule.commits(town)? > 0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns whether any submodules were ever checked out here.
pub(super) fn has_submodules(dir: &Path) -> bool {
    own_dir(dir).is_some_and(|own| own.join("modules").exists())
}
