//! Wakes role agents: delivers digests of the matters that they decide ([`gt_core::digest`]).
//!
//! An agent that does not run is started with the digest in its first prompt; one that runs gets it
//! as a queued message. The memory (`.runtime/digests.json`) is written before each delivery and
//! after it. A process that is killed in between leaves the digest pending, and the next run
//! delivers it again under the same id, unless the agent was started with it or has it in its queue.
//! So every digest arrives at least once, and an agent recognises a repetition by the id.
//!
//! If there is nothing to decide, a run only reads the open escalations and the merge queue.

#[cfg(test)]
mod tests;

use crate::base::estop;
use crate::base::fault;
use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::catalog::roles;
use crate::lifecycle::start::{self, StartError, StartOptions};
use crate::messaging::escalate::{self, NewEscalation};
use crate::messaging::nudge::{self, DeliveryMode, NudgeRequest};
use crate::messaging::queue::MessageQueue;
use crate::records::events::Events;
use crate::supervision::daemon;
use crate::terminal::containers::{self, Container};
use crate::work::matters;
use crate::{Result, Town};
use gt_core::digest::{self, Digest, DigestMemory, MAX_FAILURES, Readiness, SOURCE};
use gt_core::escalation::Severity;
use gt_core::event::Event;
use gt_core::nudge::Priority;
use gt_core::{Identity, Problem};
use std::path::PathBuf;
use std::time::Duration;

/// Type of the event of a delivery.
pub const EVENT: &str = "role_woken";

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &["digest.planned", "digest.delivered"];

/// A digest, and how it reached its agent.
#[derive(Debug)]
pub struct SentDigest {
    pub digest: Digest,
    pub result: Result<DigestDelivery>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestDelivery {
    /// The agent was started with it.
    Started,
    /// It is in the queue of the running agent.
    Queued,
    /// A process that was killed had delivered it.
    Before,
}

impl DigestDelivery {
    pub fn as_str(self) -> &'static str {
        match self {
            DigestDelivery::Started => "started",
            DigestDelivery::Queued => "queued",
            DigestDelivery::Before => "before",
        }
    }
}

/// Delivers the digests that are due. Returns `None` if another process is delivering digests. A
/// failed delivery is part of its result, and is repeated later.
pub fn run(town: &Town) -> Result<Option<Vec<SentDigest>>> {
    let Some(_lock) = FileLock::try_take(&town.runtime_dir().join("locks/digests.lock"))? else {
        return Ok(None);
    };
    let before = read(town)?;
    let mut memory = before.clone();
    take_back_unread(town, &mut memory)?;
    let due = due(town, &mut memory)?;
    if memory != before {
        write(town, &memory)?;
    }
    fault::point(town, "digest.planned");
    let mut woken = Vec::new();
    for digest in due {
        town.around().cancel.check()?;
        let Some(agent) = Identity::from_address(&digest.agent, town.registry()) else {
            continue;
        };
        let result = deliver(town, &agent, &digest);
        fault::point(town, "digest.delivered");
        let now = town.clock().seconds();
        let failures = match &result {
            Ok(_) => {
                memory.delivered(&digest, agent.role(), now);
                0
            }
            Err(_) => memory.failed(&digest, now),
        };
        write(town, &memory)?;
        Events::of(town).note(vec![event(&digest, &result)]);
        if let Err(problem) = &result {
            tracing::warn!("{} for {agent}: {}", digest.id, problem.line());
            if failures == MAX_FAILURES {
                let reported = give_up(town, &agent, problem);
                reported.or_warn(format_args!("the failure to wake {agent} is not reported"));
            }
        }
        woken.push(SentDigest { digest, result });
    }
    Ok(Some(woken))
}

/// Returns the digests that [`run`] would deliver now, and changes nothing.
pub fn plan(town: &Town) -> Result<Vec<Digest>> {
    due(town, &mut read(town)?)
}

/// Delivers digests for the daemon or a timer, if the town is unattended: `gt up` was run since the
/// last `gt down`, or the daemon runs. `automatic` and `wake_roles` in `[patrol]` disable it.
pub fn unattended(town: &Town) -> Result<()> {
    let settings = &town.settings().patrol;
    let is_wanted = settings.automatic && settings.wake_roles;
    match is_wanted && (is_up(town) || daemon::running(town).is_some()) {
        true => run(town).map(drop),
        false => Ok(()),
    }
}

/// Records that role agents may be started on demand, until [`mark_down`].
pub fn mark_up(town: &Town) -> Result<()> {
    files::write_whole(&up_path(town), b"")
}

/// Ends the effect of [`mark_up`]. A running daemon still starts role agents.
pub fn mark_down(town: &Town) -> Result<()> {
    files::remove_if_there(&up_path(town))
}

fn is_up(town: &Town) -> bool {
    up_path(town).exists()
}

fn up_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("up")
}

/// Takes digests back from the queues of agents that ended before they read them. Otherwise their
/// matters would count as delivered.
fn take_back_unread(town: &Town, memory: &mut DigestMemory) -> Result<()> {
    let mut containers = None;
    for address in memory.agents() {
        let Some(agent) = Identity::from_address(&address, town.registry()) else {
            continue;
        };
        let queue = MessageQueue::of(town, &agent);
        let is_digest = |text: &str| text.starts_with("Digest dg-");
        let waiting = queue.waiting().into_iter();
        let unread: Vec<_> = waiting.filter(|it| is_digest(&it.text)).collect();
        if unread.is_empty() {
            continue;
        }
        let containers = match &mut containers {
            Some(containers) => containers,
            none => none.insert(containers::list_everywhere(town)?),
        };
        if readiness(town, &agent, containers) != Readiness::Startable {
            continue;
        }
        // The memory is written after this: after a kill in between, a matter is delivered once
        // more.
        memory.unread(&address);
        for message in unread {
            queue.cancel(&message.id)?;
        }
    }
    Ok(())
}

fn due(town: &Town, memory: &mut DigestMemory) -> Result<Vec<Digest>> {
    let matters = matters::collect(town)?;
    if matters.iter().all(|matter| matter.recipient().is_none()) {
        // No agent has a matter, so tmux is not queried.
        let unavailable = |_: &Identity| Readiness::Unavailable;
        return Ok(digest::plan(
            &matters,
            unavailable,
            memory,
            town.clock().seconds(),
        ));
    }
    let containers = containers::list_everywhere(town)?;
    let readiness = |agent: &Identity| readiness(town, agent, &containers);
    Ok(digest::plan(
        &matters,
        readiness,
        memory,
        town.clock().seconds(),
    ))
}

fn readiness(town: &Town, agent: &Identity, containers: &[Container]) -> Readiness {
    let is_in_service = |rig: &str| {
        let entry = town.registry().rigs.get(rig);
        entry.is_some_and(gt_core::registry::RigEntry::is_in_service)
    };
    let is_stopped = estop::read(town, agent.rig()).is_some();
    let is_locked = FileLock::is_held(&town.lock_path(agent));
    if is_stopped || is_locked || !agent.rig().is_none_or(is_in_service) {
        return Readiness::Unavailable;
    }
    let container = containers.iter().find(|it| it.identity() == Some(agent));
    if let Some(container) = container {
        let row = container.pane();
        if !row.dead && !container.lost_agent_pane() {
            return Readiness::Running;
        }
        // It is respawned, or was given up after crashes. After a clean exit it may be started.
        if row.tag_auto_respawn || container.outcome() == gt_core::record::Outcome::Crash {
            return Readiness::Unavailable;
        }
    }
    // A start reports a role that cannot be read.
    let role = roles::resolve(town, agent.role(), agent.rig());
    match role.is_ok_and(|role| role.value.start.on_demand) {
        true => Readiness::Startable,
        false => Readiness::Unavailable,
    }
}

fn deliver(town: &Town, agent: &Identity, digest: &Digest) -> Result<DigestDelivery> {
    if has(town, agent, digest)? {
        return Ok(DigestDelivery::Before);
    }
    let options = StartOptions {
        create: true,
        sender: Some("gt".to_owned()),
        digest: Some(digest.id.clone()),
        digest_text: Some(digest.text.clone()),
        ..StartOptions::default()
    };
    match start::start(town, agent, &options) {
        Ok(_) => Ok(DigestDelivery::Started),
        Err(StartError::Running(_)) => {
            let request = NudgeRequest {
                is_command: false,
                text: &digest.text,
                sender: Some("gt"),
                mode: DeliveryMode::Queue,
                priority: Priority::Normal,
                timeout: Duration::ZERO,
            };
            nudge::send(town, agent, &request)?;
            Ok(DigestDelivery::Queued)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the agent was started with this digest, or has it in its queue.
fn has(town: &Town, agent: &Identity, digest: &Digest) -> Result<bool> {
    let is_it = |text: &str| text.starts_with(&format!("Digest {}:", digest.id));
    let queue = MessageQueue::of(town, agent);
    let waiting = queue.waiting().into_iter();
    let taken = queue.interrupted().map(|taken| taken.message);
    if waiting.chain(taken).any(|message| is_it(&message.text)) {
        return Ok(true);
    }
    let Some(container) = containers::of_agent(town, agent)? else {
        return Ok(false);
    };
    let is_alive = !container.pane().dead && !container.lost_agent_pane();
    Ok(is_alive && start::options_of(town, &container)?.digest.as_ref() == Some(&digest.id))
}

/// Tells the mayor and people that an agent cannot be woken.
fn give_up(town: &Town, agent: &Identity, problem: &Problem) -> Result<()> {
    let address = agent.address();
    let new = NewEscalation {
        severity: Severity::High,
        message: format!(
            "{address} has something to decide and cannot be started: {}",
            problem.line()
        ),
        source: SOURCE,
        agent: Some(address.clone()),
        key: Some(format!("{SOURCE}:{address}")),
        ..NewEscalation::default()
    };
    escalate::raise(town, &new).map(drop)
}

fn event(digest: &Digest, result: &Result<DigestDelivery>) -> Event {
    let matters: Vec<&str> = digest.matters.keys().map(String::as_str).collect();
    // The event has the failure as `error`.
    let how = result.as_ref().ok().map(|delivery| delivery.as_str());
    Event::new(EVENT, gt_core::Caller::Gt)
        .with("target", digest.agent.clone())
        .with("digest", digest.id.clone())
        .with("matters", matters)
        .with("how", how)
        .with("error", result.as_ref().err().map(Problem::to_string))
}

/// Reads the memory. A damaged file counts as empty: open matters are then delivered once more.
fn read(town: &Town) -> Result<DigestMemory> {
    let path = path(town);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(DigestMemory::default());
    };
    let memory = serde_json::from_str(&text);
    let memory = memory.or_warn(format_args!("{} cannot be read", path.display()));
    Ok(memory.unwrap_or_default())
}

/// Replaces the file atomically.
fn write(town: &Town, memory: &DigestMemory) -> Result<()> {
    let text = serde_json::to_vec(memory)
        .map_err(|error| Problem::failed("cannot write the memory of digests").caused_by(error))?;
    files::write_whole(&path(town), &text)
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("digests.json")
}
