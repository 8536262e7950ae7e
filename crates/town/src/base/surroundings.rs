//! The engine's view of the calling process.
//!
//! Only the binary reads the environment of the process. It passes a copy to the engine, so that
//! tests can run the engine with other values.

mod login;

pub use login::Login;

use crate::base::clock::Clock;
use gt_core::Problem;
use gt_core::capability::Capability;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Returns the name of this machine.
pub(crate) fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The environment, current folder and binary of the calling process, and its limits: cancellation
/// and deadline.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub env: BTreeMap<String, String>,
    /// The absolute path of our own binary, for hooks and status lines.
    pub gt: PathBuf,
    pub current_dir: PathBuf,
    /// The names of the command that runs, without its arguments: `gt mail send`.
    pub command: String,
    /// The capability that it needs for each agent or item that it changes.
    pub capability: Option<Capability>,
    pub cancel: Cancel,
    pub deadline: Deadline,
    pub login: Login,
    pub clock: Clock,
    /// Settings of a repository that git may use although they name a program (`git.allow`).
    pub git_allow: Vec<String>,
    /// Whether this process has written an event.
    pub has_noted: EventFlag,
}

/// A flag that all copies of the surroundings share: an event was written.
#[derive(Clone, Debug, Default)]
pub struct EventFlag(Arc<AtomicBool>);

impl EventFlag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Surroundings {
    /// Returns the value of a variable; `None` if it is unset or empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub fn home(&self) -> Option<&Path> {
        self.var("HOME").map(Path::new)
    }

    /// Returns the `PATH` for an agent: the caller's `PATH`, in which the agent's program was
    /// found, followed by the folder of our binary, so that the agent can call `gt`. The agent
    /// cannot inherit it from the tmux server, whose `PATH` may be different.
    pub fn agents_path(&self) -> Option<String> {
        self.with_own_folder(self.var("PATH")?)
    }

    /// Appends the folder of our binary to a `PATH`, unless it is already in it.
    pub fn with_own_folder(&self, path: &str) -> Option<String> {
        let own = self.gt.parent()?.to_str()?;
        if path.split(':').any(|dir| dir == own) || own.contains(':') {
            return Some(path.to_owned());
        }
        Some(format!("{path}:{own}"))
    }

    /// Returns the path of a program, as the shell would find it.
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

/// Limit on the time spent waiting for locks and for processes that do not answer. By default each
/// wait has only its own timeout. In a hook, one deadline limits all waits together, because the
/// program that calls the hook stops waiting at that time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline {
    pub(crate) until: Option<Instant>,
}

impl Deadline {
    /// Returns the deadline that is `time` from now.
    pub fn after(time: Duration) -> Self {
        Deadline {
            until: Some(Instant::now() + time),
        }
    }

    /// Returns the timeout of one wait: its usual timeout, limited by the deadline.
    pub(crate) fn at_most(self, usual: Duration) -> Duration {
        self.until.map_or(usual, |until| {
            until.saturating_duration_since(Instant::now()).min(usual)
        })
    }
}

/// Cancellation flag, set when the person presses Ctrl-C or closes the terminal. Long operations
/// check it and roll back.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Returns the flag that a signal handler sets.
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
        assert_eq!(Deadline::default().at_most(usual), usual);
        let short = Deadline::after(Duration::from_secs(5));
        assert!(short.at_most(usual) <= Duration::from_secs(5));
        assert_eq!(short.at_most(Duration::ZERO), Duration::ZERO);
        let over = Deadline::after(Duration::ZERO);
        assert_eq!(over.at_most(usual), Duration::ZERO);
    }
}
