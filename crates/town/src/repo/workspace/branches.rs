//! The branches of an agent, by their names.
//!
//! A polecat has a branch for each of its work items, `polecat/<name>/<item>`, and
//! `polecat/<name>/idle` if it was started without an item. A task's branch is named after its
//! item. Every other agent has one branch, `<role>/<name>`. The branch that a worktree is on is
//! read from git.

use crate::base::files;
use crate::base::git::{Git, own_dir};
use crate::base::or_log::OrLog;
use crate::records::items::Work;
use crate::repo::rig;
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Role};
use std::fs;
use std::path::Path;

/// Returns the common prefix of all branches of an agent.
pub(super) fn root(identity: &Identity) -> String {
    match identity.role() {
        Role::Task => identity.short_name().to_owned(),
        role => format!("{}/{}", role.as_str(), identity.short_name()),
    }
}

/// Returns the branch of an agent that has no work item.
pub fn branch(identity: &Identity) -> String {
    match identity.role() {
        // git cannot have a branch whose name is a folder of other branches.
        Role::Polecat => format!("{}/idle", root(identity)),
        _ => root(identity),
    }
}

/// Last part of the name of a branch that is in a folder of its own: a sandbox can only open a folder
/// of branches.
pub const IN_FOLDER: &str = "main";

/// Returns the branch of an agent that has no work item, by the name that it has in the repository or
/// at the remote: a sandbox may have moved it into a folder.
pub(crate) fn present_branch(town: &Town, identity: &Identity) -> Result<String> {
    let plain = branch(identity);
    let moved = format!("{plain}/{IN_FOLDER}");
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let git = Git::at(&repository, town.around()).uncancellable();
    let names = ["heads", "remotes/origin"].map(|kind| format!("refs/{kind}/{moved}"));
    let found = git.run(
        ["for-each-ref", "--format=%(refname)"]
            .into_iter()
            .chain(names.iter().map(String::as_str)),
    )?;
    Ok(if found.is_empty() { plain } else { moved })
}

/// Returns the branch on which a polecat does a work item.
pub fn work_branch(identity: &Identity, id: &WorkId) -> String {
    format!("{}/{id}", root(identity))
}

/// Returns whether a branch belongs to an agent, by its name.
pub fn is_branch_of(identity: &Identity, branch: &str) -> bool {
    branch
        .strip_prefix(&root(identity))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the branch for a new worktree of an agent: that of its work.
pub(super) fn due(town: &Town, identity: &Identity) -> Result<String> {
    let hooked = match identity.role() {
        Role::Polecat => Work::of(town).hooked(&identity.address())?,
        _ => None,
    };
    Ok(hooked.map_or_else(
        || branch(identity),
        |hooked| work_branch(identity, &hooked.item.id),
    ))
}

/// Returns the branch that a worktree is on; `None` if it is on none or does not exist.
pub fn current_branch(town: &Town, dir: &Path) -> Option<String> {
    match written_branch(dir) {
        BranchOnDisk::Branch(branch) => Some(branch),
        BranchOnDisk::None => None,
        BranchOnDisk::Elsewhere => asked_branch(town, dir),
    }
}

/// The branch according to the files of a repository.
enum BranchOnDisk {
    Branch(String),
    None,
    /// Stored in a form that only git reads.
    Elsewhere,
}

/// Reads the branch from git's file without running git, because every start needs it.
fn written_branch(dir: &Path) -> BranchOnDisk {
    let head = own_dir(dir).map(|own| fs::read_to_string(own.join("HEAD")));
    let Some(Ok(head)) = head else {
        return BranchOnDisk::Elsewhere;
    };
    match head.trim_end().strip_prefix("ref: ") {
        None => BranchOnDisk::None,
        Some(name) => match name.strip_prefix("refs/heads/") {
            Some(branch) if branch != ".invalid" => BranchOnDisk::Branch(branch.to_owned()),
            _ => BranchOnDisk::Elsewhere,
        },
    }
}

fn asked_branch(town: &Town, dir: &Path) -> Option<String> {
    Git::at(dir, town.around())
        .find(["symbolic-ref", "--quiet", "--short", "HEAD"])
        .or_debug(format_args!("{} has no branch", dir.display()))
        .flatten()
        .filter(|branch| !branch.is_empty())
}

/// Returns all branches of an agent, with their commits.
pub fn branches(town: &Town, identity: &Identity) -> Result<Vec<(String, String)>> {
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let found = Git::at(&repository, town.around()).uncancellable().run([
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        &format!("refs/heads/{}", root(identity)),
    ])?;
    let branch = |line: &str| {
        let (commit, name) = line.split_once(' ')?;
        let name = name.strip_prefix("refs/heads/")?;
        Some((name.to_owned(), commit.to_owned()))
    };
    Ok(found.lines().filter_map(branch).collect())
}

/// Returns the branches that are checked out in a worktree other than the agent's: git does not
/// remove them.
pub(super) fn checked_out_elsewhere(
    town: &Town,
    identity: &Identity,
    dir: &Path,
) -> Result<Vec<String>> {
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let found = Git::at(&repository, town.around()).uncancellable().run([
        "for-each-ref",
        "--format=%(refname) %(worktreepath)",
        &format!("refs/heads/{}", root(identity)),
    ])?;
    let elsewhere = found.lines().filter_map(|line| {
        let (name, place) = line.strip_prefix("refs/heads/")?.split_once(' ')?;
        let place = Path::new(place);
        // A worktree whose folder was removed by hand has nothing checked out.
        let is_elsewhere = place.exists() && !files::is_same(place, dir);
        is_elsewhere.then(|| name.to_owned())
    });
    Ok(elsewhere.collect())
}
