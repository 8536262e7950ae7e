//! Starts agents of every role. Every start of an agent goes through this module.
//!
//! The order of the steps is fixed, because each needs the previous one: resolve role, harness and
//! folder; take the container's lock; check what exists; create the container with its environment,
//! tags and options in one call (so that the process cannot exit before `remain-on-exit` is set,
//! and no secret is in any argv); record the session; wait until it is up. `start/rollback.rs` makes
//! the changes, and rolls them back unless the start succeeds.

mod await_ready;
mod beside;
mod container;
mod container_options;
mod error;
mod existing;
mod layout;
mod lineage;
mod options;
mod prepared;
pub(crate) mod restored;
mod rollback;

pub(crate) use beside::start_beside;
pub(crate) use container::{COLUMNS, ROWS, with_history_limit};
pub use error::StartError;
pub(crate) use existing::refuse_others;
pub use options::{StartOptions, TakeOver};
pub(crate) use options::{options_of, start_tag};
pub(crate) use prepared::hooked_work;
pub use restored::Restored;

use crate::agents::caller;
use crate::base::estop;
use crate::base::lock::{self, FileLock};
use crate::base::{fault, wake};
use crate::catalog::{hook_installers, other_towns, roles};
use crate::messaging::inject::{Reached, Submission, Typist};
use crate::messaging::queue::{MessageQueue, Phase};
use crate::messaging::signal;
use crate::records::items::HandedOver;
use crate::records::usage;
use crate::repo::{rig, workspace};
use crate::terminal::containers::{self, Container, tmux_problem};
use crate::terminal::{appearance, save_schedule};
use crate::{Result, Town};
use container::AgentProcess;
use existing::Existing;
use gt_core::record::Record;
use gt_core::session::SessionId;
use gt_core::startup::{LaunchPlan, tag};
use gt_core::state::{State, StateSource};
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, PaneId};
use lineage::Lineage;
pub(crate) use prepared::Prepared;
use rollback::StartChanges;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// An agent that was started.
#[derive(Clone, Debug)]
pub struct StartedAgent {
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
) -> Result<StartedAgent, StartError> {
    let began = Instant::now();
    town.around().cancel.check()?;
    town.authorize(identity)?;
    check_not_stopped(town, identity)?;
    let prepared = Prepared::new(town, identity, options)
        .map_err(|error| options.hint_other_program(identity, error))?;
    prepared.refuse_exhausted_budget(town)?;
    let _held = hold(town, identity)?;
    fault::point(town, "start.locked");
    // An emergency stop may have begun since the first check.
    check_not_stopped(town, identity)?;
    let existing = existing::existing(town, identity, &prepared)?;
    begin(town, &prepared, existing, began)
}

/// Starts the next session in the container of a session that has handed over. The caller has read
/// the container while it held the agent's lock.
pub(crate) fn take_over(
    town: &Town,
    prepared: &Prepared<'_>,
    container: Container,
    handed: Option<HandedOver>,
) -> Result<StartedAgent, StartError> {
    let began = Instant::now();
    town.around().cancel.check()?;
    check_not_stopped(town, prepared.identity)?;
    let existing = existing::taken_over(town, prepared, container, handed)?;
    begin(town, prepared, existing, began)
}

/// Fails during an emergency stop. A person's own shell may start.
fn check_not_stopped(town: &Town, identity: &Identity) -> Result<(), StartError> {
    if caller::is_person(identity) {
        return Ok(());
    }
    estop::check(town, identity.rig()).map_err(StartError::Stopped)
}

fn ignored_settings(prepared: &Prepared<'_>, files: &[String]) -> String {
    let rig = prepared.identity.rig().unwrap_or_default();
    format!(
        "it starts without the settings of the repository ({}), because you have not approved them: \
         `gt project diff {rig}`",
        files.join(", ")
    )
}

/// Starts the agent under its lock. Every error rolls back the changes that were made.
fn begin(
    town: &Town,
    prepared: &Prepared<'_>,
    mut existing: Existing,
    began: Instant,
) -> Result<StartedAgent, StartError> {
    let leaving = existing.leaving_processes();
    let is_new_server = !appearance::keys_are_current(&existing.keys_tag);
    if is_new_server {
        check_version(town)?;
    }
    let session = SessionId::new(town.clock().new_id());
    let mut changes = StartChanges::new(town, prepared, session);
    let mut warnings = changes.make_workspace()?;
    prepared.prepare_sandbox(town)?;
    warnings.extend(prepared.permission_warning());
    let on_compact = prepared.role.handoff.on_compact;
    let wiring = hook_installers::wire(town, &prepared.preset, on_compact)?;
    let lineage = Lineage::of(town, changes.sessions(), prepared, session, &mut existing);
    let unapproved = prepared.unapproved_settings(town)?;
    if !unapproved.is_empty() {
        warnings.push(ignored_settings(prepared, &unapproved));
    }
    let mut plan = prepared.plan(town, session, lineage.chain(), &wiring, &unapproved);
    changes.prepare_replay(&mut plan.argv)?;
    warnings.extend(prepared.write_onboarding_answers(town, &plan));
    let process = match &prepared.options.takes_over {
        None => make_and_record(&mut changes, &lineage, &plan, &existing)?,
        Some(before) => {
            record_takeover(town, &mut changes, &lineage, before)?;
            let process = changes.make_container(&plan, &existing)?;
            fault::point(town, "handoff.respawned");
            changes.settle_detached(leaving.as_ref());
            changes.write_pid_file(&process)?;
            let line = process.add_to(Record::about(session.to_string()));
            changes.sessions().add_process(line)?;
            process
        }
    };
    if is_new_server {
        let greeted = appearance::install_keys(town).and_then(|()| other_towns::remember(town));
        warnings.extend(greeted.err().map(|problem| problem.to_string()));
    }
    let noted = usage::note_folder(town, session, &prepared.preset, &plan.env);
    warnings.extend(noted.err().map(|problem| problem.to_string()));
    warnings.extend(changes.show_replay(&process)?);
    let seen = await_ready::bring_up(town, prepared, &plan, &process, &mut warnings)?;
    let state = match plan.is_awaited {
        true => finish(town, prepared, &plan, &process, seen)?,
        false => seen,
    };
    changes.commit();
    signal::wake_after_start(town, prepared.identity, &prepared.container);
    Ok(StartedAgent {
        identity: prepared.identity.clone(),
        container: prepared.container.to_string(),
        session,
        pane: process.pane,
        pid: process.pid,
        harness: prepared.preset.name.clone(),
        work_dir: prepared.work_dir.clone(),
        state,
        elapsed: began.elapsed(),
        warnings,
    })
}

/// Makes the container of a session, then records the session with its process.
fn make_and_record(
    changes: &mut StartChanges<'_>,
    lineage: &Lineage,
    plan: &LaunchPlan,
    existing: &Existing,
) -> Result<AgentProcess, StartError> {
    let process = changes.make_container(plan, existing)?;
    changes.record(lineage, process.add_to(lineage.begin.clone()), None)?;
    changes.write_pid_file(&process)?;
    Ok(process)
}

/// Records a session that takes over, before anything is replaced: a session that hands over must
/// not be mistaken for one that died.
fn record_takeover(
    town: &Town,
    changes: &mut StartChanges<'_>,
    lineage: &Lineage,
    before: &TakeOver,
) -> Result<()> {
    let known = before.known.as_ref();
    if let Some(stray) = known.and_then(|record| record.child_id.as_ref()) {
        // An earlier handoff was interrupted before its session had a process.
        let line = rollback::failed(stray.clone(), town);
        changes.sessions().record(&[line])?;
    }
    changes.record(lineage, lineage.begin.clone(), known)?;
    fault::point(town, "handoff.recorded");
    Ok(())
}

/// Fetches the rigs of these agents if their roles ask for it: each rig once, whatever the number
/// of agents. An unreachable remote is only a warning.
pub fn pre_sync(town: &Town, identities: &[Identity]) -> Vec<String> {
    let mut rigs: Vec<&str> = identities
        .iter()
        .filter_map(|identity| {
            let role = roles::resolve(town, identity.role(), identity.rig());
            // The start reports a role that cannot be read.
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
    Err(prepared.no_folder(town))
}

/// Returns the options for restarting an agent that has a container. It keeps its model unless they
/// name one. If they name no configuration folder, the program keeps the present one, because its
/// conversations are there. The folder and the model of another program are not used.
pub fn options_again(
    town: &Town,
    identity: &Identity,
    options: &StartOptions,
) -> Result<StartOptions> {
    let Some(container) = containers::of_agent(town, identity)? else {
        return Ok(options.clone());
    };
    let before = options_of(town, &container)?;
    let prepared = Prepared::new(town, identity, options)?;
    if before.harness.as_deref() != Some(prepared.preset.name.as_str()) {
        return Ok(options.clone());
    }
    let again = StartOptions {
        model: options.model.clone().or(before.model),
        ..options.clone()
    };
    let is_named = options.config_dir.is_some() || options.account.is_some();
    Ok(match is_named {
        true => again,
        false => StartOptions {
            config_dir: before.config_dir,
            keeps_folder: true,
            ..again
        },
    })
}

/// Fails if tmux lacks a required feature, before anything is made.
fn check_version(town: &Town) -> Result<()> {
    let problem = |error| tmux_problem("gt cannot use this tmux", error);
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
    plan: &LaunchPlan,
    made: &AgentProcess,
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
    ])
    .then_all(containers::pack(name.clone()));
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
    let answer = town.server().run(batch).map_err(|error| {
        tmux_problem(
            &format!("the container {name} disappeared right after its start"),
            error,
        )
    })?;
    wake::monitors(town);
    let mut words = answer.split_whitespace();
    let (dead, source, tagged) = (words.next(), words.next(), words.next());
    if prepared.role.start.verify_survived && dead == Some("1") {
        return Err(await_ready::death(town, prepared, made));
    }
    let told = tagged.filter(|_| source == Some(StateSource::Hook.as_str()));
    Ok(told.and_then(State::from_word).unwrap_or(seen))
}

/// Types the first prompt of a program that does not accept it as an argument.
fn type_prompt(
    town: &Town,
    prepared: &Prepared<'_>,
    made: &AgentProcess,
    prompt: &str,
) -> Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    // Another process may already be delivering a message.
    let queue = MessageQueue::of(town, prepared.identity);
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
                return Err(Problem::failed("its program does not show the typed text"));
            }
            Submission::NotNow(reason, phase) => {
                if phase != Phase::Taken || began.elapsed() > TIMEOUT {
                    return Err(Problem::failed(reason.describe()));
                }
                typist.wait_until_ready(reason, Duration::from_millis(250))?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
