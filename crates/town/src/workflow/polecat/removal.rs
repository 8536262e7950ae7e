//! Removes polecats: a named one, or all unused ones.
//!
//! Every step is idempotent: first the container, so that the agent stops working; then the hook;
//! then worktree and branches. The next removal completes a removal that was killed.

use super::{PolecatState, TownSnapshot, claim, not_found, work_dir};
use crate::base::fault;
use crate::catalog::roles;
use crate::lifecycle::restore;
use crate::lifecycle::stop::{self, StopOptions};
use crate::records::sessions::Sessions;
use crate::repo::workspace;
use crate::work::{checkpoint, hook};
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use jiff::Timestamp;
use std::path::Path;

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["nuke.stopped", "nuke.released", "nuke.removed"];

/// A polecat that was removed, or would be in a dry run.
#[derive(Clone, Debug)]
pub struct Nuked {
    pub identity: Identity,
    /// Its container was stopped.
    pub stopped: bool,
    /// Item that was on its hook and is open again.
    pub released: Option<WorkId>,
    /// Refs under which unsaved work was saved, and the folder of a broken worktree.
    pub saved: Vec<String>,
    /// Branches that remain: they are queued for a merge, or checked out elsewhere.
    pub kept: Vec<String>,
    pub unsaved: workspace::Unsaved,
    /// Reason why it would not be removed.
    pub refusal: Option<Problem>,
}

/// Removes a polecat: container, hook, worktree and branches. Refuses if it has work that exists
/// nowhere else; with `force` that work is saved under `refs/gt/saved/`. With `dry_run` it changes
/// nothing and reports what it would do, or the reason for a refusal.
pub fn nuke(town: &Town, identity: &Identity, force: bool, dry_run: bool) -> Result<Nuked> {
    let _claim = claim::agent(town, identity)?;
    nuke_claimed(town, identity, &TownSnapshot::read(town)?, force, dry_run)
}

/// Removes a polecat whose agent lock the caller holds. `snapshot` must be read under that lock.
fn nuke_claimed(
    town: &Town,
    identity: &Identity,
    snapshot: &TownSnapshot,
    force: bool,
    dry_run: bool,
) -> Result<Nuked> {
    let dir = work_dir(town, identity)?;
    let staying = workspace::kept_branches(town, identity, &dir)?;
    let has_branches = workspace::branches(town, identity)?.len() > staying.len();
    let container = snapshot.container(identity);
    let released = snapshot.bead(identity);
    if !dir.exists() && !has_branches && container.is_none() && released.is_none() {
        return Err(not_found(town, identity));
    }
    // Checked before anything is stopped: a refusal must change nothing.
    let unsaved = workspace::unsaved(town, identity, &dir)?;
    let refusal = refuse_caller(town, identity)
        .err()
        .or_else(|| unsaved.refusal(identity).filter(|_| !force));
    if dry_run {
        return Ok(Nuked {
            identity: identity.clone(),
            stopped: container.is_some(),
            released,
            saved: Vec::new(),
            kept: staying,
            unsaved,
            refusal,
        });
    }
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let stopped = end(town, identity, container.is_some())?;
    restore::forget(town, identity)?;
    fault::point(town, "nuke.stopped");
    let mut released = hook::take_off(town, identity)?;
    fault::point(town, "nuke.released");
    let removed = workspace::remove(town, identity, &dir, force)?;
    fault::point(town, "nuke.removed");
    // Another process may have hooked an item until the folder was removed.
    if let Some(late) = hook::take_off(town, identity)? {
        released = Some(late);
    }
    let released = released.map(|hooked| hooked.item.id);
    checkpoint::clear(town, identity)?;
    Ok(Nuked {
        identity: identity.clone(),
        stopped,
        released,
        saved: removed.saved,
        kept: removed.kept,
        unsaved,
        refusal: None,
    })
}

/// Stops the container, if there is one. Returns whether there was.
fn end(town: &Town, identity: &Identity, is_there: bool) -> Result<bool> {
    if !is_there {
        return Ok(false);
    }
    let options = StopOptions {
        force: true,
        ..StopOptions::default()
    };
    stop::stop_one(town, identity, options)?;
    Ok(true)
}

/// Refuses to remove the calling agent: its own process would end in the middle of the removal.
pub(crate) fn refuse_caller(town: &Town, identity: &Identity) -> Result<()> {
    let around = town.around();
    let is_here = around.var("GT_ROOT").map(Path::new) == Some(town.root());
    let own = around.var("GT_SESSION").filter(|_| is_here);
    // The removal reports a role that cannot be read.
    if own.is_some() && own == roles::container_name(town, identity).ok().as_deref() {
        return Err(
            Problem::conflict(format!("{identity} cannot remove itself"))
                .hint("run this from another terminal or agent"),
        );
    }
    Ok(())
}

/// Removes polecats that are free for at least `older_than` seconds and have nothing unsaved.
/// Polecats with unsaved work are returned as problems.
pub fn gc(
    town: &Town,
    only: Option<&str>,
    older_than: u64,
    dry_run: bool,
) -> Result<Vec<(Identity, Result<Nuked>)>> {
    let mut answers = Vec::new();
    for polecat in super::list(town, only)? {
        let identity = polecat.identity;
        if matches!(polecat.state, PolecatState::Working | PolecatState::Stopped) {
            continue;
        }
        let age = town.clock().seconds() - last_change(town, &identity)?;
        if age < i64::try_from(older_than).unwrap_or(i64::MAX) {
            continue;
        }
        if let Some(answer) = nuke_if_unused(town, &identity, dry_run)? {
            answers.push((identity, answer));
        }
    }
    Ok(answers)
}

/// Removes a polecat that has no work. One that works again stays.
pub(crate) fn nuke_unused(town: &Town, identity: &Identity) -> Result<()> {
    let answer = nuke_if_unused(town, identity, false)?;
    answer.map_or(Ok(()), |nuked| nuked.map(drop))
}

fn nuke_if_unused(
    town: &Town,
    identity: &Identity,
    dry_run: bool,
) -> Result<Option<Result<Nuked>>> {
    // A held claim means that another process is assigning work to it, or has just done so.
    let Some(_claim) = claim::try_agent(town, identity)? else {
        return Ok(None);
    };
    let snapshot = TownSnapshot::read(town)?;
    if snapshot.is_running(identity) || snapshot.bead(identity).is_some() {
        return Ok(None);
    }
    Ok(Some(nuke_claimed(
        town, identity, &snapshot, false, dry_run,
    )))
}

/// Returns when a polecat last changed, in seconds since the epoch: its worktree moved to another
/// commit, or one of its sessions ended. Starts no process.
pub(crate) fn last_change(town: &Town, identity: &Identity) -> Result<i64> {
    let dir = work_dir(town, identity)?;
    // A broken worktree lacks the file.
    let link = std::fs::read_to_string(dir.join(".git")).unwrap_or_default();
    let own = link.strip_prefix("gitdir: ").map(str::trim_end);
    let own = dir.join(own.unwrap_or_default());
    let files = [own.join("HEAD"), own.join("logs/HEAD"), dir];
    let changed = files.iter().filter_map(|path| {
        // A broken worktree lacks some of them.
        let at = path.metadata().ok()?.modified().ok()?;
        Some(Timestamp::try_from(at).ok()?.as_second())
    });
    let last = Sessions::of(town).newest_of(&identity.address())?;
    let ended = last.and_then(|session| session.ended_at.or(session.started_at));
    let ended = ended.and_then(|at| Some(at.parse::<Timestamp>().ok()?.as_second()));
    Ok(changed.chain(ended).max().unwrap_or(0))
}
