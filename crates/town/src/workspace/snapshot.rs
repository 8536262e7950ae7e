//! A commit of what is not committed, made beside the branch: neither branch nor index nor
//! any file is touched by it.

use crate::files::Passing;
use crate::git::{Git, own_dir};
use crate::merge::committer;
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
    let last = git.run(["rev-parse", "--verify", "HEAD^{tree}"])?;
    Ok((tree != last).then_some(tree))
}

/// A commit of a tree that goes on from another, on no branch.
pub(crate) fn commit(
    town: &Town,
    dir: &Path,
    tree: &str,
    parent: &str,
    message: &str,
) -> Result<String> {
    let git = Git::at(dir, town.around()).to_the_end();
    let mut words = committer(git);
    words.extend(["commit-tree", tree, "-p", parent, "-m", message]);
    git.run(words)
}
