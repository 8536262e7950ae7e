//! Takes merged work into the checkout of a person, only by a fast-forward.

use super::Base;
use super::remote::{is_checked_out, is_checkout};
use crate::base::git::Git;
use crate::base::settings::MergeInto;
use crate::repo::workspace::unfinished_operation;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::merge::list_some;
use std::path::{Path, PathBuf};

/// Result of [`pull`].
#[derive(Clone, Debug)]
pub struct Pulled {
    pub rig: String,
    pub checkout: PathBuf,
    pub branch: String,
    pub from: String,
    pub to: String,
    /// Number of new commits.
    pub commits: usize,
}

/// Fast-forwards the base branch of a checkout to the merged work. The checkout is the given one,
/// or the remote folder of the rig, or the checkout around the current folder.
pub fn pull(town: &Town, rig: &str, checkout: Option<&Path>) -> Result<Pulled> {
    let base = Base::of(town, rig)?;
    let checkout = find(town, &base, checkout)?;
    base.fetch()?;
    let tip = base.tip()?;
    let git = Git::at(&checkout, town.around());
    let branch = base.branch.clone();
    let name = format!("refs/heads/{branch}");
    let here = git.commit(&name)?.ok_or_else(|| {
        Problem::not_found(format!("{} has no branch {branch}", checkout.display()))
            .hint(format!("`git switch {branch}` there makes it"))
    })?;
    let pulled = |commits: usize| Pulled {
        rig: rig.to_owned(),
        checkout: checkout.clone(),
        branch: branch.clone(),
        from: here.clone(),
        to: if commits == 0 {
            here.clone()
        } else {
            tip.clone()
        },
        commits,
    };
    if git.commit(&tip)?.is_none() {
        // Fetches from the town's repository, without the network.
        let source = base.git_dir().to_string_lossy().into_owned();
        let name = base.name()?;
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        git.run([&fetch[..], &["--", &source, &name]].concat())?;
    }
    if git.contains(&here, &tip)? {
        return Ok(pulled(0));
    }
    if !git.contains(&tip, &here)? {
        return Err(diverged(&base, &checkout));
    }
    let count = git.count([format!("{here}..{tip}")])?;
    // A checkout may be on no branch.
    if git.find(["symbolic-ref", "--quiet", "HEAD"])?.as_ref() == Some(&name) {
        check_clean(git, &checkout, &branch)?;
        git.run(["merge", "--quiet", "--ff-only", &tip])
            .map_err(|problem| {
                Problem::conflict(format!("{} was not changed", checkout.display()))
                    .caused_by_problem(&problem)
            })?;
    } else if is_checked_out(town, &checkout, &branch) {
        return Err(Problem::conflict(format!(
            "{branch} is checked out in another worktree of {}",
            checkout.display()
        ))
        .hint(format!("`gt mq pull {rig} --checkout DIR` names that one")));
    } else {
        let words = ["update-ref", "-m", "gt mq pull", &name, &tip, &here];
        git.run(words)?;
    }
    Ok(pulled(count))
}

/// Returns the checkout to update.
fn find(town: &Town, base: &Base<'_>, given: Option<&Path>) -> Result<PathBuf> {
    let current = &town.around().current_dir;
    let top = |dir: &Path| {
        let git = Git::at(dir, town.around());
        git.run(["rev-parse", "--show-toplevel"]).map(PathBuf::from)
    };
    if let Some(dir) = given {
        let dir = current.join(dir);
        return top(&dir)
            .map_err(|_| Problem::not_found(format!("{} is not in a checkout", dir.display())));
    }
    if let Some(folder) = base.folder().filter(|folder| is_checkout(town, folder)) {
        return Ok(folder.to_owned());
    }
    // The current folder may be in no checkout.
    let around = top(current).ok().filter(|dir| {
        let remotes = Git::at(dir, town.around()).run(["remote", "--verbose"]);
        let url = base.git().run(["remote", "get-url", "origin"]);
        let has_url = |remotes: &str, url: &str| {
            let words = remotes.split_whitespace();
            words.into_iter().any(|word| word == url)
        };
        let is_of_rig = matches!((&remotes, &url), (Ok(remotes), Ok(url)) if has_url(remotes, url));
        is_of_rig && !dir.starts_with(town.root())
    });
    around.ok_or_else(|| {
        Problem::not_found(format!("there is no checkout of {} here", base.rig())).hint(format!(
            "run it in yours, or name it: `gt mq pull {} --checkout DIR`",
            base.rig()
        ))
    })
}

/// Refuses a checkout with changes or an unfinished operation, so that undoing the pull means
/// undoing only the fast-forward.
fn check_clean(git: Git<'_>, checkout: &Path, branch: &str) -> Result<()> {
    let dir = checkout.display();
    if let Some(what) = unfinished_operation(checkout) {
        return Err(Problem::conflict(format!("a {what} is under way in {dir}"))
            .hint("finish or abort it first"));
    }
    let words = ["status", "--porcelain", "-z", "--untracked-files=no"];
    let status = git.run(words)?;
    let changed: Vec<String> = status
        .split('\0')
        .filter_map(|entry| entry.get(3..).map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    Err(
        Problem::conflict(format!("{dir} has changes that are not committed"))
            .cause(list_some(&changed))
            .hint(format!(
                "commit them, or `git stash` and try again; {branch} was not changed"
            )),
    )
}

fn diverged(base: &Base<'_>, checkout: &Path) -> Problem {
    let branch = &base.branch;
    let how = match base.into() {
        MergeInto::Own => format!("`git merge gt/merged/{branch}`"),
        MergeInto::Origin => "`git pull`".to_owned(),
    };
    Problem::conflict(format!(
        "{branch} in {} has commits that the merged work lacks",
        checkout.display()
    ))
    .hint(format!("{how} there brings both together"))
    .hint(format!(
        "or let the queue merge them first: `gt mq run {}`",
        base.rig()
    ))
}
