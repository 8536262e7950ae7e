//! Removes an agent's worktree without losing its work.
//!
//! The git commands here ignore Ctrl-C, because a removal is often the rollback after a Ctrl-C.

use super::branches::{branches, checked_out_elsewhere, root};
use super::checkout::relink;
use super::condition::{
    Lock, autostashed, is_broken, is_unfinished, is_usable, lock_of, unfinished_operation,
};
use super::{lock_repository, snapshot, submodules};
use crate::base::clock::Clock;
use crate::base::error_enum::error_enum;
use crate::base::files;
use crate::base::git::Git;
use crate::base::or_log::OrLog;
use crate::records::items::Work;
use crate::repo::rig;
use crate::{Result, Town};
use gt_core::{Identity, Problem};
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments of `git rev-list` that exclude commits which the remote has, or which the merge queue
/// has merged locally.
const ELSEWHERE: [&str; 3] = ["--not", "--remotes", "--glob=refs/gt/merged"];

/// Work that would be lost with a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaved {
    pub changed_files: usize,
    pub commits: usize,
    /// The submodules that contain part of it.
    pub submodules: Vec<String>,
    /// The folder has files and is no longer a worktree: it is unknown which of them exist
    /// elsewhere.
    pub is_broken: bool,
    /// An unfinished operation: a merge, a rebase or the like.
    pub half_done: Option<&'static str>,
    /// The reason of a worktree lock that git did not set itself; may be empty.
    pub locked: Option<String>,
}

impl Unsaved {
    pub fn is_nothing(&self) -> bool {
        *self == Unsaved::default()
    }

    /// Returns the amount of work as text.
    pub fn describe(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        let files = count(self.changed_files, "changed file");
        let commits = count(self.commits, "commit");
        let mut parts = Vec::new();
        if self.is_broken {
            parts.push("all files of a broken worktree".to_owned());
        }
        if self.changed_files > 0 {
            parts.push(files);
        }
        if self.commits > 0 {
            parts.push(commits);
        }
        if let Some(what) = self.half_done {
            parts.push(format!("an unfinished {what}"));
        }
        if self.locked.is_some() {
            parts.push("a locked worktree".to_owned());
        }
        parts.join(", ")
    }

    /// Returns the error for a removal without `force`; `None` if nothing would be lost.
    pub fn refusal(&self, identity: &Identity) -> Option<Problem> {
        if self.is_nothing() {
            return None;
        }
        let problem = Problem::conflict(format!(
            "{identity} has work that exists nowhere else: {}",
            self.describe()
        ));
        let problem = self.located(problem);
        if let Some(reason) = &self.locked {
            let problem = match reason.as_str() {
                "" => problem,
                reason => problem.cause(format!("it was locked because of {reason:?}")),
            };
            return Some(problem.hint("`git worktree unlock` in it, or `--force`"));
        }
        Some(match self.is_broken {
            true => problem
                .hint("save what you need of its folder, or `--force`: the folder is then kept")
                .hint(format!(
                    "`gt start {identity}` repairs it, where git still knows of it"
                )),
            false => problem
                .hint("commit and push it, or `--force`: it is then kept under refs/gt/saved/"),
        })
    }

    /// Adds the submodules that contain the work, if any.
    pub(crate) fn located(&self, problem: Problem) -> Problem {
        match self.submodules.as_slice() {
            [] => problem,
            names => problem.cause(format!("part of it is inside {}", names.join(", "))),
        }
    }
}

/// Counts the uncommitted changes of the worktree, and the commits of the worktree and of the
/// agent's branches that are on no remote branch. Commits of branches that stay after the removal
/// ([`kept_branches`]) do not count.
pub fn unsaved(town: &Town, identity: &Identity, dir: &Path) -> Result<Unsaved> {
    let mut unsaved = Unsaved {
        is_broken: is_broken(town, dir),
        locked: match lock_of(dir) {
            Some(Lock::Other(reason)) => Some(reason),
            _ => None,
        },
        ..Unsaved::default()
    };
    if is_usable(town, dir) && !is_unfinished(dir) {
        unsaved.half_done = unfinished_operation(dir);
        let git = Git::at(dir, town.around()).uncancellable();
        let changes = git.run([
            "status",
            "--porcelain",
            "--untracked-files=all",
            // Submodules are inspected one by one below.
            "--ignore-submodules=dirty",
        ])?;
        unsaved.changed_files = changes.lines().count();
        for submodule in submodules::of(town, dir)? {
            let files = submodule.changed_files(town)?;
            let commits = submodule.commits(town)?;
            if files + commits > 0 {
                unsaved.changed_files += files;
                unsaved.commits += commits;
                unsaved.submodules.push(submodule.name);
            }
        }
    }
    let (tips, kept) = tips(town, identity, dir)?;
    if let (Some(rig), false) = (identity.rig(), tips.is_empty()) {
        let repository = rig::repository(town, rig);
        let mut args: Vec<&str> = tips.iter().map(String::as_str).collect();
        args.extend(ELSEWHERE);
        args.extend(kept.iter().map(String::as_str));
        let git = Git::at(&repository, town.around()).uncancellable();
        unsaved.commits += git.count(args)?;
    }
    Ok(unsaved)
}

/// Returns the tip commits of an agent's work: of its branches and of its checkout. The second list
/// has the tips of branches that stay ([`kept_branches`]).
fn tips(town: &Town, identity: &Identity, dir: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let staying = kept_branches(town, identity, dir)?;
    let (mut tips, mut kept) = (Vec::new(), Vec::new());
    for (branch, commit) in branches(town, identity)? {
        match staying.contains(&branch) {
            true => kept.push(commit),
            false => tips.push(commit),
        }
    }
    tips.extend(autostashed(dir));
    if dir.join(".git").exists() {
        let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        // The HEAD of a broken worktree cannot be read, and a branch without commits has none.
        let head = Git::at(dir, town.around()).uncancellable().ask(head);
        let head = head.or_warn(format_args!("the checkout of {identity} cannot be read"));
        let head = head.filter(|(is_there, _)| *is_there);
        tips.extend(head.map(|(_, commit)| commit.trim_end().to_owned()));
    }
    tips.sort();
    tips.dedup();
    Ok((tips, kept))
}

/// Returns the branches of an agent that stay when it is removed: they wait to be merged, or are
/// checked out in another worktree.
pub fn kept_branches(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    let elsewhere = checked_out_elsewhere(town, identity, dir)?;
    let mut staying = Vec::new();
    for (branch, _) in branches(town, identity)? {
        if elsewhere.contains(&branch) || is_waiting_to_merge(town, identity, &branch)? {
            staying.push(branch);
        }
    }
    Ok(staying)
}

/// A worktree that was not removed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RemovalError {
    /// It has work that exists nowhere else. Nothing was changed.
    #[error(transparent)]
    Unsaved(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(RemovalError: Unsaved, Other);

/// Refs, folders and branches that a removal kept.
#[derive(Clone, Debug, Default)]
pub struct RemovalResult {
    /// The refs under which unsaved work was kept, and the folder of a broken worktree.
    pub saved: Vec<String>,
    /// The branches that stay because they are still needed or checked out elsewhere.
    pub kept: Vec<String>,
}

/// Removes an agent's worktree and its branches. With `force`, work that exists nowhere else is
/// saved under `refs/gt/saved/`; without it, such work makes the removal fail. The links of a
/// broken worktree are repaired first; if that fails, its folder is kept whole.
pub fn remove(
    town: &Town,
    identity: &Identity,
    dir: &Path,
    force: bool,
) -> Result<RemovalResult, RemovalError> {
    let Some(rig) = identity.rig() else {
        return Err(Problem::usage(format!("{identity} has no worktree")).into());
    };
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around()).uncancellable();
    let mut removed = RemovalResult::default();
    let found = unsaved(town, identity, dir)?;
    if !force && let Some(refusal) = found.refusal(identity) {
        return Err(RemovalError::Unsaved(refusal));
    }
    if found.is_broken {
        let _lock = lock_repository(town, rig)?;
        relink(git, dir);
    }
    if !found.is_nothing() {
        removed.saved = save(town, identity, dir)?;
    }
    let _lock = lock_repository(town, rig)?;
    let target = dir.to_string_lossy().into_owned();
    if is_broken(town, dir) {
        removed
            .saved
            .extend(save_head(git, identity, dir, town.clock())?);
        let place = put_aside(town, identity, dir)?;
        removed.saved.push(place.to_string_lossy().into_owned());
        forget(git, &target);
    } else if dir.join(".git").is_file() && !is_usable(town, dir) {
        // git was killed after it had created only the link.
        let link = dir.join(".git");
        fs::remove_file(&link).map_err(|error| files::io_problem("remove", &link, &error))?;
        fs::remove_dir(dir).map_err(|error| files::io_problem("remove", dir, &error))?;
        forget(git, &target);
    } else if dir.join(".git").exists() {
        let mut words = vec!["worktree", "remove", "--force"];
        if lock_of(dir).is_some() {
            // A second `--force` removes a locked worktree. git was killed while it held the lock,
            // or the caller forces the removal.
            words.push("--force");
        }
        words.extend(["--", &target]);
        git.run(words)?;
    } else if dir.exists() {
        fs::remove_dir(dir).map_err(|error| files::io_problem("remove", dir, &error))?;
    }
    git.run(["worktree", "prune"])?;
    removed.kept = kept_branches(town, identity, dir)?;
    for (branch, _) in branches(town, identity)? {
        if !removed.kept.contains(&branch) {
            git.run(["branch", "--quiet", "-D", "--", &branch])?;
        }
    }
    Ok(removed)
}

/// Removes git's entry of a worktree whose folder is gone, even if the entry is still locked
/// because git was killed: otherwise the name stays taken.
fn forget(git: Git<'_>, target: &str) {
    // git usually has no such entry.
    let removed = git.run(["worktree", "remove", "--force", "--force", "--", target]);
    removed.or_debug("no entry to remove");
}

/// Saves the commit that git's entry of an unreadable worktree records as its HEAD: if it is on no
/// branch, it would be lost with the entry.
fn save_head(
    git: Git<'_>,
    identity: &Identity,
    dir: &Path,
    clock: &Clock,
) -> Result<Option<String>> {
    let known = git.run(["worktree", "list", "--porcelain", "-z"])?;
    let is_it = |block: &&str| {
        let path = block
            .split('\0')
            .find_map(|line| line.strip_prefix("worktree "));
        path.is_some_and(|path| files::is_same(Path::new(path), dir))
    };
    let block = known.split("\0\0").find(is_it);
    let head = block.and_then(|block| {
        block
            .split('\0')
            .find_map(|line| line.strip_prefix("HEAD "))
    });
    let Some(head) = head.filter(|head| head.chars().any(|digit| digit != '0')) else {
        return Ok(None);
    };
    let stamp = clock.now().as_millisecond();
    let name = format!("refs/gt/saved/{}/{stamp}-head", root(identity));
    // A missing commit cannot be saved.
    let saved = git.run(["update-ref", &name, head]).is_ok();
    Ok(saved.then_some(name))
}

/// Moves the folder of a broken worktree, with all its files, to `<rig>/.saved`.
fn put_aside(town: &Town, identity: &Identity, dir: &Path) -> Result<PathBuf> {
    let stamp = town.clock().now().as_millisecond();
    let folder = town.root().join(identity.rig().unwrap_or_default());
    let folder = folder.join(".saved");
    files::make_dir(&folder)?;
    let name = format!("{}-{stamp}", root(identity).replace('/', "-"));
    let place = folder.join(name);
    fs::rename(dir, &place).map_err(|error| files::io_problem("move away", dir, &error))?;
    // Its `.git` link points to the metadata folder that the next worktree of this name will use;
    // git commands in the moved folder would write there.
    let link = place.join(".git");
    if link.is_file() {
        let apart = place.join(".git.broken");
        fs::rename(&link, &apart).map_err(|error| files::io_problem("rename", &link, &error))?;
    }
    Ok(place)
}

/// Saves every tip and the uncommitted changes, except ignored files, each under its own ref.
fn save(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    let stamp = town.clock().now().as_millisecond();
    let name = |part: &str| format!("refs/gt/saved/{}/{stamp}-{part}", root(identity));
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let bare = Git::at(&repository, town.around()).uncancellable();
    let mut saved = Vec::new();
    let (tips, kept) = tips(town, identity, dir)?;
    for (number, tip) in tips.iter().enumerate() {
        let mut args = vec![tip.as_str()];
        args.extend(ELSEWHERE);
        args.extend(kept.iter().map(String::as_str));
        if bare.count(args)? > 0 {
            let name = name(&format!("tip{number}"));
            bare.run(["update-ref", &name, tip])?;
            saved.push(name);
        }
    }
    if dir.join(".git").exists() && is_usable(town, dir) {
        saved.extend(save_changes(town, identity, dir, &name("changes"))?);
        let _lock = lock_repository(town, identity.rig().unwrap_or_default())?;
        for (number, submodule) in submodules::of(town, dir)?.iter().enumerate() {
            let names = name(&format!("submodule{number}"));
            let whose = identity.to_string();
            saved.extend(submodule.save(town, &repository, &names, &whose)?);
        }
    }
    Ok(saved)
}

/// Resets a worktree to its last commit, except ignored files. Uncommitted changes are lost unless
/// [`save_uncommitted`] has saved them.
pub fn clean(town: &Town, dir: &Path) -> Result<()> {
    let git = Git::at(dir, town.around()).uncancellable();
    // Changes inside submodules were not saved, so they stay.
    git.run([
        "-c",
        "submodule.recurse=false",
        "reset",
        "--quiet",
        "--hard",
    ])?;
    git.run(["clean", "--quiet", "-fd"]).map(drop)
}

/// Saves uncommitted changes under a new ref, and leaves them in place.
pub fn save_uncommitted(town: &Town, identity: &Identity, dir: &Path) -> Result<Option<String>> {
    let stamp = town.clock().now().as_millisecond();
    let name = format!("refs/gt/saved/{}/{stamp}-changes", root(identity));
    save_changes(town, identity, dir, &name)
}

fn save_changes(
    town: &Town,
    identity: &Identity,
    dir: &Path,
    name: &str,
) -> Result<Option<String>> {
    let message = format!("Work of {identity} that it had not committed");
    let Some(commit) = snapshot::commit_changes(town, dir, &message)? else {
        return Ok(None);
    };
    let git = Git::at(dir, town.around()).uncancellable();
    git.run(["update-ref", name, &commit])?;
    Ok(Some(name.to_owned()))
}

/// Returns whether a branch of this agent waits to be merged, and so must stay when the agent is
/// removed.
fn is_waiting_to_merge(town: &Town, identity: &Identity, branch: &str) -> Result<bool> {
    match identity.rig() {
        Some(rig) => Work::of(town).is_waiting_to_merge(rig, branch),
        None => Ok(false),
    }
}
