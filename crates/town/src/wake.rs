//! How other `gt` processes tell an open monitor that a tag has changed.
//!
//! tmux tells nobody when an option changes. So whoever changes a tag also touches
//! `.runtime/board/changed`, and monitors watch that. The file is there only while a
//! monitor is: without one the touch is a single call that finds nothing.

use crate::{Result, Town, files};
use rustix::fs::{AtFlags, CWD, FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, utimensat};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(crate) const FILE: &str = "changed";

pub(crate) fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("board")
}

/// Wakes open monitors: something about agents may have changed. It costs one call
/// to the kernel, and cannot fail: where nobody listens there is nothing to tell.
pub fn monitors(town: &Town) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let _ = utimensat(CWD, folder(town).join(FILE), &times, AtFlags::empty());
}

/// The file, as long as somebody listens. All listeners share it; the last one takes it
/// away. One that is killed leaves it behind, which costs the others next to nothing.
#[derive(Debug)]
pub(crate) struct Listening {
    path: PathBuf,
    file: File,
}

impl Listening {
    pub(crate) fn begin(town: &Town) -> Result<Self> {
        let folder = folder(town);
        files::make_dir(&folder)?;
        let path = folder.join(FILE);
        let cannot = |error: std::io::Error| files::cannot("open", &path, &error);
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(cannot)?;
            flock(&file, FlockOperation::LockShared).map_err(|errno| cannot(errno.into()))?;
            // The last of the others may have taken it away before we had the lock.
            if is_at(&file, &path) {
                return Ok(Listening { path, file });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let alone = flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if alone && is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
