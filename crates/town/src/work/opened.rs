//! An open database, lent out.
//!
//! A command asks several questions one after the other, and to open the database takes
//! longer than most of them. So a thread keeps one that it has used, for the next question.

use rusqlite::Connection;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

thread_local! {
    static KEPT: RefCell<Option<(PathBuf, Connection)>> = const { RefCell::new(None) };
}

/// A database in use. It is kept when it is given back, unless its log is to be brought in,
/// which happens when it is closed.
pub(super) struct Opened {
    db: Option<Connection>,
    path: PathBuf,
    is_kept: bool,
}

impl Opened {
    pub(super) fn new(db: Connection, path: &Path, is_kept: bool) -> Self {
        Opened {
            db: Some(db),
            path: path.to_owned(),
            is_kept,
        }
    }

    /// The one that this thread has kept of that file.
    pub(super) fn kept(path: &Path) -> Option<Self> {
        let (_, db) = KEPT.with_borrow_mut(|kept| kept.take_if(|(known, _)| known == path))?;
        Some(Self::new(db, path, true))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let (Some(db), true) = (self.db.take(), self.is_kept) {
            let path = std::mem::take(&mut self.path);
            let before = KEPT.with_borrow_mut(|kept| kept.replace((path, db)));
            drop(before);
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
