//! Rules about agents that have ended, and about their items.

use super::{MINUTE, RuleFinding, RuleInput, TOWN, span};
use crate::patrol::{ActionKind, AgentFacts, EndFacts, Presence};
use crate::record::Outcome;
use crate::{Role, respawn};

/// Time that is left to the tmux hook, which respawns the agent first.
const HOOK_GRACE: i64 = 45;
/// Time between the hooking of an item and the start of its agent, during which another process may
/// be starting it.
const START_GRACE: i64 = 2 * MINUTE;
/// Time that a restore of lost agents may take.
const RESTORE_GRACE: i64 = 10 * MINUTE;
/// Run time after which a respawn counts as successful.
const WELL_AFTER: i64 = 10 * MINUTE;
/// Maximum age of a death that counts towards a mass death.
const RECENT: i64 = 10 * MINUTE;
/// Time after which the crash of a holder, other than a polecat, is escalated.
const HOLDER_AFTER: i64 = 60 * MINUTE;

pub(super) fn server_died(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let server = &scene.snapshot.server;
    if !scene.settings.restore || server.lost.is_empty() {
        return Vec::new();
    }
    let reason = match server.is_alive {
        true => "agents went down with an earlier tmux server",
        false => "the tmux server died",
    };
    vec![
        RuleFinding::new(ActionKind::RestoreServer, TOWN, reason).evidence(format!(
            "{} lost: {}",
            server.lost.len(),
            server.lost.join(", ")
        )),
    ]
}

pub(super) fn mass_death(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let settings = scene.settings;
    let deaths = &scene.snapshot.deaths;
    if deaths.len() < settings.mass_deaths || !scene.is_due("mass-death", TOWN) {
        return Vec::new();
    }
    let entry = scene.memory.get("mass-death", TOWN);
    let told = entry.map_or(i64::MIN, |entry| entry.last_at);
    let mut recent: Vec<(i64, &str)> = deaths
        .iter()
        .filter(|death| death.at > told && scene.age(death.at) <= scene.at_speed(RECENT))
        .map(|death| (death.at, death.agent.as_str()))
        .collect();
    recent.sort_unstable();
    for (place, (first, _)) in recent.iter().enumerate() {
        let together = recent[place..]
            .iter()
            .take_while(|(at, _)| at - first <= settings.mass_death_window);
        let mut agents: Vec<&str> = together.map(|(_, agent)| *agent).collect();
        agents.sort_unstable();
        agents.dedup();
        if agents.len() < settings.mass_deaths {
            continue;
        }
        let reason = format!("{} agents died together", agents.len());
        let evidence = format!(
            "within {}: {}",
            span(settings.mass_death_window),
            agents.join(", ")
        );
        let text = format!("{reason}: {}", agents.join(", "));
        let alarm = RuleFinding::new(ActionKind::MassDeathAlarm, TOWN, reason);
        return vec![alarm.evidence(evidence).text(text)];
    }
    Vec::new()
}

pub(super) fn unrecorded(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let is_open = |end: &EndFacts| !end.is_recorded && scene.age(end.at) >= scene.at_speed(30);
    let open: Vec<&str> = scene
        .snapshot
        .agents
        .iter()
        .filter(|agent| agent.presence != Presence::Alive)
        .filter(|agent| agent.ended.as_ref().is_some_and(is_open))
        .map(|agent| agent.address.as_str())
        .collect();
    if open.is_empty() || !scene.is_due("unrecorded-death", TOWN) {
        return Vec::new();
    }
    let reason = "the journal does not record the end of these sessions";
    vec![RuleFinding::new(ActionKind::Record, TOWN, reason).evidence(open.join(", "))]
}

/// Returns the ended agents that their role respawns. Polecats and tasks have rules of their own.
fn respawned<'a>(scene: &'a RuleInput<'_>) -> impl Iterator<Item = (&'a AgentFacts, &'a EndFacts)> {
    let agents = scene.snapshot.agents.iter();
    agents
        .filter(|agent| agent.presence == Presence::Dead && !agent.is_locked && !agent.is_adopted)
        .filter(|agent| agent.role != Role::Polecat)
        .filter_map(|agent| Some((agent, agent.ended.as_ref()?)))
}

pub(super) fn crash_loop(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    respawned(scene)
        .filter(|(agent, end)| {
            let is_given_up = agent.respawn.is_wanted && !agent.respawn.is_armed;
            is_given_up && end.outcome == Outcome::Crash && agent.respawn.deaths > 0
        })
        .filter(|(agent, _)| scene.is_due("crash-loop", &agent.address))
        .map(|(agent, end)| {
            let reason = format!(
                "{} died {} times and is not started again",
                agent.address, agent.respawn.deaths
            );
            RuleFinding::about(ActionKind::Escalate, agent, reason).evidence(format!(
                "{}, {} ago",
                end.how,
                span(scene.age(end.at))
            ))
        })
        .collect()
}

pub(super) fn dead_agent(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    respawned(scene)
        .filter(|(agent, end)| {
            let wait = respawn::wait_seconds(agent.respawn.deaths.max(1));
            let wait = i64::try_from(wait).unwrap_or(i64::MAX);
            agent.respawn.is_armed && scene.age(end.at) > wait + scene.at_speed(HOOK_GRACE)
        })
        .filter_map(|(agent, end)| {
            let (rule, subject) = ("dead-agent", &agent.address);
            let is_new = scene.is_new_problem(rule, subject, end.at, WELL_AFTER);
            (is_new || scene.is_due(rule, subject)).then_some((agent, end, is_new))
        })
        .map(|(agent, end, is_new)| {
            let ago = span(scene.age(end.at));
            let reason = format!("{} is dead and was not respawned", agent.address);
            RuleFinding::about(ActionKind::Respawn, agent, reason)
                .evidence(format!("{}, {ago} ago", end.how))
                .evidence(format!("{} recent deaths", agent.respawn.deaths))
                .anew(is_new)
        })
        .collect()
}

pub(super) fn dead_polecat(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let agents = scene.snapshot.agents.iter();
    agents
        .filter(|agent| agent.role == Role::Polecat && agent.presence != Presence::Alive)
        .filter(|agent| !agent.is_locked)
        .filter_map(|agent| {
            let item = agent.item.as_ref()?;
            if !scene.is_due("dead-polecat", item) {
                return None;
            }
            let how = why_ended(scene, agent, item)?;
            let entry = scene.memory.get("dead-polecat", item);
            let attempts = entry.map_or(0, |entry| entry.attempts);
            let kind = match attempts < scene.settings.resumes {
                true => ActionKind::Resume,
                false => ActionKind::Reassign,
            };
            let reason = format!("{} has {item} and does not run", agent.address);
            let finding = RuleFinding::about(kind, agent, reason).evidence(how);
            Some(RuleFinding {
                subject: item.clone(),
                ..finding
            })
        })
        .collect()
}

/// Returns why a polecat with an item does not run, or `None` if it is left alone: it was stopped
/// on purpose, or ended just now.
fn why_ended(scene: &RuleInput<'_>, agent: &AgentFacts, item: &str) -> Option<String> {
    let Some(end) = &agent.ended else {
        let facts = scene.snapshot.items.iter().find(|facts| facts.id == item);
        let since = facts.and_then(|facts| facts.since)?;
        let is_late = scene.age(since) > scene.at_speed(START_GRACE);
        let ago = span(scene.age(since));
        return is_late.then(|| format!("it was never started; hooked {ago} ago"));
    };
    let grace = match end.outcome {
        _ if end.is_lost && scene.settings.restore => scene.at_speed(RESTORE_GRACE),
        Outcome::Crash | Outcome::Killed => scene.at_speed(10),
        Outcome::Exited => scene.settings.exited_after,
        // Another session follows, or a person stopped it.
        Outcome::Handoff | Outcome::Stopped => return None,
        // The item was hooked after that session, and its agent was not started since.
        Outcome::Done => scene.at_speed(START_GRACE),
    };
    let age = scene.age(end.at);
    (age >= grace).then(|| format!("{}, {} ago", end.how, span(age)))
}

pub(super) fn unfinished_reassign(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let items = scene.snapshot.items.iter();
    items
        .filter(|item| item.holder.is_none())
        .filter(|item| scene.is_due("unfinished-reassign", &item.id))
        .map(|item| {
            let reason = format!(
                "{} was taken from its agent and not given to another one",
                item.id
            );
            let finding = RuleFinding::new(ActionKind::Reassign, item.id.clone(), reason);
            RuleFinding {
                item: Some(item.id.clone()),
                rig: item.rig.clone(),
                ..finding.evidence("it is open and on no hook")
            }
        })
        .collect()
}

pub(super) fn absent_holder(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let items = scene.snapshot.items.iter();
    items
        .filter_map(|item| {
            let holder = item.holder.as_ref()?;
            if !scene.is_due("absent-holder", &item.id) {
                return None;
            }
            let agents = &scene.snapshot.agents;
            let agent = agents.iter().find(|agent| agent.address == *holder);
            let is_polecat = agent.is_some_and(|agent| agent.role == Role::Polecat);
            // A dog ends its session only with its errand.
            let is_dog = agent.is_some_and(|agent| agent.role == Role::Dog);
            let evidence = match agent.and_then(|agent| agent.ended.as_ref()) {
                _ if is_polecat => return None,
                _ if !item.holder_exists => "it does not exist".to_owned(),
                Some(end)
                    if end.outcome == Outcome::Crash
                        || (is_dog && end.outcome == Outcome::Exited) =>
                {
                    let age = scene.age(end.at);
                    let is_respawned = agent.is_some_and(|agent| agent.respawn.is_wanted);
                    if is_respawned || end.is_lost || age < scene.at_speed(HOLDER_AFTER) {
                        return None;
                    }
                    format!("{}, {} ago", end.how, span(age))
                }
                _ => return None,
            };
            let reason = format!("{} is on the hook of {holder}, which does not run", item.id);
            let finding = RuleFinding::new(ActionKind::Escalate, item.id.clone(), reason);
            Some(RuleFinding {
                item: Some(item.id.clone()),
                rig: item.rig.clone(),
                ..finding.evidence(evidence)
            })
        })
        .collect()
}
