//! Runs the real `git`, with arguments and never through a shell.

mod status;

pub(crate) use status::WorktreeStatus;

use crate::base::program::{self, Limits};
use crate::{Result, Surroundings};
use gt_core::Problem;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A `git` for one folder.
#[derive(Clone, Copy, Debug)]
pub struct Git<'a> {
    dir: &'a Path,
    around: &'a Surroundings,
    limit: Option<Duration>,
    to_the_end: bool,
    index: Option<&'a Path>,
    without_hooks: bool,
    own_alone: bool,
    for_submodules: bool,
}

impl<'a> Git<'a> {
    pub fn at(dir: &'a Path, around: &'a Surroundings) -> Self {
        Git {
            dir,
            around,
            limit: None,
            to_the_end: false,
            index: None,
            without_hooks: false,
            own_alone: false,
            for_submodules: false,
        }
    }

    /// Allows only the protocols that git allows for submodules, for an address that comes from a
    /// repository and not from a person.
    #[must_use]
    pub fn as_for_submodules(self) -> Self {
        Git {
            for_submodules: true,
            ..self
        }
    }

    /// Disables the repository's hooks: they are meant for its developers, and a failing hook would
    /// interrupt our operation halfway.
    #[must_use]
    pub fn without_hooks(self) -> Self {
        Git {
            without_hooks: true,
            ..self
        }
    }

    /// Restricts git to the repository of this folder, and never uses a repository around it.
    #[must_use]
    pub fn own_alone(self) -> Self {
        Git {
            own_alone: true,
            ..self
        }
    }

    /// Uses another index than the worktree's own, which stays unchanged.
    #[must_use]
    pub fn with_index(self, index: &'a Path) -> Self {
        Git {
            index: Some(index),
            ..self
        }
    }

    /// Sets a timeout.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Git {
            limit: Some(limit),
            ..self
        }
    }

    /// Ignores cancellation: the rollback of a change must not be interrupted by the Ctrl-C that
    /// caused it.
    #[must_use]
    pub fn to_the_end(self) -> Self {
        Git {
            to_the_end: true,
            ..self
        }
    }

    /// Runs git and returns its standard output without trailing whitespace.
    pub fn run<I, S>(&self, args: I) -> Result<String>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let (command, shown) = self.command(args);
        let output = self.output(command, &shown)?;
        if output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            return Ok(text.trim_end().to_owned());
        }
        Err(failure(&shown, &output))
    }

    /// Runs a git command that answers "no" with exit code 1. Returns the answer and the output.
    pub fn ask<I, S>(&self, args: I) -> Result<(bool, String)>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let (command, shown) = self.command(args);
        let output = self.output(command, &shown)?;
        match output.status.code() {
            Some(code @ (0 | 1)) => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                Ok((code == 0, text))
            }
            _ => Err(failure(&shown, &output)),
        }
    }

    fn command<I, S>(&self, args: I) -> (Command, String)
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.dir);
        // No background process may continue after the command has returned.
        command.args(["-c", "maintenance.auto=false", "-c", "gc.auto=0"]);
        if self.without_hooks {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command.args(args);
        command
            .env_clear()
            .envs(self.around.env.iter().filter(|(name, _)| passes(name)))
            // Our code parses its output.
            .env("LC_ALL", "C")
            .env_remove("LANGUAGE")
            // No person is there to type a password: fail instead of hanging.
            .env("GIT_TERMINAL_PROMPT", "0")
            // A read-only command must not block an agent's commit.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            // Ctrl-C in the terminal must not interrupt git in the middle of a change.
            .process_group(0);
        if let (true, Some(around)) = (self.own_alone, self.dir.parent()) {
            command.env("GIT_CEILING_DIRECTORIES", around);
        }
        if self.for_submodules {
            command.env("GIT_PROTOCOL_FROM_USER", "0");
        }
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let shown = describe(&command);
        (command, shown)
    }

    fn output(&self, command: Command, shown: &str) -> Result<Output> {
        let limits = Limits {
            time: self.limit,
            cancel: (!self.to_the_end).then_some(&self.around.cancel),
            // No limit: git rolls back what it has begun, however long that takes.
            grace: None,
        };
        tracing::debug!("{shown}, in {}", self.dir.display());
        match program::output(command, &limits) {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(reason)) => {
                self.around.cancel.check()?;
                Err(Problem::failed(format!("`{shown}` was stopped: {reason}")))
            }
            Err(error) => {
                let problem = Problem::environment("cannot run git").caused_by(&error);
                Err(match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        problem.hint("install git: `apt-get install git`, `brew install git`")
                    }
                    _ => problem,
                })
            }
        }
    }

    /// Returns whether a git command that answers with its exit code succeeds.
    pub fn says<I, S>(&self, args: I) -> bool
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.run(args).is_ok()
    }
}

/// Returns git's private folder of a worktree. Reading one small file is much faster than starting
/// a process.
pub(crate) fn own_dir(dir: &Path) -> Option<PathBuf> {
    let link = dir.join(".git");
    match fs::read_to_string(&link) {
        Ok(text) => Some(dir.join(text.strip_prefix("gitdir: ")?.trim_end())),
        // In a main worktree `.git` is a folder.
        Err(_) => link.is_dir().then_some(link),
    }
}

/// Returns the git files that describe the checkout of a worktree. A commit, a merge or a checkout
/// writes at least one of them. Not all of them need to exist.
pub(crate) fn own_files(dir: &Path) -> Vec<PathBuf> {
    let Some(own) = own_dir(dir) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = ["HEAD", "index", "MERGE_HEAD"]
        .iter()
        .map(|name| own.join(name))
        .collect();
    let head = fs::read_to_string(own.join("HEAD")).unwrap_or_default();
    if let Some(branch) = head.strip_prefix("ref: ") {
        files.push(common_dir(&own).join(branch.trim_end()));
    }
    files
}

/// Returns the git folder that all worktrees of a repository share.
fn common_dir(own: &Path) -> PathBuf {
    let Ok(text) = fs::read_to_string(own.join("commondir")) else {
        return own.to_owned();
    };
    // The path is relative to `own`; a watcher needs it without `..`.
    let dir = own.join(text.trim_end());
    dir.canonicalize().unwrap_or(dir)
}

fn failure(shown: &str, output: &Output) -> Problem {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let problem = Problem::failed(format!("`{shown}` failed ({})", output.status));
    // Git may print nothing.
    match stderr.trim() {
        "" => problem,
        said => problem.cause(said.to_owned()),
    }
}

/// Returns whether a variable is passed to git. Variables that select another repository are
/// removed.
pub(crate) fn passes(name: &str) -> bool {
    !matches!(
        name,
        "GIT_DIR"
            | "GIT_WORK_TREE"
            | "GIT_INDEX_FILE"
            | "GIT_OBJECT_DIRECTORY"
            | "GIT_COMMON_DIR"
            | "GIT_NAMESPACE"
            | "GIT_CEILING_DIRECTORIES"
    )
}

fn describe(command: &Command) -> String {
    let words = command
        .get_args()
        .map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = std::iter::once("git".to_owned()).chain(words).collect();
    without_password(&words.join(" "))
}

/// Hides `user:password@` in URLs: errors end up in logs.
pub fn without_password(text: &str) -> String {
    text.split(' ')
        .map(|word| match (word.find("://"), word.find('@')) {
            (Some(scheme), Some(at)) if at > scheme => {
                format!("{}://…{}", &word[..scheme], &word[at..])
            }
            _ => word.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns whether a merge is in progress in a worktree.
pub fn is_merging(dir: &Path) -> bool {
    own_dir(dir).is_some_and(|own| own.join("MERGE_HEAD").exists())
}

/// Returns the options that set the committer to gt, if git has no user configured.
pub(crate) fn committer(git: Git<'_>) -> Vec<&'static str> {
    match git.says(["config", "--get", "user.email"]) {
        true => Vec::new(),
        false => vec!["-c", "user.name=gt", "-c", "user.email=gt@localhost"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(
            without_password("git clone https://me:secret@host/x.git y"),
            "git clone https://…@host/x.git y"
        );
        assert_eq!(
            without_password("git clone git@host:x.git"),
            "git clone git@host:x.git"
        );
    }
}
