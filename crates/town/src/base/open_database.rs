//! Pool of open database connections.
//!
//! A command runs several queries, and opening the database takes longer than most of them. A used
//! connection is therefore kept for the next query of any thread, as long as the path still names
//! the same file. Kept connections are never closed explicitly: the kernel does that faster.

use rusqlite::Connection;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static KEPT: Mutex<Vec<IdleConnection>> = Mutex::new(Vec::new());

struct IdleConnection {
    path: PathBuf,
    file: Option<FileId>,
    db: Connection,
}

/// Device and inode, which distinguish a file from its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the id of the file at this path; `None` if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok()?;
        Some(FileId {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }
}

/// A connection in use. On drop it returns to the pool, unless its log is due for a checkpoint,
/// which happens on close.
#[derive(Debug)]
pub(crate) struct PooledConnection {
    db: Option<Connection>,
    path: PathBuf,
    is_kept: bool,
}

impl PooledConnection {
    pub(crate) fn new(db: Connection, path: &Path, is_kept: bool) -> Self {
        PooledConnection {
            db: Some(db),
            path: path.to_owned(),
            is_kept,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes a pooled connection for that file.
    pub(crate) fn take_idle(path: &Path) -> Option<Self> {
        let kept = {
            let mut all = kept();
            let place = all.iter().position(|kept| kept.path == path)?;
            all.swap_remove(place)
        };
        let is_same = kept.file.is_some() && kept.file == FileId::of(path);
        is_same.then(|| Self::new(kept.db, path, true))
    }
}

fn kept() -> MutexGuard<'static, Vec<IdleConnection>> {
    // A panic under this lock cannot leave the pool inconsistent, so poisoning is ignored.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let (Some(db), true) = (self.db.take(), self.is_kept) {
            let path = std::mem::take(&mut self.path);
            let file = FileId::of(&path);
            kept().push(IdleConnection { path, file, db });
        }
    }
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        // Taken out only on drop.
        self.db.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        self.db.as_mut().unwrap_or_else(|| unreachable!())
    }
}
