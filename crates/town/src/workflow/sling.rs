//! Assigns a work item to an agent: allocate, hook, start, in this order, so that the agent finds
//! its work when it starts.
//!
//! For a rig it allocates a polecat, a free or a new one, with its worktree on the branch of the
//! item. Any other agent is used as it is. If a step fails, the changes of earlier steps are rolled
//! back, and nothing else. A process that is killed leaves either a free polecat or an item on the
//! hook of an agent that does not run; the next call for the item continues from there.

mod allocate;
mod assignment;
mod steps;

use crate::base::error_enum::error_enum;
use crate::lifecycle::start::StartOptions;
use crate::records::budget;
use crate::records::items::{BATCH_KIND, Work};
use crate::work::hook::HookError;
use crate::{Result, Town};
use assignment::Assignment;
use gt_core::schedule::FormulaChoice;
use gt_core::session::SessionId;
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Identity, Problem, Role};
use std::path::PathBuf;

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &[
    "sling.allocated",
    "sling.placed",
    "sling.hooked",
    "sling.noted",
    "sling.started",
];

/// Receiver of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlingTarget {
    /// Any free polecat of this rig.
    Rig(String),
    /// This agent.
    Agent(Identity),
}

#[derive(Clone, Debug, Default)]
pub struct SlingOptions {
    /// Harness to use instead of the role's.
    pub harness: Option<String>,
    /// Model to use instead of the project's, the role's or the harness's.
    pub model: Option<String>,
    /// The account under which the agent program runs.
    pub account: Option<String>,
    /// Additional instructions; they are appended to the item's notes.
    pub args: Option<String>,
    /// Only allocate and hook.
    pub no_start: bool,
    /// Assign the item even if it is blocked.
    pub force: bool,
    /// Queue an item that waits for others, instead of refusing it.
    pub queue_blocked: bool,
    /// The program asks for permission, regardless of its role's setting.
    pub ask_permissions: bool,
    /// Sender of the work; the default is `GT_ROLE`, or a human.
    pub sender: Option<String>,
    /// The formula that is poured for the agent, about the item.
    pub formula: Option<FormulaChoice>,
    /// A polecat that does not get the item.
    pub avoid: Option<Identity>,
}

/// Result of [`sling`]: the agent that has the item now.
#[derive(Clone, Debug)]
pub struct Slung {
    pub id: WorkId,
    pub agent: Identity,
    pub container: String,
    /// Branch of its worktree, if it has one.
    pub branch: Option<String>,
    pub work_dir: PathBuf,
    /// Session that works on the item.
    pub session: Option<SessionId>,
    /// This call started the agent.
    pub started: bool,
    /// The agent existed before.
    pub reused: bool,
    /// The agent was running and got a nudge.
    pub nudged: bool,
    /// Failures that did not stop the call.
    pub warnings: Vec<String>,
}

/// An item that was not assigned.
#[derive(Debug, thiserror::Error)]
pub enum SlingError {
    /// Another agent has the item, or another process is giving it to one.
    #[error(transparent)]
    Taken(Problem),
    /// The maximum number of polecats is at work. Nothing was changed.
    #[error(transparent)]
    Full(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(SlingError: Taken, Full, Other);

impl SlingError {
    /// Changes the problem and keeps the variant.
    fn map(self, change: impl FnOnce(Problem) -> Problem) -> Self {
        match self {
            SlingError::Taken(problem) => SlingError::Taken(change(problem)),
            SlingError::Full(problem) => SlingError::Full(change(problem)),
            SlingError::Other(problem) => SlingError::Other(change(problem)),
        }
    }
}

impl From<HookError> for SlingError {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Held(problem) => SlingError::Taken(problem),
            HookError::Other(problem) => SlingError::Other(problem),
        }
    }
}

/// Assigns an item to an agent and starts the agent.
pub fn sling(
    town: &Town,
    id: &WorkId,
    to: &SlingTarget,
    options: &SlingOptions,
) -> Result<Slung, SlingError> {
    sling_item(town, &Work::of(town).get(id)?, to, options)
}

/// Assigns an item that the caller has read to an agent, and starts the agent.
pub fn sling_item(
    town: &Town,
    item: &Item,
    to: &SlingTarget,
    options: &SlingOptions,
) -> Result<Slung, SlingError> {
    let start = start_options(options);
    check(town, item, options.force)?;
    refuse_exhausted(town, item, to)?;
    let order = Assignment {
        town,
        item,
        options,
        start: &start,
    };
    match to {
        SlingTarget::Rig(rig) => order.to_polecat(rig, None),
        SlingTarget::Agent(agent) if agent.role() == Role::Polecat => {
            order.to_polecat(agent.rig().unwrap_or_default(), Some(agent))
        }
        SlingTarget::Agent(agent) => order.assign_to_other(agent),
    }
}

/// Refuses an item whose agent may not start because a budget is exhausted, before anything is
/// allocated.
pub(crate) fn refuse_exhausted(town: &Town, item: &Item, to: &SlingTarget) -> Result<()> {
    let (agent, rig) = match to {
        SlingTarget::Rig(rig) => (None, Some(rig.as_str())),
        SlingTarget::Agent(agent) => (Some(agent), agent.rig()),
    };
    budget::refuse_exhausted(town, agent, rig, Some(item.id.as_str()))
}

/// Returns the default target of an item: a polecat of its rig. An item of the town belongs to no
/// rig; a polecat that already has it keeps it.
pub fn target_of(town: &Town, id: &WorkId) -> Result<SlingTarget> {
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

/// Returns the rig that an item belongs to: the rig whose beads contain it, or the one with its
/// prefix.
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

/// Refuses an item that no agent may begin: closed, pinned, already submitted or, without `force`,
/// blocked.
pub(crate) fn check(town: &Town, item: &Item, force: bool) -> Result<()> {
    let id = &item.id;
    check_unfinished(town, item)?;
    let blockers = Work::of(town).open_blockers(id)?;
    if force || (blockers.is_empty() && item.status != ItemStatus::Blocked) {
        return Ok(());
    }
    let names: Vec<&str> = blockers.iter().map(WorkId::as_str).collect();
    let message = match names.as_slice() {
        [] => format!("{id} is blocked"),
        names => format!("{id} waits for {}", names.join(", ")),
    };
    Err(Problem::conflict(message).hint("`--force` assigns it anyway"))
}

/// Refuses an item that needs no agent: closed, pinned, already submitted, or only the parent of a
/// batch.
pub fn check_unfinished(town: &Town, item: &Item) -> Result<()> {
    let id = &item.id;
    if item.kind == BATCH_KIND {
        return Err(Problem::conflict(format!("{id} is a batch"))
            .hint(format!("`gt work tree {id}` shows its items: sling those")));
    }
    if matches!(item.status, ItemStatus::Closed | ItemStatus::Pinned) {
        return Err(Problem::conflict(format!(
            "{id} is {}",
            item.status.as_str()
        )));
    }
    Work::of(town).check_not_handed_in(id)
}

/// Refuses an item that is on the hook of another agent.
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

pub(crate) fn start_options(options: &SlingOptions) -> StartOptions {
    StartOptions {
        harness: options.harness.clone(),
        model: options.model.clone(),
        create: true,
        sender: options.sender.clone(),
        topic: Some("assigned".to_owned()),
        instructions: options.args.clone(),
        account: options.account.clone(),
        skip_permissions: options.ask_permissions.then_some(false),
        ..StartOptions::default()
    }
}

#[cfg(test)]
mod tests;
