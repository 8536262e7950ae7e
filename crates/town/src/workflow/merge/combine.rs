//! Merges two commits in memory, without touching a file or a branch.
//!
//! Files under `.beads/` belong to beads, and `bd sync` reconciles them: a conflict there does not
//! count, and the incoming work keeps its version.

use crate::base::files::TemporaryFile;
use crate::base::git;
use crate::base::git::Git;
use crate::{Result, Town};
use gt_core::merge::{MergeRefusal, MergeStatus};

/// Folder whose conflicts are left to beads.
pub(crate) const BEADS: &str = ".beads/";

/// Two commits to merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    /// First parent of the merge commit.
    pub(crate) onto: &'a str,
    pub(crate) other: &'a str,
    /// The commit whose files of beads win.
    pub(crate) beads_of: &'a str,
    pub(crate) message: &'a str,
}

/// Result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Combined {
    Commit(String),
    Conflict(Conflict),
    /// The commits have no common history.
    Unrelated,
}

/// Conflict between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Conflicting files, except those of beads; folders, if the conflict is not about single
    /// files.
    pub(crate) files: Vec<String>,
    /// Git's message, if the conflict is not about single files.
    pub(crate) said: Option<String>,
}

impl Combined {
    /// Returns the reason why the branch cannot be merged, if it cannot.
    pub(super) fn refusal(self, branch: &str) -> Option<MergeRefusal> {
        let (reason, files) = match self {
            Combined::Commit(_) => return None,
            Combined::Conflict(Conflict { files, said: None }) => {
                let count = files.len();
                let are = if count == 1 { "file is" } else { "files are" };
                (format!("{count} {are} in conflict with {branch}"), files)
            }
            Combined::Conflict(Conflict {
                files,
                said: Some(said),
            }) => (format!("it is in conflict with {branch}: {said}"), files),
            Combined::Unrelated => (format!("it has no history in common with {branch}"), vec![]),
        };
        Some(MergeRefusal {
            status: MergeStatus::Conflict,
            reason,
            files,
            log: None,
        })
    }
}

/// Creates the merge commit of a pair.
pub(crate) fn combine(town: &Town, git: Git<'_>, pair: Pair<'_>) -> Result<Combined> {
    let Pair { onto, other, .. } = pair;
    let (related, _) = git.ask(["merge-base", onto, other])?;
    if !related {
        return Ok(Combined::Unrelated);
    }
    // Status 1 means conflicts, even if no file is named; `ask` fails on a higher status.
    let (is_clean, answer) = git.ask([
        "merge-tree",
        "--write-tree",
        "--name-only",
        "--messages",
        "-z",
        onto,
        other,
    ])?;
    let Merged {
        mut tree,
        beads,
        conflict,
    } = read(&answer, is_clean);
    if let Some(conflict) = conflict {
        return Ok(Combined::Conflict(conflict));
    }
    if !beads.is_empty() {
        tree = with_files_of(town, git, &tree, pair.beads_of, &beads)?;
    }
    let mut args = git::committer(git)?;
    args.extend(["commit-tree", &tree, "-p", onto, "-p", other]);
    args.extend(["-m", pair.message]);
    git.run(args).map(Combined::Commit)
}

/// Parsed output of `git merge-tree`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Merged {
    tree: String,
    /// Conflicting files of beads.
    beads: Vec<String>,
    conflict: Option<Conflict>,
}

/// Parses the output of `git merge-tree --write-tree --name-only --messages -z`: the tree, the
/// files in conflict, an empty name, and then for each message the number of its paths, the paths,
/// its kind and its text.
fn read(answer: &str, is_clean: bool) -> Merged {
    let mut parts = answer.split('\0');
    let tree = parts.next().unwrap_or_default().trim().to_owned();
    if is_clean {
        return Merged {
            tree,
            ..Merged::default()
        };
    }
    let mut files: Vec<String> = parts
        .by_ref()
        .take_while(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    let (beads, files): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|name| name.starts_with(BEADS));
    let mut conflict = Conflict { files, said: None };
    if conflict.files.is_empty() {
        while let Some(count) = parts.next().and_then(|count| count.parse().ok()) {
            let paths: Vec<&str> = parts.by_ref().take(count).collect();
            let kind = parts.next().unwrap_or_default();
            let text = parts.next().unwrap_or_default();
            let is_of_beads = |path: &&str| path.starts_with(BEADS);
            if kind.starts_with("CONFLICT") && !paths.iter().all(is_of_beads) {
                conflict.files.extend(paths.into_iter().map(str::to_owned));
                conflict.said.get_or_insert_with(|| plain(text));
            }
        }
    }
    // It is a conflict, even if the output is not understood.
    if conflict == Conflict::default() && beads.is_empty() {
        conflict.said = Some("git does not say where".to_owned());
    }
    Merged {
        tree,
        beads,
        conflict: Some(conflict).filter(|conflict| *conflict != Conflict::default()),
    }
}

/// Turns git's message about a conflict into a part of a sentence. File names may contain control
/// characters.
fn plain(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let text = match text.strip_prefix("CONFLICT (") {
        Some(rest) => rest.replacen("):", ":", 1),
        None => text.to_owned(),
    };
    text.replace(char::is_control, " ")
}

/// Returns a copy of the tree in which these files are as in the commit.
fn with_files_of(
    town: &Town,
    git: Git<'_>,
    tree: &str,
    commit: &str,
    files: &[String],
) -> Result<String> {
    let index = TemporaryFile::new(&town.runtime_dir().join("tmp"), "index")?;
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
                // For a removal git requires a worktree, but does not read it.
                let words = ["--work-tree=.", "update-index", "--force-remove", "--"];
                git.run([&words[..], &[file]].concat())?;
            }
        }
    }
    git.run(["write-tree"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, beads: &[&str], files: &[&str], said: Option<&str>) {
        let merged = read(&answer.replace('|', "\0"), false);
        assert_eq!(merged.tree, "0123");
        assert_eq!(merged.beads, beads, "{answer}");
        let conflict = merged.conflict.unwrap_or_default();
        assert_eq!(conflict.files, files, "{answer}");
        assert_eq!(conflict.said.as_deref(), said, "{answer}");
    }

    #[test]
    fn a_conflict_is_one_also_where_no_file_is_named() {
        let auto = "1|a|Auto-merging|Auto-merging a\n|";
        let of_a = "1|a|CONFLICT (contents)|CONFLICT (content): Merge conflict in a\n|";
        check(&format!("0123|a|b||{auto}{of_a}"), &[], &["a", "b"], None);
        let split = "1|dir|CONFLICT(directory rename unclear split)|\
            CONFLICT (directory rename split): Unclear where to rename dir to; there are two.\n|";
        let said = "directory rename split: Unclear where to rename dir to; there are two";
        check(&format!("0123||{auto}{split}"), &[], &["dir"], Some(said));
        // A conflict of beads must not hide another conflict.
        let beads = "1|.beads/x|CONFLICT (contents)|CONFLICT (content): in .beads/x\n|";
        let both = format!("0123|.beads/x||{beads}{split}");
        check(&both, &[".beads/x"], &["dir"], Some(said));
        let alone = format!("0123|.beads/x||{auto}{beads}");
        check(&alone, &[".beads/x"], &[], None);
        check("0123||", &[], &[], Some("git does not say where"));
        assert_eq!(read("0123\0\0", true).conflict, None);
    }
}
