//! The submodules of a worktree: repositories whose commits are removed with the worktree.
//!
//! git stores them in the worktree's metadata folder inside the rig's repository, and removes that
//! folder together with the worktree. A submodule's commit may exist nowhere else, even if the
//! rig's repository has the commit that points to it.

mod populate;

pub(crate) use populate::{Missing, populate};

use super::snapshot;
use crate::base::files;
use crate::base::git::{Git, own_dir};
use crate::{Result, Town};
use gt_core::Problem;
use std::fs;
use std::path::{Path, PathBuf};

/// A submodule of a worktree's commit, or a former one that git still stores.
#[derive(Clone, Debug)]
pub(crate) struct Submodule {
    /// Its path in the worktree, or its name if it is no longer checked out.
    pub(crate) name: String,
    /// Its git folder, which has its commits.
    own: PathBuf,
    /// The folder with its files; `None` if it is no longer checked out.
    dir: Option<PathBuf>,
}

/// Returns all initialised submodules, including nested ones, and former submodules that git still
/// stores.
pub(crate) fn of(town: &Town, dir: &Path) -> Result<Vec<Submodule>> {
    let mut found = Vec::new();
    collect(town, dir, "", &mut found)?;
    Ok(found)
}

fn collect(town: &Town, dir: &Path, before: &str, found: &mut Vec<Submodule>) -> Result<()> {
    let git = Git::at(dir, town.around()).uncancellable();
    let staged = git.run(["ls-files", "--stage", "-z"])?;
    // The format is "mode id stage<tab>name"; 160000 is the mode of a submodule.
    let pointers = staged.split('\0').filter(|it| it.starts_with("160000 "));
    let mut paths: Vec<&str> = pointers
        .filter_map(|pointer| pointer.split_once('\t').map(|(_, path)| path))
        .collect();
    // In a conflict a path appears more than once.
    paths.dedup();
    for path in paths {
        let inside = dir.join(path);
        let Some(own) = own_dir(&inside).filter(|_| !inside.is_symlink()) else {
            continue;
        };
        let name = format!("{before}{path}");
        found.push(Submodule {
            name: name.clone(),
            own,
            dir: Some(inside.clone()),
        });
        collect(town, &inside, &format!("{name}/"), found)?;
    }
    if let Some(own) = own_dir(dir) {
        add_stored(&own.join("modules"), before, found);
    }
    Ok(())
}

/// Returns the submodules that other clones of `commit` could not check out, because the
/// submodule's commit is on none of its remotes. Pointers that `base` or the merge base also has
/// are not new and do not count.
pub(crate) fn unpushed(town: &Town, dir: &Path, commit: &str, base: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let git = Git::at(dir, town.around());
    let mut known = pointers(git, base)?;
    if let Some(fork) = git.find(["merge-base", base, commit])? {
        known.extend(pointers(git, &fork)?);
    }
    let news = pointers(git, commit)?;
    let news = news.into_iter().filter(|pointer| !known.contains(pointer));
    for (path, id) in news {
        add_stranded(town, dir, &path, &id, "", &mut found)?;
    }
    Ok(found)
}

fn add_stranded(
    town: &Town,
    dir: &Path,
    path: &str,
    id: &str,
    before: &str,
    found: &mut Vec<String>,
) -> Result<()> {
    let inside = dir.join(path);
    let Some(own) = own_dir(&inside).filter(|_| !inside.is_symlink()) else {
        return Ok(());
    };
    let submodule = Submodule {
        name: format!("{before}{path}"),
        own,
        dir: Some(inside.clone()),
    };
    // A commit that is missing here was not made here.
    if submodule.run(town, &["cat-file", "-e", id]).is_err() {
        return Ok(());
    }
    // A released commit may be on no branch, but a fetch gets it by its tag.
    let has_tag = !submodule.run(town, &["tag", "--contains", id])?.is_empty();
    if !has_tag && submodule.count(town, &[id.to_owned()])? > 0 {
        found.push(submodule.name.clone());
    }
    for (path, id) in pointers(Git::at(&inside, town.around()), id)? {
        add_stranded(
            town,
            &inside,
            &path,
            &id,
            &format!("{}/", submodule.name),
            found,
        )?;
    }
    Ok(())
}

/// Returns the submodules of a commit: the path of each, and its commit.
fn pointers(git: Git<'_>, commit: &str) -> Result<Vec<(String, String)>> {
    let listed = git.run(["ls-tree", "-r", "-z", "--full-tree", commit])?;
    // The format is "mode type id<tab>path".
    let pointer = |entry: &str| {
        let (id, path) = entry.strip_prefix("160000 commit ")?.split_once('\t')?;
        Some((path.to_owned(), id.to_owned()))
    };
    Ok(listed.split('\0').filter_map(pointer).collect())
}

/// Resets every submodule of a worktree that only `gt` uses to its last commit, except ignored
/// files. If that fails, the folder is emptied and the commits stay: a later checkout restores it.
pub(crate) fn reset(town: &Town, dir: &Path) -> Result<()> {
    for (path, _) in pointers(Git::at(dir, town.around()), "HEAD")? {
        let inside = dir.join(path);
        if own_dir(&inside).is_none() || inside.is_symlink() {
            continue;
        }
        let git = Git::at(&inside, town.around());
        let is_clean = git
            .run([
                "-c",
                "submodule.recurse=false",
                "reset",
                "--quiet",
                "--hard",
            ])
            .and_then(|_| git.run(["clean", "--quiet", "-ffd"]))
            .and_then(|_| reset(town, &inside));
        if is_clean.is_err() {
            town.around().cancel.check()?;
            files::remove_folder(&inside)?;
            files::make_dir(&inside)?;
        }
    }
    Ok(())
}

/// Empties the folder of a submodule in a worktree that only `gt` uses, so that another commit of
/// it is not mistaken for the wanted one.
pub(crate) fn empty(dir: &Path, path: &str) -> Result<()> {
    let inside = dir.join(path);
    if inside.is_symlink() || !inside.exists() {
        return Ok(());
    }
    files::remove_folder(&inside)?;
    files::make_dir(&inside)
}

/// Adds the submodules that are stored in a folder and not yet found.
fn add_stored(folder: &Path, before: &str, found: &mut Vec<Submodule>) {
    for entry in files::entries(folder) {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if !path.join("HEAD").exists() {
            // A name may contain slashes.
            add_stored(&path, &format!("{name}/"), found);
            continue;
        }
        // If a folder was removed meanwhile, the comparison fails, and it is at most listed twice.
        let real = |path: &Path| path.canonicalize().ok();
        if !found.iter().any(|it| real(&it.own) == real(&path)) {
            found.push(Submodule {
                name: name.clone(),
                own: path.clone(),
                dir: None,
            });
        }
        add_stored(&path.join("modules"), &format!("{name}/"), found);
    }
}

impl Submodule {
    /// Returns the number of its uncommitted files.
    pub(crate) fn changed_files(&self, town: &Town) -> Result<usize> {
        let Some(dir) = &self.dir else {
            return Ok(0);
        };
        let git = Git::at(dir, town.around()).uncancellable();
        let changes = git.run([
            "status",
            "--porcelain",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        ])?;
        Ok(changes.lines().count())
    }

    /// Returns the number of its commits that none of its remotes has.
    pub(super) fn commits(&self, town: &Town) -> Result<usize> {
        let tips = self.tips(town)?;
        match tips.is_empty() {
            true => Ok(0),
            false => self.count(town, &tips),
        }
    }

    /// Returns its tip commits: of its checkout, its branches and its stashes.
    fn tips(&self, town: &Town) -> Result<Vec<String>> {
        let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let mut tips: Vec<String> = self.run(town, &head).into_iter().collect();
        let branches = ["for-each-ref", "--format=%(objectname)", "refs/heads"];
        tips.extend(self.run(town, &branches)?.lines().map(str::to_owned));
        let aside = ["log", "--walk-reflogs", "--format=%H", "refs/stash", "--"];
        // Fails if there is no stash.
        let aside = self.run(town, &aside).unwrap_or_default();
        tips.extend(aside.lines().map(str::to_owned));
        tips.sort();
        tips.dedup();
        Ok(tips)
    }

    fn count(&self, town: &Town, tips: &[String]) -> Result<usize> {
        let fetched = self.fetched(town);
        let mut words = vec!["rev-list", "--count"];
        words.extend(tips.iter().map(String::as_str));
        words.extend(["--not", "--remotes"]);
        words.extend(fetched.iter().map(String::as_str));
        let count = self.run(town, &words)?;
        count
            .parse()
            .map_err(|_| Problem::failed("git did not count the commits"))
    }

    /// Returns the commits of the last fetch from its remote. They may be on no remote branch,
    /// because git fetches a submodule's commit by id if necessary.
    fn fetched(&self, town: &Town) -> Vec<String> {
        // A submodule without a remote was not fetched.
        let Ok(url) = self.run(town, &["config", "--get", "remote.origin.url"]) else {
            return Vec::new();
        };
        // git writes the URL in this form.
        let url = url.trim_end_matches('/');
        let url = url.strip_suffix(".git").unwrap_or(url);
        // If the file is missing, nothing was fetched yet.
        let text = fs::read_to_string(self.own.join("FETCH_HEAD")).unwrap_or_default();
        let lines = text.lines().filter(|line| line.ends_with(url));
        let ids = lines.filter_map(|line| line.split_once('\t').map(|(id, _)| id.to_owned()));
        ids.filter(|id| self.run(town, &["cat-file", "-e", id]).is_ok())
            .collect()
    }

    /// Saves the commits that exist nowhere else, and the uncommitted changes, to `repository`,
    /// under refs that begin with `names`.
    pub(super) fn save(
        &self,
        town: &Town,
        repository: &Path,
        names: &str,
        whose: &str,
    ) -> Result<Vec<String>> {
        let mut works = Vec::new();
        for tip in self.tips(town)? {
            if self.count(town, std::slice::from_ref(&tip))? > 0 {
                works.push((format!("tip{}", works.len()), tip));
            }
        }
        if let Some(dir) = &self.dir
            && let Some(commit) = {
                let name = &self.name;
                let message = format!("Work of {whose} in {name} that it had not committed");
                snapshot::commit_changes(town, dir, &message)?
            }
        {
            works.push(("changes".to_owned(), commit));
        }
        let target = repository.to_string_lossy();
        let mut saved = Vec::new();
        for (part, commit) in works {
            let name = format!("{names}-{part}");
            let refspec = format!("{commit}:{name}");
            // A push from the submodule, not a fetch into `repository`: a fetch would read the
            // submodule's configuration, which names a work tree that may be gone.
            let words = ["push", "--quiet", "--no-verify", "--no-follow-tags"];
            let rest = ["--no-signed", "--no-recurse-submodules", "--"];
            let pushed = [&words[..], &rest, &[&*target, &refspec]].concat();
            self.run(town, &pushed).map_err(|problem| {
                Problem::conflict(format!("the work inside {} cannot be saved", self.name))
                    .caused_by_problem(&problem)
                    .hint("commit it there and push it")
            })?;
            saved.push(name);
        }
        Ok(saved)
    }

    /// Runs git on its commits, even if its files are gone.
    fn run(&self, town: &Town, words: &[&str]) -> Result<String> {
        let git = Git::at(&self.own, town.around()).uncancellable();
        git.run([&["--git-dir=.", "--work-tree=."], words].concat())
    }
}
