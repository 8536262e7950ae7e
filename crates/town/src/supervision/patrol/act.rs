//! Carries out the actions of a patrol, each by the function that a command would call.

use super::observe::ObservedTown;
use crate::base::lock::FileLock;
use crate::base::{files, processes};
use crate::lifecycle::{respawn, restore, stop, sync};
use crate::messaging::escalate::{self, NewEscalation};
use crate::messaging::interrupt::interrupt;
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::messaging::queue::MessageQueue;
use crate::messaging::signal;
use crate::records::sessions::Sessions;
use crate::supervision::{limits, scheduler};
use crate::terminal::containers::Container;
use crate::workflow::merge::background;
use crate::workflow::{polecat, rescue};
use crate::{Result, Town};
use gt_core::nudge::Priority;
use gt_core::patrol::{ActionKind, Leftover, PatrolAction};
use gt_core::record::Outcome;
use gt_core::save::RestoreDecision;
use gt_core::state::State;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use std::path::Path;
use std::time::Duration;

/// Maximum wait until an agent takes a message, before it is left in the queue.
const NUDGE_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum wait for the typing lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum wait for a turn to stop. The rules check later whether the interrupt had an effect, and a
/// frozen agent must not hold up the actions on others.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Carries out one action.
pub(super) fn act(town: &Town, seen: &ObservedTown, action: &PatrolAction) -> Result<()> {
    match action.kind {
        ActionKind::Record => sync::sync(town, &Sessions::of(town), false).map(drop),
        ActionKind::Respawn => {
            let container = container(seen, action)?;
            let pane = container.pane().pane;
            respawn::respawn(town, container.name(), pane, true).map(drop)
        }
        ActionKind::Resume => rescue::resume(town, &agent(town, action)?, &item(action)?).map(drop),
        ActionKind::Reassign => rescue::reassign(town, &item(action)?).map(drop),
        ActionKind::Nudge => nudge(town, action, action.rule == "hung-agent"),
        ActionKind::ResumeAfterLimit => {
            limits::leave_dialog(town, container(seen, action)?)?;
            nudge(town, action, false)
        }
        ActionKind::Interrupt => stop_turn(town, &agent(town, action)?),
        ActionKind::Restart => restart(town, seen, action),
        ActionKind::End => end(town, action),
        ActionKind::Redeliver => {
            let container = container(seen, action)?;
            signal::wake_delivery_to(&container.home(town), container)
        }
        ActionKind::RunMergeQueue => background::start(town, rig(action)?).map(drop),
        ActionKind::RestoreServer => restore_server(town),
        ActionKind::Clean(kind) => clean(town, kind, action),
        ActionKind::Escalate | ActionKind::MassDeathAlarm => raise(town, action),
        ActionKind::RaiseAgain => escalate::raise_due(town, town.clock().now()).map(drop),
        ActionKind::RunScheduler => {
            scheduler::wake(town);
            Ok(())
        }
    }
}

fn agent(town: &Town, action: &PatrolAction) -> Result<Identity> {
    let address = action.agent.as_deref().unwrap_or_default();
    Identity::from_address(address, town.registry()).ok_or_else(|| not_an_agent(address))
}

fn not_an_agent(address: &str) -> Problem {
    Problem::not_found(format!("{address:?} is not an agent of this town"))
}

fn item(action: &PatrolAction) -> Result<WorkId> {
    action.item.as_deref().unwrap_or_default().parse()
}

fn rig(action: &PatrolAction) -> Result<&str> {
    let rig = action.rig.as_deref();
    rig.ok_or_else(|| Problem::failed("the action names no rig"))
}

fn container<'s>(seen: &'s ObservedTown, action: &PatrolAction) -> Result<&'s Container> {
    let agent = action.agent.as_deref().unwrap_or_default();
    seen.container(agent)
        .ok_or_else(|| Problem::not_found(format!("{agent} has no container")))
}

/// Sends the message of an action. An agent that seems hung gets it although it is busy.
fn nudge(town: &Town, action: &PatrolAction, while_busy: bool) -> Result<()> {
    let request = NudgeRequest {
        is_command: false,
        text: action.text.as_deref().unwrap_or("continue"),
        sender: Some("gt"),
        mode: match while_busy {
            true => DeliveryMode::Immediate,
            false => DeliveryMode::WaitIdle,
        },
        priority: Priority::Normal,
        timeout: NUDGE_TIMEOUT,
    };
    nudge::send(town, &agent(town, action)?, &request)?;
    Ok(())
}

/// Stops the turn of a busy agent. It is not paused: it may continue at once.
fn stop_turn(town: &Town, agent: &Identity) -> Result<()> {
    let container = nudge::running(town, agent)?;
    let preset = nudge::preset_of(town, &container)?;
    // Prevents messages from being typed between the keys.
    let _typing = FileLock::take(&MessageQueue::of(town, agent).lock_path(), LOCK_TIMEOUT)?;
    interrupt(town, &container, &preset, State::Busy, STOP_TIMEOUT).map(drop)
}

/// Ends the processes of a stuck agent and starts it again. Its container stays, so that a killed
/// patrol leaves a dead agent, which other rules handle.
fn restart(town: &Town, seen: &ObservedTown, action: &PatrolAction) -> Result<()> {
    let container = container(seen, action)?;
    let identity = agent(town, action)?;
    stop::end_processes(town, std::slice::from_ref(container), processes::GRACE);
    match (identity.role(), &action.item) {
        (Role::Polecat, Some(id)) => rescue::resume(town, &identity, &id.parse()?).map(drop),
        _ => respawn::resume(town, &identity).map(drop),
    }
}

/// Ends the session of an agent that was started on demand. One that is overdue is escalated first,
/// so that a killed patrol does not hide the problem.
fn end(town: &Town, action: &PatrolAction) -> Result<()> {
    let is_trouble = action.severity.is_some();
    if is_trouble {
        raise(town, action)?;
    }
    let outcome = match is_trouble {
        true => Outcome::Stopped,
        false => Outcome::Done,
    };
    let options = stop::StopOptions {
        outcome: Some(outcome),
        ..stop::StopOptions::default()
    };
    stop::stop_one(town, &agent(town, action)?, options)
}

/// Restores all agents that are wanted back, several at once.
fn restore_server(town: &Town) -> Result<()> {
    let _lock = restore::lock(town)?;
    let source = restore::find(town, None, &[])?;
    let (mut intents, _) = restore::plan(town, &source, &[])?;
    restore::begin(town, &intents)?;
    intents.retain(|intent| intent.verdict == RestoreDecision::Restore);
    let mut failures = Vec::new();
    for some in intents.chunks(town.settings().limits.parallel_starts) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|intent| scope.spawn(|| restore::restore(town, intent, &[])))
                .collect();
            for (thread, intent) in threads.into_iter().zip(some) {
                // The join fails only if the thread panicked.
                if let Ok(Err(error)) = thread.join()
                    && !error.is_lost_to_another()
                {
                    failures.push(format!("{}: {}", intent.identity, Problem::from(error)));
                }
            }
        });
    }
    match failures.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(Problem::failed(format!(
            "{} of {} agents were not restored",
            failures.len(),
            intents.len()
        ))
        .cause(first.clone())),
    }
}

fn clean(town: &Town, kind: Leftover, action: &PatrolAction) -> Result<()> {
    match kind {
        Leftover::Container => {
            let options = stop::StopOptions {
                force: true,
                ..stop::StopOptions::default()
            };
            stop::stop_one(town, &agent(town, action)?, options)
        }
        Leftover::Process => {
            let is_meant = |container: &str| container == action.subject;
            stop::end_orphans_of(town, processes::GRACE, is_meant).map(drop)
        }
        Leftover::Lock | Leftover::Claim => files::remove_if_there(Path::new(&action.subject)),
        Leftover::Worktree => {
            let identity = Identity::from_address(&action.subject, town.registry());
            let identity = identity.ok_or_else(|| not_an_agent(&action.subject))?;
            polecat::nuke_unused(town, &identity)
        }
    }
}

/// Raises the escalation of an action. A crash loop has the key of the respawn that gave up.
fn raise(town: &Town, action: &PatrolAction) -> Result<()> {
    let message = match &action.text {
        Some(text) => text.clone(),
        None => format!("{} ({})", action.reason, action.evidence.join("; ")),
    };
    let key = match action.rule {
        "crash-loop" => format!("respawn:{}", action.subject),
        rule => format!("patrol:{rule}:{}", action.subject),
    };
    let new = NewEscalation {
        severity: action.severity.unwrap_or_default(),
        message,
        source: "patrol",
        // The escalation is raised even if its item was removed meanwhile.
        item: item(action).ok(),
        agent: action.agent.clone(),
        key: Some(key),
    };
    escalate::raise(town, &new).map(drop)
}
