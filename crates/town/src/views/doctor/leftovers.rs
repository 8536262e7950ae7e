//! Finds files that killed processes left behind: temporary files, incomplete clones, and texts for
//! panes of a restore.

use super::DoctorFinding;
use crate::Town;
use crate::agents::sandbox::leftovers as sandbox_leftovers;
use crate::base::files;
use gt_core::plural::counted;
use rustix::process::{Pid, test_kill_process};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age after which a temporary file of an unknown process is a leftover.
const UNKNOWN_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Age after which short-lived files and texts for a pane are leftovers.
const PASSING_FOR: Duration = Duration::from_secs(60 * 60);
/// Maximum depth to which our folders are searched.
const DEPTH: usize = 4;

/// Finds leftovers; a fix removes them.
pub(super) fn check_leftovers(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let left = leftovers(town);
    let Some(first) = left.first() else {
        return vec![DoctorFinding::ok(
            "leftovers",
            "no files of killed processes",
        )];
    };
    let message = match left.len() {
        1 => format!("{} is left of a process that was killed", first.display()),
        many => format!(
            "{many} files are left of processes that were killed; the first is {}",
            first.display()
        ),
    };
    if !fix {
        let hint = "`gt doctor --fix` removes them";
        return vec![
            DoctorFinding::warning("leftovers", message)
                .hint(hint)
                .fixable(),
        ];
    }
    let removed = left.iter().map(|path| remove(path));
    let problems: Vec<DoctorFinding> = removed
        .filter_map(Result::err)
        .map(|problem| DoctorFinding::of("leftovers", &problem))
        .collect();
    match problems.is_empty() {
        true => vec![DoctorFinding::ok(
            "leftovers",
            format!("{message}; removed"),
        )],
        false => problems,
    }
}

/// Finds containers of sandboxed agents whose broker was killed; a fix removes them. Reports
/// nothing if there are none.
pub(super) fn check_containers(town: &Town, fix: bool) -> Vec<DoctorFinding> {
    let left = sandbox_leftovers::left_containers(town);
    if left.is_empty() {
        return Vec::new();
    }
    let message = format!(
        "{} of killed agents: {}",
        counted(left.len(), "container"),
        left.join(", ")
    );
    if !fix {
        let finding = DoctorFinding::warning("containers", message);
        return vec![finding.hint("`gt doctor --fix` removes them").fixable()];
    }
    vec![match sandbox_leftovers::remove_leftovers(town) {
        Ok(()) => DoctorFinding::ok("containers", format!("{message}; removed")),
        Err(problem) => DoctorFinding::of("containers", &problem),
    }]
}

fn remove(path: &Path) -> crate::Result<()> {
    match path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        true => files::remove_folder(path),
        false => files::remove_if_there(path),
    }
}

fn leftovers(town: &Town) -> Vec<PathBuf> {
    let root = town.root();
    let mut left = Vec::new();
    // Other folders, such as worktrees, are not searched.
    temporary_in(root, 0, &mut left);
    for folder in ["mayor", "roles", "harnesses", ".accounts", "agents"] {
        temporary_in(&root.join(folder), 1, &mut left);
    }
    for rig in town.registry().rigs.keys() {
        temporary_in(&root.join(rig), 0, &mut left);
    }
    for folder in [".runtime", ".sessions", ".work"] {
        temporary_in(&root.join(folder), DEPTH, &mut left);
    }
    for folder in ["tmp", "replay"] {
        for path in entries(&town.runtime_dir().join(folder)) {
            if !left.contains(&path) && is_older(&path, PASSING_FOR) {
                left.push(path);
            }
        }
    }
    left.sort();
    left
}

fn temporary_in(folder: &Path, depth: usize, left: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match files::temporary_of(&name) {
            Some(process) if is_left(&path, process) => left.push(path),
            Some(_) => {}
            None => {
                let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
                // The worktrees of the merge queue belong to a repository.
                let is_worktree = name == "merge" || path.join(".git").exists();
                if is_folder && depth > 0 && !is_worktree {
                    temporary_in(&path, depth - 1, left);
                }
            }
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    files::entries(folder).map(|entry| entry.path()).collect()
}

/// Returns whether the process that created the file is gone. If another process has its id now,
/// the file is a leftover after a day.
fn is_left(path: &Path, process: u32) -> bool {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let is_gone =
        pid.is_some_and(|pid| matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)));
    is_gone || is_older(path, UNKNOWN_FOR)
}

fn is_older(path: &Path, age: Duration) -> bool {
    let modified = path.symlink_metadata().and_then(|meta| meta.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed >= age))
}
