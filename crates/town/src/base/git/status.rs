//! Reads the commit, the branch and the changes of a worktree with one call of git.

use super::Git;
use crate::Result;

/// The state of a worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorktreeStatus {
    /// `None` before the first commit.
    pub(crate) commit: Option<String>,
    /// `None` if HEAD is detached.
    pub(crate) branch: Option<String>,
    /// Uncommitted files; a renamed file by its new name.
    pub(crate) changed: Vec<String>,
}

impl WorktreeStatus {
    /// Reads the status as git shows it: a new folder stands for all files in it.
    pub(crate) fn of(git: Git<'_>) -> Result<Self> {
        Self::with(git, "normal")
    }

    /// Reads the status with every new file by its own name.
    pub(crate) fn of_every_file(git: Git<'_>) -> Result<Self> {
        Self::with(git, "all")
    }

    fn with(git: Git<'_>, untracked: &str) -> Result<Self> {
        let untracked = format!("--untracked-files={untracked}");
        // The distance from the upstream is not requested: git would have to walk the history.
        let status = ["status", "--porcelain=v2", "--branch", "--no-ahead-behind"];
        let status = status.into_iter().chain(["-z", &untracked]);
        Ok(read(&git.run(status)?))
    }
}

/// Parses the output of `git status --porcelain=v2 --branch -z`.
fn read(text: &str) -> WorktreeStatus {
    let mut status = WorktreeStatus::default();
    let mut entries = text.split('\0');
    while let Some(entry) = entries.next() {
        let (kind, rest) = entry.split_once(' ').unwrap_or_default();
        // Number of fields before the file name.
        let words = match kind {
            "#" => {
                status.take_head(rest);
                continue;
            }
            "?" => 0,
            "1" => 7,
            "2" => 8,
            "u" => 9,
            _ => continue,
        };
        if kind == "2" {
            // The old name follows as a separate entry.
            entries.next();
        }
        let name = rest.splitn(words + 1, ' ').nth(words);
        status.changed.extend(name.map(str::to_owned));
    }
    status
}

impl WorktreeStatus {
    /// Reads a header line. Git writes a missing value in parentheses, with which no commit and no
    /// branch begins.
    fn take_head(&mut self, line: &str) {
        let (what, value) = line.split_once(' ').unwrap_or_default();
        let value = (!value.starts_with('(')).then(|| value.to_owned());
        match what {
            "branch.oid" => self.commit = value,
            "branch.head" => self.branch = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use std::fs;

    #[test]
    fn it_is_read_as_git_says_it() {
        let dir = tempfile::tempdir().unwrap();
        let around = Surroundings {
            env: [
                ("PATH".into(), std::env::var("PATH").unwrap()),
                ("HOME".into(), dir.path().display().to_string()),
            ]
            .into(),
            ..Surroundings::default()
        };
        let git = Git::at(dir.path(), &around);
        assert!(WorktreeStatus::of(git).is_err(), "there is no repository");
        let run = |args: &[&str]| git.run(args).unwrap();
        run(&["init", "-q", "-b", "crew/max"]);
        run(&["config", "user.name", "Max"]);
        run(&["config", "user.email", "max@example.com"]);
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let empty = WorktreeStatus::of(git).unwrap();
        assert_eq!(
            (empty.commit, empty.branch.as_deref()),
            (None, Some("crew/max"))
        );
        write("a b.rs", "1\n2\n3\n4\n");
        write("old ü.rs", "5\n6\n7\n8\n");
        write("both.rs", "9\n");
        run(&["add", "."]);
        run(&["commit", "-q", "-m", "First"]);
        let clean = WorktreeStatus::of(git).unwrap();
        assert_eq!(clean.commit, Some(run(&["rev-parse", "HEAD"])));
        assert!(clean.changed.is_empty());
        // A conflict, a change, a rename, and a new file.
        run(&["checkout", "-q", "-b", "other"]);
        write("both.rs", "10\n");
        run(&["commit", "-q", "-a", "-m", "Theirs"]);
        run(&["checkout", "-q", "crew/max"]);
        write("both.rs", "11\n");
        run(&["commit", "-q", "-a", "-m", "Ours"]);
        assert!(git.run(["merge", "-q", "other"]).is_err());
        write("a b.rs", "1\n2\n3\n4\n5\n");
        run(&["mv", "old ü.rs", "new ü.rs"]);
        fs::create_dir(dir.path().join("fresh")).unwrap();
        write("fresh/ends in a blank ", "");
        let mut shown = WorktreeStatus::of(git).unwrap().changed;
        shown.sort();
        assert_eq!(shown, ["a b.rs", "both.rs", "fresh/", "new ü.rs"]);
        let mut every = WorktreeStatus::of_every_file(git).unwrap().changed;
        every.sort();
        assert_eq!(every[2], "fresh/ends in a blank ");
        run(&["reset", "-q", "--hard"]);
        run(&["checkout", "-q", "--detach"]);
        assert_eq!(WorktreeStatus::of(git).unwrap().branch, None);
    }
}
