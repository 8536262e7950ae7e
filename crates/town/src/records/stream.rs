//! Events and session changes, as a stream.
//!
//! [`StreamServer`] sends every event and every change of a session to all clients of
//! `<town>/.runtime/events.sock`, as lines of JSON. [`Follow`] reads from it, or from the log
//! itself if there is no server or the server ends. Neither polls the disk: on Linux the kernel
//! reports changes.
//!
//! A position in the log is a [`Cursor`]. It is sent with every event, so that a listener that
//! switches between the two sources loses and repeats nothing.

mod clients;
mod follow;
mod server;
mod tail;
#[cfg(test)]
mod tests;
mod wake;

pub use follow::Follow;
pub use server::StreamServer;

use crate::Town;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Returns the socket of a town's server.
pub fn socket_path(town: &Town) -> PathBuf {
    socket_in(town.root())
}

fn socket_in(root: &Path) -> PathBuf {
    root.join(".runtime/events.sock")
}

/// A position in the log: the file and the offset in it.
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
