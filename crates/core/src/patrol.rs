//! Patrol: one pure function from a snapshot of the town and the time to actions.
//!
//! [`RULES`] is the table of rules: condition, evidence, action, back-off, limit, and the severity
//! of the escalation after the limit. `patrol/rules/` has one function for each. [`decide_round`] applies
//! them in the order of the table, at most one action per agent, and records every action in
//! [`PatrolMemory`], which the engine writes before it carries out the actions.
//!
//! A rule never acts on silence alone. Interrupt and restart need evidence that an earlier nudge
//! had no effect: nothing printed, no keepalive and no transcript since.
//!
//! Nothing here observes or acts: `town::supervision::patrol` does both.

mod action;
mod memory;
mod rules;
mod settings;
mod snapshot;

#[cfg(test)]
mod simulation;

pub use action::{ActionKind, Leftover, PatrolAction};
pub use memory::{PatrolMemory, RuleHistory};
pub use rules::{PatrolRule, RULES};
pub use settings::RuleSettings;
pub use snapshot::{
    AgentDeath, AgentFacts, EndFacts, ItemFacts, LeftoverFacts, LimitFacts, MergeQueueFacts,
    Presence, QueueFacts, RespawnFacts, ServerFacts, Signs, Snapshot, WaitingFacts,
};

use rules::{RuleFinding, RuleInput};
use std::collections::BTreeSet;

/// Seconds within which [`RuleSettings::starts_per_minute`] applies.
const START_WINDOW: i64 = 60;

/// Decides the actions of one round. `memory` records them, so that the same snapshot gives no
/// second action before the back-off has passed.
pub fn decide_round(
    snapshot: &Snapshot,
    memory: &mut PatrolMemory,
    settings: &RuleSettings,
    now: i64,
) -> Vec<PatrolAction> {
    if snapshot.is_stopped {
        return Vec::new();
    }
    memory.forget(now);
    memory.retain_reassigned(|id| {
        let mut items = snapshot.items.iter();
        items.any(|item| item.id == id && item.holder.is_none())
    });
    let mut actions = Vec::new();
    let mut touched = BTreeSet::new();
    for rule in RULES {
        if settings.off.iter().any(|name| name == rule.name) {
            continue;
        }
        let scene = RuleInput {
            snapshot,
            memory,
            settings,
            now,
        };
        for finding in (rule.find)(&scene) {
            let is_touched = |agent: &String| touched.contains(agent);
            if finding.agent.as_ref().is_some_and(is_touched) {
                continue;
            }
            if let Some(action) = decide(rule, finding, snapshot, memory, settings, now) {
                touched.extend(action.agent.clone());
                if action.kind == ActionKind::RestoreServer {
                    touched.extend(snapshot.server.lost.iter().cloned());
                }
                actions.push(action);
            }
        }
    }
    actions
}

/// Turns a finding into an action, unless its back-off or a limit on starts forbids that.
fn decide(
    rule: &'static PatrolRule,
    finding: RuleFinding,
    snapshot: &Snapshot,
    memory: &mut PatrolMemory,
    settings: &RuleSettings,
    now: i64,
) -> Option<PatrolAction> {
    let mut entry = memory
        .get(rule.name, &finding.subject)
        .cloned()
        .unwrap_or_default();
    if finding.begins_anew {
        entry = RuleHistory {
            restarts: entry.restarts,
            ..RuleHistory::default()
        };
    }
    if now < entry.not_before || entry.is_escalated {
        return None;
    }
    let limit = (rule.limit)(settings);
    let is_over = limit > 0 && entry.attempts >= limit;
    let account = finding.account.clone();
    let mut action = match is_over {
        false => finding.into_action(rule),
        true => finding.into_escalation(rule)?,
    };
    if action.kind.starts_agents() {
        let is_held = now < memory.held_until || snapshot.is_disk_low(settings);
        memory
            .starts
            .retain(|at| now - at < settings.at_speed(START_WINDOW).max(1) && *at <= now);
        if is_held || memory.starts.len() >= settings.starts_per_minute {
            return None;
        }
        memory.starts.push(now);
    }
    match action.kind {
        ActionKind::MassDeathAlarm => memory.held_until = now + settings.mass_death_pause,
        ActionKind::Reassign => {
            memory.reassigned.extend(action.item.clone());
        }
        ActionKind::Restart => entry.restarts += 1,
        _ => {}
    }
    memory.accounts.extend(account);
    entry.attempts += 1;
    entry.last_at = now;
    entry.not_before = now + rule.wait(entry.attempts, settings);
    entry.is_escalated = is_over || action.is_last;
    action.attempt = entry.attempts;
    action.limit = limit;
    memory.set_history(rule.name, &action.subject, entry);
    Some(action)
}
