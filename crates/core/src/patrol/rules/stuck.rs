//! Rules about agents that are alive and make no progress.

use super::{MINUTE, RuleFinding, RuleInput, span};
use crate::Role;
use crate::patrol::{ActionKind, AgentFacts, Presence};
use crate::state::State;

/// Output within this time after an action counts as its effect, such as the echo of a message, and
/// not as activity of the agent.
const ECHO: i64 = 20;
/// Wait for a limit whose end is unknown.
const UNKNOWN_LIMIT: i64 = 30 * MINUTE;
/// Time after the end of a limit that is left to the tmux timer, which tells the agent to continue.
const LIMIT_MARGIN: i64 = 5 * MINUTE;
/// Time between two agents of one account.
const ACCOUNT_SPACING: i64 = MINUTE;

const NUDGE: &str = "gt has seen no activity from you for a while. If a command hangs, stop it. Then \
                     continue your work.";

fn alive<'a>(scene: &'a RuleInput<'_>) -> impl Iterator<Item = &'a AgentFacts> {
    let agents = scene.snapshot.agents.iter();
    agents.filter(|agent| agent.presence == Presence::Alive && !agent.is_locked)
}

pub(super) fn hung_start(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    alive(scene)
        .filter(|agent| agent.state == State::Starting && agent.is_unattended())
        .filter_map(|agent| {
            let age = scene.age(agent.since.or(agent.started_at)?);
            let silent = scene.age(agent.signs.printed_at.unwrap_or_default());
            let is_hung = age >= scene.settings.start_timeout && silent >= scene.at_speed(MINUTE);
            if !is_hung || !scene.is_due("hung-start", &agent.address) {
                return None;
            }
            let reason = format!("{} does not become ready", agent.address);
            Some(
                RuleFinding::about(ActionKind::Restart, agent, reason)
                    .evidence(format!("starting for {}", span(age)))
                    .evidence(format!("its screen has not changed for {}", span(silent))),
            )
        })
        .collect()
}

pub(super) fn hung_agent(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    alive(scene)
        .filter(|agent| agent.is_unattended())
        .filter(|agent| match agent.state {
            State::Busy => true,
            // No source reports a state. Only work on the hook shows that the agent should be doing
            // something.
            State::Running => agent.item.is_some(),
            _ => false,
        })
        .filter_map(|agent| {
            let subject = &agent.address;
            let entry = scene.memory.get("hung-agent", subject);
            let last_at = entry.map_or(i64::MIN, |entry| entry.last_at);
            // Activity after an action means that the action had an effect.
            let has_printed = agent.last_activity() > last_at.saturating_add(scene.at_speed(ECHO));
            let has_moved = has_printed || agent.last_own_activity() >= last_at;
            let silent = match has_moved {
                true => scene.age(agent.last_activity()),
                // The echo of our own action does not count as activity.
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
                // The escalation about the deacon starts boot, which has until the next step to
                // act.
                1 if agent.role == Role::Deacon => ActionKind::Escalate,
                1 => ActionKind::Interrupt,
                _ if restarts < scene.settings.restarts => ActionKind::Restart,
                _ => ActionKind::Escalate,
            };
            let reason = format!("{} is busy and shows no activity", agent.address);
            let mut finding = RuleFinding::about(kind, agent, reason).evidence(format!(
                "no output, keepalive or transcript entry for {}",
                span(scene.age(agent.last_activity()))
            ));
            if !has_moved && let Some(entry) = entry {
                let ago = span(scene.age(entry.last_at));
                finding = finding.evidence(format!("step {steps}, {ago} ago, had no effect"));
            }
            finding.text = (kind == ActionKind::Nudge).then(|| NUDGE.to_owned());
            finding.begins_anew = has_moved;
            finding.is_last = kind == ActionKind::Escalate && (has_moved || steps > 1);
            Some(finding)
        })
        .collect()
}

pub(super) fn limit_ended(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    let mut accounts: Vec<&str> = Vec::new();
    alive(scene)
        .filter(|agent| agent.state == State::Limited && agent.is_unattended())
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
            let finding = RuleFinding::about(ActionKind::ResumeAfterLimit, agent, reason);
            Some(RuleFinding {
                account: Some((
                    limit.account.clone(),
                    scene.now + scene.at_speed(ACCOUNT_SPACING),
                )),
                ..finding.evidence(evidence).text("continue")
            })
        })
        .collect()
}
