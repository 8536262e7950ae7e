//! The commit that a rig's new branches start from: the tip of the remote's default branch, or of
//! the merge queue's own ref while the remote lacks its commits.

use crate::base::git::Git;
use crate::repo::rig;
use crate::{Result, Town};
use std::path::PathBuf;

/// Returns the ref at which a new branch of the rig starts: the remote's default branch, or
/// [`merged_ref`] if that has commits which the remote lacks.
pub(crate) fn start_point(town: &Town, rig: &str) -> Result<String> {
    let entry = town.registry().rigs.get(rig);
    let Some(branch) = entry.and_then(|entry| entry.default_branch.as_deref()) else {
        return Ok("HEAD".to_owned());
    };
    let theirs = format!("refs/remotes/origin/{branch}");
    let merged = merged_ref(branch);
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let is_news = git.ref_commit(&merged)?.is_some() && !git.contains(&theirs, &merged)?;
    Ok(if is_news { merged } else { theirs })
}

/// Returns the paths of git's ref files, one of which changes when [`start_point`] moves.
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

/// Returns the ref in which the merge queue keeps its merges into a rig's default branch if it may
/// not push to the remote's branch.
pub(crate) fn merged_ref(branch: &str) -> String {
    format!("refs/gt/merged/{branch}")
}
