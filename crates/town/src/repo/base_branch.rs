//! The base of a rig's branches: the remote's default branch, or the merge queue's own branch while
//! the remote lacks its commits.

use crate::Town;
use crate::base::git::Git;
use crate::repo::rig;
use std::path::PathBuf;

/// Returns the commit at which a new branch of the rig begins: its remote's default branch, or the
/// local merge result that the remote does not have yet.
pub(crate) fn start_point(town: &Town, rig: &str) -> String {
    let entry = town.registry().rigs.get(rig);
    let Some(branch) = entry.and_then(|entry| entry.default_branch.as_deref()) else {
        return "HEAD".to_owned();
    };
    let theirs = format!("refs/remotes/origin/{branch}");
    let merged = merged_ref(branch);
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let is_news = git.says(["show-ref", "--verify", "--quiet", &merged])
        && !git.says(["merge-base", "--is-ancestor", &merged, &theirs]);
    if is_news { merged } else { theirs }
}

/// Returns the files of git that change when [`start_point`] moves.
pub(crate) fn files(town: &Town, rig: &str) -> Vec<PathBuf> {
    let entry = town.registry().rigs.get(rig);
    let branch = entry.and_then(|entry| entry.default_branch.as_deref());
    let names = match branch {
        Some(branch) => vec![format!("refs/remotes/origin/{branch}"), merged_ref(branch)],
        None => vec!["HEAD".to_owned()],
    };
    let names = names.into_iter().chain(["packed-refs".to_owned()]);
    let repository = rig::repository(town, rig);
    names.map(|name| repository.join(name)).collect()
}

/// Returns the ref where the merge queue keeps a rig's default branch if it may not move the
/// remote's.
pub(crate) fn merged_ref(branch: &str) -> String {
    format!("refs/gt/merged/{branch}")
}
