//! Giving an agent its work: the hook, with what goes along with it.

use crate::events::Events;
use crate::sessions::{Query, Sessions};
use crate::work::{Hooked, Work};
use crate::{Result, Town};
use gt_core::event::Event;
use gt_core::record::{Record, Status};
use gt_core::work::WorkId;
use gt_core::{Identity, mail};

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
    let sessions = Sessions::of(town);
    let running = sessions.find(&Query {
        agent: Some(address),
        status: Some(Status::Running.word().to_owned()),
        limit: Some(1),
        ..Query::default()
    })?;
    let lines: Vec<Record> = running
        .iter()
        // A letter on the hook says how to go on, and is no unit of work.
        .filter(|_| hooked.item.kind != mail::KIND)
        .filter(|life| life.work_unit.as_deref() != Some(id.as_str()))
        .map(|life| Record {
            work_unit: Some(id.to_string()),
            ..Record::about(&life.id)
        })
        .collect();
    if !lines.is_empty() {
        sessions.record(&lines)?;
    }
    Ok(hooked)
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
    let event = Event::new(kind, agent.to_owned())
        .with("bead", id.to_string())
        .by_gt();
    Events::of(town).note(vec![event]);
}
