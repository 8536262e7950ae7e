//! The folder an agent works in: a worktree of its rig, or a plain folder.
//!
//! Which branches are an agent's is in `workspace/branches.rs`, how its worktree is put on
//! one in `workspace/place.rs`, and how it goes without losing work in
//! `workspace/remove.rs`.

mod branches;
mod place;
mod remove;

pub use branches::{branch, branches, current_branch, is_branch_of, work_branch};
pub use place::{Placed, is_settled, place, take_back};
pub use remove::{Removed, Unsaved, is_unfinished, remove, unsaved};

use crate::git::Git;
use crate::lock::FileLock;
use crate::{Result, Town, files, rig};
use gt_core::role::{Role, RoleConfig};
use gt_core::{Identity, Problem};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a fetch or another worktree of the same rig may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// A start does not wait longer than this for a remote.
const FETCH_LIMIT: Duration = Duration::from_secs(20);

/// The folder of an agent, by its role's pattern.
pub fn path(town: &Town, identity: &Identity, role: &RoleConfig) -> Result<PathBuf> {
    if identity.role() == Role::Agent
        && let Some(dir) =
            crate::directory::agent_file(town, identity)?.and_then(|file| file.work_dir)
    {
        return Ok(dir);
    }
    let template = &role.session.work_dir;
    let known = ["{town}", "{rig}", "{role}", "{name}"];
    let rest = known
        .iter()
        .fold(template.clone(), |text, word| text.replace(word, ""));
    if rest.contains(['{', '}']) {
        return Err(Problem::usage(format!(
            "the work_dir {template:?} of the role {} holds a word that means nothing",
            identity.role()
        ))
        .hint("{town}, {rig}, {role} and {name} are filled in"));
    }
    // The town last: its path may hold anything, braces included.
    let text = template
        .replace("{rig}", identity.rig().unwrap_or_default())
        .replace("{role}", identity.role().word())
        .replace("{name}", identity.name().unwrap_or_default())
        .replace("{town}", town.root_text());
    Ok(town.root().join(text))
}

/// Whether the role's folder is a worktree of its rig.
pub fn is_worktree(role: Role) -> bool {
    matches!(role, Role::Crew | Role::Polecat | Role::Refinery)
}

/// Makes sure that the agent's folder is there and usable.
pub fn ensure(town: &Town, identity: &Identity, dir: &Path) -> Result<()> {
    match identity.rig() {
        Some(_) if is_worktree(identity.role()) => {
            if place::is_usable(town, dir) {
                return Ok(());
            }
            let branch = branches::due(town, identity)?;
            place(town, identity, dir, &branch).map(drop)
        }
        _ => files::make_dir(dir),
    }
}

/// Brings the rig's copy up to date with its remote.
pub fn fetch(town: &Town, rig: &str) -> Result<()> {
    let repository = rig::repository(town, rig);
    let _lock = lock_repository(town, rig)?;
    Git::at(&repository, town.around())
        .within(FETCH_LIMIT)
        .run(["fetch", "--quiet", "origin"])?;
    Ok(())
}

<<<<<<< HEAD
=======
/// The branch that an agent's worktree is on.
pub fn branch(identity: &Identity) -> String {
    format!("{}/{}", identity.role().word(), identity.short_name())
}

/// Holds off everybody else who changes the rig's repository.
pub(crate) fn lock_repository(town: &Town, rig: &str) -> Result<FileLock> {
    FileLock::take(&repository_lock(town, rig), PATIENCE)
}

>>>>>>> 8d745a0 (gt: hand in finished work, and merge it)
fn repository_lock(town: &Town, rig: &str) -> PathBuf {
    // git itself is not made for it: of 50 made at once without this, 2 failed.
    town.runtime_dir()
        .join("locks")
        .join(format!("repo-{rig}.lock"))
}

<<<<<<< HEAD
/// Where a new branch of the rig begins.
pub(crate) fn base(town: &Town, rig: &str) -> String {
    let branch = town
        .registry()
        .rigs
        .get(rig)
        .and_then(|entry| entry.default_branch.clone());
    branch.map_or_else(
        || "HEAD".to_owned(),
        |branch| format!("refs/remotes/origin/{branch}"),
    )
}
=======
fn ensure_worktree(town: &Town, rig: &str, identity: &Identity, dir: &Path) -> Result<()> {
    let around = town.around();
    if dir.join(".git").exists() && Git::at(dir, around).says(["rev-parse", "--git-dir"]) {
        return Ok(());
    }
    if dir.exists()
        && dir
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_some())
    {
        return Err(Problem::conflict(format!(
            "{} is not empty and not a worktree of {rig}",
            dir.display()
        ))
        .hint("move it away; gt removes nothing that it did not make"));
    }
    let repository = rig::repository(town, rig);
    if !repository.is_dir() {
        return Err(
            Problem::failed(format!("{} is missing", repository.display()))
                .hint("`gt doctor` looks at every rig"),
        );
    }
    let _lock = lock_repository(town, rig)?;
    let git = Git::at(&repository, around);
    let target = dir.to_string_lossy().into_owned();
    let branch = branch(identity);
    // A worktree whose folder was removed by hand is still on git's list.
    git.run(["worktree", "prune"])?;
    let made_here = !dir.exists();
    if let Some(parent) = dir.parent() {
        files::make_dir(parent)?;
    }
    let result = if git.says([
        "show-ref",
        "--verify",
        "--quiet",
        &format!("refs/heads/{branch}"),
    ]) {
        // An earlier worktree of this agent: its work goes on where it was.
        git.run(["worktree", "add", "--quiet", "--", &target, &branch])
    } else {
        let base = base(town, rig);
        git.run([
            "worktree",
            "add",
            "--quiet",
            "--no-track",
            "-b",
            &branch,
            "--",
            &target,
            &base,
        ])
    };
    result.map(drop).map_err(|problem| {
        if made_here {
            // An empty folder only: `worktree add` failed, so nothing is in it.
            let _ = fs::remove_dir(dir);
        }
        Problem::failed(format!("cannot make the worktree of {identity}"))
            .caused_by_problem(&problem)
    })
}

/// Where a new branch of the rig begins: at its remote's default branch, or at what was
/// merged here and is not there yet.
pub(crate) fn base(town: &Town, rig: &str) -> String {
    let entry = town.registry().rigs.get(rig);
    let Some(branch) = entry.and_then(|entry| entry.default_branch.as_deref()) else {
        return "HEAD".to_owned();
    };
    let theirs = format!("refs/remotes/origin/{branch}");
    let merged = merged_ref(branch);
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let is_news = git.says(["show-ref", "--verify", "--quiet", &merged])
        && !git.says(["merge-base", "--is-ancestor", &merged, &theirs]);
    if is_news { merged } else { theirs }
}

/// Where the merge queue keeps a rig's default branch, if it may not move the remote's.
pub(crate) fn merged_ref(branch: &str) -> String {
    format!("refs/gt/merged/{branch}")
}

/// What would be lost with a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaved {
    pub changed_files: usize,
    pub commits: usize,
}

impl Unsaved {
    pub fn is_nothing(&self) -> bool {
        *self == Unsaved::default()
    }
}

/// Changes that are not committed, and commits that no remote branch has: of the
/// worktree as it stands and of the agent's branch, which may be elsewhere.
pub fn unsaved(town: &Town, identity: &Identity, dir: &Path) -> Result<Unsaved> {
    let mut unsaved = Unsaved::default();
    if dir.join(".git").exists() {
        let git = Git::at(dir, town.around());
        let changes = git.run(["status", "--porcelain", "--untracked-files=all"])?;
        unsaved.changed_files = changes.lines().count();
    }
    let tips = tips(town, identity, dir);
    if let (Some(rig), false) = (identity.rig(), tips.is_empty()) {
        let repository = rig::repository(town, rig);
        let mut args = vec!["rev-list", "--count"];
        args.extend(tips.iter().map(String::as_str));
        args.extend(["--not", "--remotes", "--glob=refs/gt/merged"]);
        let commits = Git::at(&repository, town.around()).run(args)?;
        unsaved.commits = commits.parse().unwrap_or(0);
    }
    Ok(unsaved)
}

/// The commits that an agent's work ends in: its branch, and what is checked out.
fn tips(town: &Town, identity: &Identity, dir: &Path) -> Vec<String> {
    let commit = |git: Git<'_>, name: &str| {
        git.run([
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{name}^{{commit}}"),
        ])
        .ok()
    };
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let branch = format!("refs/heads/{}", branch(identity));
    let mut tips: Vec<String> = commit(Git::at(&repository, town.around()), &branch)
        .into_iter()
        .collect();
    if dir.join(".git").exists() {
        tips.extend(commit(Git::at(dir, town.around()), "HEAD"));
    }
    tips.sort();
    tips.dedup();
    tips
}

/// What removing a worktree left behind on purpose.
#[derive(Clone, Debug, Default)]
pub struct Removed {
    /// The refs under which unsaved work was kept.
    pub saved: Vec<String>,
}

/// Removes an agent's worktree and its branch. Work that is nowhere else is kept
/// under `refs/gt/saved/`, and without `force` it is not removed at all.
pub fn remove(town: &Town, identity: &Identity, dir: &Path, force: bool) -> Result<Removed> {
    let Some(rig) = identity.rig() else {
        return Err(Problem::usage(format!("{identity} has no worktree")));
    };
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let mut removed = Removed::default();
    let unsaved = unsaved(town, identity, dir)?;
    if !unsaved.is_nothing() {
        if !force {
            return Err(Problem::conflict(format!(
                "{identity} has work that is nowhere else: {} changed files, {} commits",
                unsaved.changed_files, unsaved.commits
            ))
            .hint("commit and push it, or `--force`: it is then kept under refs/gt/saved/"));
        }
        removed.saved = save(town, identity, dir)?;
    }
    if dir.join(".git").exists() {
        let target = dir.to_string_lossy().into_owned();
        git.run(["worktree", "remove", "--force", "--", &target])?;
    } else if dir.exists() {
        fs::remove_dir(dir).map_err(|error| files::cannot("remove", dir, &error))?;
    }
    git.run(["worktree", "prune"])?;
    let branch = branch(identity);
    if git.says([
        "show-ref",
        "--verify",
        "--quiet",
        &format!("refs/heads/{branch}"),
    ]) {
        git.run(["branch", "--quiet", "-D", "--", &branch])?;
    }
    Ok(removed)
}

/// Keeps every tip, and what is not committed, ignored files aside, under refs of their own.
fn save(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    let stamp = jiff::Timestamp::now().as_millisecond();
    let name = |part: &str| format!("refs/gt/saved/{}/{stamp}-{part}", branch(identity));
    let repository = rig::repository(town, identity.rig().unwrap_or_default());
    let bare = Git::at(&repository, town.around());
    let mut saved = Vec::new();
    for (number, tip) in tips(town, identity, dir).iter().enumerate() {
        let unpushed = bare.run([
            "rev-list",
            "--count",
            tip,
            "--not",
            "--remotes",
            "--glob=refs/gt/merged",
        ])?;
        if unpushed != "0" {
            let name = name(&format!("tip{number}"));
            bare.run(["update-ref", &name, tip])?;
            saved.push(name);
        }
    }
    if dir.join(".git").exists() {
        saved.extend(save_changes(town, identity, dir, &name("changes"))?);
    }
    Ok(saved)
}

/// Keeps what is not committed under a ref of its own, and leaves it where it is.
pub fn save_uncommitted(town: &Town, identity: &Identity, dir: &Path) -> Result<Option<String>> {
    let stamp = jiff::Timestamp::now().as_millisecond();
    let name = format!("refs/gt/saved/{}/{stamp}-changes", branch(identity));
    save_changes(town, identity, dir, &name)
}

fn save_changes(
    town: &Town,
    identity: &Identity,
    dir: &Path,
    name: &str,
) -> Result<Option<String>> {
    let git = Git::at(dir, town.around());
    let changes = git.run(["status", "--porcelain", "--untracked-files=all"])?;
    if changes.is_empty() {
        return Ok(None);
    }
    // git names a folder, even where all files are asked for, when it is a
    // repository of its own: a commit would only keep a pointer to it.
    let nested = changes
        .lines()
        .find(|line| line.starts_with("??") && line.ends_with('/'));
    if let Some(line) = nested {
        return Err(Problem::conflict(format!(
            "{} holds a repository of its own: {}",
            dir.display(),
            line.trim_start_matches("?? ")
        ))
        .hint("move it away first; gt could not keep what is in it"));
    }
    git.run(["add", "--all"])?;
    let tree = git.run(["write-tree"])?;
    let message = format!("Work of {identity} that it had not committed");
    let commit = git.run([
        "-c",
        "user.name=gt",
        "-c",
        "user.email=gt@localhost",
        "commit-tree",
        &tree,
        "-p",
        "HEAD",
        "-m",
        &message,
    ])?;
    git.run(["update-ref", name, &commit])?;
    Ok(Some(name.to_owned()))
}
>>>>>>> 8d745a0 (gt: hand in finished work, and merge it)
