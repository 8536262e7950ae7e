//! Files whose changes are reported to the monitor's caller, such as those of git for a worktree. A
//! change is detected by modification time and inode; the files are never read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files, each as the client has last seen it. A missing file may still appear.
pub type Files = BTreeMap<PathBuf, FileStamp>;

/// Identity of a file's content, by which a rewritten file is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStamp {
    /// Seconds and nanoseconds.
    at: (i64, i64),
    /// A file that is written beside another and renamed over it has another inode, even if both
    /// have the same modification time.
    inode: u64,
}

impl FileStamp {
    /// Returns the present identity of the file.
    pub fn now(file: &Path) -> Self {
        match fs::symlink_metadata(file) {
            Ok(meta) => FileStamp {
                at: (meta.mtime(), meta.mtime_nsec()),
                inode: meta.ino(),
            },
            Err(_) => FileStamp::default(),
        }
    }
}

/// Returns the present identities of these files.
pub fn stamps(files: impl IntoIterator<Item = PathBuf>) -> Files {
    let all = files.into_iter().map(|file| {
        let written = FileStamp::now(&file);
        (file, written)
    });
    all.collect()
}

/// Updates the identities and returns whether any has changed.
pub(super) fn have_changed(files: &mut Files) -> bool {
    let mut changed = false;
    for (file, written) in files {
        let now = FileStamp::now(file);
        changed |= *written != now;
        *written = now;
    }
    changed
}
