//! Notifies open monitors that a tag has changed.
//!
//! tmux sends no notification when an option changes. A process that changes a tag therefore also
//! touches `.runtime/board/changed`, which monitors watch. The file exists only while a monitor
//! runs; without one, the touch is one system call, which fails.

use crate::base::files;
use crate::{Result, Town};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(crate) const FILE: &str = "changed";

pub(crate) fn folder(town: &Town) -> PathBuf {
    town.runtime_dir().join("board")
}

/// Wakes open monitors after a change that may affect the state of an agent. Costs one system call.
pub fn monitors(town: &Town) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    // Fails if no monitor runs, because the file does not exist then.
    let _ = utimensat(CWD, folder(town).join(FILE), &times, AtFlags::empty());
}

/// A listening monitor, which keeps the file in existence. All listeners share the file; the last
/// one removes it on drop. A killed listener leaves it behind, which costs other processes next to
/// nothing.
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
        let cannot = |error: std::io::Error| files::io_problem("open", &path, &error);
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(cannot)?;
            file.lock_shared().map_err(cannot)?;
            // Another listener may have been the last and removed the file before this lock was
            // taken.
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
        // `std` does not specify how a shared lock is upgraded, so it is released first.
        let is_alone = self.file.unlock().is_ok() && self.file.try_lock().is_ok();
        if is_alone && is_at(&self.file, &self.path) {
            // If this fails, the remaining file costs other processes one system call each.
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
