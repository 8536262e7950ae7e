//! The real `git`, called with arguments and never through a shell.

mod status;

pub(crate) use status::Status;

use crate::program::{self, Limits};
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

    /// With an address that a repository names, and no person: only the protocols are allowed
    /// that git allows for submodules.
    #[must_use]
    pub fn as_for_submodules(self) -> Self {
        Git {
            for_submodules: true,
            ..self
        }
    }

    /// The same without the hooks of the repository: they are for those who work there, and
    /// one that fails would leave half of what we do.
    #[must_use]
    pub fn without_hooks(self) -> Self {
        Git {
            without_hooks: true,
            ..self
        }
    }

    /// The same for the repository of this very folder: one around it is not asked.
    #[must_use]
    pub fn own_alone(self) -> Self {
        Git {
            own_alone: true,
            ..self
        }
    }

    /// The same with another index than the worktree's own, which stays as it is.
    #[must_use]
    pub fn with_index(self, index: &'a Path) -> Self {
        Git {
            index: Some(index),
            ..self
        }
    }

    /// The same with a time limit.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Git {
            limit: Some(limit),
            ..self
        }
    }

    /// The same, whatever anybody wants: what takes back half a change must not be cut off
    /// by the very Ctrl-C that it answers.
    #[must_use]
    pub fn to_the_end(self) -> Self {
        Git {
            to_the_end: true,
            ..self
        }
    }

    /// Runs git and gives its standard output, trimmed at the end.
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

    /// The same for a command that says no by exit code 1: whether it said yes, and its
    /// output.
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
        // Nothing of ours may go on in the background after we have answered.
        command.args(["-c", "maintenance.auto=false", "-c", "gc.auto=0"]);
        if self.without_hooks {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command.args(args);
        command
            .env_clear()
            .envs(self.around.env.iter().filter(|(name, _)| passes(name)))
            // What it says and writes is read by us.
            .env("LC_ALL", "C")
            .env_remove("LANGUAGE")
            // Nobody is there to type a password: fail instead of hanging.
            .env("GIT_TERMINAL_PROMPT", "0")
            // Who only looks must not keep an agent from its commit.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            // Ctrl-C at the terminal must not cut git off in the middle of a change.
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
            // It takes back what it has begun, however long that takes.
            grace: None,
        };
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

    /// Whether a git command that answers by its exit code says yes.
    pub fn says<I, S>(&self, args: I) -> bool
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.run(args).is_ok()
    }
}

/// The folder in which git keeps what is a worktree's own. Two small files are read in no
/// time where a process is not.
pub(crate) fn own_dir(dir: &Path) -> Option<PathBuf> {
    let link = dir.join(".git");
    match fs::read_to_string(&link) {
        Ok(text) => Some(dir.join(text.strip_prefix("gitdir: ")?.trim_end())),
        // In a repository of its own it is a folder.
        Err(_) => link.is_dir().then_some(link),
    }
}

/// The files of git's that say what is checked out in a worktree, and what was done with it:
/// a commit, a merge, a checkout writes at least one of them. Not all have to be there.
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

/// The folder in which git keeps what all worktrees of a repository have in common.
fn common_dir(own: &Path) -> PathBuf {
    let Ok(text) = fs::read_to_string(own.join("commondir")) else {
        return own.to_owned();
    };
    // It is told from here, and watched by a name that does not go up and down.
    let dir = own.join(text.trim_end());
    dir.canonicalize().unwrap_or(dir)
}

fn failure(shown: &str, output: &Output) -> Problem {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let problem = Problem::failed(format!("`{shown}` failed ({})", output.status));
    // It may have nothing to say.
    match stderr.trim() {
        "" => problem,
        said => problem.cause(said.to_owned()),
    }
}

/// Whether a variable may stay: not those that would make git look at another repository
/// than the one named.
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

/// Hides `user:password@` of a URL: errors end up in logs.
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

/// Whether a merge was begun in a worktree and is not over.
pub fn is_merging(dir: &Path) -> bool {
    own_dir(dir).is_some_and(|own| own.join("MERGE_HEAD").exists())
}

/// Who commits: the person whose machine it is, or gt where git knows nobody.
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
