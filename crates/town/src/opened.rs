//! An open database, lent out.
//!
//! A command asks several questions one after the other, and to open the database takes
//! longer than most of them. So one that was used is kept for the next question, whichever
//! thread asks it, for as long as the file is the one that was opened. Nobody closes those
//! that are kept: the kernel does it, and quicker.

use rusqlite::Connection;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

struct Kept {
    path: PathBuf,
    file: Option<FileId>,
    db: Connection,
}

/// Device and inode: they distinguish a file from one that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file at this path; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok()?;
        Some(FileId {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }
}

/// A database in use. It is kept when it is given back, unless its log is to be brought in,
/// which happens when it is closed.
#[derive(Debug)]
pub(crate) struct Opened {
    db: Option<Connection>,
    path: PathBuf,
    is_kept: bool,
}

impl Opened {
    pub(crate) fn new(db: Connection, path: &Path, is_kept: bool) -> Self {
        Opened {
            db: Some(db),
            path: path.to_owned(),
            is_kept,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// One that was kept of that file.
    pub(crate) fn kept(path: &Path) -> Option<Self> {
        let kept = {
            let mut all = kept();
            let place = all.iter().position(|kept| kept.path == path)?;
            all.swap_remove(place)
        };
        let is_same = kept.file.is_some() && kept.file == FileId::of(path);
        is_same.then(|| Self::new(kept.db, path, true))
    }
}

fn kept() -> MutexGuard<'static, Vec<Kept>> {
    // Nothing is done under this lock that could leave them half changed.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let (Some(db), true) = (self.db.take(), self.is_kept) {
            let path = std::mem::take(&mut self.path);
            let file = FileId::of(&path);
            kept().push(Kept { path, file, db });
        }
    }
}

impl Deref for Opened {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        // It is taken out only when this is dropped.
        self.db.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl DerefMut for Opened {
    fn deref_mut(&mut self) -> &mut Connection {
        self.db.as_mut().unwrap_or_else(|| unreachable!())
    }
}
