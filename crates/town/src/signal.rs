//! What an agent's own hooks say.
//!
//! A hook runs `gt signal` with the program's JSON on its standard input. The
//! state goes onto the container as tags, in one call; a prompt that the agent
//! took leaves its fingerprint, the receipt of a nudge; and the end of a turn
//! wakes whoever delivers what waits.

use crate::containers::{self, tmux_problem};
use crate::queue::Queue;
use crate::{Result, Town};
use gt_core::signal::{self, Event};
use gt_core::startup::tag;
use gt_core::{Identity, Problem, nudge};
use gt_tmux::{Batch, Command, SessionName};
use serde_json::Value;

/// Notes what a hook reported about the agent of this container.
pub fn note(town: &Town, container: &str, event: Event, report: &Value) -> Result<()> {
    let target =
        SessionName::try_from(container).map_err(|error| Problem::usage(error.to_string()))?;
    let set = |option: &str, value: &str| {
        Command::new("set-option")
            .target(target.clone())
            .arg(option)
            .arg(value)
    };
    let mut batch = Batch::new();
    if let Some(said) = signal::state_of(event, report) {
        let now = jiff::Timestamp::now().as_second().to_string();
        batch = batch
            .then(set(tag::STATE, said.state.word()))
            .then(set(tag::STATE_SINCE, &now))
            .then(set(tag::STATE_SOURCE, "hook"))
            .then(set(tag::STATE_REASON, &said.reason));
    }
    if let Some(id) = report["session_id"].as_str() {
        batch = batch.then(set(tag::HARNESS_SESSION, id));
    }
    if let (Event::Prompt, Some(prompt)) = (event, report["prompt"].as_str()) {
        batch = batch.then(set(tag::LAST_PROMPT, &nudge::fingerprint(prompt)));
    }
    if !batch.is_empty() {
        town.server()
            .run(batch)
            .map_err(|error| tmux_problem("cannot tag the container", error))?;
    }
    if signal::ends_a_turn(event) {
        wake_delivery(town, container)?;
    }
    Ok(())
}

/// The container whose agent has this conversation: for hooks that run in another
/// program's environment.
pub fn container_of_conversation(town: &Town, id: &str) -> Result<Option<String>> {
    let all = containers::list(town)?;
    Ok(all
        .iter()
        .find(|container| container.pane().tag_harness_session == id)
        .map(|container| container.name().to_owned()))
}

/// Lets tmux start the delivery of what waits: the hook itself must not wait, as
/// the agent is idle only when it has returned.
fn wake_delivery(town: &Town, container: &str) -> Result<()> {
    const DELIVER: &str =
        "#{q:@gt_bin} --town #{q:@gt_town} nudge --drain #{q:@gt_agent} >/dev/null 2>&1";
    let waiting = town
        .around()
        .var("GT_ROLE")
        .and_then(|address| Identity::from_address(address, town.registry()))
        .is_none_or(|identity| !Queue::of(town, &identity).is_empty());
    if !waiting {
        return Ok(());
    }
    let target =
        SessionName::try_from(container).map_err(|error| Problem::usage(error.to_string()))?;
    town.server()
        .run(
            Command::new("run-shell")
                .arg("-b")
                .target(target)
                .arg(DELIVER),
        )
        .map(drop)
        .map_err(|error| tmux_problem("cannot wake the delivery", error))
}
