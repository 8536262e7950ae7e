//! Commits of uncommitted changes, made beside the branch: they change no branch, no index and no
//! file.

use crate::base::files::TemporaryFile;
use crate::base::git::committer;
use crate::base::git::{Git, own_dir};
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::Problem;
use std::path::Path;

/// Returns a copy of a worktree's index that the caller may change.
pub(crate) fn copy_of_index(town: &Town, dir: &Path) -> Result<TemporaryFile> {
    let copy = TemporaryFile::new(&town.runtime_dir().join("tmp"), "index")?;
    let own = own_dir(dir).unwrap_or_else(|| dir.join(".git"));
    // A missing index is an empty one.
    if let Err(error) = std::fs::copy(own.join("index"), &copy.0)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Problem::failed("the index cannot be read").caused_by(error));
    }
    Ok(copy)
}

/// Returns the tree of a worktree as it is, without ignored files; `None` if it equals the last
/// commit's. A submodule appears only as the commit that is checked out.
pub(crate) fn tree(town: &Town, dir: &Path) -> Result<Option<String>> {
    let git = Git::at(dir, town.around()).uncancellable();
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
    // Even with `--untracked-files=all`, git reports a folder when it is a nested repository: a
    // commit would only keep a pointer to it.
    let nested = changes
        .split('\0')
        .find(|entry| entry.starts_with("?? ") && entry.ends_with('/'));
    if let Some(entry) = nested {
        return Err(Problem::conflict(format!(
            "{} contains a separate repository: {}",
            dir.display(),
            entry.trim_start_matches("?? ")
        ))
        .hint("move it away first: gt cannot save its contents"));
    }
    let index = copy_of_index(town, dir)?;
    let aside = git.with_index(&index.0);
    aside.run(["add", "--all"])?;
    let tree = aside.run(["write-tree"])?;
    let last = last_tree(town, dir)?;
    Ok((tree != last).then_some(tree))
}

/// Creates a commit of all uncommitted changes, on no branch; returns `None` if there are none.
/// Staged content that differs from the files becomes its second parent, as in a git stash.
pub(crate) fn commit_changes(town: &Town, dir: &Path, message: &str) -> Result<Option<String>> {
    let now = tree(town, dir)?;
    let staged = staged(town, dir)?.filter(|staged| now.as_ref() != Some(staged));
    let (now, staged) = match (now, staged) {
        (None, None) => return Ok(None),
        // The files equal the last commit again; only staged changes are left.
        (None, staged) => (last_tree(town, dir)?, staged),
        (Some(now), staged) => (now, staged),
    };
    let staged = staged
        .map(|tree| commit(town, dir, &tree, &["HEAD"], "What was staged"))
        .transpose()?;
    let parents: Vec<&str> = std::iter::once("HEAD").chain(staged.as_deref()).collect();
    commit(town, dir, &now, &parents, message).map(Some)
}

/// Returns the tree of the staged changes; `None` if it equals the last commit's, or in a conflict.
fn staged(town: &Town, dir: &Path) -> Result<Option<String>> {
    let index = copy_of_index(town, dir)?;
    let git = Git::at(dir, town.around()).uncancellable();
    let staged = git.with_index(&index.0).run(["write-tree"]);
    let staged = staged.or_debug("the index has conflicts");
    let last = last_tree(town, dir)?;
    Ok(staged.filter(|staged| *staged != last))
}

fn last_tree(town: &Town, dir: &Path) -> Result<String> {
    let git = Git::at(dir, town.around()).uncancellable();
    git.run(["rev-parse", "--verify", "HEAD^{tree}"])
}

/// Creates a commit of a tree with these parents, on no branch.
pub(crate) fn commit(
    town: &Town,
    dir: &Path,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String> {
    let git = Git::at(dir, town.around()).uncancellable();
    let mut words = committer(git)?;
    words.extend(["commit-tree", tree, "-m", message]);
    words.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    git.run(words)
}
