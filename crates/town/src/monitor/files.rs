//! Files of others whose changes somebody wants to hear of, such as what git keeps of a
//! worktree. They are known by when and as which file they were written, and never read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files, each as whoever wants to hear of it has seen it. One that is not there may come.
pub type Files = BTreeMap<PathBuf, Written>;

/// By this a file that was written again is told from one that was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Seconds, and nanoseconds beside them.
    at: (i64, i64),
    /// What is written beside a file and then put into its place is another one, however
    /// soon it follows.
    inode: u64,
}

impl Written {
    /// The file as it is now.
    pub fn now(file: &Path) -> Self {
        match fs::symlink_metadata(file) {
            Ok(meta) => Written {
                at: (meta.mtime(), meta.mtime_nsec()),
                inode: meta.ino(),
            },
            Err(_) => Written::default(),
        }
    }
}

/// These files as they are now.
pub fn seen(files: impl IntoIterator<Item = PathBuf>) -> Files {
    let all = files.into_iter().map(|file| {
        let written = Written::now(&file);
        (file, written)
    });
    all.collect()
}

/// Takes note of what they are now, and says whether that is something else.
pub(super) fn have_changed(files: &mut Files) -> bool {
    let mut changed = false;
    for (file, written) in files {
        let now = Written::now(file);
        changed |= *written != now;
        *written = now;
    }
    changed
}
