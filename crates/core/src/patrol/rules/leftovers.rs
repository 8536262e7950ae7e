//! Rules about leftovers of ended agents and killed processes, and about the disk.

use super::{MINUTE, RuleFinding, RuleInput, TOWN, span};
use crate::Role;
use crate::patrol::{ActionKind, Leftover, Presence};

const MEGABYTE: u64 = 1024 * 1024;

pub(super) fn low_disk(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let Some(free) = scene.snapshot.free_bytes else {
        return Vec::new();
    };
    if !scene.snapshot.is_disk_low(scene.settings) || !scene.is_due("low-disk", TOWN) {
        return Vec::new();
    }
    let free = format!("{} MB free", free / MEGABYTE);
    let reason = "the disk of the town is nearly full; no agents are started";
    vec![RuleFinding::new(ActionKind::Escalate, TOWN, reason).evidence(free)]
}

pub(super) fn zombie_container(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let agents = scene.snapshot.agents.iter();
    agents
        .filter(|agent| agent.is_on_demand || matches!(agent.role, Role::Polecat | Role::Dog))
        .filter(|agent| agent.presence == Presence::Dead && agent.item.is_none())
        .filter(|agent| !agent.is_locked && !agent.is_attended && !agent.respawn.is_armed)
        .filter_map(|agent| {
            let end = agent.ended.as_ref().filter(|end| end.is_recorded)?;
            let age = scene.age(end.at);
            let is_old = age >= scene.settings.clean_after;
            if !is_old || !scene.is_due("zombie-container", &agent.address) {
                return None;
            }
            let reason = format!("{} is dead and has no work", agent.address);
            let clean = ActionKind::Clean(Leftover::Container);
            let how = format!("{}, {} ago", end.how, span(age));
            Some(RuleFinding::about(clean, agent, reason).evidence(how))
        })
        .collect()
}

pub(super) fn leftover(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let leftovers = scene.snapshot.leftovers.iter();
    leftovers
        .filter(|left| {
            let after = match left.kind {
                Leftover::Process => scene.at_speed(5 * MINUTE),
                Leftover::Lock => scene.at_speed(30 * MINUTE),
                Leftover::Container | Leftover::Claim => scene.settings.clean_after,
                Leftover::Worktree if scene.settings.worktree_after == 0 => return false,
                Leftover::Worktree => scene.settings.worktree_after,
            };
            scene.age(left.since) >= after
        })
        .filter(|left| scene.is_due("leftover", &left.name))
        .map(|left| {
            let reason = format!("a {} is left over: {}", left.kind.as_str(), left.name);
            let finding = RuleFinding::new(ActionKind::Clean(left.kind), left.name.clone(), reason);
            finding.evidence(format!(
                "{} old, its owner has ended",
                span(scene.age(left.since))
            ))
        })
        .collect()
}
