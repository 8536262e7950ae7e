//! What happens, while it happens.
//!
//! [`Server`] tells everybody who connects to `<town>/.runtime/events.sock` of every
//! event and of every change of a life, as lines of JSON. [`Follow`] listens to it, and
//! reads the log itself where nobody serves, or the server ends. Neither asks the disk
//! again and again: on Linux the kernel tells when there is something new.
//!
//! A place in the log is a [`Cursor`]. It is given with every event, so that a listener
//! that changes from one way to the other loses and repeats nothing.

mod clients;
mod follow;
mod server;
mod tail;
#[cfg(test)]
mod tests;
mod wake;

pub use follow::Follow;
pub use server::Server;

use crate::Town;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the server of a town listens.
pub fn socket_path(town: &Town) -> PathBuf {
    socket_in(town.root())
}

fn socket_in(root: &Path) -> PathBuf {
    root.join(".runtime/events.sock")
}

/// A place in the log: the file, and how far into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    file: u64,
    offset: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (file, offset) = text.split_once(':').ok_or(())?;
        Ok(Cursor {
            file: file.parse().map_err(drop)?,
            offset: offset.parse().map_err(drop)?,
        })
    }
}

impl Serialize for Cursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
