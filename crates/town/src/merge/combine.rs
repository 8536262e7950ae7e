//! Merging in memory: no file is touched, and no branch.

use crate::Result;
use crate::git::Git;
use gt_core::merge::{Refusal, Status};

/// What comes of two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Combined {
    Commit(String),
    /// The files that both have changed.
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
pub(super) fn combine(git: Git<'_>, base: &str, other: &str, message: &str) -> Result<Combined> {
    let (related, _) = git.ask(["merge-base", base, other])?;
    if !related {
        return Ok(Combined::Strangers);
    }
    let (clean, answer) = git.ask([
        "merge-tree",
        "--write-tree",
        "--name-only",
        "--no-messages",
        "-z",
        base,
        other,
    ])?;
    let mut names = answer.split('\0').filter(|name| !name.is_empty());
    let tree = names.next().unwrap_or_default().trim().to_owned();
    if !clean {
        let mut files: Vec<String> = names.map(str::to_owned).collect();
        files.sort();
        files.dedup();
        return Ok(Combined::Conflict(files));
    }
    let mut args = identity(git);
    args.extend(["commit-tree", &tree, "-p", base, "-p", other, "-m", message]);
    git.run(args).map(Combined::Commit)
}

/// Who commits: the person whose machine it is, or gt where git knows nobody.
pub(crate) fn identity(git: Git<'_>) -> Vec<&'static str> {
    match git.says(["config", "--get", "user.email"]) {
        true => Vec::new(),
        false => vec!["-c", "user.name=gt", "-c", "user.email=gt@localhost"],
    }
}
