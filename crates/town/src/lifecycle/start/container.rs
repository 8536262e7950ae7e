//! Creates the container of a start.

use super::container_options;
use super::error::StartError;
use super::existing::StartPlace;
use super::prepared::Prepared;
use super::restored::Restored;
use crate::terminal::containers::{self, tmux_problem};
use crate::terminal::{environment, recording, save_schedule, tmux_hooks};
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::record::Record;
use gt_core::startup::{LaunchPlan, tag};
use gt_tmux::{Batch, Command, ErrorKind, PaneId, format};

/// Size of a container before the first client attaches.
pub(crate) const COLUMNS: &str = "200";
pub(crate) const ROWS: &str = "50";

/// The process of an agent that was just started, and its pane.
pub(super) struct AgentProcess {
    pub(super) pane: PaneId,
    pub(super) pid: u32,
    pub(super) server_pid: u32,
    pub(super) tty: String,
}

impl AgentProcess {
    /// Adds the pane and the process to the line of a session.
    pub(super) fn add_to(&self, line: Record) -> Record {
        Record {
            tmux_pid: Some(self.server_pid),
            pane: Some(self.pane.to_string()),
            pid: Some(self.pid),
            ..line
        }
    }
}

/// Creates the container, or puts a process into one whose agent died.
pub(super) fn make(
    town: &Town,
    prepared: &Prepared<'_>,
    plan: &LaunchPlan,
    place: StartPlace,
    applied: &str,
) -> Result<AgentProcess, StartError> {
    let name = &prepared.container;
    let mut batch = Batch::new();
    let is_respawn = prepared.options.respawn_of.is_some();
    let target: gt_tmux::Target = match place {
        StartPlace::New | StartPlace::Window => name.clone().into(),
        StartPlace::Respawn(pane) => pane.into(),
    };
    batch = batch.then_all(process_commands(prepared, plan, &place));
    batch = batch
        .then(
            Command::new("set-option")
                .arg("-p")
                .target(target.clone())
                .args(["remain-on-exit", "on"]),
        )
        .then(
            Command::new("set-option")
                .arg("-F")
                .target(target.clone())
                .args([tag::PANE, "#{pane_id}"]),
        );
    // Clears tags of an earlier session; only a respawn keeps the count of deaths.
    for tag in [tag::STATE_REASON, tag::HARNESS_SESSION] {
        batch = batch.then(prepared.option(tag, ""));
    }
    if !is_respawn {
        batch = batch.then(prepared.option(tag::DEATHS, ""));
    }
    if prepared.options.takes_over.is_none() {
        batch = batch.then_all(tmux_hooks::all(town));
    }
    let is_new = matches!(place, StartPlace::New);
    batch = batch.then_all(container_options::commands(
        town, prepared, plan, is_new, applied,
    ));
    batch = batch.then_all(containers::pack(name.clone()));
    // tmux reads no output of the process before this call is done.
    let before = match place {
        StartPlace::Respawn(pane) => Some(pane),
        StartPlace::New | StartPlace::Window => None,
    };
    batch = batch.then_all(recording::commands(&prepared.role.record, &target, before));
    if tmux_hooks::misses_pane_deaths(town) {
        batch = batch.then(
            Command::new("run-shell")
                .args(["-b", "-d", AWAITED_AFTER_SECONDS])
                .target(target.clone())
                .arg(tmux_hooks::await_death()),
        );
    }
    if !plan.is_awaited {
        // No later step reports that it runs, so the save is requested here.
        batch = batch.then_all(save_schedule::request_command(town));
    }
    batch = batch.then(
        Command::new("display-message")
            .arg("-p")
            .target(target)
            .arg("#{pane_id} #{pane_pid} #{pid} #{pane_tty}"),
    );
    let batch = with_history_limit(town, batch);
    // tmux gives a new process the PATH of the requesting client, whatever the tables say.
    let server = match plan.env.get("PATH") {
        Some(path) => town.server().clone().with_path(path),
        None => town.server().clone(),
    };
    let output = match server.run_private(batch.clone()) {
        // The server ended after its last session, in the moment of this call. Nothing was made.
        Err(error) if is_new && error.kind() == ErrorKind::ServerLost => server.run_private(batch),
        result => result,
    };
    let output = output.map_err(|error| {
        if error.kind() == ErrorKind::Duplicate {
            let problem = Problem::conflict(format!("there is a container {name} already"));
            return StartError::Taken(problem.hint("look with `gt agents --all`"));
        }
        tmux_problem(&format!("cannot make the container {name}"), error).into()
    })?;
    parse_process(&output).ok_or_else(|| {
        let problem = Problem::failed(format!("tmux did not say where the container {name} is"));
        problem.cause(output).into()
    })
}

/// Wraps commands that make a pane, so that it gets the town's history limit.
pub(crate) fn with_history_limit(town: &Town, making: Batch) -> Batch {
    let Some(limit) = town.settings().tmux.history_limit else {
        return making;
    };
    // The limit must be set before the pane is made; the user's limit is restored right after.
    let before = Batch::new()
        .then(Command::new("set-option").args(["-gF", "@gt_history", "#{history-limit}"]))
        .then(Command::new("set-option").args(["-g", "history-limit", &limit.to_string()]))
        .then_line();
    let all = making.commands().cloned().fold(before, Batch::then);
    all.then_line()
        .then(Command::new("set-option").args(["-gF", "history-limit", "#{@gt_history}"]))
        .then(Command::new("set-option").args(["-gu", "@gt_history"]))
}

/// Delay before the wait for a death begins: another process at the moment in which the agent
/// begins would slow down both. tmux itself waits, so this survives `gt`.
const AWAITED_AFTER_SECONDS: &str = "1";

/// Returns the commands that start the process, in exactly this environment.
fn process_commands(
    prepared: &Prepared<'_>,
    plan: &LaunchPlan,
    place: &StartPlace,
) -> Vec<Command> {
    // tmux expands formats in the folder's name.
    let folder = format::escape(&prepared.work_dir.to_string_lossy());
    let name = &prepared.container;
    let argv = plan.argv.iter().cloned();
    let head = match place {
        StartPlace::New => {
            let size = prepared.options.restored.as_ref().and_then(Restored::size);
            let (columns, rows) = size.unwrap_or_else(|| (COLUMNS.to_owned(), ROWS.to_owned()));
            Command::new("new-session")
                .args(["-d", "-x", &columns, "-y", &rows, "-c", &folder])
                .args(["-s", name.as_str(), "-n", prepared.identity.role().as_str()])
        }
        StartPlace::Respawn(pane) => Command::new("respawn-pane")
            .arg("-k")
            .target(*pane)
            .args(["-c", &folder]),
        StartPlace::Window => Command::new("new-window").target(name.clone()).args([
            "-c",
            &folder,
            "-n",
            prepared.identity.role().as_str(),
        ]),
    };
    let variables = plan.env.iter();
    let start = variables.fold(head, |head, (variable, value)| {
        head.arg("-e").arg(format!("{variable}={value}"))
    });
    let start = start.arg("--").args(argv);
    // After a handoff the session does not begin with the screens of the previous one.
    let cleared = match place {
        StartPlace::Respawn(pane) if prepared.options.takes_over.is_some() => {
            Some(Command::new("clear-history").target(*pane))
        }
        _ => None,
    };
    let removals = match place {
        StartPlace::New => environment::removals(name, &plan.removed_env),
        StartPlace::Respawn(_) | StartPlace::Window => Vec::new(),
    };
    cleared.into_iter().chain([start]).chain(removals).collect()
}

pub(super) fn parse_process(output: &str) -> Option<AgentProcess> {
    let line = output.lines().rfind(|line| !line.trim().is_empty())?;
    let mut words = line.split(' ');
    Some(AgentProcess {
        pane: words.next()?.parse().ok()?,
        pid: words.next()?.parse().ok()?,
        server_pid: words.next()?.parse().ok()?,
        tty: words.next()?.to_owned(),
    })
}
