//! Giving work to an agent that is there for it: allocate, hook, start, in this order, so
//! that the agent finds its work when it starts.
//!
//! For a rig a polecat is allocated: a free one, or a new one, with its
//! worktree on the branch of the item. Any other agent is taken as it is. What a step has
//! made is taken back when a later one fails, and nothing else. A process that is killed
//! leaves either a free polecat or an item on the hook of one that does not run; the next
//! call for the same item goes on from there.

mod allocate;
mod order;
mod steps;

use crate::start::StartOptions;
use crate::work::Work;
use crate::{Result, Town};
use gt_core::session::SessionId;
use gt_core::work::{Item, Status, WorkId};
use gt_core::{Identity, Problem, Role};
use order::Order;
use std::path::PathBuf;

/// Where a test can kill us.
pub const FAULT_POINTS: &[&str] = &[
    "sling.allocated",
    "sling.placed",
    "sling.hooked",
    "sling.noted",
    "sling.started",
];

/// Who is to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlingTarget {
    /// A polecat of this rig, whichever is free.
    Rig(String),
    /// This agent.
    Agent(Identity),
}

#[derive(Clone, Debug, Default)]
pub struct SlingOptions {
    /// Another harness than the role's.
    pub harness: Option<String>,
    /// The account under which the agent program runs.
    pub account: Option<String>,
    /// What to say beside the item; kept in its notes.
    pub args: Option<String>,
    /// Only allocate and hook.
    pub no_start: bool,
    /// Also if something that it waits for is not done.
    pub force: bool,
    /// The program asks for permission, whatever its role says.
    pub ask_permissions: bool,
    /// Who gives the work; otherwise `GT_ROLE`, or a human.
    pub sender: Option<String>,
}

/// An item that an agent has now.
#[derive(Clone, Debug)]
pub struct Slung {
    pub id: WorkId,
    pub agent: Identity,
    pub container: String,
    /// What its worktree is on, where it has one.
    pub branch: Option<String>,
    pub work_dir: PathBuf,
    /// The life that works on it.
    pub session: Option<SessionId>,
    /// It was started by this call.
    pub started: bool,
    /// It was there before.
    pub reused: bool,
    /// It ran, and was told.
    pub nudged: bool,
    /// What did not go as wished and did not stop it.
    pub warnings: Vec<String>,
}

/// Gives an item to an agent, and starts that.
pub fn sling(town: &Town, id: &WorkId, to: &SlingTarget, options: &SlingOptions) -> Result<Slung> {
    let item = Work::of(town).get(id)?;
    let start = start_options(options);
    check(town, &item, options.force)?;
    let order = Order {
        town,
        item: &item,
        options,
        start: &start,
    };
    match to {
        SlingTarget::Rig(rig) => order.to_polecat(rig, None),
        SlingTarget::Agent(agent) if agent.role() == Role::Polecat => {
            order.to_polecat(agent.rig().unwrap_or_default(), Some(agent))
        }
        SlingTarget::Agent(agent) => order.to_other(agent),
    }
}

/// Who is to do an item, where nobody is named: a polecat of its rig. One of the town's own
/// belongs to no rig, but a polecat that has it goes on with it.
pub fn target_of(town: &Town, id: &WorkId) -> Result<SlingTarget> {
    Work::of(town).get(id)?;
    let no_rig = match rig_of(town, id) {
        Ok(rig) => return Ok(SlingTarget::Rig(rig)),
        Err(problem) => problem,
    };
    let Some(holder) = Work::of(town).holder(id)? else {
        return Err(no_rig);
    };
    match Identity::from_address(&holder, town.registry()) {
        Some(agent) if agent.role() == Role::Polecat => Ok(SlingTarget::Agent(agent)),
        _ => Err(held_by(id, &holder)),
    }
}

/// The rig that an item belongs to: in whose beads it is, or by its prefix.
pub(crate) fn rig_of(town: &Town, id: &WorkId) -> Result<String> {
    if let Some(rig) = Work::of(town).rig_in_beads(id)? {
        return Ok(rig);
    }
    match town.registry().split(id.as_str()) {
        Some((rig, _)) => Ok(rig.to_owned()),
        None => Err(Problem::usage(format!("{id} belongs to no rig"))
            .hint("name a rig or an agent after it")),
    }
}

/// What keeps an item from being begun by anybody.
pub(crate) fn check(town: &Town, item: &Item, force: bool) -> Result<()> {
    let id = &item.id;
    if matches!(item.status, Status::Closed | Status::Pinned) {
        return Err(Problem::conflict(format!("{id} is {}", item.status.word())));
    }
    Work::of(town).check_not_handed_in(id)?;
    let blockers = Work::of(town).open_blockers(id)?;
    if force || (blockers.is_empty() && item.status != Status::Blocked) {
        return Ok(());
    }
    let names: Vec<&str> = blockers.iter().map(WorkId::as_str).collect();
    let message = match names.as_slice() {
        [] => format!("{id} is blocked"),
        names => format!("{id} waits for {}", names.join(", ")),
    };
    Err(Problem::conflict(message).hint("`--force` gives it to an agent all the same"))
}

/// Refuses an item that is on somebody else's hook.
pub(crate) fn check_free(id: &WorkId, holder: Option<&str>, agent: &Identity) -> Result<()> {
    match holder {
        Some(holder) if holder != agent.address() => Err(held_by(id, holder)),
        _ => Ok(()),
    }
}

fn held_by(id: &WorkId, holder: &str) -> Problem {
    Problem::conflict(format!("{id} is on the hook of {holder}"))
        .hint(format!("`gt unhook {id}` takes it off"))
}

fn start_options(options: &SlingOptions) -> StartOptions {
    StartOptions {
        harness: options.harness.clone(),
        create: true,
        sender: options.sender.clone(),
        topic: Some("assigned".to_owned()),
        instructions: options.args.clone(),
        account: options.account.clone(),
        skip_permissions: options.ask_permissions.then_some(false),
        ..StartOptions::default()
    }
}
