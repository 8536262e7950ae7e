//! Puts work items on the hooks of agents and takes them off, and writes the events. The journal
//! records the current item with the agent's running session.

use crate::base::processes;
use crate::records::events::Events;
pub use crate::records::items::HookError;
use crate::records::items::{Hooked, Work};
use crate::records::sessions::{SessionQuery, Sessions};
use crate::records::usage;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::record::{Record, SessionStatus};
use gt_core::work::WorkId;

/// Result of [`hook_item`].
#[derive(Debug)]
pub struct HookPut {
    pub hooked: Hooked,
    /// The item was not on the hook before.
    pub is_new: bool,
}

/// Puts an item on an agent's hook. The journal records it for the agent's running session.
pub fn hook_item(town: &Town, agent: &Identity, id: &WorkId) -> Result<HookPut, HookError> {
    let address = agent.address();
    let work = Work::of(town);
    let before = work.hooked(&address)?;
    let is_new = !before.is_some_and(|present| present.holds(id));
    let hooked = work.hook(&address, id)?;
    if is_new {
        emit(town, "hook", &address, id);
    }
    // The item is on the hook even if the record fails, so this must not be reported as a failure.
    if let Err(problem) = note_unit(town, &address, &hooked) {
        tracing::warn!(
            "the journal does not name {id} as the work of {address}: {}",
            problem.line()
        );
    }
    Ok(HookPut { hooked, is_new })
}

/// Records the work item with the running session.
fn note_unit(town: &Town, address: &str, hooked: &Hooked) -> Result<()> {
    // A message on the hook gives instructions and is not a unit of work.
    let Some(unit) = hooked.unit() else {
        return Ok(());
    };
    let sessions = Sessions::of(town);
    let running = sessions.find(&SessionQuery {
        agent: Some(address.to_owned()),
        status: Some(SessionStatus::Running.as_str().to_owned()),
        limit: Some(1),
        ..SessionQuery::default()
    })?;
    let lines: Vec<Record> = running
        .iter()
        .filter(|session| is_alive(session))
        .filter(|session| session.work_unit.as_deref() != Some(unit.as_str()))
        .map(|session| {
            // The usage so far belongs to the earlier item. Without an earlier item it is not read.
            let so_far = session
                .work_unit
                .as_ref()
                .and_then(|_| usage::usage_until_now(town, session));
            session.switch_to_item(unit.as_str(), so_far)
        })
        .collect();
    match lines.is_empty() {
        true => Ok(()),
        false => sessions.record(&lines),
    }
}

/// Returns whether the process of a session is alive. The journal records a death with a delay, and
/// the item must not be recorded with a dead session.
fn is_alive(session: &Record) -> bool {
    let is_it = |pid| {
        processes::trees(&[pid])
            .get(pid)
            .is_some_and(|it| !it.zombie)
    };
    // A session that is being started has no process yet.
    session.pid.is_none_or(is_it)
}

/// Removes the item on an agent's hook.
pub fn take_off(town: &Town, agent: &Identity) -> Result<Option<Hooked>> {
    let taken = Work::of(town).unhook(&agent.address())?;
    if let Some(taken) = &taken {
        emit(town, "unhook", &taken.agent, &taken.item.id);
    }
    Ok(taken)
}

/// Removes an item from the hook that holds it.
pub fn take_off_item(town: &Town, id: &WorkId) -> Result<Option<Hooked>> {
    let taken = Work::of(town).unhook_item(id)?;
    if let Some(taken) = &taken {
        emit(town, "unhook", &taken.agent, id);
    }
    Ok(taken)
}

/// Rolls back [`hook_item`]: a handoff message that shared the hook gets its place back.
pub fn take_back(town: &Town, id: &WorkId) -> Result<()> {
    if let Some(taken) = Work::of(town).take_back(id)? {
        emit(town, "unhook", &taken.agent, id);
    }
    Ok(())
}

fn emit(town: &Town, kind: &str, agent: &str, id: &WorkId) {
    let event = town.event_at(kind, agent).with("bead", id.to_string());
    Events::of(town).note(vec![event]);
}
