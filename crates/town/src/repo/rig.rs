//! Rigs: repositories of the town.
//!
//! A rig has a bare clone of its repository (`<rig>/.repo.git`), from which the worktrees of its
//! agents are created. The user's own checkout is never changed.

use crate::base::files;
use crate::base::git::{Git, without_password};
use crate::repo::worktree_settings;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::identity::unknown_rig;
use gt_core::registry::RigEntry;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of a rig's repository.
pub fn repository(town: &Town, rig: &str) -> PathBuf {
    town.root().join(rig).join(".repo.git")
}

/// Returns the rig's entry. The error lists the known rigs.
pub fn entry<'a>(town: &'a Town, rig: &str) -> Result<&'a RigEntry> {
    town.registry()
        .rigs
        .get(rig)
        .ok_or_else(|| unknown_rig(rig, town.registry()))
}

/// Fails if the rig is parked or docked.
pub fn check_not_parked(town: &Town, rig: &str) -> Result<()> {
    let entry = entry(town, rig)?;
    match entry.service() {
        None => Ok(()),
        Some(service) => {
            let back = if entry.docked { "undock" } else { "unpark" };
            Err(Problem::conflict(format!("the rig {rig} is {service}"))
                .hint(format!("`gt rig {back} {rig}` first")))
        }
    }
}

/// A rig that was added.
#[derive(Clone, Debug)]
pub struct Added {
    pub prefix: String,
    pub default_branch: String,
    pub path: PathBuf,
}

/// Returns the default name of a rig: that of its folder, or the last part of its URL.
pub fn name_for(town: &Town, source: &str) -> Result<String> {
    let path = path_of(town, source);
    let name = match path.canonicalize() {
        Ok(path) => path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned()),
        Err(_) => {
            let parts = source.trim_end_matches('/').rsplit(['/', ':']);
            parts.into_iter().next().map(str::to_owned)
        }
    };
    let name = name.unwrap_or_default();
    let other = format!("`gt rig add NAME {source}` gives it one");
    let name = gt_core::name::derive_rig(&name).map_err(|error| {
        Problem::usage(format!("{source:?} does not give the rig a name"))
            .caused_by(error)
            .hint(other.clone())
    })?;
    let mut known = town.registry().rigs.iter();
    if let Some((known, entry)) = known.find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
        return Err(Problem::conflict(format!(
            "the rig {known} exists already, from {}",
            without_password(&entry.git_url)
        ))
        .hint(format!(
            "`gt rig add NAME {source}` gives this one another name"
        )));
    }
    Ok(name)
}

/// Adds a repository to the town: clones it, then registers it.
pub fn add(town: &mut Town, name: &str, source: &str, prefix: Option<&str>) -> Result<Added> {
    let prefix = match prefix {
        Some(prefix) => prefix.to_owned(),
        None => town
            .registry()
            .suggest_prefix(name)
            .unwrap_or_else(|| name.to_owned()),
    };
    town.registry().check_new(name, &prefix)?;
    let path = town.root().join(name);
    if path.exists()
        && path
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_some())
    {
        return Err(
            Problem::conflict(format!("{} exists and is not empty", path.display()))
                .hint("move it away, or give the rig another name"),
        );
    }
    let source = resolve_source(town, source)?;
    // Created under a temporary name and renamed when complete: neither a crash nor a concurrent
    // `gt rig add` can leave or find an incomplete rig.
    let temporary = town.root().join(files::temporary_name(name));
    let result = copy(town, &source, &temporary)
        .and_then(|branch| register(town, name, &source, &prefix, branch, &temporary, &path));
    if result.is_err() {
        // The unique name guarantees that the folder is ours.
        let _ = fs::remove_dir_all(&temporary);
    }
    result
}

/// Clones the repository. Returns its default branch.
fn copy(town: &Town, source: &str, dir: &Path) -> Result<String> {
    files::make_dir(dir)?;
    let around = town.around();
    around.cancel.check()?;
    Git::at(dir, around)
        .run(["clone", "--quiet", "--bare", "--", source, ".repo.git"])
        .map_err(|problem| {
            Problem::failed(format!("cannot copy {}", without_password(source)))
                .caused_by_problem(&problem)
                .hint("give the path of a git repository, or a URL that `git clone` can reach")
        })?;
    let repository = dir.join(".repo.git");
    let git = Git::at(&repository, around);
    // The HEAD of the source may be detached.
    let branch = git
        .run(["symbolic-ref", "--short", "HEAD"])
        .unwrap_or_else(|_| "main".to_owned());
    if git.commit("HEAD")?.is_none() {
        return Err(
            Problem::usage(format!("{} has no commit yet", without_password(source)))
                .hint("worktrees begin at a commit: make a first one, then add the rig"),
        );
    }
    // A bare clone copies the branches as local ones. The agents need them as remote branches,
    // beside their own.
    git.run([
        "config",
        "remote.origin.fetch",
        "+refs/heads/*:refs/remotes/origin/*",
    ])?;
    git.run(["fetch", "--quiet", "origin"])?;
    git.run(["remote", "set-head", "origin", &branch])?;
    worktree_settings::separate(git, &repository, &branch)?;
    for folder in ["crew", "polecats", "witness", "refinery"] {
        files::make_dir(&dir.join(folder))?;
    }
    Ok(branch)
}

/// Moves the clone into place and registers the rig, both under the registry's lock.
fn register(
    town: &mut Town,
    name: &str,
    source: &str,
    prefix: &str,
    default_branch: String,
    temporary: &Path,
    path: &Path,
) -> Result<Added> {
    town.around().cancel.check()?;
    let now = town.clock().now();
    town.update_registry(|registry| {
        // Another process may have added a rig meanwhile.
        registry.check_new(name, prefix)?;
        // An empty folder of that name may exist; a non-empty one was refused earlier.
        let _ = fs::remove_dir(path);
        fs::rename(temporary, path).map_err(|error| files::io_problem("make", path, &error))?;
        let mut entry = RigEntry::with_prefix(prefix);
        entry.git_url = source.to_owned();
        entry.default_branch = Some(default_branch.clone());
        // Rounded down, so that a folder that a later removal keeps is always newer than the rig.
        let second = jiff::Timestamp::from_second(now.as_second()).ok();
        entry.added_at = second.map(|second| second.to_string());
        registry.rigs.insert(name.to_owned(), entry);
        Ok(())
    })?;
    Ok(Added {
        prefix: prefix.to_owned(),
        default_branch,
        path: path.to_owned(),
    })
}

/// Returns the source as a path, which need not exist: the source may be a URL.
fn path_of(town: &Town, source: &str) -> PathBuf {
    let around = town.around();
    match (source.strip_prefix("~/"), around.home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => around.current_dir.join(source),
    }
}

/// Makes a path absolute, and fails if it is not a repository. Leaves other sources to git.
fn resolve_source(town: &Town, source: &str) -> Result<String> {
    let around = town.around();
    let path = path_of(town, source);
    if path.exists() {
        if !Git::at(&path, around).is_repository()? {
            return Err(
                Problem::usage(format!("{} is not a git repository", path.display())).hint(
                    format!(
                        "`git init {}` and a first commit make it one",
                        path.display()
                    ),
                ),
            );
        }
        let path = path.canonicalize().unwrap_or(path);
        return Ok(path.display().to_string());
    }
    let is_url = source.contains("://") || (source.contains(':') && !source.starts_with('/'));
    if !is_url {
        return Err(
            Problem::not_found(format!("there is no folder {}", path.display()))
                .hint("give the path of a git repository, or a URL"),
        );
    }
    Ok(source.to_owned())
}

/// Parks or unparks a rig. Returns whether that changed anything.
pub fn set_parked(town: &mut Town, rig: &str, parked: bool) -> Result<bool> {
    entry(town, rig)?;
    town.update_registry(|registry| {
        let Some(entry) = registry.rigs.get_mut(rig) else {
            return Err(unknown_rig(rig, registry));
        };
        let changed = entry.parked != parked;
        entry.parked = parked;
        Ok(changed)
    })
}

/// Docks or undocks a rig. Returns whether that changed anything.
pub fn set_docked(town: &mut Town, rig: &str, docked: bool) -> Result<bool> {
    entry(town, rig)?;
    town.update_registry(|registry| {
        let Some(entry) = registry.rigs.get_mut(rig) else {
            return Err(unknown_rig(rig, registry));
        };
        let changed = entry.docked != docked;
        entry.docked = docked;
        Ok(changed)
    })
}

/// Returns the prefix of a rig's work items; `hq` means the town itself.
pub fn work_prefix(town: &Town, rig: &str) -> Result<String> {
    if rig == TOWN_PREFIX {
        return Ok(TOWN_PREFIX.to_owned());
    }
    let prefix = town.registry().prefix_of(rig);
    prefix
        .map(str::to_owned)
        .ok_or_else(|| unknown_rig(rig, town.registry()))
}

/// Returns the prefix of work items if the caller names no rig: that of the rig of the current
/// folder, of the only rig, or of the town.
pub fn work_prefix_here(town: &Town) -> String {
    // If no rig is found, the item belongs to the town.
    let rig = named_or_only(town, None, "").ok();
    let prefix = rig.and_then(|rig| work_prefix(town, &rig).ok());
    prefix.unwrap_or_else(|| TOWN_PREFIX.to_owned())
}

/// Prefix of the town's own items.
pub const TOWN_PREFIX: &str = "hq";

/// Returns the given rig; if none is given, the rig of the current folder, or the only rig.
/// Otherwise fails, with `how_to_name` as the hint.
pub fn named_or_only(town: &Town, given: Option<&str>, how_to_name: &str) -> Result<String> {
    if let Some(name) = given {
        return Ok(name.to_owned());
    }
    let here = town.around().current_dir.strip_prefix(town.root()).ok();
    let here = here.and_then(|path| path.iter().next()?.to_str());
    let rigs = &town.registry().rigs;
    if let Some(name) = here.filter(|name| rigs.contains_key(*name)) {
        return Ok(name.to_owned());
    }
    let mut names = rigs.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(only.clone()),
        (None, _) => Err(Problem::not_found("the town has no rig yet")
            .hint("`gt rig add PATH-OR-URL` adds a repository")),
        _ => {
            let known: Vec<&str> = rigs.keys().map(String::as_str).collect();
            Err(Problem::usage("which rig?")
                .hint(format!("{how_to_name}; the rigs: {}", known.join(", "))))
        }
    }
}
