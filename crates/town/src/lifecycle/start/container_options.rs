//! Settings that a container keeps from session to session: the variables of windows that are
//! opened in it, its appearance, and the permanent facts about its agent.
//!
//! After a handoff they are nearly always unchanged, and each command is work for the server. So a
//! tag on the container holds a hash of the settings that were applied last.

use super::prepared::Prepared;
use crate::Town;
use crate::terminal::appearance;
use gt_core::startup::{LaunchPlan, tag};
use gt_tmux::Command;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The variable that differs in each session.
const OF_THE_SESSION: &str = "GT_SESSION_UUID";

/// Tags that only a start sets.
const LASTING_TAGS: [&str; 9] = [
    tag::TOWN,
    tag::AGENT,
    tag::CHAIN,
    tag::HARNESS,
    tag::PROCESS_NAMES,
    tag::NEVER_ASKS,
    tag::SANDBOX,
    tag::ACCOUNT,
    tag::DIGEST,
];

/// Returns the commands that apply the settings to a container whose tag is `applied`. A new container
/// already has its variables.
pub(super) fn commands(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &LaunchPlan,
    is_new: bool,
    applied: &str,
) -> Vec<Command> {
    let container = &prepared.container;
    let variable = |(name, value): (&String, &String)| {
        Command::new("set-environment")
            .target(container.clone())
            .args(["--", name, value])
    };
    let option = |name: &str, value: &str| prepared.option(name, value);
    let (of_the_session, variables): (Vec<_>, Vec<_>) = plan
        .env
        .iter()
        .partition(|(name, _)| *name == OF_THE_SESSION);
    let mut always: Vec<Command> = of_the_session.into_iter().map(variable).collect();
    let mut lasting: Vec<Command> = Vec::new();
    for (tag, value) in &plan.tags {
        match LASTING_TAGS.contains(tag) {
            true => lasting.push(option(tag, value)),
            false => always.push(option(tag, value)),
        }
    }
    // Start options are text from outside; as the value of a tag they are only data.
    always.push(option(tag::START, &prepared.start_tag()));
    lasting.extend(appearance::options(
        town,
        container,
        prepared.identity,
        &prepared.role,
        prepared.options.theme.as_deref(),
    ));
    let mut mark = DefaultHasher::new();
    (&variables, &lasting).hash(&mut mark);
    let mark = format!("{:016x}", mark.finish());
    if applied == mark {
        return always;
    }
    if !is_new {
        always.extend(variables.into_iter().map(variable));
    }
    always.extend(lasting);
    always.push(option(tag::OPTIONS, &mark));
    always
}
