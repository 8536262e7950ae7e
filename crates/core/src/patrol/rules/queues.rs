//! Rules about waiting messages, merges, assignments and escalations.

use super::{RuleFinding, RuleInput, span};
use crate::patrol::{ActionKind, Presence};
use crate::state::State;

pub(super) fn old_message(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let agents = scene.snapshot.agents.iter();
    agents
        .filter(|agent| agent.presence == Presence::Alive && !agent.is_locked)
        // In these states the messages wait on purpose.
        .filter(|agent| {
            !matches!(
                agent.state,
                State::Paused | State::Limited | State::Waiting | State::Initializing
            )
        })
        .filter_map(|agent| {
            let queue = agent.queue.filter(|queue| !queue.has_deliverer)?;
            let age = scene.age(queue.oldest_at);
            let is_old = age >= scene.settings.message_after;
            let (rule, subject) = ("old-message", &agent.address);
            let is_new = scene.is_new_problem(rule, subject, queue.oldest_at, 0);
            if !is_old || !(is_new || scene.is_due(rule, subject)) {
                return None;
            }
            let reason = format!("a message waits too long for {}", agent.address);
            Some(
                RuleFinding::about(ActionKind::Redeliver, agent, reason)
                    .evidence(format!(
                        "{} waiting, the oldest for {}",
                        queue.waiting,
                        span(age)
                    ))
                    .evidence("no process delivers it")
                    .anew(is_new),
            )
        })
        .collect()
}

pub(super) fn old_merge(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let queues = scene.snapshot.merge_queues.iter();
    queues
        .filter(|queue| queue.waiting > 0 && queue.is_automatic && !queue.is_running)
        .filter_map(|queue| {
            let age = scene.age(queue.oldest_at);
            let is_old = age >= scene.settings.merge_after;
            let is_new = scene.is_new_problem("old-merge", &queue.rig, queue.oldest_at, 0);
            if !is_old || !(is_new || scene.is_due("old-merge", &queue.rig)) {
                return None;
            }
            let reason = format!("a merge of {} waits too long", queue.rig);
            let finding = RuleFinding::new(ActionKind::RunMergeQueue, queue.rig.clone(), reason);
            let finding = finding
                .evidence(format!(
                    "{} waiting, the oldest for {}",
                    queue.waiting,
                    span(age)
                ))
                .evidence("no process merges")
                .anew(is_new);
            Some(RuleFinding {
                rig: Some(queue.rig.clone()),
                ..finding
            })
        })
        .collect()
}

pub(super) fn old_schedule(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let Some(schedule) = scene.snapshot.schedule else {
        return Vec::new();
    };
    let age = scene.age(schedule.oldest_at);
    let is_held = schedule.is_running || schedule.is_paused || schedule.waiting == 0;
    if is_held
        || age < scene.settings.schedule_after
        || scene.now < scene.memory.held_until
        || scene.snapshot.is_disk_low(scene.settings)
        || !scene.is_due("old-schedule", super::TOWN)
    {
        return Vec::new();
    }
    let reason = "assignments wait in the schedule";
    let waiting = format!("{} waiting, the oldest for {}", schedule.waiting, span(age));
    vec![RuleFinding::new(ActionKind::RunScheduler, super::TOWN, reason).evidence(waiting)]
}

pub(super) fn escalation_due(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let due = scene.snapshot.escalations_due.iter();
    due.filter(|id| scene.is_due("escalation-due", id))
        .map(|id| {
            let reason = format!("{id} is open and not acknowledged");
            RuleFinding::new(ActionKind::RaiseAgain, id.clone(), reason)
                .evidence("its interval has passed")
        })
        .collect()
}
