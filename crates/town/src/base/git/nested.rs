//! Finds the repositories inside a worktree that git enters: submodules, and every other repository
//! whose commit is in the index. An agent can add one without a `.gitmodules` file.

use super::{Git, config, own_dir};
use crate::Surroundings;
use crate::base::files;
use crate::base::or_log::OrLog;
use std::fs;
use std::path::{Path, PathBuf};

/// Mode of a commit, as every version of the index file has it. Found elsewhere in the file by chance,
/// it costs one more call of git.
const COMMIT: [u8; 4] = [0, 0, 0xe0, 0];

/// Returns the folders of the repositories inside the worktree that contains `dir`, with those inside
/// of them. The length of paths limits the depth.
pub(super) fn repositories(dir: &Path, around: &Surroundings) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some((root, own)) = config::worktree_of(dir) {
        collect(root, &own, around, &mut found);
    }
    found
}

fn collect(root: &Path, own: &Path, around: &Surroundings, found: &mut Vec<PathBuf>) {
    if !has_commits(own) {
        return;
    }
    let git = Git::at(root, around).uncancellable();
    // The command that follows fails with the same error.
    let staged = git
        .run(["ls-files", "--stage", "-z"])
        .or_debug("the index cannot be read");
    for entry in staged.unwrap_or_default().split('\0') {
        // The format is "mode id stage<tab>path"; in a conflict a path appears more than once.
        let Some((_, path)) = entry
            .strip_prefix("160000 ")
            .and_then(|it| it.split_once('\t'))
        else {
            continue;
        };
        let inside = root.join(path);
        let Some(own) = own_dir(&inside).filter(|_| !found.contains(&inside)) else {
            continue;
        };
        found.push(inside.clone());
        collect(&inside, &own, around, found);
    }
}

/// Returns whether the index of a worktree may have commits. With a split index, most entries are in
/// another file.
fn has_commits(own: &Path) -> bool {
    let mut files = files::entries(own).filter(|file| {
        let name = file.file_name();
        name == "index" || name.as_encoded_bytes().starts_with(b"sharedindex.")
    });
    files.any(|file| {
        // A file that is removed meanwhile is not read by git either.
        let bytes = fs::read(file.path()).unwrap_or_default();
        bytes.windows(COMMIT.len()).any(|window| window == COMMIT)
    })
}
