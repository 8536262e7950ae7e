//! The commit that a pause makes of uncommitted changes, and how it is undone.
//!
//! The commit is created without moving the branch and recorded under `refs/gt/wip/<branch>`, which
//! outlives the container. Then the branch moves to it, and the index last. A killed process
//! therefore leaves either the unchanged work or a commit that is recorded as a pause. The staged
//! changes are saved as well, and are staged again.

use super::site::TaskSite;
use crate::Result;
use crate::base::fault;
use crate::base::git::Git;
use crate::base::or_log::OrLog;
use crate::repo::workspace::{pause_commit, snapshot, submodules, unfinished_operation};
use gt_core::Problem;

/// Result of undoing the commit of a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// There was no such commit.
    Nothing,
    /// The commit was undone; its changes are uncommitted again.
    Commit(String),
    /// The commit stays, for this reason.
    Kept(String, &'static str),
}

/// Returns the ref of the tree that was staged before the pause.
fn staged(branch: &str) -> String {
    format!("refs/gt/wip-index/{branch}")
}

fn resolve(site: &TaskSite<'_>, name: &str) -> Option<String> {
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", name];
    // git answers in this way for a name that does not exist.
    site.git().run(words).or_debug(name)
}

/// Returns the commit of a pause, if it is the tip of the branch.
pub(super) fn at_tip(site: &TaskSite<'_>) -> Option<String> {
    let wip = resolve(site, &pause_commit::recorded_at(&site.branch()?))?;
    let head = site
        .head()
        .or_warn("the commit of the pause is not recognised")?;
    (head == wip).then_some(wip)
}

/// Refuses operations that would build on the commit of a pause: it could not be undone afterwards.
pub(super) fn refuse(site: &TaskSite<'_>) -> Result<()> {
    if at_tip(site).is_none() {
        return Ok(());
    }
    let id = &site.id;
    Err(Problem::conflict(format!(
        "{id} is paused: the last commit of its branch holds uncommitted changes"
    ))
    .hint(format!(
        "`gt task resume {id}` undoes it; `--keep-wip` keeps it as an ordinary commit"
    )))
}

/// Refuses operations that would publish the commit of a pause, wherever it is in the branch.
pub(super) fn refuse_among(site: &TaskSite<'_>, base: &str) -> Result<()> {
    refuse(site)?;
    let Some(branch) = site.branch() else {
        return Ok(());
    };
    match pause_commit::find(site.git(), &branch, &site.head()?, base)? {
        Some(wip) => Err(pause_commit::is_in_branch(&site.id, &site.dir, &wip)),
        None => Ok(()),
    }
}

/// Commits everything that git does not ignore. Returns `None` if there is nothing to commit, or,
/// with a warning, if a git operation is unfinished, because a commit would end it.
pub(super) fn commit(site: &TaskSite<'_>, warnings: &mut Vec<String>) -> Result<Option<String>> {
    if let Some(what) = unfinished_operation(&site.dir) {
        warnings.push(format!("a {what} is under way: nothing was committed"));
        return Ok(None);
    }
    let Some(branch) = site.branch() else {
        warnings.push("it is on no branch: nothing was committed".to_owned());
        return Ok(None);
    };
    let git = site.git().uncancellable();
    let head = site.head()?;
    let before = at_tip(site);
    for submodule in submodules::of(site.town, &site.dir)? {
        if submodule.changed_files(site.town)? > 0 {
            warnings.push(format!(
                "changes inside {} were not committed: it is a separate repository",
                submodule.name
            ));
        }
    }
    let Some(tree) = snapshot::tree(site.town, &site.dir)? else {
        return finish(site, before);
    };
    // A second pause replaces the commit of the first, so that one commit contains both.
    let parent = match &before {
        Some(wip) => git.run(["rev-parse", "--verify", &format!("{wip}^")])?,
        None => head.clone(),
    };
    let wip = snapshot::commit(
        site.town,
        &site.dir,
        &tree,
        &[&parent],
        pause_commit::MESSAGE,
    )?;
    if before.is_none() {
        let index = git.run(["write-tree"])?;
        git.run(["update-ref", &staged(&branch), &index])?;
    }
    git.run(["update-ref", &pause_commit::recorded_at(&branch), &wip])?;
    fault::point(site.town, "pause.noted");
    let advance = [
        "update-ref",
        "-m",
        pause_commit::MESSAGE,
        "HEAD",
        &wip,
        &head,
    ];
    git.run(advance)?;
    fault::point(site.town, "pause.committed");
    stage(git, &wip)?;
    Ok(Some(wip))
}

/// Completes a pause that was killed before it staged its commit; there are no changes since.
fn finish(site: &TaskSite<'_>, wip: Option<String>) -> Result<Option<String>> {
    let git = site.git().uncancellable();
    match wip {
        Some(wip) if !is_staged(git, &wip)? => {
            stage(git, &wip)?;
            Ok(Some(wip))
        }
        _ => Ok(None),
    }
}

/// Returns whether the index equals a tree or the tree of a commit.
fn is_staged(git: Git<'_>, tree: &str) -> Result<bool> {
    git.says([
        "diff",
        "--cached",
        "--quiet",
        "--no-ext-diff",
        "--ignore-submodules=none",
        tree,
        "--",
    ])
}

/// Stages a tree or the tree of a commit, without touching a file.
fn stage(git: Git<'_>, tree: &str) -> Result<()> {
    git.run(["read-tree", "-i", "-m", tree])?;
    // Refreshes only timestamps; the exit code reports changes and is ignored.
    let _ = git.run(["update-index", "-q", "--refresh"]);
    Ok(())
}

/// Undoes the commit of a pause, if it is the tip of the branch and was not pushed.
pub(super) fn undo(site: &TaskSite<'_>) -> Result<Undone> {
    let branch = site.branch().unwrap_or_default();
    let Some(wip) = resolve(site, &pause_commit::recorded_at(&branch)) else {
        return Ok(Undone::Nothing);
    };
    let git = site.git().uncancellable();
    let head = site.head()?;
    let parent = git.run(["rev-parse", "--verify", &format!("{wip}^")])?;
    if head == parent {
        // The pause was killed before the branch moved, or a resume was killed after it.
        restage(site, &branch, &wip, &parent)?;
        forget(site)?;
        return Ok(Undone::Nothing);
    }
    if head != wip && pause_commit::find(git, &branch, &head, &site.base()?.tip()?)?.is_none() {
        // The commit was removed from the branch.
        forget(site)?;
        return Ok(Undone::Nothing);
    }
    let kept = if head != wip {
        Some("the branch has newer commits")
    } else if unfinished_operation(&site.dir).is_some() {
        Some("a git operation is under way in the worktree")
    } else if git.count([&wip, "--not", "--remotes"])? == 0 {
        Some("it was pushed")
    } else {
        None
    };
    // The record stays, because the commit was not approved for publication.
    if let Some(reason) = kept {
        return Ok(Undone::Kept(wip, reason));
    }
    let back = ["update-ref", "-m", "gt: resumed", "HEAD", &parent, &wip];
    git.run(back)?;
    fault::point(site.town, "resume.undone");
    restage(site, &branch, &wip, &parent)?;
    forget(site)?;
    Ok(Undone::Commit(wip))
}

/// Stages again what was staged before the pause, unless the index has changed since.
fn restage(site: &TaskSite<'_>, branch: &str, wip: &str, parent: &str) -> Result<()> {
    let git = site.git().uncancellable();
    if !is_staged(git, wip)? {
        return Ok(());
    }
    let before = resolve(site, &staged(branch));
    stage(git, before.as_deref().unwrap_or(parent))
}

/// Accepts the commit as a normal one by removing its record. Returns it, if there is one.
pub(super) fn accept(site: &TaskSite<'_>) -> Result<Option<String>> {
    let branch = site.branch().unwrap_or_default();
    let wip = resolve(site, &pause_commit::recorded_at(&branch));
    let is_there = match &wip {
        Some(wip) => site.git().contains("HEAD", wip)?,
        None => false,
    };
    forget(site)?;
    Ok(wip.filter(|_| is_there))
}

/// Returns whether a pause is recorded for the branch.
pub(super) fn is_noted(site: &TaskSite<'_>) -> bool {
    site.branch()
        .is_some_and(|branch| resolve(site, &pause_commit::recorded_at(&branch)).is_some())
}

/// Removes the record of a pause.
pub(super) fn forget(site: &TaskSite<'_>) -> Result<()> {
    match site.branch() {
        Some(branch) => forget_branch(site.git().uncancellable(), &branch),
        None => Ok(()),
    }
}

/// Removes the record of a pause for a branch that may be gone.
pub(super) fn forget_branch(git: Git<'_>, branch: &str) -> Result<()> {
    for name in [pause_commit::recorded_at(branch), staged(branch)] {
        git.run(["update-ref", "-d", &name])?;
    }
    Ok(())
}
