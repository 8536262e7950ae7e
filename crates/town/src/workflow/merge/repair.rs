//! Assigns repairs to agents, and cancels them.

use super::{MergeMessage, Tell};
use crate::base::or_log::OrLog;
use crate::base::settings::RepairBy;
use crate::catalog::directory;
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::records::items::Work;
use crate::workflow::schedule::{self, Assigned, QueuedSling};
use crate::workflow::sling::{SlingError, SlingOptions, SlingTarget, Slung, sling_item};
use crate::{Result, Town};
use gt_core::nudge::Priority;
use gt_core::work::{Item, ItemStatus, WorkId};
use gt_core::{Identity, Problem};
use std::time::Duration;

/// Assigns the open repairs of a rig to agents, or only that of one entry. A repair that cannot be
/// assigned stays open, and the next run retries. An agent costs money, so the settings may disable
/// this.
pub(super) fn assign_repairs(town: &Town, rig: &str, only: Option<&WorkId>, tell: Tell<'_>) {
    if !town.settings().merge_defaults_of(rig).repair_agents {
        return;
    }
    let work = Work::of(town);
    let waiting = match work.repairs_to_hand_out(rig) {
        Ok(waiting) => waiting,
        Err(problem) => return tell(MergeMessage::Warning(&problem.to_string())),
    };
    for (merge, item) in waiting {
        if only.is_some_and(|only| *only != merge) {
            continue;
        }
        let handed = match hand_to_an_agent(town, rig, &merge, &item) {
            Ok(Assigned::Slung(slung)) => {
                tell(MergeMessage::Progress(&handed_to(&merge, &slung)));
                Ok(())
            }
            // The scheduler starts an agent for it as soon as one may start.
            Ok(Assigned::Queued(queued)) => {
                let QueuedSling { id, reason, .. } = queued;
                tell(MergeMessage::Progress(&format!(
                    "{merge}: the repair {id} waits in the schedule: {reason}"
                )));
                continue;
            }
            // Another process has already assigned it.
            Err(SlingError::Taken(_)) if item.status == ItemStatus::Hooked => Ok(()),
            Err(error) => Err(Problem::from(error)),
        };
        if let Err(problem) = handed.and_then(|()| work.repair_is_handed_out(&merge)) {
            tell(MergeMessage::Warning(&unhanded(&item, &problem)));
        }
    }
}

fn handed_to(merge: &WorkId, slung: &Slung) -> String {
    let Slung { id, agent, .. } = slung;
    let how = if slung.started {
        ", which was started for it"
    } else {
        ""
    };
    format!("{merge}: the repair {id} was given to {agent}{how}")
}

/// Tells the holder of a repair that it is cancelled. If the agent does not run or the message
/// fails, the agent finds its hook empty.
pub(super) fn cancel_repair(town: &Town, holder: &str, repair: &WorkId, reason: &str) {
    let Some(agent) = Identity::from_address(holder, town.registry()) else {
        return;
    };
    let text = format!(
        "{repair} is closed, and off your hook: what it repairs will not be merged ({reason}). \
         Leave it as it is; `gt done --status deferred` ends your work on it."
    );
    let order = NudgeRequest {
        is_command: false,
        text: &text,
        sender: None,
        mode: DeliveryMode::Queue,
        priority: Priority::Normal,
        timeout: Duration::ZERO,
    };
    let sent = nudge::send(town, &agent, &order);
    sent.or_debug(format_args!(
        "{agent} was not notified that {repair} is closed"
    ));
}

fn unhanded(item: &Item, problem: &Problem) -> String {
    format!("the repair {} waits for an agent: {problem}", item.id)
}

/// Assigns the repair of an entry to the agent that the settings ask for, or queues it if no more
/// polecats are allowed: there may be no later run of the queue that would try again.
fn hand_to_an_agent(
    town: &Town,
    rig: &str,
    merge: &WorkId,
    item: &Item,
) -> Result<Assigned, SlingError> {
    let options = SlingOptions {
        sender: Some("gt".to_owned()),
        ..SlingOptions::default()
    };
    if town.settings().merge_defaults_of(rig).repair_by == RepairBy::Worker
        && let Some(worker) = free_worker(town, merge)?
    {
        let by_worker = sling_item(town, item, &SlingTarget::Agent(worker), &options);
        match by_worker {
            Ok(slung) => return Ok(Assigned::Slung(Box::new(slung))),
            Err(error @ SlingError::Taken(_)) => return Err(error),
            Err(error) => {
                let problem = Problem::from(error);
                tracing::debug!("{}: the worker does not repair it: {problem}", item.id);
            }
        }
    }
    let target = SlingTarget::Rig(rig.to_owned());
    schedule::sling_or_queue(town, item, &target, &options, None)
}

/// Returns the worker of an entry, unless it is gone or has work on its hook.
fn free_worker(town: &Town, merge: &WorkId) -> Result<Option<Identity>> {
    let work = Work::of(town);
    let worker = work.merge(merge)?.worker;
    let Some(agent) = Identity::from_address(&worker, town.registry()) else {
        return Ok(None);
    };
    let is_free = directory::has(town, &agent) && work.hooked(&worker)?.is_none();
    Ok(is_free.then_some(agent))
}
