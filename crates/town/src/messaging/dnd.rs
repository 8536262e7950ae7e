//! Do not disturb: turns it on and off, and delivers the held messages at its end.
//!
//! Messages to an agent wait in its queue; the deliverer delivers only urgent ones. Notifications
//! to the person are written to `.runtime/held-notices.json`. A timer of tmux calls [`end_due`];
//! regular upkeep calls it too.

use crate::base::dnd::{self, DndNote};
use crate::base::or_log::OrLog;
use crate::base::wake;
use crate::messaging::queue::MessageQueue;
use crate::messaging::{notify, signal};
use crate::records::events::{Events, by_command};
use crate::terminal::{adopted, containers, dnd_timer};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::mail::PERSON;

/// Result of turning do not disturb off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DndEnd {
    /// Whether it was on.
    pub was_on: bool,
    /// Number of held messages or notifications that are delivered now.
    pub held: usize,
}

/// Turns do not disturb on for an agent or the person, until this time or until it is turned off.
pub fn turn_on(town: &Town, who: &str, until: Option<i64>) -> Result<DndNote> {
    let note = DndNote {
        until,
        by: town.caller().as_str().to_owned(),
        since: town.clock().seconds(),
    };
    dnd::set(town, who, &note)?;
    if let Some(until) = until {
        dnd_timer::set(town, until);
    }
    note_event(town, who, "on", until);
    Ok(note)
}

/// Turns do not disturb off, and delivers the held messages or notifications.
pub fn turn_off(town: &Town, who: &str) -> Result<DndEnd> {
    let was_on = dnd::clear(town, who)?.is_some();
    let held = count_held(town, who);
    if was_on {
        note_event(town, who, "off", None);
    }
    deliver(town, who);
    Ok(DndEnd { was_on, held })
}

/// Delivers the held messages of agents, and of the person, whose do-not-disturb time has ended.
pub fn end_due(town: &Town) -> Result<()> {
    for who in dnd::clear_over(town)? {
        let event = town.event_at("dnd", &who).by_gt().with("state", "over");
        Events::of(town).note(vec![event]);
        deliver(town, &who);
    }
    // A process may have been killed after it had removed the note.
    if dnd::read(town, PERSON).is_none() {
        notify::deliver_held(town)?;
    }
    Ok(())
}

/// Returns the number of messages or notifications that wait for the end.
pub fn count_held(town: &Town, who: &str) -> usize {
    match Identity::from_address(who, town.registry()) {
        Some(agent) if who != PERSON => MessageQueue::of(town, &agent).waiting().len(),
        _ => notify::count_held(town),
    }
}

fn note_event(town: &Town, who: &str, state: &str, until: Option<i64>) {
    let until = until.map(crate::base::time::timestamp);
    let event = by_command(town, "dnd")
        .with("target", who)
        .with("state", state)
        .with("until", until);
    Events::of(town).note(vec![event]);
    wake::monitors(town);
}

fn deliver(town: &Town, who: &str) {
    let agent = Identity::from_address(who, town.registry()).filter(|_| who != PERSON);
    let delivered = match agent {
        None => notify::deliver_held(town),
        Some(agent) => {
            let home = adopted::home_of(town, &agent);
            let container = containers::of_agent(&home, &agent);
            container.and_then(|container| match container {
                // The next start delivers the messages.
                None => Ok(()),
                Some(container) => signal::wake_delivery_to(&home, &container),
            })
        }
    };
    delivered.or_warn(format_args!("messages for {who} wait for the next upkeep"));
    wake::monitors(town);
}

#[cfg(test)]
mod tests;
