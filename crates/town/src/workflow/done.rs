//! Finishes a piece of work: checks it, pushes it, queues it, reports it and ends the session.
//!
//! The commit point is one transaction (`Work::finish`): it queues the branch, empties the hook and
//! sets the item's status. Every step before it can be retried. Every step after it is idempotent:
//! the next `gt done` completes a run that was killed. The end of the session comes last, because
//! it ends the agent that runs `gt done`.

mod worktree;

use crate::base::fault;
use crate::lifecycle::stop::{self, StopOptions};
use crate::messaging::escalate::{self, NewEscalation};
use crate::messaging::signal;
use crate::records::events::Events;
use crate::records::items::{Finish, FinishedWork, Work};
use crate::repo::workspace;
use crate::repo::workspace::submodules;
use crate::work::checkpoint::{self, running_session};
use crate::work::molecule;
use crate::workflow::merge::{self, background};
use crate::{Result, Town};
use gt_core::escalation::Severity;
use gt_core::merge::{DoneStatus, list_some};
use gt_core::record::Outcome;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role, mail};
use std::path::{Path, PathBuf};
use worktree::WorktreeSnapshot;

/// Fault points at which a test kills `gt done`, each named after the step just completed.
pub const FAULT_POINTS: &[&str] = &[
    "done.checked",
    "done.pushed",
    "done.queued",
    "done.told",
    "stop.remembered",
    "done.stopped",
];

/// Maximum number of files that an error lists.
const MAX_FILES: usize = 10;

#[derive(Clone, Debug)]
pub struct DoneOptions {
    pub leaving: DoneStatus,
    /// Message for the agent that takes over the work.
    pub message: Option<String>,
    pub push: bool,
    /// Finish despite uncommitted changes; they are saved under a ref.
    pub force: bool,
    /// End the session of an agent that would otherwise keep running.
    pub exit: bool,
}

/// Result of [`done`].
#[derive(Clone, Debug)]
pub struct Done {
    pub finished: FinishedWork,
    /// An earlier `gt done` had already committed the transaction.
    pub is_resumed: bool,
    pub commit: Option<String>,
    pub is_pushed: bool,
    /// Ref under which uncommitted changes were saved.
    pub saved: Option<String>,
    /// Whether the caller has to end the session.
    pub ends: bool,
    /// Log file of the merge queue, if this call started it.
    pub queue_log: Option<PathBuf>,
    pub warnings: Vec<String>,
}

/// Submits the work of an agent. The caller ends its session afterwards, with [`end`].
pub fn done(town: &Town, agent: &Identity, options: &DoneOptions) -> Result<Done> {
    let work = Work::of(town);
    let address = agent.address();
    let session = running_session(town, agent)?.map(|session| session.id);
    let hooked = work.hooked(&address)?.map(|hooked| hooked.item);
    // A message on the hook is not work that can be finished.
    let hooked = hooked.filter(|item| item.kind != mail::KIND);
    let hooked = hooked.map(|item| item.id);
    let ends = ends(agent, options);
    let begun = work.finished(&address)?.filter(|begun| !begun.is_ended);
    // A session that has submitted its work ends, even if its agent got new work since.
    let is_leaving =
        |begun: &FinishedWork| ends && begun.session.is_some() && begun.session == session;
    if let Some(finished) = begun.filter(|begun| hooked.is_none() || is_leaving(begun)) {
        run_later_steps(town, agent, &finished, options)?;
        let mut warnings = Vec::new();
        let queue_log = start_queue(town, &finished, &mut warnings);
        return Ok(Done {
            finished,
            is_resumed: true,
            commit: None,
            is_pushed: false,
            saved: None,
            ends,
            queue_log,
            warnings,
        });
    }
    let mut warnings = Vec::new();
    let state = WorktreeSnapshot::of(town, agent, hooked.as_ref(), options.leaving)?;
    let saved = check(town, agent, state.as_ref(), hooked.as_ref(), options)?;
    fault::point(town, "done.checked");
    let mut is_pushed = false;
    if let Some(state) = state.as_ref().filter(|state| state.commits > 0) {
        if let Some(item) = &hooked {
            state.keep_commit(town, item)?;
        }
        if options.push {
            match state.push(town, agent) {
                Ok(pushed) => is_pushed = pushed,
                Err(problem) => {
                    warnings.push(format!("{problem}: {}", problem.causes().join(": ")));
                }
            }
        }
    }
    fault::point(town, "done.pushed");
    let branch = state.as_ref().and_then(|state| state.branch.as_deref());
    let note = options
        .leaving
        .note(&address, branch, options.message.as_deref());
    let handed = state
        .as_ref()
        .filter(|_| options.leaving == DoneStatus::Completed)
        .and_then(WorktreeSnapshot::handed);
    if let Some(handed) = &handed {
        background::request(town, &handed.rig);
    }
    let (finished, left) = work.finish(&Finish {
        agent: &address,
        session: session.as_deref(),
        item: hooked.as_ref(),
        leaving: options.leaving,
        branch,
        note: note.as_deref(),
        handed: handed.as_ref(),
        begins_anew: agent.role() == Role::Polecat,
    })?;
    fault::point(town, "done.queued");
    // First: another process may have taken the request before the branch was queued.
    let queue_log = start_queue(town, &finished, &mut warnings);
    if let Some(left) = left {
        molecule::emit_left(town, agent, left)?;
    }
    run_later_steps(town, agent, &finished, options)?;
    Ok(Done {
        finished,
        is_resumed: false,
        commit: state.map(|state| state.commit),
        is_pushed,
        saved,
        ends,
        queue_log,
        warnings,
    })
}

/// Starts the merge queue for the submitted branch. A failure is only a warning, because the branch
/// is already queued.
fn start_queue(
    town: &Town,
    finished: &FinishedWork,
    warnings: &mut Vec<String>,
) -> Option<PathBuf> {
    let id = finished.merge.as_ref()?;
    let merge = Work::of(town).merge(id);
    match merge.and_then(|merge| background::start(town, &merge.rig)) {
        Ok(log) => log,
        Err(problem) => {
            warnings.push(problem.to_string());
            None
        }
    }
}

/// Returns whether the agent's session ends with the work.
fn ends(agent: &Identity, options: &DoneOptions) -> bool {
    options.exit || matches!(agent.role(), Role::Polecat | Role::Dog)
}

/// Ends the session and the container of an agent that has submitted its work, or records that the
/// agent keeps running.
pub fn end(town: &Town, agent: &Identity, ends: bool) -> Result<()> {
    if ends {
        let options = StopOptions {
            outcome: Some(Outcome::Done),
            ..StopOptions::default()
        };
        stop::stop_one(town, agent, options)?;
        fault::point(town, "done.stopped");
    }
    Work::of(town).finish_is_ended(&agent.address())
}

/// Runs the steps that follow the committed transaction. Idempotent.
fn run_later_steps(
    town: &Town,
    agent: &Identity,
    finished: &FinishedWork,
    options: &DoneOptions,
) -> Result<()> {
    if finished.leaving == DoneStatus::Completed {
        checkpoint::clear(town, agent)?;
    }
    emit(town, finished, options.message.as_deref())?;
    if finished.leaving == DoneStatus::Completed && !ends(agent, options) {
        let what = finished.item.as_ref().map(WorkId::to_string);
        let reason = what.map_or_else(
            || "has nothing left to do".to_owned(),
            |item| format!("has handed in {item}"),
        );
        // Only the displayed state depends on this; the work is already submitted.
        let _ = signal::mark_done(town, agent, &reason);
    }
    fault::point(town, "done.told");
    Ok(())
}

fn emit(town: &Town, finished: &FinishedWork, message: Option<&str>) -> Result<()> {
    let kind = match finished.leaving {
        DoneStatus::Completed => "done",
        DoneStatus::Escalated => "escalation_raised",
        DoneStatus::Deferred => "unhook",
    };
    let Some(item) = &finished.item else {
        return Ok(());
    };
    let event = town
        .event_at(kind, &finished.agent)
        .with("bead", item.to_string())
        .with("status", finished.leaving.as_str())
        .with("branch", finished.branch.clone())
        .with("merge", finished.merge.as_ref().map(WorkId::to_string))
        .with("reason", message.map(str::to_owned));
    let work = Work::of(town);
    if finished.leaving == DoneStatus::Escalated {
        let message = match message {
            Some(message) => message.to_owned(),
            None => work.get(item)?.title,
        };
        let new = NewEscalation {
            severity: Severity::Medium,
            message,
            source: "done",
            item: Some(item.clone()),
            agent: Some(finished.agent.clone()),
            key: Some(format!("done:{item}")),
        };
        escalate::raise_with(town, &new, event)?;
        return Ok(());
    }
    Events::of(town).note(vec![event]);
    // A merge whose repairs ended without changes too often is escalated.
    let is_empty = finished.leaving == DoneStatus::Completed && finished.merge.is_none();
    if is_empty && let Some(merge) = work.merge_that_needs_help(item)? {
        let event = town.event_at("escalation_raised", &finished.agent);
        merge::escalate(town, &merge, event)?;
    }
    Ok(())
}

/// Refuses work that would be lost or cannot be merged. Returns the ref under which uncommitted
/// changes were saved.
fn check(
    town: &Town,
    agent: &Identity,
    state: Option<&WorktreeSnapshot<'_>>,
    item: Option<&WorkId>,
    options: &DoneOptions,
) -> Result<Option<String>> {
    let completes = options.leaving == DoneStatus::Completed;
    let has_commits = state.is_some_and(|state| state.commits > 0);
    let needs_item = match options.leaving {
        DoneStatus::Completed => has_commits,
        DoneStatus::Escalated => true,
        DoneStatus::Deferred => false,
    };
    if item.is_none() && needs_item {
        return Err(
            Problem::conflict(format!("nothing is on the hook of {agent}"))
                .hint("`gt work create TITLE` makes an item, `gt hook ITEM` takes it up")
                .hint("`gt done --status deferred` leaves everything where it is"),
        );
    }
    let (Some(state), true) = (state, completes) else {
        return Ok(None);
    };
    state.check_whole()?;
    if has_commits && state.branch.is_none() {
        return Err(Problem::conflict(format!(
            "{} is on no branch, and has commits that exist nowhere else",
            state.dir.display()
        ))
        .hint("`git switch -c NAME` puts them on one"));
    }
    if has_commits && agent.role() == Role::Task {
        state.check_pause(town, agent)?;
    }
    if let Some(item) = item {
        state.check_own_branch(agent, item)?;
    }
    if has_commits && !options.force {
        check_submodules(town, &state.dir, &state.commit, &state.base.tip()?)?;
    }
    if state.changed.is_empty() {
        return Ok(None);
    }
    if options.force {
        let saved = workspace::save_uncommitted(town, agent, &state.dir)?;
        if saved.is_some() && agent.role() == Role::Polecat {
            // The next item could not be assigned to a dirty worktree.
            workspace::clean(town, &state.dir)?;
        }
        return Ok(saved);
    }
    let count = state.changed.len();
    let what = match count {
        1 => "1 changed file is".to_owned(),
        count => format!("{count} changed files are"),
    };
    let mut problem = Problem::conflict(format!("{what} not committed"));
    for file in state.changed.iter().take(MAX_FILES) {
        problem = problem.cause(file.clone());
    }
    if count > MAX_FILES {
        problem = problem.cause(format!("and {} more", count - MAX_FILES));
    }
    Err(problem
        .hint("commit what belongs to the work, and remove the rest")
        .hint("`--force` keeps them under refs/gt/saved/ and continues"))
}

/// Refuses a commit that points to a submodule commit which exists in no other repository: no other
/// checkout could fetch it.
pub(crate) fn check_submodules(town: &Town, dir: &Path, commit: &str, base: &str) -> Result<()> {
    let stranded = submodules::unpushed(town, dir, commit, base)?;
    let Some(first) = stranded.first() else {
        return Ok(());
    };
    Err(Problem::conflict(format!(
        "the work points to commits that exist nowhere else, inside {}",
        list_some(&stranded)
    ))
    .hint(format!(
        "push them there, such as with `git -C {} push origin HEAD:BRANCH`",
        gt_core::shell::quote(first)
    )))
}

#[cfg(test)]
mod tests;
