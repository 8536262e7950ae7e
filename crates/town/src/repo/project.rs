//! Projects: the folder of a rig's checkout, and the settings in its `.gt.toml`.
//!
//! The file comes from a repository. Settings that are needed before there is a worktree are read
//! from the base commit, all others from the worktree that they apply to. This module runs nothing.

use crate::base::files;
use crate::base::git::Git;
use crate::repo::{base_branch, rig};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::project::{FILE, Project};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of a rig's project: the checkout that the rig was made from, or else a folder
/// inside the town, where a person can put files to be copied.
pub fn folder(town: &Town, rig: &str) -> PathBuf {
    let entry = town.registry().rigs.get(rig);
    let source = entry.map(|entry| PathBuf::from(&entry.git_url));
    let is_checkout = |path: &PathBuf| path.is_absolute() && path.join(".git").exists();
    source
        .filter(is_checkout)
        .unwrap_or_else(|| town.root().join("tasks").join(rig))
}

/// Returns the project settings of the base commit.
pub fn of_rig(town: &Town, rig: &str) -> Result<Project> {
    rig::entry(town, rig)?;
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let base = base_branch::start_point(town, rig)?;
    let found = git.run(["ls-tree", "--name-only", &base, "--", FILE])?;
    if found.is_empty() {
        return Ok(Project::default());
    }
    let name = format!("{base}:{FILE}");
    let text = git.run(["cat-file", "blob", &name])?;
    Project::read(&name, &text)
}

/// Returns the project settings of a worktree.
pub fn of_worktree(dir: &Path) -> Result<Project> {
    let path = dir.join(FILE);
    match fs::symlink_metadata(&path) {
        Ok(meta) if !meta.is_file() => {
            return Err(Problem::usage(format!("{} is not a file", path.display()))
                .hint("replace the symbolic link with the file itself"));
        }
        _ => {}
    }
    match files::read_if_there(&path)? {
        Some(text) => Project::read(&path.display().to_string(), &text),
        None => Ok(Project::default()),
    }
}

/// Returns the path of an item's worktree.
pub fn worktree(town: &Town, rig: &str, id: &str, project: &Project) -> Result<PathBuf> {
    let folder = folder(town, rig);
    let filled = project.worktree.path_template.fill(rig, id);
    let (from, rest) = match (filled.strip_prefix("../"), folder.parent()) {
        (Some(rest), Some(above)) => (above, rest),
        _ => (folder.as_path(), filled.as_str()),
    };
    let path = from.join(rest);
    // The template cannot lead out of the folder, but a symbolic link on the path could.
    let there = path.ancestors().skip(1).find(|dir| dir.exists());
    if let (Some(there), Ok(from)) = (there, from.canonicalize()) {
        let real = there
            .canonicalize()
            .map_err(|error| files::io_problem("find", there, &error))?;
        if !real.starts_with(&from) {
            return Err(Problem::usage(format!(
                "the worktree {} would be in {}, through a symbolic link",
                path.display(),
                real.display()
            ))
            .hint(format!("correct `path_template` in the project's {FILE}")));
        }
    }
    Ok(path)
}
