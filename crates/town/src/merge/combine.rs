//! Merging in memory: no file is touched, and no branch.
//!
//! What is under `.beads/` is beads' own, and `bd sync` brings it together: a conflict there
//! does not count, and the work that is brought along keeps its own.

use crate::files::Passing;
use crate::git::Git;
use crate::{Result, Town};
use gt_core::merge::{Refusal, Status};

/// Of these beads takes care.
pub(crate) const BEADS: &str = ".beads/";

/// Two commits that are to become one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    /// The first parent of what comes of it.
    pub(crate) onto: &'a str,
    pub(crate) other: &'a str,
    /// The one of them whose files of beads stay.
    pub(crate) beads_of: &'a str,
    pub(crate) message: &'a str,
}

/// What comes of two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Combined {
    Commit(String),
    /// The files that both have changed, without those of beads.
    Conflict(Vec<String>),
    /// They have no history in common.
    Strangers,
}

impl Combined {
    /// Why it cannot be merged into this branch, if it cannot.
    pub(super) fn refusal(self, branch: &str) -> Option<Refusal> {
        let (reason, files) = match self {
            Combined::Commit(_) => return None,
            Combined::Conflict(files) => {
                let count = files.len();
                let are = if count == 1 { "file is" } else { "files are" };
                (format!("{count} {are} in conflict with {branch}"), files)
            }
            Combined::Strangers => (format!("it has no history in common with {branch}"), vec![]),
        };
        Some(Refusal {
            status: Status::Conflict,
            reason,
            files,
            log: None,
        })
    }
}

/// Makes the commit that has both of these.
pub(crate) fn combine(town: &Town, git: Git<'_>, pair: Pair<'_>) -> Result<Combined> {
    let Pair { onto, other, .. } = pair;
    let (related, _) = git.ask(["merge-base", onto, other])?;
    if !related {
        return Ok(Combined::Strangers);
    }
    // 1 says that there are conflicts; above that it has failed, and is told.
    let (_, answer) = git.ask([
        "merge-tree",
        "--write-tree",
        "--name-only",
        "--no-messages",
        "-z",
        onto,
        other,
    ])?;
    let mut names = answer.split('\0').filter(|name| !name.is_empty());
    let mut tree = names.next().unwrap_or_default().trim().to_owned();
    let mut files: Vec<String> = names.map(str::to_owned).collect();
    files.sort();
    files.dedup();
    let (beads, files): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|name| name.starts_with(BEADS));
    if !files.is_empty() {
        return Ok(Combined::Conflict(files));
    }
    if !beads.is_empty() {
        tree = with_files_of(town, git, &tree, pair.beads_of, &beads)?;
    }
    let mut args = identity(git);
    args.extend(["commit-tree", &tree, "-p", onto, "-p", other]);
    args.extend(["-m", pair.message]);
    git.run(args).map(Combined::Commit)
}

/// A tree with these files as a commit has them.
fn with_files_of(
    town: &Town,
    git: Git<'_>,
    tree: &str,
    commit: &str,
    files: &[String],
) -> Result<String> {
    let index = Passing::new(&town.runtime_dir().join("tmp"), "index")?;
    let git = git.with_index(&index.0);
    git.run(["read-tree", tree])?;
    for file in files {
        let entry = git.run(["--literal-pathspecs", "ls-tree", "-z", commit, "--", file])?;
        // "mode type id<tab>name"
        let mut words = entry.split([' ', '\t']);
        match (words.next(), words.nth(1)) {
            (Some(mode), Some(id)) if !mode.is_empty() => {
                let info = format!("{mode},{id},{file}");
                git.run(["update-index", "--add", "--cacheinfo", &info])?;
            }
            _ => {
                // To take something out git wants a worktree, and then looks at none.
                let words = ["--work-tree=.", "update-index", "--force-remove", "--"];
                git.run([&words[..], &[file]].concat())?;
            }
        }
    }
    git.run(["write-tree"])
}

/// Who commits: the person whose machine it is, or gt where git knows nobody.
pub(crate) fn identity(git: Git<'_>) -> Vec<&'static str> {
    match git.says(["config", "--get", "user.email"]) {
        true => Vec::new(),
        false => vec!["-c", "user.name=gt", "-c", "user.email=gt@localhost"],
    }
}
