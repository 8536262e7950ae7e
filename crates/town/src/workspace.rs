//! The folder an agent works in: a worktree of its rig, or a plain folder.
//!
//! Which branches are an agent's is in `workspace/branches.rs`, how a worktree stands in
//! `workspace/condition.rs`, how it is put on one in `workspace/place.rs`, and how it goes without losing work in
//! `workspace/remove.rs`, by commits that `workspace/snapshot.rs` makes. What is inside
//! of submodules would go with it: see `workspace/submodules.rs`.

mod branches;
mod condition;
mod place;
mod remove;
pub(crate) mod snapshot;
pub(crate) mod submodules;

pub use branches::{branch, branches, current_branch, is_branch_of, work_branch};
pub(crate) use condition::{half_done, is_usable};
pub use condition::{is_broken, is_settled, is_unfinished};
pub(crate) use place::mend;
pub use place::{Placed, place, take_back};
pub use remove::{Removed, Unsaved, clean, remove, save_uncommitted, staying, unsaved};

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
    if let Some(dir) = crate::task::worktree(town, identity) {
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

/// git for the folder of an agent. Where that is a worktree, a repository around it is not
/// asked: what that one says is nothing of the agent's.
pub(crate) fn git_of<'a>(town: &'a Town, agent: &Identity, dir: &'a Path) -> Git<'a> {
    let git = Git::at(dir, town.around());
    match has_worktree(agent) {
        true => git.own_alone(),
        false => git,
    }
}

/// Whether the agent's folder should be a worktree.
pub(crate) fn has_worktree(agent: &Identity) -> bool {
    is_worktree(agent.role()) || agent.role() == Role::Task
}

/// Makes sure that the agent's folder is there and usable. Returns warnings, such as of a
/// submodule that could not be checked out.
pub fn ensure(town: &Town, identity: &Identity, dir: &Path) -> Result<Vec<String>> {
    match identity.rig() {
        Some(_) if is_worktree(identity.role()) => {
            if is_usable(town, dir) {
                return Ok(Vec::new());
            }
            let branch = branches::due(town, identity)?;
            place(town, identity, dir, &branch).map(|placed| placed.warnings)
        }
        _ => files::make_dir(dir).map(|()| Vec::new()),
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

/// The same for whoever needs to know, and waits for it. Nobody else waits for a remote that is
/// slow: only where others have fetched the very same in this moment, it is their turn first.
pub(crate) fn fetch_within(town: &Town, rig: &str, limit: Duration) -> Result<()> {
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around()).within(limit);
    match git.run(["fetch", "--quiet", "origin"]) {
        Ok(_) => Ok(()),
        Err(_) => {
            town.around().cancel.check()?;
            fetch(town, rig)
        }
    }
}

/// The same for whoever cannot wait: not while others change the repository, and not for a
/// remote that is slow. What is not known then is found out by the next.
pub fn glance(town: &Town, rig: &str) {
    const MOMENT: Duration = Duration::from_secs(3);
    let repository = rig::repository(town, rig);
    if let Ok(Some(_lock)) = FileLock::try_take(&repository_lock(town, rig)) {
        let git = Git::at(&repository, town.around()).within(MOMENT);
        let _ = git.run(["fetch", "--quiet", "origin"]);
    }
}

/// Holds off everybody else who changes the rig's repository.
pub(crate) fn lock_repository(town: &Town, rig: &str) -> Result<FileLock> {
    FileLock::take(&repository_lock(town, rig), PATIENCE)
}

fn repository_lock(town: &Town, rig: &str) -> PathBuf {
    // git itself is not made for it: of 50 made at once without this, 2 failed.
    town.runtime_dir()
        .join("locks")
        .join(format!("repo-{rig}.lock"))
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

/// The files of git's of which one is written when [`base`] moves.
pub(crate) fn base_files(town: &Town, rig: &str) -> Vec<PathBuf> {
    let entry = town.registry().rigs.get(rig);
    let branch = entry.and_then(|entry| entry.default_branch.as_deref());
    let names = match branch {
        Some(branch) => vec![format!("refs/remotes/origin/{branch}"), merged_ref(branch)],
        None => vec!["HEAD".to_owned()],
    };
    let names = names.into_iter().chain(["packed-refs".to_owned()]);
    let repository = rig::repository(town, rig);
    names.map(|name| repository.join(name)).collect()
}

/// Where the merge queue keeps a rig's default branch, if it may not move the remote's.
pub(crate) fn merged_ref(branch: &str) -> String {
    format!("refs/gt/merged/{branch}")
}
