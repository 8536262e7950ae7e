//! Rules about agents that are alive, have ended their turn, and are not done.

use super::{Finding, Scene, span};
use crate::patrol::{ActionKind, AgentFacts, Presence};
use crate::state::State;

/// Time after which a turn that fails is another failure.
const WELL_AFTER: i64 = 30 * 60;

/// Agents without a person, in this state for at least this long.
fn resting<'a>(
    scene: &'a Scene<'_>,
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

pub(super) fn failed_turn(scene: &Scene<'_>) -> Vec<Finding> {
    resting(scene, State::Error, scene.settings.failed_after)
        .filter_map(|(agent, age)| {
            let (rule, subject) = ("failed-turn", &agent.address);
            let is_new = scene.is_new_trouble(rule, subject, scene.now - age, WELL_AFTER);
            (is_new || scene.is_due(rule, subject)).then_some((agent, age, is_new))
        })
        .map(|(agent, age, is_new)| {
            let reason = format!("the turn of {} failed", agent.address);
            Finding::about(ActionKind::Nudge, agent, reason)
                .evidence(format!("in error for {}", span(age)))
                .anew(is_new)
                .text("Your last turn failed. Continue from where you stopped.")
        })
        .collect()
}

pub(super) fn unanswered_question(scene: &Scene<'_>) -> Vec<Finding> {
    resting(scene, State::Waiting, scene.settings.question_after)
        .filter(|(agent, _)| scene.is_due("unanswered-question", &agent.address))
        .map(|(agent, age)| {
            let reason = format!("{} asks a question", agent.address);
            Finding::about(ActionKind::Escalate, agent, reason)
                .evidence(format!("waiting for {}", span(age)))
                .text(format!(
                    "{0} asks a question: `gt answer {0}` shows it",
                    agent.address
                ))
        })
        .collect()
}

/// Idle agents with an item for which no message waits. Without a message, the end of a turn would
/// not start another one.
fn idle_with_item<'a>(
    scene: &'a Scene<'_>,
    rule: &'static str,
    is_finished: bool,
) -> impl Iterator<Item = (&'a AgentFacts, &'a str, i64)> {
    resting(scene, State::Idle, scene.settings.idle_after)
        .filter(move |(agent, _)| agent.is_finished == is_finished && agent.background == 0)
        .filter(|(agent, _)| agent.queue.is_none())
        .filter_map(|(agent, age)| Some((agent, agent.item.as_deref()?, age)))
        .filter(move |(_, item, _)| scene.is_due(rule, item))
}

pub(super) fn not_handed_in(scene: &Scene<'_>) -> Vec<Finding> {
    idle_with_item(scene, "not-handed-in", true)
        .map(|(agent, item, age)| {
            let reason = format!("{} has finished {item} and not handed it in", agent.address);
            let finding = Finding::about(ActionKind::Nudge, agent, reason)
                .evidence(format!("idle for {}, all steps done", span(age)))
                .text(format!(
                    "Your work on {item} looks complete. Check it, commit, and run `gt done`."
                ));
            Finding {
                subject: item.to_owned(),
                ..finding
            }
        })
        .collect()
}

pub(super) fn idle_with_work(scene: &Scene<'_>) -> Vec<Finding> {
    idle_with_item(scene, "idle-with-work", false)
        .map(|(agent, item, age)| {
            let reason = format!("{} is idle with {item} on its hook", agent.address);
            let finding = Finding::about(ActionKind::Nudge, agent, reason)
                .evidence(format!("idle for {} (by its {})", span(age), agent.source.as_str()))
                .text(format!(
                    "You have {item} on your hook and are idle. `gt hook` shows it. Continue without \
                     asking; when it is complete, run `gt done`. If you cannot go on, run \
                     `gt done --status escalated` with the reason."
                ));
            Finding {
                subject: item.to_owned(),
                ..finding
            }
        })
        .collect()
}
