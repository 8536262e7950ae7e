//! Where a server listens.
//!
//! A socket is the default one, a name in tmux's own folder (`tmux -L name`), or a path
//! (`tmux -S path`). This module computes the path that tmux itself would use; it opens
//! nothing.

mod usable;

use std::fmt;
use std::path::{Path, PathBuf};

/// The socket of a tmux server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Socket {
    /// The one that a bare `tmux` talks to.
    #[default]
    Default,
    /// A name in tmux's folder: `tmux -L name`.
    Name(String),
    /// A path of its own: `tmux -S path`.
    Path(PathBuf),
}

impl Socket {
    /// Reads a setting: empty or `default` is the default socket, an absolute path is a path,
    /// and anything else is a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "default" => Self::Default,
            path if path.starts_with('/') => Self::Path(PathBuf::from(path)),
            name => Self::Name(name.to_owned()),
        }
    }

    /// The socket's path.
    ///
    /// This reads `TMUX_TMPDIR` from the process's environment, as tmux does. Give the folder
    /// to [`path_in`](Self::path_in) to be independent of it; a [`crate::Server`] takes it by
    /// [`with_tmpdir`](crate::Server::with_tmpdir).
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let folder = std::env::var_os("TMUX_TMPDIR").map(PathBuf::from);
        self.path_in(folder.as_deref())
    }

    /// Returns why no server can ever listen on this path of the socket.
    pub(crate) fn obstacle(&self, path: &Path) -> Option<String> {
        usable::obstacle(self, path)
    }

    /// The socket's path with this folder in the place of `TMUX_TMPDIR`.
    #[must_use]
    pub fn path_in(&self, tmpdir: Option<&Path>) -> PathBuf {
        let name = match self {
            Self::Path(path) => return path.clone(),
            Self::Name(name) => name.as_str(),
            Self::Default => "default",
        };
        // tmux skips a folder that does not exist, and resolves links in the one it takes.
        let folder = tmpdir
            .filter(|folder| !folder.as_os_str().is_empty())
            .and_then(|folder| folder.canonicalize().ok())
            .or_else(|| Path::new("/tmp").canonicalize().ok())
            .unwrap_or_else(|| PathBuf::from("/tmp"));
        let user = rustix::process::getuid().as_raw();
        folder.join(format!("tmux-{user}")).join(name)
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_setting() {
        assert_eq!(Socket::parse(""), Socket::Default);
        assert_eq!(Socket::parse("default"), Socket::Default);
        assert_eq!(Socket::parse("/run/x"), Socket::Path("/run/x".into()));
        assert_eq!(Socket::parse("gt"), Socket::Name("gt".into()));
        assert_eq!(Socket::parse("gt").to_string(), "gt");
    }

    #[test]
    fn computes_the_path_as_tmux_does() {
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::getuid().as_raw();
        let expected = folder
            .path()
            .canonicalize()
            .unwrap()
            .join(format!("tmux-{user}/gt"));
        assert_eq!(
            Socket::Name("gt".into()).path_in(Some(folder.path())),
            expected
        );

        let missing = folder.path().join("missing");
        let fallback = Socket::Default.path_in(Some(&missing));
        assert!(
            fallback.ends_with(format!("tmux-{user}/default")),
            "{fallback:?}"
        );
        assert_eq!(fallback, Socket::Default.path_in(None));
    }
}
