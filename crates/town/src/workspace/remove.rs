//! Removing an agent's worktree without losing its work.
//!
//! git runs to its end here: a removal is often the answer to a Ctrl-C.

use super::branches::{branches, checked_out_elsewhere, root};
use super::condition::{
    Lock, half_done, is_broken, is_unfinished, is_usable, lock_of, put_aside_by_git,
};
use super::place::relink;
use super::{lock_repository, snapshot, submodules};
use crate::git::Git;
use crate::work::Work;
use crate::{Result, Town, files, rig};
use gt_core::{Identity, Problem};
use std::fs;
use std::path::{Path, PathBuf};

/// For `git rev-list`: all but what the remote has, or what was merged here.
const ELSEWHERE: [&str; 3] = ["--not", "--remotes", "--glob=refs/gt/merged"];

/// What would be lost with a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaved {
    pub changed_files: usize,
    pub commits: usize,
    /// The submodules that some of these are in.
    pub submodules: Vec<String>,
    /// The folder has files and is no worktree any more: nobody can say which of them are
    /// nowhere else.
    pub is_broken: bool,
    /// What was begun there and is not over: a merge, a rebase or the like.
    pub half_done: Option<&'static str>,
    /// Somebody has told git to keep the worktree, in these words.
    pub locked: Option<String>,
}

impl Unsaved {
    pub fn is_nothing(&self) -> bool {
        *self == Unsaved::default()
    }

    /// How much it is.
    pub fn words(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        let files = count(self.changed_files, "changed file");
        let commits = count(self.commits, "commit");
        let mut parts = Vec::new();
        if self.is_broken {
            parts.push("all files of a worktree that is broken".to_owned());
        }
        if self.changed_files > 0 {
            parts.push(files);
        }
        if self.commits > 0 {
            parts.push(commits);
        }
        if let Some(what) = self.half_done {
            parts.push(format!("a {what} that is half done"));
        }
        if self.locked.is_some() {
            parts.push("a worktree that is locked".to_owned());
        }
        parts.join(", ")
    }

    /// Why an agent is not removed without `force`.
    pub fn refusal(&self, identity: &Identity) -> Option<Problem> {
        if self.is_nothing() {
            return None;
        }
        let problem = Problem::conflict(format!(
            "{identity} has work that is nowhere else: {}",
            self.words()
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

    /// Says where it is, if that is not where one looks first.
    pub(crate) fn located(&self, problem: Problem) -> Problem {
        match self.submodules.as_slice() {
            [] => problem,
            names => problem.cause(format!("some of it is inside of {}", names.join(", "))),
        }
    }
}

/// Changes that are not committed, and commits that no remote branch has: of the
/// worktree as it stands and of the agent's branches, which may be elsewhere. A branch that
/// somebody else still wants stays, so what is on it is not lost.
pub fn unsaved(town: &Town, identity: &Identity, dir: &Path) -> Result<Unsaved> {
    let mut unsaved = Unsaved {
        is_broken: is_broken(town, dir),
        locked: match lock_of(dir) {
            Some(Lock::Somebody(reason)) => Some(reason),
            _ => None,
        },
        ..Unsaved::default()
    };
    if is_usable(town, dir) && !is_unfinished(dir) {
        unsaved.half_done = half_done(dir);
        let git = Git::at(dir, town.around()).to_the_end();
        let changes = git.run([
            "status",
            "--porcelain",
            "--untracked-files=all",
            // They are looked at below, each by itself.
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
        let mut args = vec!["rev-list", "--count"];
        args.extend(tips.iter().map(String::as_str));
        args.extend(ELSEWHERE);
        args.extend(kept.iter().map(String::as_str));
        let commits = Git::at(&repository, town.around()).to_the_end().run(args)?;
        unsaved.commits += commits.parse().unwrap_or(0);
    }
    Ok(unsaved)
}

/// The commits that an agent's work ends in: its branches, and what is checked out. And
/// those of branches that stay, because somebody else wants them.
fn tips(town: &Town, identity: &Identity, dir: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let staying = staying(town, identity, dir)?;
    let (mut tips, mut kept) = (Vec::new(), Vec::new());
    for (branch, commit) in branches(town, identity)? {
        match staying.contains(&branch) {
            true => kept.push(commit),
            false => tips.push(commit),
        }
    }
    tips.extend(put_aside_by_git(dir));
    if dir.join(".git").exists() {
        let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        tips.extend(Git::at(dir, town.around()).to_the_end().run(head).ok());
    }
    tips.sort();
    tips.dedup();
    Ok((tips, kept))
}

/// The branches of an agent that stay when it goes: somebody waits for them to be merged, or
/// has them checked out elsewhere.
pub fn staying(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    let elsewhere = checked_out_elsewhere(town, identity, dir)?;
    let mut staying = Vec::new();
    for (branch, _) in branches(town, identity)? {
        if elsewhere.contains(&branch) || is_waiting_to_merge(town, identity, &branch)? {
            staying.push(branch);
        }
    }
    Ok(staying)
}

/// What removing a worktree left behind on purpose.
#[derive(Clone, Debug, Default)]
pub struct Removed {
    /// The refs under which unsaved work was kept, and the folder of a broken worktree.
    pub saved: Vec<String>,
    /// The branches that stay, because somebody else still wants or has them.
    pub kept: Vec<String>,
}

/// Removes an agent's worktree and its branches. Work that is nowhere else is kept
/// under `refs/gt/saved/`, and without `force` it is not removed at all. A worktree that
/// is broken is linked again first; where that cannot be done, its folder is kept whole.
pub fn remove(town: &Town, identity: &Identity, dir: &Path, force: bool) -> Result<Removed> {
    let Some(rig) = identity.rig() else {
        return Err(Problem::usage(format!("{identity} has no worktree")));
    };
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around()).to_the_end();
    let mut removed = Removed::default();
    let found = unsaved(town, identity, dir)?;
    if !force && let Some(refusal) = found.refusal(identity) {
        return Err(refusal);
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
        removed.saved.extend(save_head(git, identity, dir)?);
        let place = put_aside(town, identity, dir)?;
        removed.saved.push(place.to_string_lossy().into_owned());
        forget(git, &target);
    } else if dir.join(".git").is_file() && !is_usable(town, dir) {
        // git was killed when it had made no more than the link.
        let link = dir.join(".git");
        fs::remove_file(&link).map_err(|error| files::cannot("remove", &link, &error))?;
        fs::remove_dir(dir).map_err(|error| files::cannot("remove", dir, &error))?;
        forget(git, &target);
    } else if dir.join(".git").exists() {
        let mut words = vec!["worktree", "remove", "--force"];
        if lock_of(dir).is_some() {
            // git has locked it itself, and was killed; or whoever forces it means that, too.
            words.push("--force");
        }
        words.extend(["--", &target]);
        git.run(words)?;
    } else if dir.exists() {
        fs::remove_dir(dir).map_err(|error| files::cannot("remove", dir, &error))?;
    }
    git.run(["worktree", "prune"])?;
    removed.kept = staying(town, identity, dir)?;
    for (branch, _) in branches(town, identity)? {
        if !removed.kept.contains(&branch) {
            git.run(["branch", "--quiet", "-D", "--", &branch])?;
        }
    }
    Ok(removed)
}

/// Lets git forget a worktree that is not there any more, also one that it has locked itself
/// and was killed: its name would never be free again. What it does not know it need not forget.
fn forget(git: Git<'_>, target: &str) {
    let _ = git.run(["worktree", "remove", "--force", "--force", "--", target]);
}

/// Keeps what git has noted as checked out in a worktree that cannot be read: a commit that
/// is on no branch would go with that note.
fn save_head(git: Git<'_>, identity: &Identity, dir: &Path) -> Result<Option<String>> {
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
    let stamp = jiff::Timestamp::now().as_millisecond();
    let name = format!("refs/gt/saved/{}/{stamp}-head", root(identity));
    // A commit that is not there cannot be kept.
    let saved = git.run(["update-ref", &name, head]).is_ok();
    Ok(saved.then_some(name))
}

/// Keeps a folder that git knows nothing of, whole and out of the way.
fn put_aside(town: &Town, identity: &Identity, dir: &Path) -> Result<PathBuf> {
    let stamp = jiff::Timestamp::now().as_millisecond();
    let folder = town.root().join(identity.rig().unwrap_or_default());
    let folder = folder.join(".saved");
    files::make_dir(&folder)?;
    let name = format!("{}-{stamp}", root(identity).replace('/', "-"));
    let place = folder.join(name);
    fs::rename(dir, &place).map_err(|error| files::cannot("move away", dir, &error))?;
    // Its link names what the next of this name will have: git would write there.
    let link = place.join(".git");
    if link.is_file() {
        let apart = place.join(".git.broken");
        fs::rename(&link, &apart).map_err(|error| files::cannot("rename", &link, &error))?;
    }
    Ok(place)
}

/// Keeps every tip, and what is not committed, ignored files aside, under refs of their own.
fn save(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    let stamp = jiff::Timestamp::now().as_millisecond();
    let name = |part: &str| format!("refs/gt/saved/{}/{stamp}-{part}", root(identity));
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let bare = Git::at(&repository, town.around()).to_the_end();
    let mut saved = Vec::new();
    let (tips, kept) = tips(town, identity, dir)?;
    for (number, tip) in tips.iter().enumerate() {
        let mut args = vec!["rev-list", "--count", tip];
        args.extend(ELSEWHERE);
        args.extend(kept.iter().map(String::as_str));
        let unpushed = bare.run(args)?;
        if unpushed != "0" {
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

/// Makes a worktree as its last commit is, files aside that git ignores. What is not
/// committed is lost, unless [`save_uncommitted`] has kept it.
pub fn clean(town: &Town, dir: &Path) -> Result<()> {
    let git = Git::at(dir, town.around()).to_the_end();
    // What is inside of submodules was not kept, and stays.
    git.run([
        "-c",
        "submodule.recurse=false",
        "reset",
        "--quiet",
        "--hard",
    ])?;
    git.run(["clean", "--quiet", "-fd"]).map(drop)
}

/// Keeps what is not committed under a ref of its own, and leaves it where it is.
pub fn save_uncommitted(town: &Town, identity: &Identity, dir: &Path) -> Result<Option<String>> {
    let stamp = jiff::Timestamp::now().as_millisecond();
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
    let Some(commit) = snapshot::of_changes(town, dir, &message)? else {
        return Ok(None);
    };
    let git = Git::at(dir, town.around()).to_the_end();
    git.run(["update-ref", name, &commit])?;
    Ok(Some(name.to_owned()))
}

/// Whether a branch of this agent waits to be merged, so that it must stay when the agent goes.
fn is_waiting_to_merge(town: &Town, identity: &Identity, branch: &str) -> Result<bool> {
    match identity.rig() {
        Some(rig) => Work::of(town).is_waiting_to_merge(rig, branch),
        None => Ok(false),
    }
}
