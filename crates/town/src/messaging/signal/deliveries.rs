//! Starts the background delivery of messages that wait for an agent.

use crate::base::callback::{self, Call};
use crate::catalog::harnesses::Presets;
use crate::messaging::queue::MessageQueue;
use crate::terminal::containers::{Container, Owner, tmux_problem};
use crate::{Result, Town};
use gt_core::state::State;
use gt_core::{Identity, Problem, shell};
use gt_tmux::{Command, SessionName, format};

/// Wakes the delivery to those of these agents that have waiting messages and may be idle, unless a
/// background process already delivers them.
pub fn wake_deliveries(town: &Town, containers: &[Container]) {
    let mut presets = Presets::default();
    for container in containers {
        let Some(identity) = container.identity() else {
            continue;
        };
        let state = container
            .state(presets.get(town, &container.pane().tag_harness))
            .state;
        let may_be_idle = !state.is_dead() && !matches!(state, State::Starting | State::Paused);
        let queue = MessageQueue::of(town, identity);
        if may_be_idle && !queue.is_empty() && !queue.is_held_back(town, identity) {
            // Best effort: the messages stay in the queue.
            let _ = wake_delivery_to(&container.home(town), container);
        }
    }
}

/// Starts the background delivery of waiting messages to an agent that was just started. Programs
/// without hooks do not report the start of their session.
pub(crate) fn wake_after_start(town: &Town, identity: &Identity, container: &SessionName) {
    if !MessageQueue::of(town, identity).is_empty() {
        // Best effort: the messages stay in the queue.
        let _ = wake_delivery(town, container);
    }
}

/// Starts the background delivery to an agent that has waiting messages, unless it already runs.
pub(crate) fn wake_delivery_to(town: &Town, container: &Container) -> Result<()> {
    let queue = container
        .identity()
        .map(|identity| MessageQueue::of(town, identity));
    if queue.is_some_and(|queue| !queue.wants_deliverer()) {
        return Ok(());
    }
    if let Owner::Orphan(identity) = container.owner() {
        // It has no tags to read.
        let address = shell::quote(&identity.address());
        let line = callback::line(town, &Call::Deliver.line(&address));
        let wake = Command::new("run-shell").args(["-b", &line]);
        let woken = town.server().run(wake);
        return woken
            .map(drop)
            .map_err(|error| tmux_problem("cannot wake the delivery", error));
    }
    let target = SessionName::try_from(container.name())
        .map_err(|error| Problem::usage(error.to_string()))?;
    wake_delivery(town, &target)
}

/// Lets tmux start the delivery of waiting messages: a hook must not wait for it, because the agent
/// is idle only after the hook has returned.
pub(super) fn wake_delivery(town: &Town, target: &SessionName) -> Result<()> {
    let deliver = callback::automatic_by_tags(&Call::Deliver.line("#{q:@gt_agent}"));
    // The environment of another server names neither the town's server nor its socket.
    let line = match town.is_elsewhere() {
        true => {
            let own = town.with_own_server().server().socket_path();
            let own = format::escape(&shell::quote(&own.to_string_lossy()));
            format!("GT_TMUX_SOCKET={own} {deliver}")
        }
        false => deliver,
    };
    let wake = Command::new("run-shell").arg("-b").target(target.clone());
    town.server()
        .run(wake.arg(line))
        .map(drop)
        .map_err(|error| tmux_problem("cannot wake the delivery", error))
}
