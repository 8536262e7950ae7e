//! Giving an agent its work: the hook, with what goes along with it.

use crate::events::Events;
use crate::sessions::{Query, Sessions};
use crate::work::{Hooked, Work};
use crate::{Result, Town, hook_log, processes, usage};
use gt_core::Identity;
use gt_core::record::{Record, Status};
use gt_core::work::WorkId;

/// Puts an item on an agent's hook. A life of it that runs now works on this.
pub fn put(town: &Town, agent: &Identity, id: &WorkId) -> Result<Hooked> {
    let address = agent.address();
    let work = Work::of(town);
    let was_there = work
        .hooked(&address)?
        .is_some_and(|present| present.item.id == *id);
    let hooked = work.hook(&address, id)?;
    if !was_there {
        tell(town, "hook", &address, id);
    }
    // It hangs there, whatever becomes of the note: nobody may take it for a failure.
    if let Err(problem) = note_unit(town, &address, &hooked) {
        hook_log::note(town, "hook", &problem);
    }
    Ok(hooked)
}

/// Notes with the life that runs now what it works on.
fn note_unit(town: &Town, address: &str, hooked: &Hooked) -> Result<()> {
    // A letter on the hook says how to go on, and is no unit of work.
    let Some(unit) = hooked.unit() else {
        return Ok(());
    };
    let sessions = Sessions::of(town);
    let running = sessions.find(&Query {
        agent: Some(address.to_owned()),
        status: Some(Status::Running.word().to_owned()),
        limit: Some(1),
        ..Query::default()
    })?;
    let lines: Vec<Record> = running
        .iter()
        .filter(|life| is_alive(life))
        .filter(|life| life.work_unit.as_deref() != Some(unit.as_str()))
        .map(|life| {
            // Only what was taken until now is the earlier item's. Without one it is not read.
            let so_far = life
                .work_unit
                .as_ref()
                .and_then(|_| usage::so_far(town, life));
            life.going_on_with(unit.as_str(), so_far)
        })
        .collect();
    match lines.is_empty() {
        true => Ok(()),
        false => sessions.record(&lines),
    }
}

/// Returns whether the process of a session lives. The journal learns of a death a moment
/// later, and a session that is dead never held what is hooked now.
fn is_alive(life: &Record) -> bool {
    let is_it = |pid| {
        processes::trees(&[pid])
            .get(pid)
            .is_some_and(|it| !it.zombie)
    };
    // One that is being started has no process yet.
    life.pid.is_none_or(is_it)
}

/// Takes off what an agent has on its hook.
pub fn take_off(town: &Town, agent: &Identity) -> Result<Option<Hooked>> {
    let taken = Work::of(town).unhook(&agent.address())?;
    if let Some(taken) = &taken {
        tell(town, "unhook", &taken.agent, &taken.item.id);
    }
    Ok(taken)
}

/// Takes an item off whoever's hook it is on.
pub fn take_off_item(town: &Town, id: &WorkId) -> Result<Option<Hooked>> {
    let taken = Work::of(town).unhook_item(id)?;
    if let Some(taken) = &taken {
        tell(town, "unhook", &taken.agent, id);
    }
    Ok(taken)
}

/// Takes back that an item was put on a hook.
pub fn take_back(town: &Town, id: &WorkId) -> Result<()> {
    if let Some(taken) = Work::of(town).take_back(id)? {
        tell(town, "unhook", &taken.agent, id);
    }
    Ok(())
}

fn tell(town: &Town, kind: &str, agent: &str, id: &WorkId) {
    let event = town.event_at(kind, agent).with("bead", id.to_string());
    Events::of(town).note(vec![event]);
}
