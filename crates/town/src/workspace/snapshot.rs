//! A commit of what is not committed, made beside the branch: neither branch nor index nor
//! any file is touched by it.

use crate::files::Passing;
use crate::git::committer;
use crate::git::{Git, own_dir};
use crate::{Result, Town};
use gt_core::Problem;
use std::path::Path;

/// A copy of a worktree's index, to do with as one likes.
pub(crate) fn copy_of_index(town: &Town, dir: &Path) -> Result<Passing> {
    let copy = Passing::new(&town.runtime_dir().join("tmp"), "index")?;
    let own = own_dir(dir).unwrap_or_else(|| dir.join(".git"));
    // One that is not there yet is an empty one.
    if let Err(error) = std::fs::copy(own.join("index"), &copy.0)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Problem::failed("the index cannot be read").caused_by(error));
    }
    Ok(copy)
}

/// The tree of a worktree as it stands, without what git ignores; `None` where it is the
/// last commit's. Of a submodule it has which commit is checked out, and no more.
pub(crate) fn tree(town: &Town, dir: &Path) -> Result<Option<String>> {
    let git = Git::at(dir, town.around()).to_the_end();
    let changes = git.run([
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=dirty",
    ])?;
    if changes.is_empty() {
        return Ok(None);
    }
    // git names a folder, even where all files are asked for, when it is a
    // repository of its own: a commit would only keep a pointer to it.
    let nested = changes
        .split('\0')
        .find(|entry| entry.starts_with("?? ") && entry.ends_with('/'));
    if let Some(entry) = nested {
        return Err(Problem::conflict(format!(
            "{} holds a repository of its own: {}",
            dir.display(),
            entry.trim_start_matches("?? ")
        ))
        .hint("move it away first; gt could not keep what is in it"));
    }
    let index = copy_of_index(town, dir)?;
    let aside = git.with_index(&index.0);
    aside.run(["add", "--all"])?;
    let tree = aside.run(["write-tree"])?;
    let last = last_tree(town, dir)?;
    Ok((tree != last).then_some(tree))
}

/// A commit of all that is not committed, on no branch; `None` where that is nothing. What
/// is staged and looks different by now is its second parent, as in a stash of git's.
pub(crate) fn of_changes(town: &Town, dir: &Path, message: &str) -> Result<Option<String>> {
    let now = tree(town, dir)?;
    let staged = staged(town, dir)?.filter(|staged| now.as_ref() != Some(staged));
    let (now, staged) = match (now, staged) {
        (None, None) => return Ok(None),
        // All that was changed is gone from the folder again.
        (None, staged) => (last_tree(town, dir)?, staged),
        (Some(now), staged) => (now, staged),
    };
    let staged = staged
        .map(|tree| commit(town, dir, &tree, &["HEAD"], "What was staged"))
        .transpose()?;
    let parents: Vec<&str> = std::iter::once("HEAD").chain(staged.as_deref()).collect();
    commit(town, dir, &now, &parents, message).map(Some)
}

/// The tree of what is staged, where it is not the last commit's. In a conflict there is none.
fn staged(town: &Town, dir: &Path) -> Result<Option<String>> {
    let index = copy_of_index(town, dir)?;
    let git = Git::at(dir, town.around()).to_the_end();
    let staged = git.with_index(&index.0).run(["write-tree"]).ok();
    let last = last_tree(town, dir)?;
    Ok(staged.filter(|staged| *staged != last))
}

fn last_tree(town: &Town, dir: &Path) -> Result<String> {
    let git = Git::at(dir, town.around()).to_the_end();
    git.run(["rev-parse", "--verify", "HEAD^{tree}"])
}

/// A commit of a tree that goes on from others, on no branch.
pub(crate) fn commit(
    town: &Town,
    dir: &Path,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String> {
    let git = Git::at(dir, town.around()).to_the_end();
    let mut words = committer(git);
    words.extend(["commit-tree", tree, "-m", message]);
    words.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    git.run(words)
}
