//! Removes a rig from the town without losing work.
//!
//! Without `force`, a rig is removed only if no agent runs in it and all its commits and files also
//! exist elsewhere. With `force`, its agents are stopped, and unique work is kept: changes become
//! refs under `refs/gt/saved/`, and the rig's folder with its clone moves to `.saved/` in the town.
//! The source repository is not changed. Work items, sessions and events of the rig stay.
//!
//! Every step is idempotent: the next removal finishes one that was killed. The rig is docked
//! first, so that nothing starts in it meanwhile.

use crate::base::git::Git;
use crate::base::{fault, files};
use crate::catalog::{directory, roles};
use crate::lifecycle::restore;
use crate::lifecycle::stop::{self, StopOptions};
use crate::records::items::Work;
use crate::repo::approval;
use crate::repo::rig::{entry, repository, set_docked};
use crate::repo::workspace::{self, Unsaved};
use crate::terminal::containers::{self, Container};
use crate::work::{checkpoint, hook};
use crate::workflow::merge;
use crate::workflow::polecat::{claim, refuse_caller};
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Fault points of a removal.
pub const FAULT_POINTS: &[&str] = &[
    "rig_remove.docked",
    "rig_remove.stopped",
    "rig_remove.worktrees",
    "rig_remove.moved",
];

/// A completed or planned removal of a rig.
#[derive(Clone, Debug, Default)]
pub struct RigRemoval {
    /// The agents whose containers are ended.
    pub stopped: Vec<Identity>,
    /// The agents whose worktrees are removed.
    pub agents: Vec<Identity>,
    /// Work items that were on the agents' hooks and are released.
    pub released: Vec<WorkId>,
    /// Commits of the rig's clone that its source repository does not have.
    pub commits: usize,
    /// Agents with work that exists nowhere else.
    pub unsaved: Vec<(Identity, Unsaved)>,
    /// The refs under which that work was saved.
    pub saved: Vec<String>,
    /// The folder that now holds the rig's clone, if it was kept.
    pub kept_at: Option<PathBuf>,
    /// Open work items of the rig. They stay in the town.
    pub open_items: usize,
    /// The reason why the rig would not be removed.
    pub refusal: Option<Problem>,
}

/// The folders and containers of a rig.
struct Survey {
    /// The agents with a folder, by address.
    folders: BTreeMap<String, (Identity, PathBuf)>,
    /// Worktrees that belong to no agent.
    foreign: Vec<PathBuf>,
    containers: Vec<Container>,
}

/// Removes a rig. With `dry_run` it only returns the plan, or the refusal.
pub fn remove(town: &mut Town, rig: &str, force: bool, dry_run: bool) -> Result<RigRemoval> {
    entry(town, rig)?;
    let _claim = claim::rig(town, rig)?;
    let survey = Survey::of(town, rig)?;
    let mut removal = survey.plan(town, rig)?;
    removal.refusal = survey.refusal(town, rig, &removal, force)?;
    if dry_run {
        return Ok(removal);
    }
    if let Some(refusal) = removal.refusal.take() {
        return Err(refusal);
    }
    set_docked(town, rig, true)?;
    fault::point(town, "rig_remove.docked");
    for identity in &removal.stopped {
        let options = StopOptions {
            force: true,
            ..StopOptions::default()
        };
        stop::stop_one(town, identity, options)?;
    }
    fault::point(town, "rig_remove.stopped");
    removal.released.clear();
    for (identity, dir) in survey.folders.values() {
        restore::forget(town, identity)?;
        let released = hook::take_off(town, identity)?;
        removal
            .released
            .extend(released.map(|hooked| hooked.item.id));
        if workspace::is_worktree(identity.role()) || identity.role() == Role::Task {
            let removed = workspace::remove(town, identity, dir, force)?;
            removal.saved.extend(removed.saved);
        }
        checkpoint::clear(town, identity)?;
    }
    fault::point(town, "rig_remove.worktrees");
    approval::forget(town, rig)?;
    removal.kept_at = unregister(town, rig)?;
    Ok(removal)
}

impl Survey {
    fn of(town: &Town, rig: &str) -> Result<Self> {
        let mut survey = Survey {
            folders: BTreeMap::new(),
            foreign: Vec::new(),
            containers: Vec::new(),
        };
        for container in containers::list_everywhere(town)? {
            if container.identity().and_then(Identity::rig) == Some(rig) {
                survey.containers.push(container);
            }
        }
        let workers = [Role::Crew, Role::Polecat]
            .into_iter()
            .flat_map(|role| directory::workers(town, rig, role));
        let own = [Role::Witness, Role::Refinery].map(|role| Identity::of_rig(role, rig));
        for identity in workers.chain(own) {
            let role = roles::resolve(town, identity.role(), identity.rig())?.value;
            let dir = workspace::path(town, &identity, &role)?;
            if dir.exists() {
                survey.add(identity, dir);
            }
        }
        for (dir, branch) in worktrees(town, rig)? {
            if is_queue_tree(town, rig, &dir) || directory::by_folder(town, &dir).is_some() {
                continue;
            }
            let id = branch.and_then(|branch| branch.parse::<WorkId>().ok());
            let task = id.map(|id| Identity::task(id.as_str(), town.registry()));
            match task.filter(|task| task.rig() == Some(rig)) {
                Some(task) => survey.add(task, dir),
                None => survey.foreign.push(dir),
            }
        }
        Ok(survey)
    }

    fn add(&mut self, identity: Identity, dir: PathBuf) {
        self.folders.insert(identity.address(), (identity, dir));
    }

    fn plan(&self, town: &Town, rig: &str) -> Result<RigRemoval> {
        let mut removal = RigRemoval {
            stopped: self
                .containers
                .iter()
                .filter_map(Container::identity)
                .cloned()
                .collect(),
            open_items: open_items(town, rig)?,
            ..RigRemoval::default()
        };
        let work = Work::of(town);
        for (identity, dir) in self.folders.values() {
            removal.agents.push(identity.clone());
            let hooked = work.hooked(&identity.address())?;
            removal.released.extend(hooked.map(|hooked| hooked.item.id));
            if identity.role() == Role::Witness {
                continue;
            }
            let unsaved = workspace::unsaved(town, identity, dir)?;
            if !unsaved.is_nothing() {
                removal.unsaved.push((identity.clone(), unsaved));
            }
        }
        removal.commits = own_commits(town, rig)?;
        Ok(removal)
    }

    fn refusal(
        &self,
        town: &Town,
        rig: &str,
        removal: &RigRemoval,
        force: bool,
    ) -> Result<Option<Problem>> {
        for identity in &removal.stopped {
            if let Err(problem) = refuse_caller(town, identity) {
                return Ok(Some(problem));
            }
        }
        if let Some(dir) = self.foreign.first() {
            let dir = dir.display();
            return Ok(Some(
                Problem::conflict(format!("{dir} is a worktree of the rig {rig}")).hint(format!(
                    "it belongs to no agent: `git worktree remove {dir}` in it, then try again"
                )),
            ));
        }
        let waiting = Work::of(town).merges(Some(rig), false)?;
        if let Some(merge) = waiting.first() {
            let ids: Vec<&str> = waiting.iter().map(|merge| merge.id.as_str()).collect();
            return Ok(Some(
                Problem::conflict(format!(
                    "the rig {rig} has unmerged work: {}",
                    ids.join(", ")
                ))
                .hint(format!("`gt mq run {rig}` merges it"))
                .hint(format!(
                    "`gt mq reject {} --reason TEXT` gives it up",
                    merge.id
                )),
            ));
        }
        if force {
            return Ok(None);
        }
        if !removal.unsaved.is_empty() || removal.commits > 0 {
            let mut problem =
                Problem::conflict(format!("the rig {rig} has work that exists nowhere else"));
            for (identity, unsaved) in &removal.unsaved {
                problem = problem.cause(format!("{identity}: {}", unsaved.describe()));
            }
            if removal.commits > 0 {
                problem = problem.cause(format!(
                    "commits that only the rig's copy of the repository has: {}",
                    removal.commits
                ));
            }
            return Ok(Some(problem.hint(
                "push it, or `--force`: the rig's copy is then kept in the town's folder .saved",
            )));
        }
        let names: Vec<String> = self
            .containers
            .iter()
            .filter(|container| !container.pane().dead && !container.lost_agent_pane())
            .filter_map(|container| Some(container.identity()?.address()))
            .collect();
        if names.is_empty() {
            return Ok(None);
        }
        Ok(Some(
            Problem::conflict(format!("agents of the rig {rig} run: {}", names.join(", "))).hint(
                format!("`gt rig stop {rig} --all` stops them, and so does `--force`"),
            ),
        ))
    }
}

/// Returns the worktrees of a rig's clone, with their branches.
fn worktrees(town: &Town, rig: &str) -> Result<Vec<(PathBuf, Option<String>)>> {
    let repository = repository(town, rig);
    if !repository.is_dir() {
        return Ok(Vec::new());
    }
    let git = Git::at(&repository, town.around()).uncancellable();
    let list = git.run(["worktree", "list", "--porcelain", "-z"])?;
    let mut found = Vec::new();
    for block in list.split("\0\0") {
        let field = |name: &str| {
            let mut lines = block.split('\0');
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let is_bare = block.split('\0').any(|line| line == "bare");
        let Some(dir) = field("worktree").filter(|_| !is_bare) else {
            continue;
        };
        let dir = PathBuf::from(dir);
        if dir.exists() {
            let branch = field("branch").and_then(|name| name.strip_prefix("refs/heads/"));
            found.push((dir, branch.map(str::to_owned)));
        }
    }
    Ok(found)
}

/// Returns whether this is a worktree in which the merge queue validates.
fn is_queue_tree(town: &Town, rig: &str, dir: &Path) -> bool {
    let queue = queue_folder(town, rig);
    dir.starts_with(&queue)
        || queue
            .canonicalize()
            .is_ok_and(|queue| dir.starts_with(queue))
}

fn queue_folder(town: &Town, rig: &str) -> PathBuf {
    town.runtime_dir().join("merge").join(rig)
}

/// Counts the commits of the rig's clone that no branch of its remote has.
fn own_commits(town: &Town, rig: &str) -> Result<usize> {
    let repository = repository(town, rig);
    if !repository.is_dir() {
        return Ok(0);
    }
    let git = Git::at(&repository, town.around()).uncancellable();
    git.count(["--all", "--not", "--remotes"])
}

fn open_items(town: &Town, rig: &str) -> Result<usize> {
    // A time later than any closed item, so that only open items are returned.
    let overview = Work::of(town).overview("9999")?;
    let is_its = |id: &WorkId| town.registry().split(id.as_str()).map(|(rig, _)| rig) == Some(rig);
    let open = overview.items.iter().filter(|item| is_its(&item.id));
    Ok(open.count())
}

/// Removes the rig from the registry and moves or removes its folder, under the registry's lock.
/// Returns the folder that was kept.
fn unregister(town: &mut Town, rig: &str) -> Result<Option<PathBuf>> {
    let path = town.root().join(rig);
    // A removal that was killed after the move has already kept the folder.
    let kept_before = match path.exists() {
        true => None,
        false => kept_before(town, rig)?,
    };
    let keeps = own_commits(town, rig)? > 0 || has_files(&path);
    let target = match keeps {
        true => {
            let folder = town.root().join(".saved");
            files::make_dir(&folder)?;
            let stamp = town.clock().now().as_millisecond();
            folder.join(format!("{rig}-{stamp}"))
        }
        // If the removal is killed, the temporary name marks the folder as a leftover.
        false => town.root().join(files::temporary_name(rig)),
    };
    let queue = queue_folder(town, rig);
    let before = town.clone();
    town.update_registry(|registry| {
        if path.exists() {
            fs::rename(&path, &target)
                .map_err(|error| files::io_problem("move away", &path, &error))?;
        }
        fault::point(&before, "rig_remove.moved");
        registry.rigs.remove(rig);
        Ok(())
    })?;
    files::remove_folder(&queue)?;
    merge::background::forget(town, rig)?;
    if !keeps {
        files::remove_folder(&target)?;
        return Ok(kept_before);
    }
    Ok(target.exists().then_some(target))
}

/// Returns the newest folder that a removal of this rig has kept since the rig was added.
fn kept_before(town: &Town, rig: &str) -> Result<Option<PathBuf>> {
    let added: Option<jiff::Timestamp> = entry(town, rig)?
        .added_at
        .as_deref()
        .and_then(|at| at.parse().ok());
    let since = added.map_or(i64::MIN, jiff::Timestamp::as_millisecond);
    let folder = town.root().join(".saved");
    let stamps = files::folder_names(&folder).into_iter().filter_map(|name| {
        let stamp = name.strip_prefix(rig)?.strip_prefix('-')?;
        stamp.parse::<i64>().ok().filter(|stamp| *stamp >= since)
    });
    Ok(stamps
        .max()
        .map(|stamp| folder.join(format!("{rig}-{stamp}"))))
}

/// Returns whether a rig's folder has files besides its clones of the repository and of submodules.
/// A folder that cannot be read may have files.
fn has_files(dir: &Path) -> bool {
    const COPIES: [&str; 2] = [".repo.git", ".submodules"];
    let is_copy = |name: &std::ffi::OsStr| COPIES.iter().any(|copy| name == *copy);
    let mut found = match fs::read_dir(dir) {
        Ok(found) => found,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    found.any(|entry| match entry {
        Ok(entry) if is_copy(&entry.file_name()) => false,
        Ok(entry) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => has_files(&entry.path()),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_cannot_be_read_counts_as_having_files() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        assert!(!has_files(&dir.join("missing")));
        fs::create_dir_all(dir.join("polecats/.repo.git")).unwrap();
        fs::write(dir.join("polecats/.repo.git/HEAD"), "").unwrap();
        assert!(!has_files(dir));
        fs::write(dir.join("polecats/notes"), "").unwrap();
        assert!(has_files(dir));
        // Not a folder, so it cannot be read as one.
        assert!(has_files(&dir.join("polecats/notes")));
    }
}
