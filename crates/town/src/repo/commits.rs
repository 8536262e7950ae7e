//! Commits made in a folder within a period. They come from the reflog of HEAD, so that commits
//! which were only fetched or checked out do not count.

use crate::Surroundings;
use crate::base::files;
use crate::base::git::Git;
use crate::base::or_log::OrLog;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum number of reflog entries read.
const MAX_COUNT: &str = "--max-count=2000";
/// Timeout of git: a disk that does not answer must not block the caller.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    pub hash: String,
    /// Seconds since the epoch.
    pub at: i64,
    pub subject: String,
}

/// Returns the commits made in the folder, oldest first; none, and a warning in the log, if git
/// fails.
pub fn made_between(dir: &Path, since: i64, until: i64, around: &Surroundings) -> Vec<Commit> {
    if !has_moved(dir, since) {
        return Vec::new();
    }
    let format = "--format=%H%x1f%gd%x1f%gs%x1f%s%x1e";
    let log = Git::at(dir, around).with_time_limit(LIMIT).run([
        "log",
        "--walk-reflogs",
        "--date=unix",
        MAX_COUNT,
        format,
        "HEAD",
        "--",
    ]);
    let log = log.or_warn(format_args!("the commits in {} are unknown", dir.display()));
    select(&log.unwrap_or_default(), since, until)
}

/// Returns the reflog entries that created a commit, oldest first.
fn select(log: &str, since: i64, until: i64) -> Vec<Commit> {
    let mut commits: Vec<Commit> = Vec::new();
    let entries: Vec<&str> = log.split('\x1e').collect();
    for entry in entries.into_iter().rev() {
        let fields: Vec<&str> = entry.trim_start().split('\x1f').collect();
        let [hash, place, action, subject] = fields.as_slice() else {
            continue;
        };
        let Some(at) = time_of(place).filter(|at| (since..=until).contains(at)) else {
            continue;
        };
        if action.starts_with("commit (amend)") {
            commits.pop();
        } else if !makes_a_commit(action) {
            continue;
        }
        commits.push(Commit {
            hash: (*hash).to_owned(),
            at,
            subject: (*subject).to_owned(),
        });
    }
    commits
}

/// Parses the time in `HEAD@{1768611600}`.
fn time_of(place: &str) -> Option<i64> {
    let inner = place.split_once("@{")?.1;
    inner.trim_end_matches('}').parse().ok()
}

fn makes_a_commit(action: &str) -> bool {
    let merges = action.starts_with("merge ") && !action.contains("Fast-forward");
    merges
        || ["commit", "cherry-pick", "revert", "rebase (pick)", "am"]
            .iter()
            .any(|word| {
                action.starts_with(&format!("{word}:")) || action.starts_with(&format!("{word} ("))
            })
}

/// Returns whether the folder's HEAD has moved since. Reading one file's timestamp avoids most
/// calls of git.
fn has_moved(dir: &Path, since: i64) -> bool {
    let Some(git_dir) = git_dir(dir) else {
        return false;
    };
    let modified = git_dir
        .join("logs/HEAD")
        .metadata()
        .and_then(|meta| meta.modified());
    let modified = match modified {
        Ok(modified) => modified,
        // With the reftable format, git keeps the reflog elsewhere.
        Err(_) => return git_dir.join("reftable").is_dir(),
    };
    let seconds = modified
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(seconds.as_secs()).is_ok_and(|seconds| seconds >= since)
}

/// Returns git's folder of a working tree.
fn git_dir(dir: &Path) -> Option<PathBuf> {
    let found = dir
        .ancestors()
        .map(|dir| dir.join(".git"))
        .find(|path| path.exists())?;
    if found.is_dir() {
        return Some(found);
    }
    let text = files::read_if_there(&found).or_warn("the commits are unknown")??;
    let path = text.strip_prefix("gitdir:")?.trim();
    Some(found.parent()?.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::log::testing::{town, warnings_of};
    use std::process::Command;

    fn git(dir: &Path, args: &[&str]) {
        let status = Command::new("git")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", dir)
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(args)
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(status.status.success(), "{args:?}: {status:?}");
    }

    #[test]
    fn commits_count_where_they_were_made() {
        let folder = tempfile::tempdir().unwrap();
        let (main, copy) = (folder.path().join("main"), folder.path().join("copy"));
        std::fs::create_dir(&main).unwrap();
        git(&main, &["init", "--quiet", "--initial-branch=main"]);
        git(&main, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
        git(
            &main,
            &["worktree", "add", "--quiet", "-b", "work", "../copy"],
        );
        git(
            &copy,
            &[
                "commit",
                "--quiet",
                "--allow-empty",
                "-m",
                "two\n\nand more",
            ],
        );
        git(&copy, &["commit", "--quiet", "--allow-empty", "-m", "thee"]);
        git(
            &copy,
            &[
                "commit",
                "--quiet",
                "--allow-empty",
                "--amend",
                "-m",
                "three",
            ],
        );
        git(&main, &["merge", "--quiet", "work"]);
        let around = Surroundings {
            env: [("PATH".to_owned(), std::env::var("PATH").unwrap())].into(),
            ..Surroundings::default()
        };
        let subjects = |dir: &Path, since: i64, until: i64| -> Vec<String> {
            let commits = made_between(dir, since, until, &around);
            commits.into_iter().map(|commit| commit.subject).collect()
        };
        assert_eq!(subjects(&copy, 0, i64::MAX), ["two", "three"]);
        assert_eq!(
            subjects(&main, 0, i64::MAX),
            ["one"],
            "a fast-forward makes none"
        );
        assert_eq!(subjects(&copy, 0, 1), [""; 0]);
        assert_eq!(subjects(&copy, i64::MAX, i64::MAX), [""; 0]);
        assert_eq!(subjects(folder.path(), 0, i64::MAX), [""; 0]);
    }

    #[test]
    fn failing_git_is_logged() {
        let (_folder, town) = town();
        let dir = town.root().join("repo");
        std::fs::create_dir_all(dir.join(".git/logs")).unwrap();
        std::fs::write(dir.join(".git/logs/HEAD"), "").unwrap();
        let (commits, warnings) = warnings_of(|| made_between(&dir, 0, i64::MAX, town.around()));
        assert_eq!(commits, []);
        assert!(warnings[0].starts_with("the commits in "), "{warnings:?}");
    }
}
