//! Rules about agents that run only for a digest or an errand. `core::digest` decides their start.

use super::{RuleFinding, RuleInput, span};
use crate::Role;
use crate::patrol::{ActionKind, AgentFacts, Presence};
use crate::state::State;

fn on_demand<'a>(scene: &'a RuleInput<'_>) -> impl Iterator<Item = &'a AgentFacts> {
    let agents = scene.snapshot.agents.iter();
    agents
        .filter(|agent| agent.presence == Presence::Alive && agent.is_on_demand)
        .filter(|agent| !agent.is_locked && agent.is_unattended())
}

/// Boot watches the deacon, and this rule watches boot.
pub(super) fn overdue_boot(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    on_demand(scene)
        // The rule about usage limits continues it.
        .filter(|agent| agent.role == Role::Boot && agent.state != State::Limited)
        .filter_map(|agent| {
            let age = scene.age(agent.started_at?);
            let is_overdue = age >= scene.settings.boot_timeout;
            if !is_overdue || !scene.is_due("overdue-boot", &agent.address) {
                return None;
            }
            let reason = "boot exceeded its time limit, and its session was ended; nothing watches the deacon";
            let state = format!("{} for {}", agent.state.as_str(), span(age));
            Some(RuleFinding::about(ActionKind::End, agent, reason).evidence(state))
        })
        .collect()
}

pub(super) fn finished_round(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    on_demand(scene)
        .filter(|agent| matches!(agent.state, State::Idle | State::Done))
        .filter(|agent| agent.item.is_none() && agent.queue.is_none() && agent.background == 0)
        .filter_map(|agent| {
            let age = scene.age(agent.since?);
            let is_idle = age >= scene.settings.idle_after;
            if !is_idle || !scene.is_due("finished-round", &agent.address) {
                return None;
            }
            let reason = format!(
                "{} has finished and has not ended its session",
                agent.address
            );
            let evidence = format!("idle for {}, without work", span(age));
            Some(RuleFinding::about(ActionKind::End, agent, reason).evidence(evidence))
        })
        .collect()
}
