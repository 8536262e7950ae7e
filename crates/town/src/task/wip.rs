//! What a pause commits, so that it is not lost, and how that is undone.
//!
//! The commit is made beside the branch first and noted under `refs/gt/wip/<branch>`, which
//! outlives the container; only then the branch moves to it. So whoever is killed leaves
//! either the work as it was or a commit that is known for what it is. What was staged
//! before is kept as well, and is staged again.

use super::branch::half_done;
use super::site::Site;
use crate::git::Git;
use crate::merge::committer;
use crate::{Result, fault};
use gt_core::Problem;

const MESSAGE: &str = "wip: paused session";

/// Nothing of the user's own runs here.
const QUIET: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// What became of the commit of a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// There is none.
    Nothing,
    /// What was in it is not committed again.
    Commit(String),
    /// It stays, for this reason.
    Kept(String, &'static str),
}

fn noted(branch: &str) -> String {
    format!("refs/gt/wip/{branch}")
}

/// What was staged before.
fn staged(branch: &str) -> String {
    format!("refs/gt/wip-index/{branch}")
}

fn resolve(site: &Site<'_>, name: &str) -> Option<String> {
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", name];
    site.git().run(words).ok()
}

/// The commit of a pause, if the branch still ends in it.
pub(super) fn at_tip(site: &Site<'_>) -> Option<String> {
    let wip = resolve(site, &noted(&site.branch()?))?;
    (site.head().ok()? == wip).then_some(wip)
}

/// Refuses what would go on from the commit of a pause: it could not be undone then.
pub(super) fn refuse(site: &Site<'_>) -> Result<()> {
    if at_tip(site).is_none() {
        return Ok(());
    }
    let id = &site.id;
    Err(Problem::conflict(format!(
        "{id} is paused: its branch ends in a commit of what was not committed"
    ))
    .hint(format!(
        "`gt task resume {id}` undoes it; with `--keep-wip` it is one like any other"
    )))
}

/// Commits all that git does not ignore. `None` where there is nothing, or where something
/// is half done, which a commit would end; the warning says so.
pub(super) fn commit(site: &Site<'_>, warnings: &mut Vec<String>) -> Result<Option<String>> {
    if let Some(what) = half_done(&site.dir) {
        warnings.push(format!("a {what} is under way: nothing was committed"));
        return Ok(None);
    }
    let Some(branch) = site.branch() else {
        warnings.push("it is on no branch: nothing was committed".to_owned());
        return Ok(None);
    };
    let changed = site.changed()?;
    if changed.is_empty() {
        return Ok(None);
    }
    if let Some(nested) = changed.iter().find(|name| name.ends_with('/')) {
        return Err(Problem::conflict(format!(
            "{nested} is a repository of its own, which a commit could not hold"
        )));
    }
    let git = site.git().to_the_end();
    let head = site.head()?;
    let before = at_tip(site);
    // A pause after a pause: one commit has both.
    let parent = match &before {
        Some(wip) => git.run(["rev-parse", "--verify", &format!("{wip}^")])?,
        None => head.clone(),
    };
    let index = git.run(["write-tree"])?;
    git.run(["add", "--all"])?;
    let tree = git.run(["write-tree"])?;
    let mut words = committer(git);
    words.extend(["commit-tree", &tree, "-p", &parent, "-m", MESSAGE]);
    let wip = git.run(words)?;
    if before.is_none() {
        git.run(["update-ref", &staged(&branch), &index])?;
    }
    git.run(["update-ref", &noted(&branch), &wip])?;
    fault::point(site.town, "pause.noted");
    let advance = ["update-ref", "-m", MESSAGE, "HEAD", &wip, &head];
    git.run([&QUIET[..], &advance].concat())?;
    Ok(Some(wip))
}

/// Undoes that commit, if the branch still ends in it and nobody else has it.
pub(super) fn undo(site: &Site<'_>) -> Result<Undone> {
    let branch = site.branch().unwrap_or_default();
    let Some(wip) = resolve(site, &noted(&branch)) else {
        return Ok(Undone::Nothing);
    };
    let git = site.git().to_the_end();
    let kept = if site.head()? != wip {
        Some("the branch has gone on from it")
    } else if half_done(&site.dir).is_some() {
        Some("something is half done in the worktree")
    } else if git.run(["rev-list", "--count", &wip, "--not", "--remotes"])? == "0" {
        Some("it was pushed")
    } else {
        None
    };
    if let Some(reason) = kept {
        forget(site)?;
        return Ok(Undone::Kept(wip, reason));
    }
    let parent = git.run(["rev-parse", "--verify", &format!("{wip}^")])?;
    // Who has staged something since knows better what is to be staged.
    let is_as_left = git.says(["diff", "--cached", "--quiet", "--no-ext-diff"]);
    let back = ["update-ref", "-m", "gt: resumed", "HEAD", &parent, &wip];
    git.run([&QUIET[..], &back].concat())?;
    if is_as_left {
        let index = resolve(site, &staged(&branch)).unwrap_or(parent);
        git.run(["read-tree", &index])?;
        // Only times of files; it says by its exit code that there are changes.
        let _ = git.run(["update-index", "-q", "--refresh"]);
    }
    forget(site)?;
    Ok(Undone::Commit(wip))
}

/// From here on the commit is one like any other.
pub(super) fn forget(site: &Site<'_>) -> Result<()> {
    match site.branch() {
        Some(branch) => forget_branch(site.git().to_the_end(), &branch),
        None => Ok(()),
    }
}

/// The same for a branch that may be gone.
pub(super) fn forget_branch(git: Git<'_>, branch: &str) -> Result<()> {
    for name in [noted(branch), staged(branch)] {
        git.run(["update-ref", "-d", &name])?;
    }
    Ok(())
}
