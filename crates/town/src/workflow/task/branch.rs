//! Compares a worktree's branch with the base of its rig.
//!
//! It only reads: it takes no lock and writes no index. The board reads many worktrees, so git is
//! called as rarely as possible.

use super::site::TaskSite;
use crate::base::git;
use crate::base::git::Git;
use crate::workflow::merge::Base;
use crate::{Result, Town};
use gt_core::card::Branch;
use gt_core::work::WorkId;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Maximum number and size of untracked files that are read to count their lines.
const MAX_FILES: usize = 200;
const MAX_BYTES: u64 = 1 << 20;

/// Base branch of a rig, with its current commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseAt {
    /// Short name, such as `main`.
    pub branch: String,
    pub commit: String,
}

/// Returns the base of a rig from its local repository, without asking the remote.
pub fn base_of(town: &Town, rig: &str) -> Result<BaseAt> {
    let base = Base::of(town, rig)?;
    Ok(BaseAt {
        commit: base.tip()?,
        branch: base.branch.clone(),
    })
}

/// Returns the facts about the branch of a worktree.
pub fn branch_facts(town: &Town, dir: &Path, base: &BaseAt) -> Result<Branch> {
    let git = Git::at(dir, town.around());
    let status = git.run([
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
        // Changes inside a submodule do not belong to this branch.
        "--ignore-submodules=dirty",
    ])?;
    let status = GitStatus::read(&status);
    let mut facts = Branch {
        name: status.branch.unwrap_or_default(),
        base: base.branch.clone(),
        dirty: status.changed + count(status.untracked.len()),
        merging: git::is_merging(dir),
        conflicts: status.conflicts,
        ..Branch::default()
    };
    let is_at_base = status.commit.as_deref() == Some(base.commit.as_str());
    if !is_at_base {
        let range = format!("{}...HEAD", base.commit);
        let counted = git.run(["rev-list", "--left-right", "--count", &range])?;
        (facts.behind, facts.ahead) = two_numbers(&counted);
    }
    if facts.ahead > 0 || status.changed > 0 {
        // Fails without a common commit; then nothing is counted.
        let stat = git.run([
            "diff",
            "--shortstat",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=dirty",
            "--merge-base",
            &base.commit,
            "--",
        ]);
        (facts.added, facts.removed) = lines_of(&stat.unwrap_or_default());
    }
    let untracked = status.untracked.iter().take(MAX_FILES);
    facts.added += untracked
        .map(|name| count_lines(&dir.join(name)))
        .sum::<u32>();
    Ok(facts)
}

/// Returns the facts about the branch of a task's worktree.
pub fn branch_of(town: &Town, id: &WorkId) -> Result<Branch> {
    let site = TaskSite::of(town, id)?;
    branch_facts(town, &site.dir, &base_of(town, &site.rig)?)
}

/// Parsed output of `git status`.
#[derive(Debug, Default, PartialEq, Eq)]
struct GitStatus {
    branch: Option<String>,
    commit: Option<String>,
    /// Number of tracked files that differ from the last commit.
    changed: u32,
    untracked: Vec<String>,
    conflicts: Vec<String>,
}

impl GitStatus {
    /// Parses the NUL-terminated format `v2`.
    fn read(text: &str) -> Self {
        let mut status = GitStatus::default();
        let mut entries = text.split('\0');
        while let Some(entry) = entries.next() {
            let Some((kind, rest)) = entry.split_once(' ') else {
                continue;
            };
            match kind {
                "#" => status.read_header(rest),
                "1" => status.changed += 1,
                "2" => {
                    status.changed += 1;
                    // The entry of a renamed file is followed by its old name.
                    entries.next();
                }
                "u" => {
                    status.changed += 1;
                    // The name is the tenth field and may contain spaces.
                    let name = rest.splitn(10, ' ').nth(9);
                    status.conflicts.extend(name.map(str::to_owned));
                }
                "?" => status.untracked.push(rest.to_owned()),
                _ => {}
            }
        }
        status
    }

    fn read_header(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("branch.oid", oid)) => self.commit = Some(oid.to_owned()),
            Some(("branch.head", head)) if head != "(detached)" => {
                self.branch = Some(head.to_owned());
            }
            _ => {}
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Parses two numbers separated by whitespace.
fn two_numbers(text: &str) -> (u32, u32) {
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next())
}

/// Returns the added and removed lines of `git diff --shortstat`.
fn lines_of(stat: &str) -> (u32, u32) {
    let part = |word: &str| {
        let mut parts = stat.split(',');
        let part = parts.find(|part| part.contains(word));
        let number = part.and_then(|part| part.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    (part("insertion"), part("deletion"))
}

/// Returns the number of lines of an untracked text file; 0 for anything else.
fn count_lines(path: &Path) -> u32 {
    let is_small = |meta: &fs::Metadata| meta.is_file() && meta.len() <= MAX_BYTES;
    if !path.symlink_metadata().is_ok_and(|meta| is_small(&meta)) {
        return 0;
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    if read.is_err() || bytes.contains(&0) || bytes.is_empty() {
        return 0;
    }
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    // A last line without a newline counts as well.
    count(ends + usize::from(bytes.last() != Some(&b'\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_is_read() {
        let text = "# branch.oid 0123\0# branch.head gt-1\0# branch.ab +0 -0\0\
            1 .M N... 100644 100644 100644 a b a file\0\
            2 R. N... 100644 100644 100644 a b R100 new name\0old name\0\
            u UU N... 100644 100644 100644 100644 a b c in conflict\0\
            ? not known\0! ignored\0";
        assert_eq!(
            GitStatus::read(text),
            GitStatus {
                branch: Some("gt-1".to_owned()),
                commit: Some("0123".to_owned()),
                changed: 3,
                untracked: vec!["not known".to_owned()],
                conflicts: vec!["in conflict".to_owned()],
            }
        );
        let detached = GitStatus::read("# branch.oid 0123\0# branch.head (detached)\0");
        assert_eq!(detached.branch, None);
    }

    #[test]
    fn numbers_are_read_as_git_writes_them() {
        let stat = " 3 files changed, 12 insertions(+), 1 deletion(-)";
        assert_eq!(lines_of(stat), (12, 1));
        assert_eq!(lines_of(" 1 file changed, 2 deletions(-)"), (0, 2));
        assert_eq!(lines_of(""), (0, 0));
        assert_eq!(two_numbers("5\t2"), (5, 2));
    }
}
