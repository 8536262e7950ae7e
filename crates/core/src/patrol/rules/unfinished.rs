//! Rules about agents that are alive and have ended their turn, but not their work.

use super::{RuleFinding, RuleInput, span};
use crate::patrol::{ActionKind, AgentFacts, Presence};
use crate::state::State;

/// Time after which another failed turn counts as a new failure.
const WELL_AFTER: i64 = 30 * 60;

/// Returns the unattended agents that have been in this state for at least this long.
fn resting<'a>(
    scene: &'a RuleInput<'_>,
    state: State,
    after: i64,
) -> impl Iterator<Item = (&'a AgentFacts, i64)> {
    let agents = scene.snapshot.agents.iter();
    agents
        .filter(move |agent| agent.presence == Presence::Alive && agent.state == state)
        .filter(|agent| !agent.is_locked && agent.is_unattended())
        .filter_map(|agent| Some((agent, scene.age(agent.since?))))
        .filter(move |(_, age)| *age >= after)
}

pub(super) fn failed_turn(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    resting(scene, State::Error, scene.settings.failed_after)
        .filter_map(|(agent, age)| {
            let (rule, subject) = ("failed-turn", &agent.address);
            let is_new = scene.is_new_problem(rule, subject, scene.now - age, WELL_AFTER);
            (is_new || scene.is_due(rule, subject)).then_some((agent, age, is_new))
        })
        .map(|(agent, age, is_new)| {
            let reason = format!("the turn of {} failed", agent.address);
            RuleFinding::about(ActionKind::Nudge, agent, reason)
                .evidence(format!("in error for {}", span(age)))
                .anew(is_new)
                .text("Your last turn failed. Continue from where you stopped.")
        })
        .collect()
}

pub(super) fn unanswered_question(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    resting(scene, State::Waiting, scene.settings.question_after)
        .filter(|(agent, _)| scene.is_due("unanswered-question", &agent.address))
        .map(|(agent, age)| {
            let reason = format!("{} asks a question", agent.address);
            RuleFinding::about(ActionKind::Escalate, agent, reason)
                .evidence(format!("waiting for {}", span(age)))
                .text(format!(
                    "{0} asks a question: `gt answer {0}` shows it",
                    agent.address
                ))
        })
        .collect()
}

/// Returns the idle agents that have an item and no waiting message. A waiting message would start
/// the next turn by itself.
fn idle_with_item<'a>(
    scene: &'a RuleInput<'_>,
    rule: &'static str,
    is_finished: bool,
) -> impl Iterator<Item = (&'a AgentFacts, &'a str, i64)> {
    resting(scene, State::Idle, scene.settings.idle_after)
        .filter(move |(agent, _)| agent.is_finished == is_finished && agent.background == 0)
        .filter(|(agent, _)| agent.queue.is_none())
        .filter_map(|(agent, age)| Some((agent, agent.item.as_deref()?, age)))
        .filter(move |(_, item, _)| scene.is_due(rule, item))
}

pub(super) fn not_handed_in(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    idle_with_item(scene, "not-handed-in", true)
        .map(|(agent, item, age)| {
            let reason = format!("{} has finished {item} and not submitted it", agent.address);
            let finding = RuleFinding::about(ActionKind::Nudge, agent, reason)
                .evidence(format!("idle for {}, all steps done", span(age)))
                .text(format!(
                    "Your work on {item} looks complete. Check it, commit, and run `gt done`."
                ));
            RuleFinding {
                subject: item.to_owned(),
                ..finding
            }
        })
        .collect()
}

pub(super) fn idle_with_work(scene: &RuleInput<'_>) -> Vec<RuleFinding> {
    idle_with_item(scene, "idle-with-work", false)
        .map(|(agent, item, age)| {
            let reason = format!("{} is idle with {item} on its hook", agent.address);
            let finding = RuleFinding::about(ActionKind::Nudge, agent, reason)
                .evidence(format!("idle for {} (by its {})", span(age), agent.source.as_str()))
                .text(format!(
                    "You have {item} on your hook and are idle. `gt hook` shows it. Continue without \
                     asking; when it is complete, run `gt done`. If you cannot continue, run \
                     `gt done --status escalated` with the reason."
                ));
            RuleFinding {
                subject: item.to_owned(),
                ..finding
            }
        })
        .collect()
}
