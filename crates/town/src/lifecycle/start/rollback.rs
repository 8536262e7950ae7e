//! Makes the changes of a start, and rolls them back if it fails.
//!
//! [`StartChanges`] makes each change and remembers it. If it is dropped before
//! [`commit`](StartChanges::commit), it rolls back these changes and nothing else, so that every
//! error return of a start is safe. Failures of the rollback are logged; the caller reports the
//! original problem.

use super::container::{self, AgentProcess};
use super::error::StartError;
use super::existing::{self, Existing, StartPlace};
use super::lineage::Lineage;
use super::prepared::Prepared;
use super::restored::Replay;
use crate::base::or_log::OrLog;
use crate::base::wake;
use crate::lifecycle::stop::LeavingProcesses;
use crate::lifecycle::{epilogue, stop};
use crate::records::sessions::{SessionEnd, Sessions};
use crate::repo::workspace::{self, RemovalError};
use crate::terminal::containers;
use crate::terminal::{pidfile, save_schedule};
use crate::{Result, Town};
use gt_core::record::{Outcome, Record};
use gt_core::session::SessionId;
use gt_core::startup::LaunchPlan;
use std::time::Duration;

/// The part of the container that a start has made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContainerChange {
    None,
    /// The agent's pane, or the process in it.
    Pane,
    Whole,
}

/// The changes of one start so far.
pub(super) struct StartChanges<'a> {
    town: &'a Town,
    prepared: &'a Prepared<'a>,
    session: SessionId,
    sessions: Sessions,
    has_new_worktree: bool,
    container: ContainerChange,
    /// The journal has this session.
    is_recorded: bool,
    /// The process in the PID file.
    pid_file: Option<u32>,
    /// The text that a restored pane shows.
    replay: Option<Replay<'a>>,
    /// The replaced session, whose epilogue is not written yet.
    ended: Option<String>,
    is_committed: bool,
}

impl<'a> StartChanges<'a> {
    pub(super) fn new(town: &'a Town, prepared: &'a Prepared<'a>, session: SessionId) -> Self {
        StartChanges {
            town,
            prepared,
            session,
            sessions: Sessions::of(town),
            has_new_worktree: false,
            container: ContainerChange::None,
            is_recorded: false,
            pid_file: None,
            replay: None,
            ended: None,
            is_committed: false,
        }
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Ensures that the agent's folder exists. Returns warnings.
    pub(super) fn make_workspace(&mut self) -> Result<Vec<String>> {
        let prepared = self.prepared;
        let is_worktree = workspace::is_worktree(prepared.identity.role());
        let own_folder = prepared.options.work_dir.is_none();
        let makes_worktree = own_folder && is_worktree && !prepared.work_dir.exists();
        let warnings = match own_folder && (prepared.options.create || !is_worktree) {
            true => workspace::ensure(self.town, prepared.identity, &prepared.work_dir)?,
            false => Vec::new(),
        };
        if !prepared.work_dir.is_dir() {
            return Err(prepared.no_folder(self.town));
        }
        self.has_new_worktree = makes_worktree;
        Ok(warnings)
    }

    /// Puts the replay of the old text before the program, if the start restores an agent.
    pub(super) fn prepare_replay(&mut self, argv: &mut Vec<String>) -> Result<()> {
        self.replay = Replay::prepare(self.town, self.prepared, self.session, argv)?;
        Ok(())
    }

    /// Writes to the journal that the session has begun, which session it continues, and that the
    /// session it replaces has ended.
    pub(super) fn record(
        &mut self,
        lineage: &Lineage,
        begin: Record,
        known: Option<&Record>,
    ) -> Result<()> {
        let lines = lineage.lines(begin, self.town.clock());
        match known {
            Some(known) => self.sessions.record_known(&lines, known)?,
            None => self.sessions.record(&lines)?,
        }
        self.is_recorded = true;
        self.ended = lineage.previous.as_ref().map(|before| before.id.clone());
        Ok(())
    }

    /// Creates the container, or puts the process into the existing one.
    pub(super) fn make_container(
        &mut self,
        plan: &LaunchPlan,
        existing: &Existing,
    ) -> Result<AgentProcess, StartError> {
        // Even a failed call of tmux may have created a part of the container.
        self.container = ContainerChange::Pane;
        let name = self.prepared.container.as_str();
        let place = match &existing.given_back {
            Some(container) => existing::release_adopted(self.town, name, container)?,
            None => existing.place,
        };
        if place == StartPlace::New {
            self.container = ContainerChange::Whole;
        }
        let process =
            container::make(self.town, self.prepared, plan, place, &existing.options_tag)?;
        // tmux sends no notification when a pane gets another process.
        wake::monitors(self.town);
        Ok(process)
    }

    /// Writes the PID file by which the agent's process is found if its container is lost.
    pub(super) fn write_pid_file(&mut self, process: &AgentProcess) -> Result<()> {
        let (identity, container) = (self.prepared.identity, self.prepared.container.as_str());
        pidfile::write_agent(self.town, identity, container, process.pid)?;
        if self.prepared.role.start.track_pid {
            pidfile::write(self.town, self.prepared.container.as_str(), process.pid)?;
            self.pid_file = Some(process.pid);
        }
        Ok(())
    }

    /// Ends the processes that the replaced session left and writes its epilogue, in a detached
    /// process: a handoff waits neither for those processes nor for git. It begins as soon as the
    /// pane has its new process, and survives this process.
    pub(super) fn settle_detached(&mut self, leaving: Option<&LeavingProcesses>) {
        if let Some(ended) = self.ended.take() {
            let leaving = leaving.map(LeavingProcesses::to_word);
            epilogue::write_detached(self.town, &ended, leaving.as_deref());
        }
    }

    /// Shows the saved text in the pane of a restored agent. Returns a warning if the windows
    /// beside it could not be restored.
    pub(super) fn show_replay(&self, process: &AgentProcess) -> Result<Option<String>> {
        let is_new = self.container == ContainerChange::Whole;
        match &self.replay {
            Some(replay) => replay.show(self.town, process, is_new),
            None => Ok(None),
        }
    }

    /// Keeps the changes: the agent runs.
    pub(super) fn commit(mut self) {
        self.is_committed = true;
    }

    fn roll_back(&mut self) {
        let (town, prepared) = (self.town, self.prepared);
        if self.container != ContainerChange::None {
            save_schedule::request(town);
        }
        if self.is_recorded {
            // If this fails, the next sync records the end.
            let recorded = self
                .sessions
                .record(&[failed(self.session.to_string(), town)]);
            recorded.or_warn("the end of a failed start is not recorded");
        }
        if self.container != ContainerChange::None && !prepared.options.keep_container {
            self.remove_container();
            if let Some(pid) = self.pid_file {
                // A file that stays only makes the next `gt doctor` check it.
                let _ = pidfile::remove_of(town, prepared.container.as_str(), pid);
            }
        }
        if self.is_recorded {
            epilogue::write(town, &self.sessions, &[self.session.to_string()]);
        }
        // Dropped only after the container is gone: without the file, its process would start the
        // program.
        drop(self.replay.take());
        if self.has_new_worktree {
            match workspace::remove(town, prepared.identity, &prepared.work_dir, false) {
                // A worktree that has work in it stays.
                Ok(_) | Err(RemovalError::Unsaved(_)) => {}
                Err(error) => {
                    let dir = prepared.work_dir.display();
                    tracing::warn!("the worktree {dir} stays: {}", error.problem().line());
                }
            }
        }
    }

    /// Removes the part of the container that this start created. The container may also hold panes
    /// of the user, or belong to another session by now.
    fn remove_container(&self) {
        let (town, name) = (self.town, self.prepared.container.as_str());
        let left = format!("the container {name} is left");
        let found = containers::find(town, name).or_warn(&left).flatten();
        let is_ours =
            |container: &containers::Container| container.session_id() == Some(self.session);
        let Some(container) = found.filter(is_ours) else {
            return;
        };
        let all = std::slice::from_ref(&container);
        stop::end_processes(town, all, Duration::from_millis(500));
        // The panes beside a restored agent were restored by this start.
        let is_whole = self.replay.is_some() && self.container == ContainerChange::Whole;
        let removed = match is_whole {
            true => stop::remove_whole(town, &container),
            false => stop::remove_container(town, &container),
        };
        removed.or_warn(&left);
    }
}

impl Drop for StartChanges<'_> {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            epilogue::write(self.town, &self.sessions, &[ended]);
        }
        if !self.is_committed {
            self.roll_back();
        }
    }
}

/// Returns the line that ends a session whose start failed.
pub(super) fn failed(session: String, town: &Town) -> Record {
    Record {
        failed_start: Some(true),
        ..Sessions::ending(session, SessionEnd::of(Outcome::Crash), town.clock())
    }
}
