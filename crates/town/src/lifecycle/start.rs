//! Starts agents of every role; there is no other way to start one.
//!
//! The order of the steps is fixed, because each needs the previous one: resolve role, harness and
//! folder; take the container's lock; check what exists; create the container with its environment,
//! tags and options in one call (so that no exit falls between the process and `remain-on-exit`,
//! and no secret is in any argv); wait until it is up; then note its process. A failure rolls back
//! what was made.

mod await_ready;
mod beside;
mod container;
mod dress;
mod error;
mod existing;
mod layout;
mod lineage;
mod options;
mod prepared;
pub(crate) mod restored;

pub(crate) use beside::beside;
pub(crate) use container::{COLUMNS, ROWS, with_history_limit};
pub use error::StartError;
pub(crate) use existing::refuse_others;
pub use options::{StartOptions, TakeOver};
pub(crate) use options::{options_of, start_tag};
pub(crate) use prepared::hooked_work;
pub use restored::Restored;

use crate::base::clock::Clock;
use crate::base::lock::{self, FileLock};
use crate::base::or_log::OrLog;
use crate::base::{fault, processes, wake};
use crate::catalog::{hook_installers, other_towns, roles};
use crate::lifecycle::stop::LeavingProcesses;
use crate::lifecycle::{epilogue, stop};
use crate::messaging::inject::{Reached, Submission, Typist};
use crate::messaging::queue::{Phase, Queue};
use crate::messaging::signal;
use crate::records::items::HandedOver;
use crate::records::sessions::{End, Sessions};
use crate::records::usage;
use crate::repo::{rig, workspace};
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::terminal::{appearance, pidfile, save_schedule};
use crate::{Result, Town};
use container::NewContainer;
use existing::{Existing, Previous, StartPlace};
use gt_core::record::{Outcome, Record};
use gt_core::session::SessionId;
use gt_core::startup::{Plan, tag};
use gt_core::state::{State, StateSource};
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, PaneId};
use lineage::Parent;
pub(crate) use prepared::Prepared;
use restored::Replay;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// An agent that was started.
#[derive(Clone, Debug)]
pub struct Started {
    pub identity: Identity,
    pub container: String,
    pub session: SessionId,
    pub pane: PaneId,
    pub pid: u32,
    pub harness: String,
    pub work_dir: PathBuf,
    pub state: State,
    pub elapsed: Duration,
    /// Problems that did not stop the start.
    pub warnings: Vec<String>,
}

/// Starts an agent.
pub fn start(
    town: &Town,
    identity: &Identity,
    options: &StartOptions,
) -> Result<Started, StartError> {
    let began = Instant::now();
    town.around().cancel.check()?;
    let prepared = Prepared::new(town, identity, options)
        .map_err(|error| options.hint_other_program(identity, error))?;
    let _held = hold(town, identity)?;
    fault::point(town, "start.locked");
    let existing = existing::existing(town, identity, &prepared)?;
    begin(town, prepared, existing, began)
}

/// Starts the next session in the container of a session that has handed over. The caller has read
/// the container while it held the agent's lock.
pub(crate) fn take_over(
    town: &Town,
    mut prepared: Prepared<'_>,
    container: Container,
    handed: Option<&HandedOver>,
) -> Result<Started, StartError> {
    let began = Instant::now();
    town.around().cancel.check()?;
    prepared.handed = handed.cloned();
    let existing = existing::taken_over(&prepared, container)?;
    begin(town, prepared, existing, began)
}

fn begin(
    town: &Town,
    mut prepared: Prepared<'_>,
    existing: Existing,
    began: Instant,
) -> Result<Started, StartError> {
    let (identity, options) = (prepared.identity, prepared.options);
    // The processes of the old session are found by their parents, so this must happen while it
    // lives.
    let before = existing.leaving.as_ref().and_then(|leaving| {
        let roots = [leaving.pane().pid, std::process::id()];
        LeavingProcesses::of(leaving, &processes::trees(&roots))
    });
    let new_server = !appearance::keys_are_current(&existing.keys_tag);
    if new_server {
        check_version(town)?;
    }
    let mut warnings: Vec<String> = Vec::new();
    // Dropped last, after the container is gone, by every return below.
    let new_worktree = prepared.make_workspace(town, &mut warnings)?;
    warnings.extend(prepared.permission_warning());
    prepared.wiring =
        hook_installers::wire(town, &prepared.preset, prepared.role.handoff.on_compact)?;
    let session = SessionId::new(town.clock().new_id());
    let sessions = Sessions::of(town);
    let restored = options.restored.as_ref().map(Previous::from);
    let mut previous = existing.previous.or(restored);
    let begin = prepared.record(town, session);
    let parent = match options.takes_over.is_some() {
        true => previous.as_ref().map(Parent::from),
        false => {
            note_ended(&sessions, previous.as_mut());
            // Without its parent it is still a session.
            let found =
                lineage::parent(&sessions, &begin, &options.conversation, previous.as_ref());
            found.unwrap_or_else(|_| previous.as_ref().map(Parent::from))
        }
    };
    let begin = Prepared::after(begin, parent.as_ref());
    let chain = parent.as_ref().map(|parent| parent.chain.as_str());
    let mut plan = prepared.plan(town, session, chain);
    let replay = Replay::prepare(town, &prepared, session, &mut plan.argv)?;
    let mut is_recorded = false;
    warnings.extend(prepared.plant_answers(town, &plan));
    if options.takes_over.is_some() {
        // Written before anything is replaced, so that a session that hands over is not mistaken
        // for one that died.
        let known = options
            .takes_over
            .as_ref()
            .and_then(|record| record.known.as_ref());
        if let Some(stray) = known.and_then(|record| record.child_id.as_ref()) {
            // An earlier handoff was interrupted before its session had a process.
            sessions.record(&[Record {
                failed_start: Some(true),
                ..Sessions::ending(stray.clone(), End::of(Outcome::Crash), town.clock())
            }])?;
        }
        remember(
            &sessions,
            begin.clone(),
            previous.as_ref(),
            parent.as_ref(),
            known,
            town.clock(),
        )?;
        is_recorded = true;
        fault::point(town, "handoff.recorded");
    }
    let mut is_settled = false;
    let mut noted = None;
    let place = match &existing.given_back {
        Some(container) => existing::give_back(town, prepared.container.as_str(), container),
        None => Ok(existing.place),
    };
    let place = place.map_err(StartError::from);
    let is_new = matches!(place, Ok(StartPlace::New));
    let result = place
        .and_then(|place| container::make(town, &prepared, &plan, place, &existing.dress_tag))
        .and_then(|made| {
            // tmux sends no notification when a pane gets another process.
            wake::monitors(town);
            if is_recorded {
                fault::point(town, "handoff.respawned");
                is_settled = true;
                settle_apart(town, previous.as_ref(), before.as_ref());
                noted = note_process(town, &prepared, &made)?;
                sessions.add_process(made.add_to(Record::about(session.to_string())))?;
            } else {
                let begin = made.add_to(begin);
                remember(
                    &sessions,
                    begin,
                    previous.as_ref(),
                    parent.as_ref(),
                    None,
                    town.clock(),
                )?;
                is_recorded = true;
                noted = note_process(town, &prepared, &made)?;
            }
            if new_server {
                let greeted =
                    appearance::install_keys(town).and_then(|()| other_towns::remember(town));
                warnings.extend(greeted.err().map(|problem| problem.to_string()));
            }
            let noted = usage::note_folder(town, session, &prepared.preset, &plan.env);
            warnings.extend(noted.err().map(|problem| problem.to_string()));
            if let Some(replay) = &replay {
                warnings.extend(replay.show(town, &made, is_new)?);
            }
            let state = await_ready::bring_up(town, &prepared, &plan, &made, &mut warnings)?;
            let state = match plan.is_awaited {
                true => finish(town, &prepared, &plan, &made, state)?,
                false => state,
            };
            Ok((made, state))
        });
    if let Some(lost) = previous.filter(|_| is_recorded && !is_settled) {
        epilogue::write(town, &sessions, &[lost.id]);
    }
    if result.is_err() {
        save_schedule::request(town);
    }
    match result {
        Ok((made, state)) => {
            if let Some(worktree) = new_worktree {
                worktree.keep();
            }
            signal::wake_after_start(town, identity, &prepared.container);
            Ok(Started {
                identity: identity.clone(),
                container: prepared.container.to_string(),
                session,
                pane: made.pane,
                pid: made.pid,
                harness: prepared.preset.name.clone(),
                work_dir: prepared.work_dir.clone(),
                state,
                elapsed: began.elapsed(),
                warnings,
            })
        }
        Err(error) => {
            if is_recorded {
                // If this fails, the next sync records the end.
                let crash = End::of(Outcome::Crash);
                let recorded = sessions.record(&[Record {
                    failed_start: Some(true),
                    ..Sessions::ending(session.to_string(), crash, town.clock())
                }]);
                recorded.or_warn("the end of a failed start is not recorded");
            }
            // Each step checks that it acts on this session, so the container of another process
            // with this name is not touched.
            if !options.keep_container {
                undo(town, &prepared, session, replay.is_some() && is_new);
                if let Some(pid) = noted {
                    // A file that stays only makes the next `gt doctor` check it.
                    let _ = pidfile::remove_of(town, prepared.container.as_str(), pid);
                }
            }
            if is_recorded {
                epilogue::write(town, &sessions, &[session.to_string()]);
            }
            Err(error)
        }
    }
}

/// Writes the PID file by which the agent's process is found if its container is lost. Returns the
/// PID that was written.
fn note_process(town: &Town, prepared: &Prepared<'_>, made: &NewContainer) -> Result<Option<u32>> {
    if !prepared.role.start.track_pid {
        return Ok(None);
    }
    pidfile::write(town, prepared.container.as_str(), made.pid)?;
    Ok(Some(made.pid))
}

/// Ends the processes that the previous session left and writes its epilogue, in a detached
/// process: a handoff waits neither for those processes nor for git. It begins as soon as the pane
/// has its new process, and survives this process.
fn settle_apart(town: &Town, previous: Option<&Previous>, leaving: Option<&LeavingProcesses>) {
    if let Some(lost) = previous {
        let leaving = leaving.map(LeavingProcesses::to_word);
        epilogue::write_apart(town, &lost.id, leaving.as_deref());
    }
}

/// Looks up whether the journal already has the end of the replaced session, which is written once.
/// If the index cannot be read, `previous` stays as it is.
fn note_ended(sessions: &Sessions, previous: Option<&mut Previous>) {
    let Some(previous) = previous else {
        return;
    };
    let known = sessions.known([previous.id.as_str()].into_iter());
    let is_ended = known.is_ok_and(|known| {
        let session = known.get(&previous.id);
        session.is_some_and(|session| session.outcome.is_some())
    });
    previous.is_ended |= is_ended;
}

/// Writes to the journal that a session has begun, that the session it replaces has ended, and
/// which session it continues.
fn remember(
    sessions: &Sessions,
    begin: Record,
    previous: Option<&Previous>,
    parent: Option<&Parent>,
    known: Option<&Record>,
    clock: &Clock,
) -> Result<()> {
    let replaced = previous.filter(|before| !before.is_ended).map(|before| {
        let end = End {
            outcome: before.outcome,
            at: before.died_at,
            exit_code: before.exit_code,
        };
        Sessions::ending(before.id.clone(), end, clock)
    });
    let mut lines: Vec<Record> = replaced.into_iter().collect();
    if let Some(parent) = parent {
        let child = Record {
            child_id: Some(begin.id.clone()),
            ..Record::about(parent.id.clone())
        };
        match lines.iter_mut().find(|line| line.id == parent.id) {
            Some(line) => line.merge(child),
            None => lines.push(child),
        }
    }
    lines.push(begin);
    match known {
        Some(known) => sessions.record_known(&lines, known),
        None => sessions.record(&lines),
    }
}

/// Fetches the rigs of these agents if their roles ask for it: each rig once, whatever the number
/// of agents. An unreachable remote is only a warning.
pub fn pre_sync(town: &Town, identities: &[Identity]) -> Vec<String> {
    let mut rigs: Vec<&str> = identities
        .iter()
        .filter_map(|identity| {
            // The start reports a role that cannot be read.
            let role = roles::resolve(town, identity.role(), identity.rig());
            let role = role.ok()?.value;
            identity.rig().filter(|_| role.session.needs_pre_sync)
        })
        .collect();
    rigs.sort_unstable();
    rigs.dedup();
    rigs.retain(|rig| rig::check_not_parked(town, rig).is_ok());
    std::thread::scope(|scope| {
        let fetches: Vec<_> = rigs
            .iter()
            .map(|rig| (rig, scope.spawn(|| workspace::fetch(town, rig))))
            .collect();
        let failures = fetches.into_iter().filter_map(|(rig, fetch)| {
            // The join fails only if the thread panicked.
            let problem = fetch.join().ok()?.err()?;
            Some(format!(
                "the rig {rig} could not be brought up to date: {problem}"
            ))
        });
        failures.collect()
    })
}

/// Fails if the agent could not be started, as far as that can be checked without changing
/// anything.
pub fn check(town: &Town, identity: &Identity, options: &StartOptions) -> Result<()> {
    let prepared = Prepared::new(town, identity, options)
        .map_err(|error| options.hint_other_program(identity, error))?;
    if options.create || prepared.work_dir.is_dir() || !workspace::is_worktree(identity.role()) {
        return Ok(());
    }
    Err(prepared.no_folder())
}

/// Returns the options for restarting an agent that has a container. If they name no configuration
/// folder, the program keeps the present one, because its conversations are there. The folder of
/// another program is not used.
pub fn options_again(
    town: &Town,
    identity: &Identity,
    options: &StartOptions,
) -> Result<StartOptions> {
    let is_named = options.config_dir.is_some() || options.account.is_some();
    let container = match is_named {
        true => None,
        false => containers::of_agent(town, identity)?,
    };
    let Some(container) = container else {
        return Ok(options.clone());
    };
    let before = options_of(town, &container)?;
    let prepared = Prepared::new(town, identity, options)?;
    if before.harness.as_deref() != Some(prepared.preset.name.as_str()) {
        return Ok(options.clone());
    }
    Ok(StartOptions {
        config_dir: before.config_dir,
        keeps_folder: true,
        ..options.clone()
    })
}

/// Fails if tmux lacks a required feature, before anything is made.
fn check_version(town: &Town) -> Result<()> {
    let problem = |error| tmux_problem("this tmux cannot hold agents", error);
    let version = town.tmux_version().map_err(problem)?;
    version.check_minimum().map_err(problem)
}

/// Takes the lock for one start of an agent at a time; a concurrent start fails at once. The short
/// timeout allows for processes that only check the lock.
pub(crate) fn hold(town: &Town, identity: &Identity) -> Result<FileLock, StartError> {
    const MOMENT: Duration = Duration::from_millis(50);
    let path = town.lock_path(identity);
    FileLock::take_within(&path, MOMENT)?.ok_or_else(|| {
        let holder =
            lock::holder(&path).map_or_else(String::new, |pid| format!(" (process {pid})"));
        let problem = Problem::conflict(format!(
            "another gt{holder} is starting or stopping {identity}"
        ));
        StartError::Taken(problem.hint("wait for it, then look with `gt agents`"))
    })
}

/// Sets the tags of a running agent after its start was observed. Returns its state: the report of
/// its own hooks, or else the state that was seen.
fn finish(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &Plan,
    made: &NewContainer,
    seen: State,
) -> Result<State, StartError> {
    let name = &prepared.container;
    // A prompt shows briefly before the program takes its first prompt.
    let takes_prompt = plan.reports_first_prompt && matches!(seen, State::Idle | State::Busy);
    let first = gt_core::signal::first_prompt();
    let (state, source, reason) = match takes_prompt {
        true => (first.state, StateSource::Hook, first.reason.as_str()),
        false => (State::Running, StateSource::Process, ""),
    };
    // A state that a hook of the agent has already reported stays.
    let unless_hook = |option: &str, value: &str| {
        let format = format!("#{{?#{{==:#{{@gt_state_source}},start}},{value},#{{{option}}}}}");
        Command::new("set-option")
            .arg("-F")
            .target(name.clone())
            .args([option, &format])
    };
    let now = town.clock().seconds().to_string();
    let mut batch = Batch::from(vec![
        unless_hook(tag::STATE, state.as_str()),
        unless_hook(tag::STATE_SINCE, &now),
        unless_hook(tag::STATE_REASON, reason),
        // Last, because the conditions of the others read it.
        unless_hook(tag::STATE_SOURCE, source.as_str()),
    ]);
    if !prepared.role.start.remain_on_exit {
        batch.push(
            Command::new("set-option")
                .arg("-p")
                .target(made.pane)
                .args(["remain-on-exit", "off"]),
        );
    }
    if let Some(save) = save_schedule::request_command(town) {
        batch.push(save);
    }
    // A person may have linked the pane's window into a session without these tags.
    let ask = || Command::new("display-message").arg("-p");
    batch.push(ask().target(made.pane).arg("#{pane_dead}"));
    let tags = ask().target(name.clone());
    batch.push(tags.arg("#{@gt_state_source} #{@gt_state}"));
    let answer = town
        .server()
        .run(batch)
        .map_err(|error| tmux_problem(&format!("the container {name} was lost again"), error))?;
    wake::monitors(town);
    let mut words = answer.split_whitespace();
    let (dead, source, tagged) = (words.next(), words.next(), words.next());
    if prepared.role.start.verify_survived && dead == Some("1") {
        return Err(await_ready::death(town, prepared, made));
    }
    let told = tagged.filter(|_| source == Some(StateSource::Hook.as_str()));
    Ok(told.and_then(State::from_word).unwrap_or(seen))
}

/// Rolls back a container that did not come up. The caller reports the original problem; failures of
/// the rollback are logged.
/// `made_all` says that this start has made everything in the container.
fn undo(town: &Town, prepared: &Prepared<'_>, session: SessionId, made_all: bool) {
    let left = format!("the container {} is left", prepared.container.as_str());
    let found = containers::find(town, prepared.container.as_str());
    let found = found.or_warn(&left).flatten();
    // Removes only what this start has made: the container may hold panes of the user, or belong to
    // another session by now.
    if let Some(container) = found.filter(|container| container.session_id() == Some(session)) {
        stop::end_processes(
            town,
            std::slice::from_ref(&container),
            Duration::from_millis(500),
        );
        let removed = match made_all {
            // The panes beside the agent were restored by this start.
            true => stop::remove_whole(town, &container),
            false => stop::remove_container(town, &container),
        };
        removed.or_warn(&left);
    }
}

/// Types the first prompt of a program that takes it in no other way.
fn type_prompt(
    town: &Town,
    prepared: &Prepared<'_>,
    made: &NewContainer,
    prompt: &str,
) -> Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    // Another process may already be delivering a message.
    let queue = Queue::of(town, prepared.identity);
    let _lock = FileLock::take(&queue.lock_path(), TIMEOUT)?;
    let began = Instant::now();
    let container = prepared.container.clone().into();
    let (pane, pid, preset) = (made.pane, made.pid, &prepared.preset);
    let mut typist = Typist::for_pane(town, pane, container, &made.tty, pid, preset);
    let prompt = gt_core::nudge::clean(prompt);
    loop {
        match typist.submit(&prompt, Reached::NOTHING, false, |_, _| Ok(()))? {
            Submission::Submitted { .. } => return Ok(()),
            Submission::NotShown { in_line } => {
                if in_line {
                    typist.clear_line()?;
                }
                return Err(Problem::failed("its program does not show what was typed"));
            }
            Submission::NotNow(reason, phase) => {
                if phase != Phase::Taken || began.elapsed() > TIMEOUT {
                    return Err(Problem::failed(reason.words()));
                }
                typist.wait_for_chance(reason, Duration::from_millis(250))?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
