//! Keeps git from running programs that a repository's configuration names.
//!
//! Every worktree of a rig shares one configuration file, and an agent can write to it. A git call of
//! a person's `gt` would then run the agent's program with the person's environment. So each call
//! overrides the settings that name a program. Settings of the person's own configuration (global
//! and system) stay in effect.
//!
//! Git also enters the repositories inside a worktree ([`super::nested`]), whose configuration an agent
//! in a sandbox can write as well. Their settings are overridden in the same way, because git passes
//! these overrides on.
//!
//! A program that rewrites the configuration between our read and git's own read is not stopped
//! here; only a sandbox in which the file is read-only does that.

use super::config::{self, Entry};
use super::nested;
use crate::Surroundings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Settings that every call gets, whatever the repository says.
const ALWAYS: &[(&str, &str)] = &[
    // No background process may continue after the command has returned.
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
    ("core.fsmonitor", "false"),
    // The transport `ext::` runs its address as a command.
    ("protocol.ext.allow", "never"),
    // Other values run git in repositories inside the worktree, without [`Hardening::options`].
    ("diff.submodule", "short"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
];

/// Subcommands that do not enter repositories inside a worktree.
const NEVER_ENTER: &[&str] = &[
    "branch",
    "cat-file",
    "clone",
    "commit-tree",
    "config",
    "fetch",
    "for-each-ref",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "push",
    "remote",
    "rev-list",
    "rev-parse",
    "show",
    "show-ref",
    "symbolic-ref",
    "tag",
    "update-ref",
    "write-tree",
];

/// Option of a push to a repository on this machine that runs none of its programs. Git does not pass
/// the overrides of the pushing repository on to it.
pub(super) const PLAIN_RECEIVE_PACK: &str = concat!(
    "--receive-pack=git -c core.hooksPath=/dev/null -c core.fsmonitor=false",
    " -c core.alternateRefsCommand=true -c receive.denyCurrentBranch=refuse",
    " -c receive.autogc=false receive-pack"
);

/// The setting that disables all hooks.
const NO_HOOKS: (&str, &str) = ("core.hooksPath", "/dev/null");

/// How a setting that names a program is overridden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Override {
    With(&'static str),
    /// No value switches it off; options of the diff commands do.
    DiffOptions,
    /// Of several values git uses the first, so only options of the transfer commands help.
    TransferOptions,
}

use Override::{DiffOptions, TransferOptions, With};

/// The settings that name a program: section, name, replacement. A subsection may stand between
/// section and name.
const PROGRAMS: &[(&str, &str, Override)] = &[
    ("core", "sshcommand", With("ssh")),
    ("core", "gitproxy", With("none")),
    ("core", "pager", With("cat")),
    ("core", "editor", With(":")),
    ("core", "askpass", With("")),
    ("core", "alternaterefscommand", With("true")),
    ("sequence", "editor", With(":")),
    ("interactive", "difffilter", With("cat")),
    ("pager", "*", With("true")),
    // An empty value clears the list of helpers.
    ("credential", "helper", With("")),
    ("diff", "external", DiffOptions),
    ("diff", "command", DiffOptions),
    ("diff", "textconv", DiffOptions),
    // The built-in merge of text files, as a driver.
    (
        "merge",
        "driver",
        With("git merge-file --quiet --marker-size=%L %A %O %B"),
    ),
    ("filter", "clean", With("")),
    ("filter", "smudge", With("")),
    ("filter", "process", With("")),
    ("filter", "required", With("false")),
    ("gpg", "program", With("gpg")),
    ("gpg", "defaultkeycommand", With("")),
    ("trailer", "command", With("")),
    ("trailer", "cmd", With("")),
    ("remote", "uploadpack", TransferOptions),
    ("remote", "receivepack", TransferOptions),
    ("submodule", "update", With("checkout")),
    ("gc", "recentobjectshook", With("")),
    // Git LFS reads the repository's configuration too.
    ("lfs", "path", With("")),
    ("lfs", "clean", With("")),
    ("lfs", "smudge", With("")),
];

/// The settings of `git lfs install`. They name a program of the machine and nothing else.
const LFS: &[(&str, &[&str])] = &[
    ("filter.lfs.clean", &["git-lfs clean -- %f"]),
    (
        "filter.lfs.smudge",
        &["git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"],
    ),
    (
        "filter.lfs.process",
        &["git-lfs filter-process", "git-lfs filter-process --skip"],
    ),
    ("filter.lfs.required", &["true"]),
];

/// A setting of a repository that git does not get to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredSetting {
    pub key: String,
    pub value: String,
    pub file: PathBuf,
}

/// The overrides for one repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hardening {
    overrides: BTreeMap<String, &'static str>,
    without_diff_programs: bool,
    without_remote_programs: bool,
    allows_hooks: bool,
    /// The folder of the worktree, if a setting leads git to another one.
    worktree: Option<PathBuf>,
    pub(crate) ignored: Vec<IgnoredSetting>,
}

impl Hardening {
    /// Reads the configuration of the repository at `dir`. The town's `git.allow` has the names of
    /// settings that the person wants to be used, such as `core.sshCommand` or `filter.crypt.*`.
    pub(crate) fn of(dir: &Path, around: &Surroundings) -> Self {
        let allow = &around.git_allow;
        let mut found = Hardening {
            allows_hooks: is_allowed("core.hookspath", allow),
            ..Hardening::default()
        };
        for file in config::files_of(dir) {
            config::read(&file, around.home(), &mut |entry| {
                found.consider(entry, allow);
            });
        }
        if !is_allowed("core.worktree", allow) {
            found.worktree = config::redirected_worktree(dir);
        }
        found
    }

    /// Reads the configuration of the repository at `dir`, and of the repositories inside it if the
    /// subcommand enters them.
    pub(crate) fn for_command(dir: &Path, around: &Surroundings, subcommand: &str) -> Self {
        let mut found = Self::of(dir, around);
        if NEVER_ENTER.contains(&subcommand) {
            return found;
        }
        for inside in nested::repositories(dir, around) {
            for file in config::files_of(&inside) {
                config::read(&file, around.home(), &mut |entry| {
                    found.consider(entry, &around.git_allow);
                });
            }
        }
        found
    }

    fn consider(&mut self, entry: Entry<'_>, allow: &[String]) {
        let Some(replacement) = replacement(&entry) else {
            return;
        };
        if is_allowed(&entry.key, allow) || is_lfs(&entry) {
            return;
        }
        match replacement {
            With(value) => {
                self.overrides.insert(entry.key.clone(), value);
            }
            DiffOptions => self.without_diff_programs = true,
            TransferOptions => self.without_remote_programs = true,
        }
        self.ignored.push(IgnoredSetting {
            key: entry.key,
            value: entry.value,
            file: entry.file.to_owned(),
        });
    }

    /// Returns the options that the subcommand needs in addition.
    pub(crate) fn options(&self, subcommand: &str) -> &'static [&'static str] {
        match subcommand {
            "diff" | "log" | "show" if self.without_diff_programs => {
                &["--no-ext-diff", "--no-textconv"]
            }
            "fetch" | "ls-remote" if self.without_remote_programs => {
                &["--upload-pack=git-upload-pack"]
            }
            "push" if self.without_remote_programs => &["--receive-pack=git-receive-pack"],
            _ => &[],
        }
    }

    /// Adds the overrides to the environment of a git, or of a program that calls git. Variables do
    /// not lengthen the command that an error message shows. Overrides that the caller has set in
    /// the same way stay.
    pub(crate) fn apply(&self, command: &mut Command, env: &BTreeMap<String, String>, hooks: bool) {
        let count = env.get("GIT_CONFIG_COUNT");
        let mut next: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        let no_hooks = (!(hooks && self.allows_hooks)).then_some(NO_HOOKS);
        let found = self
            .overrides
            .iter()
            .map(|(key, value)| (key.as_str(), *value));
        for (key, value) in ALWAYS.iter().copied().chain(no_hooks).chain(found) {
            command.env(format!("GIT_CONFIG_KEY_{next}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{next}"), value);
            next += 1;
        }
        command.env("GIT_CONFIG_COUNT", next.to_string());
        if let Some(worktree) = &self.worktree {
            command.env("GIT_WORK_TREE", worktree);
        }
    }
}

fn replacement(entry: &Entry<'_>) -> Option<Override> {
    let (section, name) = entry.ends();
    let row = PROGRAMS
        .iter()
        .find(|row| row.0 == section && (row.1 == name || row.1 == "*"))?;
    Some(row.2)
}

/// Returns whether the person allows a setting: by its name, or by the beginning of its name and a
/// star. Case is ignored, although git distinguishes it in subsections.
fn is_allowed(key: &str, allow: &[String]) -> bool {
    allow.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(start) => {
            let begins = key.get(..start.len());
            begins.is_some_and(|begins| begins.eq_ignore_ascii_case(start))
        }
        None => key.eq_ignore_ascii_case(allowed),
    })
}

fn is_lfs(entry: &Entry<'_>) -> bool {
    LFS.iter()
        .any(|(key, values)| *key == entry.key && values.contains(&entry.value.as_str()))
}

#[cfg(test)]
mod tests;
