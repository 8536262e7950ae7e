//! Continues the item of a polecat that does not run: resumes its session, or gives the item to
//! another polecat.

use crate::base::fault;
use crate::lifecycle::respawn;
use crate::lifecycle::start::StartedAgent;
use crate::lifecycle::stop::{self, StopOptions};
use crate::records::items::Work;
use crate::repo::workspace;
use crate::work::hook;
use crate::workflow::polecat::{TownSnapshot, claim, work_dir};
use crate::workflow::sling::{self, SlingOptions, SlingTarget, Slung};
use crate::{Result, Town};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};

/// Starts a polecat that has this item and does not run. Resumes its conversation, if its program
/// can.
pub(crate) fn resume(town: &Town, identity: &Identity, id: &WorkId) -> Result<StartedAgent> {
    let _claim = claim::agent(town, identity)?;
    let snapshot = check_dead(town, identity, id)?;
    let dir = work_dir(town, identity)?;
    workspace::repair_links(town, identity, &dir)?;
    {
        // A dead polecat does not count towards the limit. The claim makes it count from here on.
        let _count = claim::lock_count(town)?;
        if let Some(refusal) = snapshot.refusal(town, identity)? {
            return Err(refusal);
        }
    }
    if !workspace::is_usable(town, &dir) {
        workspace::place(town, identity, &dir, &workspace::work_branch(identity, id))?;
    }
    respawn::resume(town, identity)
}

/// Gives the item of a polecat that does not run to another one. The work of the first stays in its
/// worktree and on its branch, and the other polecat is told where it is. If the process is killed
/// in between, the item is open and on no hook.
pub(crate) fn reassign(town: &Town, id: &WorkId) -> Result<Slung> {
    let work = Work::of(town);
    let holder = work.holder(id)?;
    let holder = holder.and_then(|it| Identity::from_address(&it, town.registry()));
    let sender = work.slung_by(id)?;
    let mut args = None;
    if let Some(from) = &holder {
        let _claim = claim::agent(town, from)?;
        let snapshot = check_dead(town, from, id)?;
        if snapshot.container(from).is_some() {
            let options = StopOptions {
                force: true,
                ..StopOptions::default()
            };
            stop::stop_one(town, from, options)?;
        }
        let branch = workspace::work_branch(from, id);
        args = Some(format!(
            "{from} worked on this before and died. Its commits are on the branch {branch}, and its \
             uncommitted changes in {}: use what is good.",
            work_dir(town, from)?.display()
        ));
        hook::take_off(town, from)?;
        fault::point(town, "patrol.taken_off");
    }
    let options = SlingOptions {
        args,
        sender: sender.or_else(|| Some("gt".to_owned())),
        avoid: holder,
        ..SlingOptions::default()
    };
    let rig = sling::rig_of(town, id)?;
    Ok(sling::sling(town, id, &SlingTarget::Rig(rig), &options)?)
}

/// Returns the present snapshot. Fails unless the polecat has the item and does not run.
fn check_dead(town: &Town, identity: &Identity, id: &WorkId) -> Result<TownSnapshot> {
    let snapshot = TownSnapshot::read(town)?;
    if snapshot.bead(identity).as_ref() != Some(id) {
        return Err(Problem::conflict(format!("{identity} does not have {id}")));
    }
    if snapshot.is_running(identity) {
        return Err(Problem::conflict(format!("{identity} runs again")));
    }
    Ok(snapshot)
}
