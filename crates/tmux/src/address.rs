//! The socket on which a server listens.
//!
//! A socket is the default one, a name in tmux's own folder (`tmux -L name`), or a path
//! (`tmux -S path`). This module computes the path that tmux itself would use; it opens nothing.

mod usable;

use std::fmt;
use std::path::{Path, PathBuf};

/// The socket of a tmux server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Socket {
    /// The default socket, which `tmux` uses without `-L` and `-S`.
    #[default]
    Default,
    /// A name in tmux's folder: `tmux -L name`.
    Name(String),
    /// An explicit path: `tmux -S path`.
    Path(PathBuf),
}

impl Socket {
    /// Parses a setting: empty or `default` is the default socket, an absolute path is a path, and
    /// anything else is a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "default" => Self::Default,
            path if path.starts_with('/') => Self::Path(PathBuf::from(path)),
            name => Self::Name(name.to_owned()),
        }
    }

    /// Returns the path of the socket.
    ///
    /// Reads `TMUX_TMPDIR` from the environment of the process, as tmux does. Use
    /// [`path_in`](Self::path_in) to pass the folder explicitly; a [`crate::Server`] takes it by
    /// [`with_tmpdir`](crate::Server::with_tmpdir).
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let folder = std::env::var_os("TMUX_TMPDIR").map(PathBuf::from);
        self.path_in(folder.as_deref())
    }

    /// Returns the reason why no server can listen on `path`, or `None` if one could.
    pub(crate) fn obstacle(&self, path: &Path) -> Option<String> {
        usable::obstacle(self, path)
    }

    /// Returns the path of the socket, with `tmpdir` in place of `TMUX_TMPDIR`.
    #[must_use]
    pub fn path_in(&self, tmpdir: Option<&Path>) -> PathBuf {
        let name = match self {
            Self::Path(path) => return path.clone(),
            Self::Name(name) => name.as_str(),
            Self::Default => "default",
        };
        // tmux ignores a folder that does not exist, and resolves symbolic links.
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
