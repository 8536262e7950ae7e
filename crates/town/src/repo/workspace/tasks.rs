//! Worktrees of tasks: at the path that the project's template gives, or found by their branch.
//!
//! The template applies to new worktrees. If it changes, existing worktrees stay where they are,
//! and git finds them by the branch. The folder of another agent is never the worktree of a task,
//! even if it has the task's branch checked out.

use crate::Town;
use crate::base::git::{Git, own_dir};
use crate::base::or_log::OrLog;
use crate::catalog::directory;
use crate::repo::{project, rig};
use gt_core::project::Project;
use gt_core::work::WorkId;
use gt_core::{Identity, Role};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the folder of a task's worktree, if it exists.
pub fn task_worktree(town: &Town, agent: &Identity) -> Option<PathBuf> {
    let rig = agent.rig().filter(|_| agent.role() == Role::Task)?;
    let project = project::of_rig(town, rig);
    let project = project.or_warn(format_args!(
        "the worktree of {agent} is searched by its branch"
    ));
    let by_template = project.and_then(|project| task_worktree_at_template(town, agent, &project));
    by_template.or_else(|| WorktreesByBranch::of_rig(town, rig).worktree(town, agent))
}

/// Returns the task whose worktree contains the folder, according to the project's template; `None`
/// as well for a folder that does not exist.
pub(crate) fn task_by_folder(town: &Town, dir: &Path) -> Option<Identity> {
    let dir = dir.canonicalize().ok()?;
    for (rig, entry) in &town.registry().rigs {
        let project = project::of_rig(town, rig);
        let project = project.or_warn(format_args!("worktrees of {rig} are not searched here"));
        let Some(project) = project else {
            continue;
        };
        let start = format!("{}-", entry.beads.prefix);
        for folder in dir.ancestors() {
            let name = folder
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let ids = name.match_indices(&start).map(|(place, _)| &name[place..]);
            let is_its = |id: &&str| {
                // The template may not fit this name.
                let path = project::worktree(town, rig, id, &project).ok();
                path.and_then(|path| path.canonicalize().ok()).as_deref() == Some(folder)
            };
            if let Some(id) = ids.filter(|id| id.parse::<WorkId>().is_ok()).find(is_its) {
                return Some(Identity::task(id, town.registry()));
            }
        }
    }
    None
}

/// Returns the worktree of a task if it exists at the place of the project's template.
pub(crate) fn task_worktree_at_template(
    town: &Town,
    agent: &Identity,
    project: &Project,
) -> Option<PathBuf> {
    let rig = agent.rig()?;
    // If the template gives no path, the caller searches by branch.
    let dir = project::worktree(town, rig, agent.short_name(), project).ok()?;
    is_of_rig(town, rig, &dir).then_some(dir)
}

/// Returns whether a folder is a worktree of the rig, according to its `.git` file.
fn is_of_rig(town: &Town, rig: &str, dir: &Path) -> bool {
    // A main worktree has a folder there, which is no worktree of the rig.
    let link = fs::read_to_string(dir.join(".git")).unwrap_or_default();
    let place = link.strip_prefix("gitdir:").map(str::trim);
    // A pruned worktree points to nothing.
    let place = place.and_then(|place| dir.join(place).canonicalize().ok());
    let own = rig::repository(town, rig).canonicalize();
    matches!((place, own), (Some(place), Ok(own)) if place.starts_with(&own))
}

/// Worktrees of a rig's repository that belong to no other agent, by branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorktreesByBranch {
    by_branch: HashMap<String, PathBuf>,
    stamp: Option<SystemTime>,
}

impl WorktreesByBranch {
    /// Reads the worktrees from git. If git fails, returns none; the next call reads them again.
    pub(crate) fn of_rig(town: &Town, rig: &str) -> Self {
        let stamp = stamp(town, rig);
        let repository = rig::repository(town, rig);
        let git = Git::at(&repository, town.around());
        let list = git.run(["worktree", "list", "--porcelain", "-z"]);
        let Some(list) = list.or_warn(format_args!("the worktrees of {rig} are unknown")) else {
            return Self::default();
        };
        let mut by_branch = read(&list);
        by_branch.retain(|_, dir| directory::by_folder(town, dir).is_none());
        WorktreesByBranch { by_branch, stamp }
    }

    /// Returns whether a worktree may have been added or removed since. It is called often, so it
    /// only compares the time of the folder in which git keeps them.
    pub(crate) fn is_old(&self, town: &Town, rig: &str) -> bool {
        self.stamp != stamp(town, rig)
    }

    /// Returns the worktree of a task, if it exists.
    pub(crate) fn worktree(&self, town: &Town, agent: &Identity) -> Option<PathBuf> {
        let name = super::branch(agent);
        let moved = || self.by_branch.get(&format!("{name}/{}", super::IN_FOLDER));
        let dir = self.by_branch.get(&name).or_else(moved)?;
        let rig = agent.rig().unwrap_or_default();
        is_of_rig(town, rig, dir).then(|| dir.clone())
    }
}

fn stamp(town: &Town, rig: &str) -> Option<SystemTime> {
    let folder = rig::repository(town, rig).join("worktrees");
    // A repository without worktrees has no such folder.
    fs::metadata(folder).and_then(|meta| meta.modified()).ok()
}

/// Parses `git worktree list --porcelain -z`: a line for each fact, and an empty one after each
/// worktree.
fn read(list: &str) -> HashMap<String, PathBuf> {
    let mut found = HashMap::new();
    let mut dir = PathBuf::new();
    for line in list.split('\0') {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("worktree", path) => dir = PathBuf::from(path),
            ("branch", name) => drop(found.insert(short(name), dir.clone())),
            ("detached", _) => {
                found.extend(rebased(&dir).map(|name| (name, dir.clone())));
            }
            _ => {}
        }
    }
    found
}

/// Returns the branch of a worktree that is detached because of a rebase.
fn rebased(dir: &Path) -> Option<String> {
    let own = own_dir(dir)?;
    let mut kinds = ["rebase-merge", "rebase-apply"].iter();
    // Neither file exists without a rebase.
    let name = kinds.find_map(|kind| fs::read_to_string(own.join(kind).join("head-name")).ok())?;
    Some(short(name.trim_end()))
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};

    #[test]
    fn worktrees_are_known_by_their_branches() {
        let list = "worktree /a/.repo.git\0bare\0\0\
                    worktree /a b\nc\0HEAD 01\0branch refs/heads/gt-1\0\0\
                    worktree /nowhere\0HEAD 02\0detached\0prunable gone\0\0";
        let found = read(list);
        assert_eq!(found.len(), 1);
        assert_eq!(found["gt-1"], PathBuf::from("/a b\nc"));
    }

    #[test]
    fn worktrees_that_git_does_not_list_are_logged_and_read_again() {
        let (_folder, town) = town();
        let (found, warnings) = warnings_of(|| WorktreesByBranch::of_rig(&town, "nope"));
        assert!(found.by_branch.is_empty());
        assert!(
            warnings[0].starts_with("the worktrees of nope are unknown"),
            "{warnings:?}"
        );
        fs::create_dir_all(rig::repository(&town, "nope").join("worktrees")).unwrap();
        assert!(found.is_old(&town, "nope"));
    }
}
