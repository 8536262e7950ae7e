//! Settings of agent programs in a repository, such as `.claude/settings.json`: their hooks and MCP
//! servers are commands that the program runs.
//!
//! A preset names these files. An agent starts with them only if a person has approved their
//! content (`gt project allow`). Without an approval, a program that has an option for it starts
//! without them; another program does not start.

use crate::base::files;
use crate::base::git::Git;
use crate::catalog::harnesses;
use crate::repo::approval::{self, SettingsFiles};
use crate::repo::{base_branch, rig};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::harness::Preset;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Returns the settings files of all harnesses at the base commit of a rig.
pub fn of_rig(town: &Town, rig: &str) -> Result<SettingsFiles> {
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    let base = base_branch::start_point(town, rig)?;
    let wanted = all_files(town)?;
    let list = ["ls-tree", "-z", "--name-only", &base, "--"];
    let list = list.iter().map(|word| (*word).to_owned());
    let found = git.run(list.chain(wanted))?;
    let found = found.split('\0').filter(|name| !name.is_empty());
    found
        .map(|name| {
            let content = git.run(["cat-file", "blob", &format!("{base}:{name}")])?;
            // Git's output comes without its last line break.
            Ok((name.to_owned(), digest(content.trim_end().as_bytes())))
        })
        .collect()
}

/// Returns the settings files of all harnesses in a worktree.
pub fn of_worktree(town: &Town, dir: &Path) -> Result<SettingsFiles> {
    in_folder(dir, &all_files(town)?)
}

/// Returns the files of one program in a worktree that a person has not approved. Fails if the
/// program cannot start without them.
pub(crate) fn unapproved(
    town: &Town,
    rig: &str,
    preset: &Preset,
    dir: &Path,
) -> Result<Vec<String>> {
    let present = in_folder(dir, &preset.repository.files.iter().cloned().collect())?;
    if present.is_empty() {
        return Ok(Vec::new());
    }
    let approval = approval::of_rig(town, rig)?;
    let new = approval.unapproved_files(&present);
    if new.is_empty() || !preset.repository.ignore.is_empty() {
        return Ok(new);
    }
    let (names, title) = (new.join(", "), &preset.title);
    Err(Problem::conflict(format!(
        "{names} of {rig} may make {title} run commands, and you have not approved it"
    ))
    .hint(format!(
        "read it, then `gt project allow {rig} --worktree {}` approves it",
        dir.display()
    )))
}

fn all_files(town: &Town) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for name in harnesses::names(town) {
        all.extend(harnesses::resolve(town, &name)?.value.repository.files);
    }
    Ok(all)
}

fn in_folder(dir: &Path, names: &BTreeSet<String>) -> Result<SettingsFiles> {
    let mut found = SettingsFiles::new();
    for name in names {
        let path = dir.join(name);
        match fs::read(&path) {
            Ok(content) => {
                let text = String::from_utf8_lossy(&content);
                found.insert(name.clone(), digest(text.trim_end().as_bytes()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // A file in place of a folder on the way.
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(files::io_problem("read", &path, &error)),
        }
    }
    Ok(found)
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
