//! A cache for the version of a program.
//!
//! Reading the version of a tmux means starting it, which costs as much as a command. The version
//! is valid as long as the file is unchanged, so the cache file stores it with the program's path,
//! inode, size and modification time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{Error, Server, Socket, Version};

/// Returns the version of this tmux program, from the cache file if the program has not changed.
///
/// A cache that cannot be read or written only costs time, so neither is an error.
pub fn version_cache(cache: &Path, program: &Path) -> Result<Version, Error> {
    let key = key(program).map_err(|_| Error::NotInstalled {
        program: program.to_owned(),
    })?;
    if let Some(version) = remembered(cache, &key) {
        return Ok(version);
    }
    let version = Server::new(Socket::Default)
        .with_program(program)
        .version()?;
    remember(cache, &key, version);
    Ok(version)
}

/// Returns the cache key: the version is valid as long as the key is unchanged.
fn key(program: &Path) -> std::io::Result<String> {
    let path = program.canonicalize()?;
    let metadata = fs::metadata(&path)?;
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    let (inode, size) = (metadata.ino(), metadata.size());
    Ok(format!(
        "{path:?} {inode} {size} {seconds}.{nanoseconds:09}"
    ))
}

fn remembered(cache: &Path, key: &str) -> Option<Version> {
    // The first call writes it.
    let text = fs::read_to_string(cache).ok()?;
    let (version, stored_key) = text.trim_end().split_once(' ')?;
    (stored_key == key).then(|| version.parse().ok())?
}

/// Writes the cache file atomically: a temporary file is renamed into place.
fn remember(cache: &Path, key: &str, version: Version) {
    let aside = cache.with_extension(format!("{}.new", std::process::id()));
    let written =
        fs::write(&aside, format!("{version} {key}\n")).and_then(|()| fs::rename(&aside, cache));
    if let Err(error) = written {
        tracing::debug!("cannot write {}: {error}", cache.display());
        // It may not exist.
        let _ = fs::remove_file(&aside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// Creates a program that prints this version, and records each call.
    fn program(folder: &Path, version: &str) -> PathBuf {
        let path = folder.join("tmux");
        let script = format!(
            "#!/bin/sh\necho x >>{}/asked\necho tmux {version}\n",
            folder.display()
        );
        fs::write(folder.join("new"), script).unwrap();
        fs::set_permissions(folder.join("new"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::rename(folder.join("new"), &path).unwrap();
        path
    }

    fn times_asked(folder: &Path) -> usize {
        fs::read_to_string(folder.join("asked"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    #[test]
    fn asks_once_for_each_program() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("version");
        let path = program(folder.path(), "3.3a");
        for _ in 0..3 {
            assert_eq!(version_cache(&cache, &path).unwrap().to_string(), "3.3a");
        }
        assert_eq!(times_asked(folder.path()), 1);
        program(folder.path(), "3.10");
        assert_eq!(version_cache(&cache, &path).unwrap().to_string(), "3.10");
        fs::write(&cache, "nonsense").unwrap();
        assert_eq!(version_cache(&cache, &path).unwrap().to_string(), "3.10");
        assert_eq!(times_asked(folder.path()), 3);
    }

    #[test]
    fn a_cache_that_cannot_be_kept_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = program(folder.path(), "3.3a");
        let nowhere = folder.path().join("missing/version");
        assert_eq!(version_cache(&nowhere, &path).unwrap().to_string(), "3.3a");
        let missing = version_cache(&nowhere, Path::new("/nonexistent/tmux"));
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotInstalled);
    }
}
