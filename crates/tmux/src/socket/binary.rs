//! Checks whether a running server is the program whose version is known.
//!
//! An upgrade replaces the program on disk while an old server keeps running with its own version
//! of the protocol. So the version of a *file* applies to a server only if the server was started
//! from exactly this file, and the file has not changed since its version was read.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The identity of a file at one point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Binary {
    /// Reads the identity of the file as it is now.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        // Without the file the caller runs tmux instead, which reports the failure.
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }

    /// Returns whether the process at the other end of the connection runs this file.
    #[cfg(target_os = "linux")]
    pub(super) fn is_running_behind(&self, connection: &impl AsFd) -> bool {
        let Ok(peer) = rustix::net::sockopt::socket_peercred(connection) else {
            return false;
        };
        // The link refers to the file that was started, even if another file has its name by now.
        Self::of(Path::new(&format!("/proc/{}/exe", peer.pid))).as_ref() == Some(self)
    }

    /// Returns false: other systems have no cheap way to find out.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_running_behind(&self, _connection: &impl AsFd) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_of_the_same_name_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        assert_eq!(Binary::of(&path), None);
        fs::write(&path, "one").unwrap();
        let before = Binary::of(&path).unwrap();
        assert_eq!(Binary::of(&path), Some(before.clone()));
        fs::write(folder.path().join("new"), "two").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert_ne!(Binary::of(&path), Some(before));
    }
}
