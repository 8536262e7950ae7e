//! How a worktree stands: whether git knows it, whether it was made to its end, and
//! whether something in it is half done.
//!
//! git is asked to the end here: a look that Ctrl-C cuts off would take a sound worktree
//! for a broken one.

use super::submodules;
use crate::git::{Git, own_dir};
use crate::{Result, Town};
use std::fs;
use std::path::Path;

/// Whether a folder is a worktree that git knows.
pub(crate) fn is_usable(town: &Town, dir: &Path) -> bool {
    let git = Git::at(dir, town.around()).to_the_end();
    // It says how to get from here to the top: a repository around the folder is not its own.
    let up = || git.run(["rev-parse", "--show-cdup"]);
    dir.join(".git").exists() && up().is_ok_and(|up| up.is_empty())
}

/// Whether a folder has files and is no worktree any more. The link that git has made alone
/// is nobody's work.
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

/// Why git does not remove a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// git locks one while it makes it, and was killed.
    Git,
    /// Somebody wants it to stay, with these words.
    Somebody(String),
}

pub(super) fn lock_of(dir: &Path) -> Option<Lock> {
    let reason = fs::read_to_string(own_dir(dir)?.join("locked")).ok()?;
    Some(match reason.trim() {
        "initializing" => Lock::Git,
        reason => Lock::Somebody(reason.to_owned()),
    })
}

/// Whether git was killed while it made the worktree: then nobody has worked in it.
pub fn is_unfinished(dir: &Path) -> bool {
    // The index is what it writes last. One that is gone from a worktree that was finished
    // says nothing of the files there.
    let has_index = own_dir(dir).is_some_and(|own| own.join("index").exists());
    !has_index && lock_of(dir) == Some(Lock::Git)
}

/// What was begun in a worktree and is not over, in git's own words.
pub(crate) fn half_done(dir: &Path) -> Option<&'static str> {
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

/// The commits in which git keeps what was not committed while it rebases or merges: they
/// are on no branch, and go with the worktree.
pub(super) fn put_aside_by_git(dir: &Path) -> Vec<String> {
    const PLACES: &[&str] = &[
        "rebase-merge/autostash",
        "rebase-apply/autostash",
        "MERGE_AUTOSTASH",
    ];
    let own = own_dir(dir);
    let own = own
        .iter()
        .flat_map(|own| PLACES.iter().map(|it| own.join(it)));
    let found = own.filter_map(|path| fs::read_to_string(path).ok());
    let ids = found.map(|text| text.trim().to_owned());
    ids.filter(|id| !id.is_empty()).collect()
}

/// Whether a worktree can be put on another branch without losing anything: nothing is
/// changed, nothing is half done, and every commit is on some branch, or on a remote's if
/// it is a submodule's.
pub fn is_settled(town: &Town, dir: &Path) -> Result<bool> {
    if !is_usable(town, dir) || is_unfinished(dir) || half_done(dir).is_some() {
        return Ok(false);
    }
    let git = Git::at(dir, town.around());
    let loose = [
        "rev-list",
        "--count",
        "HEAD",
        "--not",
        "--branches",
        "--remotes",
    ];
    let changes = git.run(["status", "--porcelain", "--untracked-files=all"])?;
    if !changes.is_empty() || git.run(loose)? != "0" {
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

/// Whether any were ever checked out here.
pub(super) fn has_submodules(dir: &Path) -> bool {
    own_dir(dir).is_some_and(|own| own.join("modules").exists())
}
