//! The commands and settings of projects that a person has approved: `approved-commands.json` in
//! the town.
//!
//! The file holds the commands themselves, so that a changed command can be shown beside the old
//! one. Without a sandbox an agent can write to this file, as to all files of its user.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::records::events::Events;
use crate::{Result, Town};
use gt_core::plural::counted;
use gt_core::project::{FILE, ProjectCommand, unapproved};
use gt_core::{Caller, Problem};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for the lock of the file.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of agent programs in a repository, with the digests of their content.
pub type SettingsFiles = BTreeMap<String, String>;

/// The approved commands of one rig.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub commands: Vec<ProjectCommand>,
    /// The digests of approved settings of agent programs, by file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, BTreeSet<String>>,
    pub by: String,
    pub at: String,
}

impl Approval {
    /// Returns the files whose content is not approved.
    pub fn unapproved_files(&self, files: &SettingsFiles) -> Vec<String> {
        let is_known = |file: &String, digest: &String| {
            let known = self.files.get(file);
            known.is_some_and(|known| known.contains(digest))
        };
        let new = files
            .iter()
            .filter(|(file, digest)| !is_known(file, digest));
        new.map(|(file, _)| file.clone()).collect()
    }
}

/// The file: approvals by rig.
type Approvals = BTreeMap<String, Approval>;

/// Returns the approved commands of a rig.
pub fn of_rig(town: &Town, rig: &str) -> Result<Approval> {
    Ok(read(town)?.remove(rig).unwrap_or_default())
}

/// Fails if a person has not approved each of these commands.
pub fn check(town: &Town, rig: &str, commands: &[ProjectCommand]) -> Result<()> {
    if commands.is_empty() {
        return Ok(());
    }
    let missing = unapproved(commands, &of_rig(town, rig)?.commands);
    if missing.is_empty() {
        return Ok(());
    }
    let commands = counted(missing.len(), "command");
    let mut problem = Problem::conflict(format!(
        "{FILE} of {rig} has {commands} that you have not approved"
    ));
    for it in &missing {
        problem = problem.cause(format!("{}: {}", it.kind.as_str(), it.command));
    }
    Err(problem.hint(format!(
        "`gt project allow {rig}` approves the commands of its base branch, with `--worktree DIR` \
         those of a worktree"
    )))
}

/// Approves these commands and settings files for a rig, in addition to those that are approved.
/// Fails if an agent is the caller.
pub fn allow(
    town: &Town,
    rig: &str,
    commands: &[ProjectCommand],
    files: &SettingsFiles,
) -> Result<Approval> {
    let by = person(town, "approve commands")?;
    let before = of_rig(town, rig)?;
    let new = unapproved(commands, &before.commands).len() + before.unapproved_files(files).len();
    if new == 0 {
        return Ok(before);
    }
    let approval = change(town, |approvals| {
        let approval = approvals.entry(rig.to_owned()).or_default();
        let new = unapproved(commands, &approval.commands);
        approval.commands.extend(new);
        for (file, digest) in files {
            let known = approval.files.entry(file.clone()).or_default();
            known.insert(digest.clone());
        }
        approval.by = by;
        approval.at = town.clock().text();
        approval.clone()
    })?;
    note(town, "project_allow", rig, new);
    Ok(approval)
}

/// Withdraws all approvals of a rig. Returns how many commands and files were approved.
pub fn deny(town: &Town, rig: &str) -> Result<usize> {
    let removed = change(town, |approvals| approvals.remove(rig))?;
    let count = removed.map_or(0, |it| it.commands.len() + it.files.len());
    note(town, "project_deny", rig, count);
    Ok(count)
}

/// Removes the approvals of a rig that is removed.
pub(crate) fn forget(town: &Town, rig: &str) -> Result<()> {
    match read(town)?.contains_key(rig) {
        true => change(town, |approvals| drop(approvals.remove(rig))),
        false => Ok(()),
    }
}

/// Returns the login name of the caller. Fails if an agent is the caller.
fn person(town: &Town, what: &str) -> Result<String> {
    match town.caller() {
        Caller::Person(name) => Ok(name),
        caller => Err(Problem::conflict(format!("{caller} may not {what}"))
            .hint("only a person may: the commands run as the user of the town")),
    }
}

fn note(town: &Town, kind: &str, rig: &str, count: usize) {
    let event = town
        .event(kind)
        .with("rig", rig.to_owned())
        .with("count", count);
    Events::of(town).note(vec![event]);
}

fn read(town: &Town) -> Result<Approvals> {
    let path = path(town);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(Approvals::new());
    };
    serde_json::from_str(&text).map_err(|error| {
        Problem::failed(format!("{} cannot be read", path.display()))
            .caused_by(error)
            .hint("remove it and approve the commands again: `gt project allow RIG`")
    })
}

fn change<T>(town: &Town, change: impl FnOnce(&mut Approvals) -> T) -> Result<T> {
    let lock = town.runtime_dir().join("locks/approved-commands.lock");
    let _lock = FileLock::take(&lock, TIMEOUT)?;
    let mut approvals = read(town)?;
    let result = change(&mut approvals);
    // Cannot fail for these types.
    let text = serde_json::to_string_pretty(&approvals).unwrap_or_default();
    files::write_whole(&path(town), format!("{text}\n").as_bytes())?;
    Ok(result)
}

fn path(town: &Town) -> PathBuf {
    town.root().join("approved-commands.json")
}
