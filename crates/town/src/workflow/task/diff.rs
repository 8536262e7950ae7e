//! The changes of an item's worktree: everything since its branch left the base, committed or not, including
//! untracked files.
//!
//! Git shows untracked files only if the index names them. They are added to a copy of the index,
//! because the worktree's index belongs to the agent.

use super::site::TaskSite;
use crate::base::files::TemporaryFile;
use crate::base::git::{Git, Hardening, passes};
use crate::repo::workspace::snapshot;
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use std::path::PathBuf;
use std::process::Command;

/// A diff that can be shown or read. Dropping it removes the copy of the index.
#[derive(Debug)]
pub struct Diff<'a> {
    town: &'a Town,
    pub id: WorkId,
    pub branch: Option<String>,
    pub base: String,
    /// Commit at which the branch left the base.
    pub merge_base: String,
    dir: PathBuf,
    index: TemporaryFile,
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    /// Old name of a renamed file.
    pub from: Option<String>,
    /// Number of lines; `None` for a binary file.
    pub added: Option<u32>,
    pub removed: Option<u32>,
}

/// Opens the diff of a task.
pub fn diff<'a>(town: &'a Town, id: &WorkId) -> Result<Diff<'a>> {
    diff_of(TaskSite::of_holder(town, id)?)
}

/// Opens the diff of an agent that has no work item. The id is that of its card.
pub fn agent_diff<'a>(town: &'a Town, agent: &Identity, id: &WorkId) -> Result<Diff<'a>> {
    diff_of(TaskSite::of_agent(town, id, agent.clone())?)
}

fn diff_of(site: TaskSite<'_>) -> Result<Diff<'_>> {
    let (town, id) = (site.town, &site.id);
    let base = site.base()?;
    let git = site.git();
    let merge_base = git.run(["merge-base", "HEAD", &base.tip()?]).map_err(|_| {
        Problem::conflict(format!(
            "{id} has no history in common with {}",
            base.branch
        ))
    })?;
    let index = snapshot::copy_of_index(town, &site.dir)?;
    let add = ["add", "--intent-to-add", "--ignore-errors", "--", "."];
    git.with_index(&index.0).run(add)?;
    Ok(Diff {
        town,
        id: id.clone(),
        branch: site.branch(),
        base: base.branch.clone(),
        merge_base,
        dir: site.dir.clone(),
        index,
    })
}

impl Diff<'_> {
    /// Returns the command that shows the diff to a person: `git diff`, with its colours and its
    /// pager.
    pub fn command(&self, stat: bool) -> Command {
        let around = self.town.around();
        let hardening = Hardening::for_command(&self.dir, around, "diff");
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&self.dir)
            .arg("diff")
            .args(hardening.options("diff"))
            .args(stat.then_some("--stat"))
            .args([&self.merge_base, "--"])
            .env_clear()
            .envs(around.env.iter().filter(|(name, _)| passes(name)))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_INDEX_FILE", &self.index.0);
        hardening.apply(&mut command, &around.env, false);
        command
    }

    /// Returns the changed files with their line counts.
    pub fn files(&self) -> Result<Vec<ChangedFile>> {
        Ok(read_numbers(&self.run(&["--numstat", "-z"])?))
    }

    /// Returns the whole diff as a patch.
    pub fn patch(&self) -> Result<String> {
        self.run(&["--no-color"])
    }

    fn run(&self, arguments: &[&str]) -> Result<String> {
        let git = Git::at(&self.dir, self.town.around()).with_index(&self.index.0);
        let words = ["diff", "--no-ext-diff", "--no-textconv", "--find-renames"];
        let (_, text) = git.ask([&words[..], arguments, &[&self.merge_base, "--"]].concat())?;
        Ok(text)
    }
}

/// Parses `--numstat -z`: three fields, and two more with the names of a renamed file.
fn read_numbers(text: &str) -> Vec<ChangedFile> {
    let mut files = Vec::new();
    let mut entries = text.split('\0');
    while let Some(entry) = entries.next() {
        let mut fields = entry.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (from, path) = match path {
            "" => (
                entries.next().map(str::to_owned),
                entries.next().unwrap_or_default(),
            ),
            path => (None, path),
        };
        files.push(ChangedFile {
            path: path.to_owned(),
            from,
            added: added.parse().ok(),
            removed: removed.parse().ok(),
        });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_renames_and_what_is_no_text_are_read() {
        let text = "1\t2\ta b\0-\t-\tpicture\x000\t0\t\0old\0new\0";
        let file = |path: &str, from: Option<&str>, lines: Option<(u32, u32)>| ChangedFile {
            path: path.to_owned(),
            from: from.map(str::to_owned),
            added: lines.map(|lines| lines.0),
            removed: lines.map(|lines| lines.1),
        };
        assert_eq!(
            read_numbers(text),
            [
                file("a b", None, Some((1, 2))),
                file("picture", None, None),
                file("new", Some("old"), Some((0, 0))),
            ]
        );
        assert_eq!(read_numbers(""), []);
    }
}
