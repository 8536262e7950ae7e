//! What the engine needs to know of the process that calls it.
//!
//! Only the binary reads the environment; it hands over a copy here, so that
//! everything below can be run in a test with surroundings of its own.

mod login;

pub use login::Login;

use gt_core::Problem;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The name of this machine.
pub(crate) fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The caller's environment, folder and binary.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub env: BTreeMap<String, String>,
    /// The absolute path of our own binary, for hooks and status lines.
    pub gt: PathBuf,
    pub current_dir: PathBuf,
    pub cancel: Cancel,
    pub patience: Patience,
    pub login: Login,
}

impl Surroundings {
    /// A variable that is set and not empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub fn home(&self) -> Option<&Path> {
        self.var("HOME").map(Path::new)
    }

    /// The `PATH` for an agent: the caller's, by which its program was found, and
    /// ours at the end, so that it can call `gt`. A tmux server keeps the one it
    /// was started with, which may be another's.
    pub fn agents_path(&self) -> Option<String> {
        self.with_own_folder(self.var("PATH")?)
    }

    /// A `PATH` with our own folder at its end.
    pub fn with_own_folder(&self, path: &str) -> Option<String> {
        let own = self.gt.parent()?.to_str()?;
        if path.split(':').any(|dir| dir == own) || own.contains(':') {
            return Some(path.to_owned());
        }
        Some(format!("{path}:{own}"))
    }

    /// Where a program is, as the shell would find it.
    pub fn find_program(&self, program: &str) -> Option<PathBuf> {
        if program == "{gt}" {
            return Some(self.gt.clone());
        }
        if program.contains('/') {
            let path = match (program.strip_prefix("~/"), self.home()) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => self.current_dir.join(program),
            };
            return is_executable(&path).then_some(path);
        }
        self.var("PATH")?
            .split(':')
            .filter(|dir| !dir.is_empty())
            .map(|dir| self.current_dir.join(dir).join(program))
            .find(|path| is_executable(path))
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// How long others are waited for who hold a lock, or do not answer: as long as is usual with
/// each, or in a hook only until a moment that is the last for all of them together. The
/// programs that call hooks do not wait longer themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    pub(crate) until: Option<Instant>,
}

impl Patience {
    /// For so long in all, from now on.
    pub fn lasting(time: Duration) -> Self {
        Patience {
            until: Some(Instant::now() + time),
        }
    }

    /// For one of them. What is free is had in no time.
    pub(crate) fn at_most(self, usual: Duration) -> Duration {
        self.until.map_or(usual, |until| {
            until.saturating_duration_since(Instant::now()).min(usual)
        })
    }
}

/// Set when the person asked to stop (Ctrl-C) or has gone; long work looks at it and undoes
/// what is half done.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// The flag that a signal handler sets.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> crate::Result<()> {
        if self.is_set() {
            return Err(Problem::failed("interrupted"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_waits_of_a_hook_end_at_the_same_moment() {
        let usual = Duration::from_secs(30);
        assert_eq!(Patience::default().at_most(usual), usual);
        let short = Patience::lasting(Duration::from_secs(5));
        assert!(short.at_most(usual) <= Duration::from_secs(5));
        assert_eq!(short.at_most(Duration::ZERO), Duration::ZERO);
        let over = Patience::lasting(Duration::ZERO);
        assert_eq!(over.at_most(usual), Duration::ZERO);
    }
}
