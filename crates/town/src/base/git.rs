//! Runs the real `git`, with arguments and never through a shell.

mod config;
mod hardening;
mod nested;
mod refs;
mod status;

pub(crate) use hardening::Hardening;
pub use hardening::IgnoredSetting;
pub(crate) use status::WorktreeStatus;

use crate::base::error_enum::error_enum;
use crate::base::program::{self, RunLimits};
use crate::{Result, Surroundings};
use gt_core::Problem;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A git command that did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GitError {
    /// Our own command was cancelled, so the caller must end as well.
    #[error(transparent)]
    Cancelled(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(GitError: Cancelled, Other);

/// A `git` for one folder.
#[derive(Clone, Copy, Debug)]
pub struct Git<'a> {
    dir: &'a Path,
    around: &'a Surroundings,
    limit: Option<Duration>,
    to_the_end: bool,
    index: Option<&'a Path>,
    own_alone: bool,
    for_submodules: bool,
    in_background: bool,
    to_unknown_remote: bool,
}

impl<'a> Git<'a> {
    pub fn at(dir: &'a Path, around: &'a Surroundings) -> Self {
        Git {
            dir,
            around,
            limit: None,
            to_the_end: false,
            index: None,
            own_alone: false,
            for_submodules: false,
            in_background: false,
            to_unknown_remote: false,
        }
    }

    /// Never asks for a password or a host key, not even on the terminal or in a window: another
    /// program owns the terminal, and no person has asked for this call.
    #[must_use]
    pub fn in_background(self) -> Self {
        Git {
            in_background: true,
            ..self
        }
    }

    /// Keeps a push to a repository on this machine from running programs that its hooks and its
    /// configuration name.
    #[must_use]
    pub fn to_unknown_remote(self) -> Self {
        Git {
            to_unknown_remote: true,
            ..self
        }
    }

    /// Allows only the protocols that git allows for submodules, for an address that comes from a
    /// repository and not from a person.
    #[must_use]
    pub fn with_submodule_protocols(self) -> Self {
        Git {
            for_submodules: true,
            ..self
        }
    }

    /// Restricts git to the repository of this folder, and never uses a repository around it.
    #[must_use]
    pub fn only_own_repository(self) -> Self {
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
    pub fn with_time_limit(self, limit: Duration) -> Self {
        Git {
            limit: Some(limit),
            ..self
        }
    }

    /// Ignores cancellation: the rollback of a change must not be interrupted by the Ctrl-C that
    /// caused it.
    #[must_use]
    pub fn uncancellable(self) -> Self {
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

    /// Fetches from the remote of the repository.
    pub(crate) fn fetch(&self) -> Result<(), GitError> {
        let (command, shown) = self.command(["fetch", "--quiet", "origin"]);
        let output = self.output(command, &shown)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failure(&shown, &output).into()),
        }
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
        let args: Vec<OsString> = args
            .into_iter()
            .map(|arg| arg.as_ref().to_owned())
            .collect();
        let (global, rest) = args.split_at(subcommand_at(&args));
        let subcommand = rest.first().map(|name| name.to_string_lossy());
        let subcommand = subcommand.unwrap_or_default();
        let hardening = Hardening::for_command(self.dir, self.around, &subcommand);
        let mut command = Command::new("git");
        command.arg("-C").arg(self.dir).args(global);
        if let [name, words @ ..] = rest {
            let options = hardening.options(&subcommand);
            command.arg(name).args(options);
            if self.to_unknown_remote && subcommand == "push" {
                command.arg(hardening::PLAIN_RECEIVE_PACK);
            }
            command.args(words);
        }
        command
            .env_clear()
            .envs(self.around.env.iter().filter(|(name, _)| passes(name)))
            // Our code parses its output.
            .env("LC_ALL", "C")
            .env_remove("LANGUAGE")
            // There is no person to type a password: git must fail instead of waiting for one.
            .env("GIT_TERMINAL_PROMPT", "0")
            // A read-only command must not block an agent's commit.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null())
            // Ctrl-C in the terminal must not interrupt git in the middle of a change.
            .process_group(0);
        // Hooks run only during a push: Git LFS uploads its files in `pre-push`. All other hooks
        // serve the developers of the repository.
        hardening.apply(&mut command, &self.around.env, subcommand == "push");
        if let (true, Some(around)) = (self.own_alone, self.dir.parent()) {
            command.env("GIT_CEILING_DIRECTORIES", around);
        }
        if self.for_submodules {
            command.env("GIT_PROTOCOL_FROM_USER", "0");
        }
        if self.in_background {
            // Git and ssh ask this program, which answers nothing.
            command
                .env("GIT_ASKPASS", "false")
                .env("SSH_ASKPASS", "false")
                .env("SSH_ASKPASS_REQUIRE", "force");
        }
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let shown = describe(&command);
        (command, shown)
    }

    fn output(&self, command: Command, shown: &str) -> Result<Output, GitError> {
        let limits = RunLimits {
            time: self.limit,
            cancel: (!self.to_the_end).then_some(&self.around.cancel),
            // No KILL after TERM: git rolls back its operation, however long that takes.
            grace: None,
        };
        tracing::debug!("{shown}, in {}", self.dir.display());
        match program::output(command, &limits) {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(reason)) => {
                self.around.cancel.check().map_err(GitError::Cancelled)?;
                Err(Problem::failed(format!("`{shown}` was stopped: {reason}")).into())
            }
            Err(error) => {
                let problem = Problem::environment("cannot run git").caused_by(&error);
                let problem = match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        problem.hint("install git: `apt-get install git`, `brew install git`")
                    }
                    _ => problem,
                };
                Err(problem.into())
            }
        }
    }

    /// Runs a git command that answers with its exit code: 0 is yes, 1 is no. Any other code is an
    /// error, as is a git that cannot be run.
    pub fn says<I, S>(&self, args: I) -> Result<bool>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.ask(args).map(|(yes, _)| yes)
    }

    /// Runs a git command that looks something up and exits with 1 if it does not exist. Returns
    /// its output without trailing whitespace.
    pub fn find<I, S>(&self, args: I) -> Result<Option<String>>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let (is_there, text) = self.ask(args)?;
        Ok(is_there.then(|| text.trim_end().to_owned()))
    }

    /// Returns the commit of a branch or of another ref to a commit, by its full name; `None` if it
    /// does not exist. Starts git only if the ref is not in a plain file.
    pub fn ref_commit(&self, name: &str) -> Result<Option<String>> {
        match refs::commit(self.dir, name) {
            Some(commit) => Ok(commit),
            None => self.commit(name),
        }
    }

    /// Returns the commit of a name; `None` if it does not exist.
    pub fn commit(&self, name: &str) -> Result<Option<String>> {
        let name = format!("{name}^{{commit}}");
        self.find([
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ])
    }

    /// Returns whether `part` is an ancestor of `whole`; `false` if one of them does not exist.
    pub fn contains(&self, whole: &str, part: &str) -> Result<bool> {
        self.says(["merge-base", "--is-ancestor", part, whole])
            .or_else(|problem| {
                let is_missing = self.commit(part)?.is_none() || self.commit(whole)?.is_none();
                is_missing.then_some(false).ok_or(problem)
            })
    }

    /// Runs `rev-list --count` with these arguments. Returns the number of commits.
    pub fn count<I, S>(&self, args: I) -> Result<usize>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let words: Vec<S> = args.into_iter().collect();
        let words = words.iter().map(AsRef::as_ref);
        let count = self.run(
            ["rev-list", "--count"]
                .map(OsStr::new)
                .into_iter()
                .chain(words),
        )?;
        count
            .parse()
            .map_err(|_| Problem::failed(format!("git did not count the commits: {count:?}")))
    }

    /// Returns whether the folder is in a repository. Reads git's message, because git has no
    /// distinct exit code for this.
    pub fn is_repository(&self) -> Result<bool> {
        if !self.dir.is_dir() {
            return Ok(false);
        }
        let (command, shown) = self.command(["rev-parse", "--git-dir"]);
        let output = self.output(command, &shown)?;
        let is_none = String::from_utf8_lossy(&output.stderr).contains("not a git repository");
        match output.status.success() {
            false if !is_none => Err(failure(&shown, &output)),
            answer => Ok(answer),
        }
    }
}

/// Returns the position of the subcommand: the first argument that is no option. The only global
/// option in use that has its value in the next argument is `-c`.
fn subcommand_at(args: &[OsString]) -> usize {
    let is_value = |at: usize| at > 0 && args[at - 1] == "-c";
    let is_option = |at: usize| args[at].as_encoded_bytes().starts_with(b"-");
    let mut places = 0..args.len();
    let found = places.find(|at| !is_value(*at) && !is_option(*at));
    found.unwrap_or(args.len())
}

/// Returns the value of a setting in a configuration file, or in one that it includes; the last one
/// counts. Section and name of the key are in lower case. Reading one small file is much faster than
/// starting a process.
pub(crate) fn setting(file: &Path, key: &str) -> Option<String> {
    let mut found = None;
    config::read(file, None, &mut |entry| {
        if entry.key == key {
            found = Some(entry.value);
        }
    });
    found
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
    // Without a HEAD there is no branch to watch.
    let head = fs::read_to_string(own.join("HEAD")).unwrap_or_default();
    if let Some(branch) = head.strip_prefix("ref: ") {
        files.push(common_dir(&own).join(branch.trim_end()));
    }
    files
}

/// Returns the git folder that all worktrees of a repository share.
pub(crate) fn common_dir(own: &Path) -> PathBuf {
    // A main worktree has no such file: its folder is the shared one.
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
pub(crate) fn committer(git: Git<'_>) -> Result<Vec<&'static str>> {
    Ok(match git.says(["config", "--get", "user.email"])? {
        true => Vec::new(),
        false => vec!["-c", "user.name=gt", "-c", "user.email=gt@localhost"],
    })
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

    /// Returns surroundings whose only variable is `PATH`.
    fn around(path: &str) -> Surroundings {
        Surroundings {
            env: [("PATH".to_owned(), path.to_owned())].into(),
            ..Surroundings::default()
        }
    }

    #[test]
    fn git_that_fails_is_not_a_no() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::env::var("PATH").unwrap();
        let (around, without_git) = (around(&path), around("/nowhere"));
        let git = Git::at(folder.path(), &around).only_own_repository();
        let merged = ["show-ref", "--verify", "--quiet", "refs/heads/main"];
        assert!(git.says(merged).is_err(), "not a repository");
        assert!(!git.is_repository().unwrap());
        git.run(["init", "--quiet"]).unwrap();
        assert!(git.is_repository().unwrap());
        assert!(!git.says(merged).unwrap(), "no such branch");
        assert_eq!(git.commit("HEAD").unwrap(), None);
        assert!(!git.contains("HEAD", "HEAD").unwrap());
        fs::write(folder.path().join(".git/config"), "[broken").unwrap();
        assert!(git.says(merged).is_err());
        assert!(git.commit("HEAD").is_err());
        assert!(git.contains("HEAD", "HEAD").is_err());
        assert!(git.is_repository().is_err());
        assert!(git.count(["HEAD"]).is_err());
        let git = Git::at(folder.path(), &without_git);
        assert!(git.is_repository().is_err(), "git is not installed");
    }
}
