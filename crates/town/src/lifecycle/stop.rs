//! Stops agents, several at once, in common phases. Every stop of an agent goes through this
//! module.
//!
//! Agents are asked to quit; then all their processes get TERM, a grace period and KILL; then the
//! containers are removed. All agents pass each phase together, so that fifty take about as long as
//! one. Signals go to processes by pid *and* start time, and panes that the user opened beside an
//! agent stay.

mod leaving;
mod members;
mod quit;
mod removal;

pub use leaving::LeavingProcesses;
pub use removal::remove_container;
pub(crate) use removal::remove_whole;

use crate::agents::sandbox::leftovers;
use crate::base::error_enum::error_enum;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::base::processes::{self, ProcessHandle};
use crate::base::wake;
use crate::catalog::{directory, roles};
use crate::lifecycle::epilogue;
use crate::records::items::Work;
use crate::records::sessions::{SessionEnd, Sessions};
use crate::terminal::containers::{self, Container};
use crate::terminal::{adopted, pidfile, save_schedule};
use crate::{Result, Town};
use gt_core::record::{Outcome, Record};
use gt_core::startup::tag;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command};
use members::{end_members, of_pane, roots};
use quit::ask;
use removal::{kept_panes, remove_containers};
use rustix::fs::Access;
use rustix::process::Signal;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum wait for a concurrent start or stop of the same agent.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub struct StopOptions {
    /// Do not ask the agents to quit first.
    pub force: bool,
    pub grace: Duration,
    /// The outcome of the sessions, if it is known in advance: it is written before anything is
    /// ended, so that no other process records another outcome.
    pub outcome: Option<Outcome>,
}

impl Default for StopOptions {
    fn default() -> Self {
        StopOptions {
            force: false,
            grace: processes::GRACE,
            outcome: None,
        }
    }
}

/// Result of stopping one agent.
#[derive(Clone, Debug)]
pub struct StoppedAgent {
    pub identity: Identity,
    pub container: String,
    /// It quit by itself when asked.
    pub graceful: bool,
    /// Number of processes that had to be killed.
    pub killed: usize,
    /// Number of panes of the user that keep the container open.
    pub kept_panes: usize,
    /// Whether the journal has its end: a read-only town does not record it.
    pub is_recorded: bool,
}

/// An agent that was not stopped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StopError {
    /// It does not run on this tmux server.
    #[error(transparent)]
    NotRunning(Problem),
    #[error(transparent)]
    Other(#[from] Problem),
}

error_enum!(StopError: NotRunning, Other);

/// Stops one agent. Succeeds if it has already ended.
pub(crate) fn stop_one(town: &Town, identity: &Identity, options: StopOptions) -> Result<()> {
    for (_, result) in stop_all(town, std::slice::from_ref(identity), options) {
        match result {
            Err(StopError::NotRunning(_)) => {}
            result => drop(result?),
        }
    }
    Ok(())
}

/// Stops these agents together. Returns the results in the order of `identities`.
pub fn stop_all(
    town: &Town,
    identities: &[Identity],
    options: StopOptions,
) -> Vec<(Identity, Result<StoppedAgent, StopError>)> {
    let (allowed, denied): (Vec<_>, Vec<_>) = identities
        .iter()
        .map(|identity| (identity, town.authorize(identity)))
        .partition(|(_, answer)| answer.is_ok());
    let (elsewhere, here): (Vec<_>, Vec<_>) = allowed
        .into_iter()
        .map(|(identity, _)| identity)
        .map(|identity| (identity, adopted::home_of(town, identity)))
        .partition(|(_, home)| matches!(home, Cow::Owned(_)));
    let here: Vec<Identity> = here.into_iter().map(|(it, _)| it.clone()).collect();
    let mut answers = stop_on_server(town, &here, options);
    for (identity, home) in elsewhere {
        let one = std::slice::from_ref(identity);
        answers.extend(stop_on_server(&home, one, options));
    }
    for (identity, answer) in denied {
        answers.extend(
            answer
                .err()
                .map(|problem| (identity.clone(), Err(problem.into()))),
        );
    }
    let place = |(it, _): &(Identity, _)| identities.iter().position(|other| other == it);
    answers.sort_by_key(place);
    answers
}

fn stop_on_server(
    town: &Town,
    identities: &[Identity],
    options: StopOptions,
) -> Vec<(Identity, Result<StoppedAgent, StopError>)> {
    let mut wanted: Vec<&Identity> = Vec::new();
    for identity in identities {
        if !wanted.contains(&identity) {
            wanted.push(identity);
        }
    }
    let mut answers: Vec<(Identity, Option<Result<StoppedAgent, StopError>>)> = wanted
        .into_iter()
        .map(|identity| (identity.clone(), None))
        .collect();
    let mut locks: Vec<FileLock> = Vec::new();
    let mut victims: Vec<Container> = Vec::new();
    // Locked in the order of their names, so that two stops of many agents cannot deadlock.
    let mut order: Vec<usize> = (0..answers.len()).collect();
    order.sort_by_key(|index| answers[*index].0.address());
    for index in order {
        let lock = lock_agent(town, &answers[index].0);
        match lock {
            Ok(lock) => locks.extend(lock),
            Err(problem) => answers[index].1 = Some(Err(problem.into())),
        }
    }
    // Listed only under the locks, so that nothing is starting meanwhile.
    match containers::of_agents(town, identities) {
        Ok(all) => {
            for (identity, answer) in answers.iter_mut().filter(|(_, answer)| answer.is_none()) {
                match all
                    .iter()
                    .find(|container| container.identity() == Some(identity))
                {
                    Some(container) => victims.push(container.clone()),
                    None => *answer = Some(Err(not_running(town, identity))),
                }
            }
        }
        Err(problem) => {
            for (_, answer) in answers.iter_mut().filter(|(_, answer)| answer.is_none()) {
                *answer = Some(Err(problem.clone().into()));
            }
        }
    }
    let ended = end(town, &victims, options);
    // A process that waits to start one of them need not wait for the epilogue.
    drop(locks);
    if ended.is_ok() {
        let sessions: Vec<String> = victims
            .iter()
            .filter_map(|container| Some(container.session_id()?.to_string()))
            .collect();
        epilogue::write(town, &Sessions::of(town), &sessions);
    }
    answers
        .into_iter()
        .map(|(identity, answer)| {
            let answer = answer.unwrap_or_else(|| {
                let ended = ended.as_ref().map_err(Problem::clone)?;
                let mine = ended.iter().find(|stopped| stopped.identity == identity);
                mine.cloned().ok_or_else(|| not_running(town, &identity))
            });
            (identity, answer)
        })
        .collect()
}

/// Takes the lock of an agent. A read-only town has no locks, and nothing can be started there
/// meanwhile.
fn lock_agent(town: &Town, identity: &Identity) -> Result<Option<FileLock>> {
    match FileLock::take(&town.lock_path(identity), LOCK_TIMEOUT) {
        Err(_) if is_read_only(town) => Ok(None),
        lock => lock.map(Some),
    }
}

fn is_read_only(town: &Town) -> bool {
    rustix::fs::access(town.runtime_dir(), Access::WRITE_OK).is_err()
}

fn not_running(town: &Town, identity: &Identity) -> StopError {
    // For a hint only.
    let container = roles::container_name(town, identity).ok();
    let elsewhere = container.and_then(|container| pidfile::on_other_server(town, &container));
    let Some((pid, socket)) = elsewhere else {
        let problem = directory::not_running(town, identity);
        return StopError::NotRunning(problem.hint("`gt agents` lists those that do"));
    };
    let socket = socket.display();
    let problem = Problem::not_found(format!(
        "{identity} is not running on this tmux server, but on {socket} (process {pid})"
    ));
    StopError::NotRunning(problem.hint(format!(
        "`GT_TMUX_SOCKET={socket} gt stop {identity}` ends it"
    )))
}

/// Ends containers whose locks are held: processes first, then the containers.
fn end(town: &Town, victims: &[Container], options: StopOptions) -> Result<Vec<StoppedAgent>> {
    if victims.is_empty() {
        return Ok(Vec::new());
    }
    disarm(town, victims);
    if options.outcome.is_some() {
        remember(town, victims, options.outcome)?;
        crate::base::fault::point(town, "stop.remembered");
    }
    let asked = if options.force {
        Duration::ZERO
    } else {
        ask(town, victims)
    };
    let roots = roots(victims);
    let table = processes::snapshot();
    let left = processes::wait_all(processes::hold(&table, &roots), asked);
    let stayed: BTreeSet<u32> = left.iter().map(ProcessHandle::pid).collect();
    let now = (!asked.is_zero()).then(processes::snapshot);
    let killed = end_members(town, victims, &table, now, options.grace);
    let mut stopped = Vec::new();
    for container in victims {
        let Some(identity) = container.identity() else {
            continue;
        };
        let pid = container.pane().pid;
        let members = of_pane(container, &table);
        stopped.push(StoppedAgent {
            identity: identity.clone(),
            container: container.name().to_owned(),
            graceful: !options.force && !stayed.contains(&pid),
            killed: killed.intersection(&members).count(),
            kept_panes: kept_panes(container),
            is_recorded: !is_read_only(town),
        });
    }
    remove_containers(town, victims)?;
    // A container that stays for the user's panes has lost its tags.
    wake::monitors(town);
    // Written again only where it is missing: a concurrent sync may have recorded the session as
    // running.
    remember(town, victims, options.outcome)?;
    for container in victims {
        // A file that stays only makes the next `gt doctor` check it.
        let _ = pidfile::remove(town, container.name());
    }
    // Removed again by the next start or the regular upkeep.
    leftovers::remove_leftovers(town).or_warn("a container of a stopped agent stays");
    save_schedule::request(town);
    Ok(stopped)
}

/// Writes the ends of these sessions to the journal, unless it already has them.
fn remember(town: &Town, victims: &[Container], known: Option<Outcome>) -> Result<()> {
    let lines: Vec<(Certainty, Record)> = victims
        .iter()
        .filter_map(|container| ending(town, container, known))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    let is_news = |certainty, session: Option<&Record>| {
        let written = session.and_then(|session| session.outcome);
        match certainty {
            Certainty::Observed => written.is_none(),
            Certainty::Decided(outcome) => written != Some(outcome),
        }
    };
    match Sessions::of(town).record_where(lines, is_news) {
        // The next sync in a writable town finds that they have ended.
        Err(_) if is_read_only(town) => Ok(()),
        written => written.map(drop),
    }
}

/// Whether this stop decides an outcome, or only observed it. For an observed outcome an earlier
/// line of the journal takes precedence.
#[derive(Clone, Copy)]
enum Certainty {
    Decided(Outcome),
    Observed,
}

/// Returns the journal line that ends a session. Its outcome is `known`, if given; else that of the
/// process, if it had already ended; else done, if the agent's task is finished; else stopped by
/// the caller.
fn ending(
    town: &Town,
    container: &Container,
    known: Option<Outcome>,
) -> Option<(Certainty, Record)> {
    let id = container.session_id()?.to_string();
    let pane = container.pane();
    let is_gone = container.lost_agent_pane();
    if known.is_none() && (pane.dead || is_gone) {
        let end = SessionEnd {
            outcome: container.outcome(),
            at: pane.died_at,
            exit_code: pane.exit_status,
        };
        return Some((Certainty::Observed, Sessions::ending(id, end, town.clock())));
    }
    let is_finished = || {
        container
            .identity()
            .is_some_and(|a| Work::of(town).is_finished_task(a))
    };
    let outcome = match known {
        Some(outcome) => outcome,
        None if is_finished() => Outcome::Done,
        None => Outcome::Stopped,
    };
    let by_caller = outcome == Outcome::Stopped;
    // Gemini CLI begins another conversation, which stays empty, when it is asked to quit.
    let conversation = Some(pane.tag_harness_session.clone());
    let line = Record {
        harness_session_id: conversation.filter(|id| !id.is_empty()),
        ended_by: by_caller.then(|| town.caller().as_str().to_owned()),
        ..Sessions::ending(id, SessionEnd::of(outcome), town.clock())
    };
    Some((Certainty::Decided(outcome), line))
}

/// Ends every process of these containers' agents, without asking them to quit and without changing
/// the containers.
pub fn end_processes(town: &Town, victims: &[Container], grace: Duration) {
    end_members(town, victims, &processes::snapshot(), None, grace);
}

/// Prevents respawns of agents that are about to be stopped, and notifications about their reports.
fn disarm(town: &Town, victims: &[Container]) {
    let mut batch = Batch::new();
    for container in victims {
        batch = batch
            .then(
                Command::new("set-option")
                    .target(container.id())
                    .args([tag::LEAVING, &container.pane().tag_session]),
            )
            .then(
                Command::new("set-option")
                    .arg("-u")
                    .target(container.id())
                    .arg(tag::AUTO_RESPAWN),
            )
            .then_all(containers::pack(container.id()))
            .then_line();
    }
    // Best effort: a container that is gone needs no disarming, and `gt internal respawn` checks again.
    let _ = town.server().run_private(batch);
}

/// Ends processes that PID files name although their container is gone, and removes those files.
/// Returns the containers whose processes were still alive.
pub fn end_orphans(town: &Town, grace: Duration) -> Result<Vec<String>> {
    end_orphans_of(town, grace, |_| true)
}

/// Ends orphaned processes and removes PID files, for the containers that `is_meant` selects.
pub fn end_orphans_of(
    town: &Town,
    grace: Duration,
    is_meant: impl Fn(&str) -> bool,
) -> Result<Vec<String>> {
    let mut lost = pidfile::without_container(town, || containers::list(town))?;
    lost.retain(|tracked| is_meant(&tracked.container));
    let table = processes::snapshot();
    let alive = || lost.iter().filter(|tracked| tracked.alive.is_some());
    let members: BTreeSet<u32> = alive()
        .flat_map(|tracked| table.pane_members(tracked.pid))
        .collect();
    let handles = processes::hold(&table, &members);
    processes::signal_all(&handles, Signal::TERM);
    let left = processes::wait_all(handles, grace);
    processes::signal_all(&left, Signal::KILL);
    // The PID files below show those that are left.
    let _ = processes::wait_all(left, processes::KILL_TIMEOUT);
    // Read again: a start may have written a new file meanwhile.
    let now = pidfile::all(town);
    for tracked in &lost {
        if now
            .iter()
            .any(|file| file.container == tracked.container && file.pid == tracked.pid)
        {
            pidfile::remove(town, &tracked.container)?;
        }
    }
    Ok(alive().map(|tracked| tracked.container.clone()).collect())
}

#[cfg(test)]
mod tests;
