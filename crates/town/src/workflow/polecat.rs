//! Polecats: workers that take one work item, finish it and are free again.
//!
//! [`crate::workflow::sling`] creates them and gives them work. This module lists them, reports their state
//! and removes them. It stores nothing about them: a polecat is its folder, the item on its hook,
//! and its container.

pub(crate) mod claim;
mod removal;
mod snapshot;

pub use removal::{FAULT_POINTS, Nuked, gc, nuke};
pub(crate) use removal::{last_change, nuke_unused, refuse_caller};
pub(crate) use snapshot::TownSnapshot;

use crate::base::git::Git;
use crate::base::or_log::OrLog;
use crate::catalog::{directory, roles};
use crate::repo::{base_branch, rig, workspace};
use crate::{Result, Town};
use gt_core::session::SessionId;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// State of a polecat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolecatState {
    /// Its container is alive.
    Working,
    /// It has an item on its hook and does not run.
    Stopped,
    /// It has no item, but its worktree holds changes that exist nowhere else.
    Dirty,
    /// It has no item, and no worktree that git can read.
    Broken,
    /// It is free.
    Idle,
}

impl PolecatState {
    pub fn as_str(self) -> &'static str {
        match self {
            PolecatState::Working => "working",
            PolecatState::Stopped => "stopped",
            PolecatState::Dirty => "dirty",
            PolecatState::Broken => "broken",
            PolecatState::Idle => "idle",
        }
    }
}

/// State of a polecat's worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorktreeState {
    Sound,
    /// The folder exists, but git does not know it.
    Broken,
    Missing,
}

impl WorktreeState {
    pub fn as_str(self) -> &'static str {
        match self {
            WorktreeState::Sound => "sound",
            WorktreeState::Broken => "broken",
            WorktreeState::Missing => "missing",
        }
    }
}

/// Snapshot of one polecat.
#[derive(Clone, Debug)]
pub struct Polecat {
    pub identity: Identity,
    pub state: PolecatState,
    pub bead: Option<WorkId>,
    /// Branch of its worktree; `None` if it is on no branch.
    pub branch: Option<String>,
    /// Name of its container, if it has one.
    pub container: Option<String>,
    pub session: Option<SessionId>,
    pub worktree: WorktreeState,
    /// Number of commits that are not in the rig's base; `None` without a worktree.
    pub ahead: Option<usize>,
    pub changed_files: Option<usize>,
    pub work_dir: PathBuf,
}

/// Returns the polecats of one rig, or of all rigs.
pub fn list(town: &Town, only: Option<&str>) -> Result<Vec<Polecat>> {
    if let Some(name) = only {
        rig::entry(town, name)?;
    }
    let snapshot = TownSnapshot::read(town)?;
    let rigs = town.registry().rigs.keys();
    let rigs = rigs.filter(|rig| only.is_none_or(|only| only == rig.as_str()));
    rigs.flat_map(|rig| all_of(town, &snapshot, rig))
        .map(|identity| view(town, &snapshot, identity))
        .collect()
}

/// Returns all polecats of a rig: found by folder, by hook or by container.
fn all_of(town: &Town, snapshot: &TownSnapshot, rig: &str) -> BTreeSet<Identity> {
    let mut all: BTreeSet<Identity> = directory::workers(town, rig, Role::Polecat)
        .into_iter()
        .collect();
    let others = snapshot.agents(town);
    all.extend(others.filter(|agent| agent.role() == Role::Polecat && agent.rig() == Some(rig)));
    all
}

/// Returns one polecat. Fails if there is no trace of it.
pub fn show(town: &Town, identity: &Identity) -> Result<Polecat> {
    let snapshot = TownSnapshot::read(town)?;
    let view = view(town, &snapshot, identity.clone())?;
    if view.work_dir.exists() || view.container.is_some() || view.bead.is_some() {
        return Ok(view);
    }
    Err(not_found(town, identity))
}

/// Returns the polecats with this name in all rigs.
pub fn named(town: &Town, name: &str) -> Result<Vec<Identity>> {
    let snapshot = TownSnapshot::read(town)?;
    let rigs = town.registry().rigs.keys();
    let all = rigs.flat_map(|rig| all_of(town, &snapshot, rig));
    Ok(all.filter(|agent| agent.name() == Some(name)).collect())
}

/// Returns the path of a polecat's folder.
pub(crate) fn work_dir(town: &Town, identity: &Identity) -> Result<PathBuf> {
    let role = roles::resolve(town, identity.role(), identity.rig())?.value;
    workspace::path(town, identity, &role)
}

fn view(town: &Town, snapshot: &TownSnapshot, identity: Identity) -> Result<Polecat> {
    let work_dir = work_dir(town, &identity)?;
    let bead = snapshot.bead(&identity);
    let container = snapshot.container(&identity);
    let worktree = match work_dir.exists() {
        true if workspace::is_usable(town, &work_dir) => WorktreeState::Sound,
        true => WorktreeState::Broken,
        false => WorktreeState::Missing,
    };
    let is_there = worktree == WorktreeState::Sound;
    let git = Git::at(&work_dir, town.around());
    let (mut ahead, mut changed_files) = (None, None);
    if is_there {
        let base = base_branch::start_point(town, identity.rig().unwrap_or_default());
        let count = base.and_then(|base| git.count(["HEAD", "--not", &base]));
        let unknown = format!("the work of {identity} is unknown");
        ahead = count.or_warn(&unknown);
        let changes = git.run(["status", "--porcelain", "--untracked-files=all"]);
        let changes = changes.or_warn(&unknown);
        changed_files = changes.map(|changes| changes.lines().count());
    }
    let state = if snapshot.is_running(&identity) {
        PolecatState::Working
    } else if bead.is_some() {
        PolecatState::Stopped
    } else if !is_there {
        PolecatState::Broken
    } else if workspace::is_settled(town, &work_dir)
        .or_warn(format_args!("{identity} counts as dirty"))
        .unwrap_or(false)
    {
        PolecatState::Idle
    } else {
        PolecatState::Dirty
    };
    Ok(Polecat {
        state,
        bead,
        branch: is_there
            .then(|| workspace::current_branch(town, &work_dir))
            .flatten(),
        container: container.map(|container| container.name().to_owned()),
        session: container.and_then(crate::terminal::containers::Container::session_id),
        worktree,
        ahead,
        changed_files,
        work_dir,
        identity,
    })
}

fn not_found(town: &Town, identity: &Identity) -> Problem {
    let rig = identity.rig().unwrap_or_default();
    let problem = Problem::not_found(format!(
        "the rig {rig} has no polecat called {:?}",
        identity.short_name()
    ));
    directory::with_similar(town, problem, identity)
        .hint(format!("`gt polecat list {rig}` shows them"))
}
