//! Stops the turn of a task's agent, to be resumed later: the program keeps running, with its
//! conversation.

use super::site::TaskSite;
use super::{event_of, tag_of, tags, wip};
use crate::base::fault;
use crate::base::lock::FileLock;
use crate::messaging::interrupt::{STOP_TIMEOUT, interrupt};
use crate::messaging::queue::MessageQueue;
use crate::messaging::{nudge, signal};
use crate::records::events::Events;
use crate::terminal::containers::{Container, tmux_problem};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::work::WorkId;
use gt_tmux::Command;
use std::time::Duration;

/// Fault points at which a test can kill the process.
pub const FAULT_POINTS: &[&str] = &[
    "pause.marked",
    "pause.stopped",
    "pause.noted",
    "pause.committed",
];

/// Maximum wait for the typing lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Paused {
    pub id: WorkId,
    pub agent: Identity,
    /// It was busy and was stopped.
    pub interrupted: bool,
    /// It shows a question, which stays open.
    pub asks: bool,
    /// Commit that contains the uncommitted changes.
    pub wip: Option<String>,
    pub warnings: Vec<String>,
}

/// Pauses the agent of a task.
pub fn pause(town: &Town, id: &WorkId, given: Option<&str>) -> Result<Paused> {
    let site = TaskSite::of(town, id)?;
    let _lock = site.lock()?;
    let container = nudge::running(town, &site.agent)?;
    let preset = nudge::preset_of(town, &container)?;
    let before = container.state(Some(&preset)).state;
    // Prevents messages from being typed between the keys.
    let _typing = FileLock::take(
        &MessageQueue::of(town, &site.agent).lock_path(),
        LOCK_TIMEOUT,
    )?;
    let reason = given.unwrap_or("paused by a person");
    // Marked first: otherwise the end of the turn would deliver the next message.
    let is_new = signal::mark_paused(town, &site.agent, reason)?;
    fault::point(town, "pause.marked");
    let stopped = interrupt(town, &container, &preset, before, STOP_TIMEOUT);
    let stopped = match stopped {
        Ok(stopped) => stopped,
        Err(problem) => {
            signal::clear_paused(town, &site.agent)?;
            return Err(problem);
        }
    };
    if let Some(turn) = &stopped.turn {
        set_tag(&site, &container, tags::STOPPED, &turn.message)?;
        let put_back = turn.put_back.as_deref().unwrap_or_default();
        set_tag(&site, &container, tags::PUT_BACK, put_back)?;
    }
    fault::point(town, "pause.stopped");
    let mut warnings = Vec::new();
    let wip = wip::commit(&site, &mut warnings).unwrap_or_else(|problem| {
        let causes = problem.causes().join(": ");
        let words = format!("its changes could not be committed: {problem} {causes}");
        warnings.push(words.trim_end().to_owned());
        None
    });
    if let Some(wip) = &wip {
        set_tag(&site, &container, tags::WIP, wip)?;
    }
    // Marked again: late reports of the stopped turn are compared with this time.
    signal::mark_paused(town, &site.agent, reason)?;
    let interrupted = stopped.turn.is_some();
    if is_new {
        let event = event_of(town, "paused", id, &site.agent)
            .with("reason", given)
            .with("interrupted", interrupted)
            .with("wip", wip.clone());
        Events::of(town).note(vec![event]);
    }
    Ok(Paused {
        id: id.clone(),
        agent: site.agent.clone(),
        interrupted,
        asks: stopped.asks,
        wip,
        warnings,
    })
}

/// Undoes the commit of a pause that a prompt has ended, before the agent continues from it.
pub fn undo_pause_commit(town: &Town, agent: &Identity) -> Result<()> {
    let id = agent.short_name().parse::<WorkId>();
    // A task without a worktree has no commit of a pause.
    let Some(site) = id.ok().and_then(|id| TaskSite::of(town, &id).ok()) else {
        return Ok(());
    };
    if !wip::is_noted(&site) {
        return Ok(());
    }
    // The holder of the lock is pausing or resuming, and handles the commit itself.
    let Some(_lock) = site.try_lock()? else {
        return Ok(());
    };
    let undone = wip::undo(&site)?;
    match (undone, site.container()?) {
        (wip::Undone::Commit(_), Some(container)) => set_tag(&site, &container, tags::WIP, ""),
        _ => Ok(()),
    }
}

pub(super) fn set_tag(
    site: &TaskSite<'_>,
    container: &Container,
    name: &str,
    value: &str,
) -> Result<()> {
    if value.is_empty() && tag_of(site.town, container, name)?.is_empty() {
        return Ok(());
    }
    let set = Command::new("set-option")
        .target(container.id())
        .args([name, value]);
    let done = site.town.server().run(set).map(drop);
    done.map_err(|error| tmux_problem("cannot mark the container", error))
}
