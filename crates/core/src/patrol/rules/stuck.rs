//! Rules about agents that are alive and do not go on.

use super::{Finding, MINUTE, Scene, span};
use crate::Role;
use crate::patrol::{ActionKind, AgentFacts, Presence};
use crate::state::State;

/// Output within this time after an action is its own effect, such as the echo of a message, and
/// no sign of life.
const ECHO: i64 = 20;
/// Wait for a limit whose end is unknown.
const UNKNOWN_LIMIT: i64 = 30 * MINUTE;
/// Time after the end of a limit in which a timer continues the agent first.
const LIMIT_MARGIN: i64 = 5 * MINUTE;
/// Time between two agents of one account.
const ACCOUNT_SPACING: i64 = MINUTE;

const NUDGE: &str = "gt has seen no sign of you for a while. If you wait for a command that does \
                     not end, stop it and go on with your work.";

fn alive<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a AgentFacts> {
    let agents = scene.snapshot.agents.iter();
    agents.filter(|agent| agent.presence == Presence::Alive && !agent.is_locked)
}

pub(super) fn hung_start(scene: &Scene<'_>) -> Vec<Finding> {
    alive(scene)
        .filter(|agent| agent.state == State::Starting && !agent.is_adopted && !agent.is_attended)
        .filter_map(|agent| {
            let age = scene.age(agent.since.or(agent.started_at)?);
            let silent = scene.age(agent.signs.printed_at.unwrap_or_default());
            let is_hung = age >= scene.settings.start_timeout && silent >= scene.at_speed(MINUTE);
            if !is_hung || !scene.is_due("hung-start", &agent.address) {
                return None;
            }
            let reason = format!("{} does not come up", agent.address);
            Some(
                Finding::about(ActionKind::Restart, agent, reason)
                    .evidence(format!("starting for {}", span(age)))
                    .evidence(format!("its screen is unchanged for {}", span(silent))),
            )
        })
        .collect()
}

pub(super) fn hung_agent(scene: &Scene<'_>) -> Vec<Finding> {
    alive(scene)
        .filter(|agent| agent.is_unattended())
        .filter(|agent| match agent.state {
            State::Busy => true,
            // No source reports a state: only work on the hook says that it should do something.
            State::Running => agent.item.is_some(),
            _ => false,
        })
        .filter_map(|agent| {
            let subject = &agent.address;
            let entry = scene.memory.get("hung-agent", subject);
            let last_at = entry.map_or(i64::MIN, |entry| entry.last_at);
            // A sign after an action means that the action had an effect.
            let has_printed = agent.last_sign() > last_at.saturating_add(scene.at_speed(ECHO));
            let has_moved = has_printed || agent.last_own_sign() >= last_at;
            let silent = match has_moved {
                true => scene.age(agent.last_sign()),
                // The echo of our own action is no sign.
                false => scene.settings.hung_after,
            };
            if silent < scene.settings.hung_after {
                return None;
            }
            if !has_moved && !scene.is_due("hung-agent", subject) {
                return None;
            }
            if entry.is_some_and(|entry| entry.is_escalated) {
                return None;
            }
            let steps = entry.map_or(0, |entry| entry.attempts);
            let restarts = entry.map_or(0, |entry| entry.restarts);
            let kind = match if has_moved { 0 } else { steps } {
                0 => ActionKind::Nudge,
                // The escalation about the deacon starts boot, which has until the next step.
                1 if agent.role == Role::Deacon => ActionKind::Escalate,
                1 => ActionKind::Interrupt,
                _ if restarts < scene.settings.restarts => ActionKind::Restart,
                _ => ActionKind::Escalate,
            };
            let reason = format!("{} works and gives no sign of life", agent.address);
            let mut finding = Finding::about(kind, agent, reason).evidence(format!(
                "{} since the last output, keepalive or transcript",
                span(scene.age(agent.last_sign()))
            ));
            if !has_moved && let Some(entry) = entry {
                let ago = span(scene.age(entry.last_at));
                finding = finding.evidence(format!("no effect of step {steps}, {ago} ago"));
            }
            finding.text = (kind == ActionKind::Nudge).then(|| NUDGE.to_owned());
            finding.begins_anew = has_moved;
            finding.is_last = kind == ActionKind::Escalate && (has_moved || steps > 1);
            Some(finding)
        })
        .collect()
}

pub(super) fn limit_ended(scene: &Scene<'_>) -> Vec<Finding> {
    let mut accounts: Vec<&str> = Vec::new();
    alive(scene)
        .filter(|agent| agent.state == State::Limited && agent.role != Role::Overseer)
        .filter_map(|agent| {
            let limit = agent.limit.as_ref().filter(|limit| !limit.continues)?;
            let evidence = match limit.until {
                Some(until) if scene.now >= until + scene.at_speed(LIMIT_MARGIN) => {
                    format!("the limit ended {} ago", span(scene.age(until)))
                }
                Some(_) => return None,
                None => {
                    let age = scene.age(agent.since?);
                    if age < scene.at_speed(UNKNOWN_LIMIT) {
                        return None;
                    }
                    format!("limited for {}, without a known end", span(age))
                }
            };
            let is_spaced = scene.memory.account_is_free(&limit.account, scene.now);
            if accounts.contains(&limit.account.as_str())
                || !is_spaced
                || !scene.is_due("limit-ended", &agent.address)
            {
                return None;
            }
            accounts.push(&limit.account);
            let reason = format!("the usage limit of {} has ended", agent.address);
            let finding = Finding::about(ActionKind::ResumeAfterLimit, agent, reason);
            Some(Finding {
                account: Some((
                    limit.account.clone(),
                    scene.now + scene.at_speed(ACCOUNT_SPACING),
                )),
                ..finding.evidence(evidence).text("continue")
            })
        })
        .collect()
}
