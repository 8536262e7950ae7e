//! The emergency stop: interrupts agents and blocks new work, until it is ended.
//!
//! The file is written first ([`crate::base::estop`]): from then on no start, message or merge
//! begins, even if this process is killed. Then every running agent of the scope is interrupted;
//! its process and its conversation stay. Hooks of agents keep working.

use crate::base::callback::{self, Call};
use crate::base::estop::{self, EstopNote};
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::{fault, wake};
use crate::messaging::interrupt::{STOP_TIMEOUT, interrupt};
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::messaging::queue::MessageQueue;
use crate::messaging::signal;
use crate::records::events::{Events, by_command};
use crate::records::items::Work;
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::workflow::merge::background;
use crate::{Result, Town};
use gt_core::nudge::Priority;
use gt_core::state::State;
use gt_core::{Identity, Problem};
use gt_tmux::Command;
use std::time::Duration;

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["estop.written", "estop.interrupted"];

/// Maximum wait for another process that types to an agent.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Message to an agent whose turn was interrupted.
const GO_ON: &str = "The emergency stop is over. Continue with what you were doing.";

/// Result of [`stop`].
#[derive(Debug)]
pub struct EstopOutcome {
    pub note: EstopNote,
    /// Running agents that were not in a turn.
    pub idle: Vec<String>,
    /// Agents that could not be interrupted.
    pub failed: Vec<(String, Problem)>,
}

/// Result of [`thaw`].
#[derive(Debug)]
pub struct ThawOutcome {
    pub note: EstopNote,
    /// Another stop that still applies.
    pub still: Option<EstopNote>,
    /// Interrupted agents that were told to continue.
    pub told: Vec<String>,
    /// Dead agents that are started again.
    pub respawned: Vec<String>,
    /// Number of branches that wait to be merged.
    pub merges: usize,
    /// Number of messages that wait for running agents.
    pub messages: usize,
}

/// Stops the town or one rig, and interrupts its agents. A stop that exists already is kept, with
/// the agents that this call interrupts.
pub fn stop(town: &Town, rig: Option<&str>, reason: Option<&str>) -> Result<EstopOutcome> {
    let known = estop::all(town)
        .into_iter()
        .find(|note| note.rig.as_deref() == rig);
    let is_new = known.is_none();
    let mut note = known.unwrap_or_else(|| EstopNote {
        rig: rig.map(str::to_owned),
        by: town.caller().as_str().to_owned(),
        at: town.clock().text(),
        ..EstopNote::default()
    });
    if reason.is_some() {
        note.reason = reason.map(str::to_owned);
    }
    estop::set(town, &note)?;
    fault::point(town, "estop.written");
    wake::monitors(town);
    let running = of_scope(containers::list_everywhere(town)?, rig);
    let results = std::thread::scope(|scope| {
        let interrupt =
            |container| scope.spawn(move || (container, interrupt_one(town, container)));
        let threads: Vec<_> = running.iter().map(interrupt).collect();
        // A panic of a thread is printed by its hook.
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().ok();
        threads.into_iter().filter_map(join).collect::<Vec<_>>()
    });
    let (mut idle, mut failed) = (Vec::new(), Vec::new());
    for (container, result) in results {
        let Some(agent) = container.identity().map(Identity::address) else {
            continue;
        };
        match result {
            Ok(true) if !note.interrupted.contains(&agent) => note.interrupted.push(agent),
            Ok(true) => {}
            Ok(false) => idle.push(agent),
            Err(problem) => failed.push((agent, problem)),
        }
    }
    estop::set(town, &note)?;
    fault::point(town, "estop.interrupted");
    if is_new {
        let event = by_command(town, "estop")
            .with("rig", note.rig.clone())
            .with("reason", note.reason.clone())
            .with("agents", note.interrupted.clone());
        Events::of(town).note(vec![event]);
    }
    Ok(EstopOutcome { note, idle, failed })
}

/// Interrupts the turn of an agent. Returns whether there was one.
fn interrupt_one(town: &Town, container: &Container) -> Result<bool> {
    let Some(identity) = container.identity() else {
        return Ok(false);
    };
    let home = &*container.home(town);
    let preset = nudge::preset_of(home, container)?;
    let before = container.state(Some(&preset)).state;
    if matches!(before, State::Idle | State::Done | State::Paused) {
        return Ok(false);
    }
    // Prevents messages from being typed between the keys.
    let _typing = FileLock::take(&MessageQueue::of(home, identity).lock_path(), LOCK_TIMEOUT)?;
    Ok(interrupt(home, container, &preset, before, STOP_TIMEOUT)?
        .turn
        .is_some())
}

fn of_scope(mut containers: Vec<Container>, rig: Option<&str>) -> Vec<Container> {
    containers.retain(|container| {
        let its = container.identity();
        let is_meant = |agent: &Identity| rig.is_none_or(|rig| agent.rig() == Some(rig));
        let is_alive = !container.pane().dead && !container.lost_agent_pane();
        is_alive && its.is_some_and(is_meant) && container.session_id().is_some()
    });
    containers
}

/// Ends a stop: merges and messages continue, interrupted agents are told to continue, and agents
/// that died meanwhile are respawned.
pub fn thaw(town: &Town, rig: Option<&str>) -> Result<Option<ThawOutcome>> {
    let Some(note) = estop::clear(town, rig)? else {
        return Ok(None);
    };
    wake::monitors(town);
    let event = by_command(town, "thaw").with("rig", note.rig.clone());
    Events::of(town).note(vec![event]);
    let mut thawed = ThawOutcome {
        still: estop::read(town, rig),
        note,
        told: Vec::new(),
        respawned: Vec::new(),
        merges: 0,
        messages: 0,
    };
    if thawed.still.is_some() {
        return Ok(Some(thawed));
    }
    background::resume(town);
    let merges = Work::of(town).merges(rig, false)?;
    thawed.merges = merges.iter().filter(|it| it.status.is_waiting()).count();
    let everything = containers::list_everywhere(town)?;
    thawed.respawned = respawn_dead(town, &everything, rig)?;
    let running = of_scope(everything, rig);
    for container in &running {
        let Some(identity) = container.identity() else {
            continue;
        };
        thawed.messages += MessageQueue::of(town, identity).waiting().len();
        if thawed.note.interrupted.contains(&identity.address()) {
            let order = NudgeRequest {
                is_command: false,
                text: GO_ON,
                sender: None,
                mode: DeliveryMode::Queue,
                // The agent is woken by a command: do-not-disturb does not hold it.
                priority: Priority::Urgent,
                timeout: Duration::ZERO,
            };
            let sent = nudge::send(town, identity, &order);
            if sent
                .or_warn(format_args!("{identity} was not told"))
                .is_some()
            {
                thawed.told.push(identity.address());
            }
        }
    }
    signal::wake_deliveries(town, &running);
    Ok(Some(thawed))
}

/// Starts the respawn of agents that died during the stop.
fn respawn_dead(town: &Town, containers: &[Container], rig: Option<&str>) -> Result<Vec<String>> {
    let mut respawned = Vec::new();
    for container in containers {
        let row = container.pane();
        let Some(identity) = container.identity() else {
            continue;
        };
        let is_meant = rig.is_none_or(|rig| identity.rig() == Some(rig));
        if !row.dead || !row.tag_auto_respawn || !is_meant {
            continue;
        }
        let again = Call::Respawn.line("#{q:session_name} --pane #{q:@gt_pane}");
        let run = Command::new("run-shell")
            .arg("-b")
            .target(container.id())
            .arg(callback::automatic_by_tags(&again));
        town.server()
            .run(run)
            .map_err(|error| tmux_problem("cannot start a respawn", error))?;
        respawned.push(identity.address());
    }
    Ok(respawned)
}

#[cfg(test)]
mod tests;
