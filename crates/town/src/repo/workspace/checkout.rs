//! Puts an agent's worktree on a branch, and rolls that change back.

use super::branches::{IN_FOLDER, branch, current_branch, root};
use super::condition::has_submodules;
use super::submodules::{self, Missing};
use super::{is_broken, is_usable, lock_repository};
use crate::base::files;
use crate::base::git::Git;
use crate::base::or_log::OrLog;
use crate::repo::{base_branch, rig, worktree_settings};
use crate::{Result, Town};
use gt_core::{Identity, Problem, Role};
use std::fs;
use std::path::Path;

/// Changes that put a worktree on its branch.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    pub branch: String,
    /// Whether the folder was created.
    pub made_folder: bool,
    /// The commit at which the branch was created; `None` if it existed.
    made_at: Option<String>,
    /// The previous checkout, as arguments of `git switch`.
    left: Option<Vec<String>>,
    /// The submodules that could not be checked out.
    pub warnings: Vec<String>,
}

/// Puts an agent's worktree on a branch. Creates a missing worktree and repairs one whose links are
/// broken. A new branch starts at the commit at which another agent stopped work on the same item,
/// or at the rig's base.
pub fn place(town: &Town, identity: &Identity, dir: &Path, branch: &str) -> Result<Placed> {
    let rig = identity.rig().unwrap_or_default();
    let repository = rig::repository(town, rig);
    if !repository.is_dir() {
        return Err(
            Problem::failed(format!("{} is missing", repository.display()))
                .hint("`gt doctor` checks every rig"),
        );
    }
    let lock = lock_repository(town, rig)?;
    let git = Git::at(&repository, town.around());
    if is_broken(town, dir) {
        relink(git, dir);
    }
    rename_old_branch(git, identity)?;
    let of_this =
        |problem: Problem| problem.within(format!("cannot make the worktree of {identity}"));
    let moved = format!("{branch}/{IN_FOLDER}");
    let is_moved = identity.role() != Role::Polecat && exists(git, &moved).map_err(of_this)?;
    let branch = if is_moved { &moved } else { branch };
    let is_usable = is_usable(town, dir);
    if !is_usable && has_entries(dir) {
        return Err(no_worktree(dir, rig));
    }
    let result = match is_usable {
        true => switch(town, rig, dir, branch),
        false => add(town, rig, dir, branch),
    };
    let mut result = result.map_err(of_this);
    drop(lock);
    if let Ok(placed) = &mut result
        && (placed.left.is_some() || placed.made_folder)
    {
        // The lock is not held while submodules are fetched, because a remote may be slow.
        let missing = submodules::populate(town, rig, dir);
        placed.warnings = missing.iter().map(Missing::text).collect();
    }
    result
}

fn has_entries(dir: &Path) -> bool {
    dir.read_dir()
        .is_ok_and(|mut entries| entries.next().is_some())
}

/// Rolls back [`place`], unless the worktree or the branch was changed since.
pub fn take_back(town: &Town, identity: &Identity, dir: &Path, placed: &Placed) -> Result<()> {
    let rig = identity.rig().unwrap_or_default();
    let repository = rig::repository(town, rig);
    let lock = lock_repository(town, rig)?;
    let git = Git::at(&repository, town.around()).uncancellable();
    if placed.made_folder {
        let target = dir.to_string_lossy().into_owned();
        let mut words = vec!["worktree", "remove"];
        if has_submodules(dir) {
            // Without `--force`, git refuses to remove any worktree with submodules, even an
            // unchanged one.
            check_unchanged(Git::at(dir, town.around()).uncancellable(), dir)?;
            words.push("--force");
        }
        // git itself refuses if something was changed.
        git.run([&words[..], &["--", &target]].concat())?;
    } else if let Some(left) = &placed.left {
        let here = Git::at(dir, town.around()).uncancellable();
        check_unchanged(here, dir)?;
        here.run([&["switch".to_owned(), "--quiet".to_owned()], &left[..]].concat())?;
    }
    if let Some(commit) = &placed.made_at {
        // Only if nothing was added to the branch.
        let name = format!("refs/heads/{}", placed.branch);
        git.run(["update-ref", "-d", &name, commit])?;
    }
    drop(lock);
    if placed.left.is_some() {
        submodules::populate(town, rig, dir);
    }
    Ok(())
}

/// Fails if a worktree has changes.
fn check_unchanged(git: Git<'_>, dir: &Path) -> Result<()> {
    let changes = git.run(["status", "--porcelain", "--untracked-files=all"])?;
    match changes.is_empty() {
        true => Ok(()),
        false => Err(Problem::conflict(format!(
            "{} was changed meanwhile",
            dir.display()
        ))),
    }
}

/// Repairs the links between a worktree and its repository, after the town was moved or if the
/// worktree's link is missing. Changes no files of the work. A failure is logged, and the next
/// check reports that the worktree is still broken.
pub(super) fn relink(git: Git<'_>, dir: &Path) {
    let target = dir.to_string_lossy().into_owned();
    let repaired = git.run(["worktree", "repair", "--", &target]);
    repaired.or_warn(format_args!("cannot repair the worktree {target}"));
}

/// Repairs the links of an agent's worktree if they are broken; fails if that does not help.
pub(crate) fn repair_links(town: &Town, identity: &Identity, dir: &Path) -> Result<()> {
    if !is_broken(town, dir) {
        return Ok(());
    }
    let rig = identity.rig().unwrap_or_default();
    let repository = rig::repository(town, rig);
    let _lock = lock_repository(town, rig)?;
    relink(Git::at(&repository, town.around()), dir);
    match is_broken(town, dir) {
        true => Err(no_worktree(dir, rig)),
        false => Ok(()),
    }
}

fn no_worktree(dir: &Path, rig: &str) -> Problem {
    Problem::conflict(format!(
        "{} is not empty and not a worktree of {rig}",
        dir.display()
    ))
    .hint("move it away; gt removes nothing that it did not make")
}

/// Renames the branch that a polecat had in older versions, `polecat/NAME`. git cannot create
/// `polecat/NAME/ITEM` while it exists, so it gets the name of the branch of an idle polecat.
fn rename_old_branch(git: Git<'_>, identity: &Identity) -> Result<()> {
    let old = root(identity);
    if identity.role() == Role::Polecat && exists(git, &old)? {
        git.run(["branch", "--quiet", "-m", &old, &branch(identity)])?;
    }
    Ok(())
}

fn switch(town: &Town, rig: &str, dir: &Path, branch: &str) -> Result<Placed> {
    let git = Git::at(dir, town.around());
    let mut placed = Placed {
        branch: branch.to_owned(),
        ..Placed::default()
    };
    let before = current_branch(town, dir);
    if before.as_deref() == Some(branch) {
        return Ok(placed);
    }
    let left = match before {
        Some(before) => vec![before],
        None => vec!["--detach".to_owned(), git.run(["rev-parse", "HEAD"])?],
    };
    if exists(git, branch)? {
        git.run(["switch", "--quiet", "--no-guess", branch])?;
    } else {
        let start = start_commit(town, git, rig, branch)?;
        git.run(["switch", "--quiet", "--no-track", "-c", branch, &start])?;
        placed.made_at = Some(git.run(["rev-parse", "HEAD"])?);
    }
    placed.left = Some(left);
    Ok(placed)
}

fn add(town: &Town, rig: &str, dir: &Path, branch: &str) -> Result<Placed> {
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let target = dir.to_string_lossy().into_owned();
    worktree_settings::separate_existing(town, rig)
        .or_warn(format_args!("the worktrees of {rig} share their settings"));
    let made_folder = !dir.exists();
    if let Some(parent) = dir.parent() {
        files::make_dir(parent)?;
    }
    let is_new = !exists(git, branch)?;
    let add = ["worktree", "add", "--quiet"];
    let start;
    let words = if is_new {
        start = start_commit(town, git, rig, branch)?;
        [
            &add[..],
            &["--no-track", "-b", branch, "--", &target, &start],
        ]
        .concat()
    } else {
        // An earlier worktree of this agent had the branch: the work continues where it was.
        [&add[..], &["--", &target, branch]].concat()
    };
    let result = git.run(&words).or_else(|_| {
        // A worktree whose folder was removed by hand is still on git's list. Every call that looks
        // for such worktrees reads all of them.
        git.run(["worktree", "prune"])?;
        git.run(&words)
    });
    let made_at = result.and_then(|_| match is_new {
        true => git.ref_commit(&format!("refs/heads/{branch}")),
        false => Ok(None),
    });
    match made_at {
        Ok(made_at) => Ok(Placed {
            branch: branch.to_owned(),
            made_folder,
            made_at,
            left: None,
            warnings: Vec::new(),
        }),
        Err(problem) => {
            if made_folder {
                // git rolls back its own changes; only an empty folder may be left.
                let _ = fs::remove_dir(dir);
            }
            Err(problem)
        }
    }
}

/// Returns the commit at which a new branch starts. git must not get the name of the base: it resolves
/// a name once for the files and once for the branch. If the merge queue moves the base in between,
/// the files are older than the branch, and the agent's next commit reverts the merge.
fn start_commit(town: &Town, git: Git<'_>, rig: &str, branch: &str) -> Result<String> {
    let name = beginning(town, rig, branch)?;
    let commit = match name.starts_with("refs/") {
        true => git.ref_commit(&name)?,
        false => git.commit(&name)?,
    };
    // git reports a name that does not exist.
    Ok(commit.unwrap_or(name))
}

/// Returns the start of a new branch: the commit at which another polecat stopped work on the same
/// item, or the rig's base. Fails if git fails, so that existing work is not done again.
fn beginning(town: &Town, rig: &str, branch: &str) -> Result<String> {
    let base = base_branch::start_point(town, rig)?;
    let item = match branch.rsplit_once('/') {
        Some((agent, item)) if agent.starts_with("polecat/") => item,
        _ => return Ok(base),
    };
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let left = git.run([
        "for-each-ref",
        "--sort=-committerdate",
        "--count=1",
        "--format=%(refname)",
        &format!("refs/heads/polecat/*/{item}"),
    ])?;
    if left.is_empty() {
        return Ok(base);
    }
    let more = git.count([format!("{base}..{left}")])?;
    Ok(if more == 0 { base } else { left })
}

fn exists(git: Git<'_>, branch: &str) -> Result<bool> {
    let name = format!("refs/heads/{branch}");
    Ok(git.ref_commit(&name)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn failing_git_does_not_restart_left_work() {
        let (_folder, town) = town();
        assert!(beginning(&town, "nope", "polecat/nux/gt-abc12").is_err());
        assert_eq!(beginning(&town, "nope", "crew/max").unwrap(), "HEAD");
        let dir = town.root().join("nope");
        let ((), warnings) = warnings_of(|| relink(Git::at(&dir, town.around()), &dir));
        assert!(
            warnings[0].starts_with("cannot repair the worktree"),
            "{warnings:?}"
        );
    }
}
