//! The commit that a pause makes of uncommitted changes: how it is recorded and recognized.

use crate::Result;
use crate::base::git::Git;
use gt_core::Problem;
use gt_core::merge::short;
use std::path::Path;

pub(crate) const MESSAGE: &str = "wip: paused session";

/// Returns the ref that records the commit of a pause. It outlives the container.
pub(crate) fn recorded_at(branch: &str) -> String {
    format!("refs/gt/wip/{branch}")
}

/// Returns the commit of a pause if it is in the branch and not in the base. While it is recorded,
/// it is also recognized by its message, because a rebase changes its id.
pub(crate) fn find(git: Git<'_>, branch: &str, head: &str, base: &str) -> Result<Option<String>> {
    let name = recorded_at(branch);
    let Some(wip) = git.commit(&name)? else {
        return Ok(None);
    };
    let without = format!("^{base}");
    let words = ["log", "--no-show-signature", "--format=%H %s"];
    let log = git.run([&words[..], &[head, &without, "--"]].concat())?;
    let mut commits = log.lines().filter_map(|line| line.split_once(' '));
    let found = commits.find(|(commit, words)| *commit == wip || *words == MESSAGE);
    Ok(found.map(|(commit, _)| commit.to_owned()))
}

/// Returns the error for a branch that contains the commit of a pause.
pub(crate) fn is_in_branch(id: impl std::fmt::Display, dir: &Path, wip: &str) -> Problem {
    let wip = short(wip);
    Problem::conflict(format!(
        "the branch of {id} has the commit of a pause among its own: {wip}"
    ))
    .hint(format!(
        "`git reset --soft {wip}^` in {}, then commit what belongs to the work",
        dir.display()
    ))
    .hint(format!(
        "`gt task resume {id} --keep-wip` keeps it as an ordinary commit"
    ))
}
