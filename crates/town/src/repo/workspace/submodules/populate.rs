//! Checks out the submodules of a worktree from the rig's own copies of them.
//!
//! The copies are bare repositories below `<rig>/.submodules`. A commit that a copy lacks is
//! fetched from the checkout that the rig was cloned from, which needs no network, and then from
//! the submodule's URL. The configuration of submodules in a repository is not trusted: a URL is
//! used only with the protocols that git allows for submodules, and local files are read only where
//! the person has initialised the submodule.

use super::pointers;
use crate::base::files;
use crate::base::git::{Git, own_dir, without_password};
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::repo::rig;
use crate::{Result, Town};
use gt_core::Problem;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Maximum depth of nested submodules.
const DEEPEST: usize = 8;
/// Maximum wait for the submodules of another worktree of the rig.
const LOCK_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum time for one remote.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// A submodule that could not be checked out.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    /// Its path in the worktree.
    pub(crate) path: String,
    pub(crate) problem: Problem,
}

impl Missing {
    /// Returns the sentence for a person.
    pub(crate) fn text(&self) -> String {
        let causes = self.problem.causes();
        let causes = causes.iter().map(|cause| format!(": {cause}"));
        format!(
            "the submodule {} is not checked out: {}{}",
            self.path,
            self.problem,
            causes.collect::<String>()
        )
    }
}

/// Checks out every submodule of a worktree's commit, including nested ones. Returns those that
/// failed. Runs no command if there are none.
pub(crate) fn populate(town: &Town, rig: &str, dir: &Path) -> Vec<Missing> {
    let mut missing = Vec::new();
    if !has_modules(dir) {
        return missing;
    }
    // All worktrees of a rig share one configuration, and git does not wait for its lock.
    let path = town.runtime_dir().join("locks");
    let _lock = match FileLock::take(&path.join(format!("submodules-{rig}.lock")), LOCK_TIMEOUT) {
        Ok(lock) => lock,
        Err(problem) => {
            let path = ".gitmodules".to_owned();
            return vec![Missing { path, problem }];
        }
    };
    let source = source_of(town, rig);
    let level = RepositoryLevel {
        town,
        rig,
        dir,
        before: String::new(),
        source,
        depth: 0,
    };
    level.populate(&mut missing);
    missing
}

/// Returns whether a worktree has a `.gitmodules` file.
fn has_modules(dir: &Path) -> bool {
    let path = dir.join(".gitmodules");
    path.symlink_metadata().is_ok_and(|meta| meta.is_file())
}

/// Returns the person's checkout that the rig was cloned from.
fn source_of(town: &Town, rig: &str) -> Option<PathBuf> {
    let repository = rig::repository(town, rig);
    let git = Git::at(&repository, town.around());
    // A rig without a remote has no such setting.
    let url = git.run(["config", "--get", "remote.origin.url"]).ok()?;
    let folder = Path::new(&url);
    let is_checkout = folder.is_absolute() && folder.join(".git").exists();
    is_checkout.then(|| folder.to_owned())
}

/// One repository with its submodules.
struct RepositoryLevel<'a> {
    town: &'a Town,
    rig: &'a str,
    dir: &'a Path,
    before: String,
    /// The person's checkout of this repository.
    source: Option<PathBuf>,
    depth: usize,
}

/// One entry of `.gitmodules`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Module {
    name: String,
    path: String,
    is_wanted: bool,
}

impl RepositoryLevel<'_> {
    fn git(&self) -> Git<'_> {
        Git::at(self.dir, self.town.around())
    }

    fn populate(&self, missing: &mut Vec<Missing>) {
        let found = modules(self.git()).and_then(|all| Ok((all, pointers(self.git(), "HEAD")?)));
        let (modules, pointers) = match found {
            Ok(found) => found,
            Err(problem) => {
                let path = format!("{}.gitmodules", self.before);
                return missing.push(Missing { path, problem });
            }
        };
        for (path, id) in pointers {
            let mut entries = modules.iter().filter(|module| module.path == path);
            // A path without an entry is no submodule; a path with two entries is ambiguous.
            let (Some(module), None) = (entries.next(), entries.next()) else {
                continue;
            };
            if !module.is_wanted {
                continue;
            }
            let shown = format!("{}{path}", self.before);
            match self.check_out(module, &id) {
                Ok(()) => self.descend(module, &shown, missing),
                Err(problem) => missing.push(Missing {
                    path: shown,
                    problem,
                }),
            }
        }
    }

    fn descend(&self, module: &Module, shown: &str, missing: &mut Vec<Missing>) {
        let inside = self.dir.join(&module.path);
        if self.depth >= DEEPEST || !has_modules(&inside) {
            return;
        }
        let level = RepositoryLevel {
            dir: &inside,
            before: format!("{shown}/"),
            source: self.source.as_ref().map(|dir| dir.join(&module.path)),
            depth: self.depth + 1,
            ..*self
        };
        level.populate(missing);
    }

    /// Checks out one submodule at a commit.
    fn check_out(&self, module: &Module, id: &str) -> Result<()> {
        check_name(&module.name)?;
        check_path(self.dir, &module.path)?;
        let (town, git) = (self.town, self.git());
        let inside = self.dir.join(&module.path);
        let is_there = own_dir(&inside).is_some();
        let own = Git::at(&inside, town.around());
        // A submodule without a commit is not at this one.
        if is_there && own.run(["rev-parse", "HEAD"]).is_ok_and(|head| head == id) {
            return Ok(());
        }
        let alone = ["-c", "submodule.recurse=false"];
        let update = ["submodule", "--quiet", "update", "--", &module.path];
        // `git submodule update` would follow `core.worktree` of the submodule, which the agent can set.
        let checkout = ["checkout", "--quiet", "--detach", id];
        let checkout = || own.run(alone.iter().chain(&checkout)).map(drop);
        if is_there && own.commit(id)?.is_some() {
            return checkout();
        }
        let key = format!("submodule.{}.url", module.name);
        let (copy, url) = self.copy_with(module, id, &key)?;
        let here = copy.dir.to_string_lossy().into_owned();
        if is_there {
            let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
            own.run([&fetch[..], &["--", &here, id]].concat())?;
            checkout()?;
            return note_known(own, id);
        }
        // Allows a local path, which git forbids by default, for this submodule and its copy only.
        let from = format!("{key}={here}");
        let local = ["-c", "protocol.file.allow=always", "-c", &from];
        git.run(alone.iter().chain(&local).chain(&update))?;
        own.run(["remote", "set-url", "origin", &url])?;
        note_known(own, id)
    }
}

/// Notes in a submodule that a commit exists elsewhere, so that it does not count as unsaved work
/// of the agent.
fn note_known(git: Git<'_>, id: &str) -> Result<()> {
    let name = format!("refs/remotes/gt/{id}");
    git.run(["update-ref", &name, id]).map(drop)
}

impl RepositoryLevel<'_> {
    /// Returns the rig's copy of a submodule, which has the commit, and the submodule's URL.
    fn copy_with(&self, module: &Module, id: &str, key: &str) -> Result<(LocalCopy<'_>, String)> {
        let git = self.git();
        // Resolves a relative URL and stores it; runs no code of the repository.
        git.run(["submodule", "--quiet", "init", "--", &module.path])?;
        let known = git.run(["config", "--get", key])?;
        let copy = LocalCopy::of(self.town, self.rig, &known)?;
        let Err(problem) = copy.fetch(self, module, &known, id) else {
            return Ok((copy, known));
        };
        // The commit may have changed the URL.
        git.run(["submodule", "--quiet", "sync", "--", &module.path])?;
        let url = git.run(["config", "--get", key])?;
        if url == known {
            return Err(problem);
        }
        let copy = LocalCopy::of(self.town, self.rig, &url)?;
        copy.fetch(self, module, &url, id)?;
        Ok((copy, url))
    }
}

/// The rig's own copy of a submodule.
struct LocalCopy<'a> {
    town: &'a Town,
    dir: PathBuf,
}

impl<'a> LocalCopy<'a> {
    /// Returns the copy for a URL; creates it if it is missing.
    fn of(town: &'a Town, rig: &str, url: &str) -> Result<Self> {
        let folder = town.root().join(rig).join(".submodules");
        let dir = folder.join(format!("{}.git", file_name(url)));
        if !dir.join("HEAD").exists() {
            files::make_dir(&folder)?;
            let git = Git::at(&folder, town.around());
            let target = dir.to_string_lossy().into_owned();
            git.run(["init", "--quiet", "--bare", "--", &target])?;
        }
        let copy = LocalCopy { town, dir };
        // A submodule may be at a commit that is no longer on any branch.
        let words = ["config", "uploadpack.allowAnySHA1InWant", "true"];
        copy.git().run(words)?;
        Ok(copy)
    }

    fn git(&self) -> Git<'_> {
        Git::at(&self.dir, self.town.around()).with_time_limit(FETCH_TIMEOUT)
    }

    fn has(&self, id: &str) -> Result<bool> {
        Ok(self.git().commit(id)?.is_some())
    }

    /// Ensures that the copy has a commit.
    fn fetch(
        &self,
        level: &RepositoryLevel<'_>,
        module: &Module,
        url: &str,
        id: &str,
    ) -> Result<()> {
        let keep = format!("{id}:refs/gt/wanted/{id}");
        if self.has(id)? {
            return Ok(());
        }
        if let Some(source) = level.source.as_ref() {
            let checkout = source.join(&module.path);
            let own = own_dir(&checkout).filter(|_| !checkout.is_symlink());
            if let Some(own) = own {
                let own = own.to_string_lossy().into_owned();
                let branches = "+refs/remotes/origin/*:refs/heads/*";
                let but_head = "^refs/remotes/origin/HEAD";
                // The checkout may lack commits that the remote has.
                for refs in [&[branches, but_head][..], &[keep.as_str()]] {
                    let taken = self.take(self.git(), &own, refs);
                    taken.or_debug(format_args!("{own} is not fetched"));
                }
            }
        }
        if self.has(id)? {
            return Ok(());
        }
        let git = self.git().with_submodule_protocols();
        let everything = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        let fetched = self.take(git, url, &everything);
        if self.has(id)? {
            return Ok(());
        }
        fetched?;
        // The commit is on no branch of the remote.
        self.take(git, url, &[&keep]).map_err(|problem| {
            Problem::failed(format!("its commit {id} is not available")).caused_by_problem(&problem)
        })
    }

    fn take(&self, git: Git<'_>, from: &str, what: &[&str]) -> Result<()> {
        let words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let end = ["--no-recurse-submodules", "--", from];
        let fetched = git.run(words.iter().chain(&end).chain(what));
        fetched.map(drop).map_err(|problem| {
            let from = without_password(from);
            let said = problem
                .causes()
                .first()
                .and_then(|said| said.lines().last());
            Problem::failed(format!("{from} cannot be fetched"))
                .cause(said.unwrap_or("git does not say why").to_owned())
        })
    }
}

/// Returns a readable file name that is unique for a URL.
fn file_name(url: &str) -> String {
    let mut name = String::new();
    for byte in url.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if !name.is_empty() => name.push('.'),
            byte => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// Returns the entries of `.gitmodules` in a worktree.
fn modules(git: Git<'_>) -> Result<Vec<Module>> {
    let words = ["config", "--null", "--file", ".gitmodules", "--list"];
    Ok(read(&git.run(words)?))
}

/// Parses the output of `git config --null --list`: each entry is `key<newline>value`.
fn read(text: &str) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for entry in text.split('\0') {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let Some((name, what)) = key
            .strip_prefix("submodule.")
            .and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        let place = modules.iter().position(|module| module.name == name);
        let place = place.unwrap_or_else(|| {
            modules.push(Module {
                name: name.to_owned(),
                path: String::new(),
                is_wanted: true,
            });
            modules.len() - 1
        });
        match what {
            "path" => modules[place].path = value.trim_end_matches('/').to_owned(),
            "update" if value == "none" => modules[place].is_wanted = false,
            _ => {}
        }
    }
    modules
}

/// Fails for a name that is not a plain relative path: git creates a folder from it.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_good = !name.is_empty()
        && !name.starts_with('-')
        && !name.contains(['=', '\\'])
        && !name.chars().any(char::is_control)
        && Path::new(name).components().all(is_plain);
    match is_good {
        true => Ok(()),
        false => Err(Problem::conflict(format!(
            "its name {name:?} is not a plain relative path"
        ))),
    }
}

/// Fails for a path that leaves the worktree, by its parts or through a symlink.
fn check_path(dir: &Path, path: &str) -> Result<()> {
    let refused = || Problem::conflict(format!("its path {path:?} leads out of the worktree"));
    let mut here = dir.to_owned();
    for part in Path::new(path).components() {
        let Component::Normal(part) = part else {
            return Err(refused());
        };
        here.push(part);
        if here.is_symlink() {
            return Err(refused());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_by_name() {
        let text = "submodule.lib.path\nvendor/lib/\0submodule.lib.url\n../lib\0\
            submodule.a.b.path\nab\0submodule.a.b.update\nnone\0other.x\ny\0submodule.lib.update\n!rm";
        let found = read(text);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].path.as_str()),
            ("lib", "vendor/lib")
        );
        assert!(found[0].is_wanted && !found[1].is_wanted);
        assert_eq!(found[1].name, "a.b");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["lib", "a/b c", "ü"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "..", "a/../b", "/etc", "-x", "a=b", "a\nb"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", dir.path().join("link")).unwrap();
        assert!(check_path(dir.path(), "a/b").is_ok());
        for path in ["../a", "/a", "link", "link/a"] {
            assert!(check_path(dir.path(), path).is_err(), "{path}");
        }
    }

    #[test]
    fn every_url_has_a_file_name_of_its_own() {
        assert_eq!(
            file_name("https://host/a.git"),
            "https%3a%2f%2fhost%2fa.git"
        );
        assert_eq!(file_name("../a"), "%2e.%2fa");
        assert_ne!(file_name("a/b"), file_name("a%2fb"));
    }
}
