//! The windows that `gt` itself opens beside an agent: background tasks and servers.
//!
//! A tag on the pane identifies such a window, because a window of the user may have the same name.
//! These windows close when the agent stops; panes of the user keep a container open.

use crate::base::callback::Call;
use crate::base::or_log::OrLog;
use crate::base::processes;
use crate::records::sessions::Sessions;
use crate::terminal::containers::{Container, PaneRow, tmux_problem};
use crate::terminal::tmux_hooks;
use crate::{Result, Town};
use gt_core::sandbox::SandboxLevel;
use gt_core::startup::tag;
use gt_core::{Identity, Problem};
use gt_tmux::{Batch, Command, ErrorKind, PaneId, SessionName, format};
use std::collections::BTreeSet;
use std::path::Path;

/// Tag of a pane beside the agent's that `gt` opened: the name of its window.
pub const TAG: &str = "@gt_window";

/// Behaviour of a window when its command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// Closes the window, unless the command failed.
    StayIfFailed,
    Stay,
}

pub(crate) struct NewWindow<'a> {
    pub(crate) name: &'a str,
    /// A shell line.
    pub(crate) command: &'a str,
    /// Sandbox in which the line runs; `None` if the line needs none or enters its own.
    pub(crate) sandbox: Option<WindowSandbox>,
    pub(crate) dir: &'a Path,
    pub(crate) env: &'a [(String, String)],
    pub(crate) after_end: AfterEnd,
    /// Additional tags of its pane.
    pub(crate) tags: &'a [(&'a str, &'a str)],
}

/// The sandbox of an agent, for a line that runs files which the agent can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowSandbox {
    agent: String,
    level: String,
    harness: String,
}

impl WindowSandbox {
    /// Returns the sandbox of the agent in a container. In a container without an agent, such as the
    /// shell of a task, that of the agent's last session counts.
    pub(crate) fn of(town: &Town, agent: &Identity, container: &Container) -> Result<Option<Self>> {
        let pane = container.pane();
        let (level, harness) = match container.session_id() {
            Some(_) => (pane.tag_sandbox.clone(), pane.tag_harness.clone()),
            None => last_sandbox(town, agent)?,
        };
        // Agents of earlier versions have no tag, and no sandbox.
        let level = SandboxLevel::from_word(&level).unwrap_or_default();
        Ok((level != SandboxLevel::None).then(|| WindowSandbox {
            agent: agent.address(),
            level: level.as_str().to_owned(),
            harness,
        }))
    }

    fn words(&self, town: &Town) -> Vec<String> {
        let [internal, run] = Call::RunAgent.words().map(str::to_owned);
        let gt = town.around().gt.to_string_lossy().into_owned();
        let options = ["--sandbox", &self.level, "--harness", &self.harness, "--"];
        let options = options.map(str::to_owned);
        [
            vec![gt, internal, run, self.agent.clone()],
            options.to_vec(),
        ]
        .concat()
    }
}

/// Returns the sandbox level and the harness of the last session of an agent; empty without one.
pub(crate) fn last_sandbox(town: &Town, agent: &Identity) -> Result<(String, String)> {
    let session = Sessions::of(town).newest_that_came_up(&agent.address())?;
    let Some(session) = session else {
        return Ok((String::new(), String::new()));
    };
    let start = session.start.unwrap_or_default();
    // A session of an earlier version has no options, and no sandbox.
    let options: serde_json::Value = serde_json::from_str(&start).unwrap_or_default();
    let level = options["sandbox"].as_str().unwrap_or_default().to_owned();
    Ok((level, session.harness.unwrap_or_default()))
}

/// Opens a window, and runs the `note` commands in the same call.
pub(crate) fn open(
    town: &Town,
    container: &SessionName,
    window: &NewWindow<'_>,
    note: Vec<Command>,
) -> Result<PaneId> {
    // Another window may have the same name: until the pane is tagged, the window has a unique
    // temporary name.
    let passing = format!("gt-{}", town.clock().new_id().simple());
    let at = format!("={container}:={passing}");
    let mut make = Command::new("new-window")
        .arg("-d")
        .target(container.clone())
        .args(["-n", &passing, "-c"])
        .arg(format::escape(&window.dir.to_string_lossy()));
    for (variable, value) in window.env {
        make = make.arg("-e").arg(format!("{variable}={value}"));
    }
    let on_pane = |option: &str, value: &str| {
        Command::new("set-option")
            .arg("-p")
            .option("-t", at.clone())
            .args([option, value])
    };
    let remain = match window.after_end {
        AfterEnd::StayIfFailed => "failed",
        AfterEnd::Stay => "on",
    };
    // Some versions of tmux do not close the window, or learn its exit status, before another of
    // their children ends.
    let await_death = tmux_hooks::misses_pane_deaths(town).then(|| {
        Command::new("run-shell")
            .arg("-b")
            .option("-t", at.clone())
            .arg(tmux_hooks::await_death())
    });
    let sandbox = window.sandbox.as_ref();
    let words = sandbox
        .map(|sandbox| sandbox.words(town))
        .unwrap_or_default();
    let batch = Batch::from(vec![
        make.arg("--")
            .args(&words)
            .args(["sh", "-c", window.command]),
        on_pane("remain-on-exit", remain),
        on_pane(TAG, window.name),
    ])
    .then_all(window.tags.iter().map(|(tag, value)| on_pane(tag, value)))
    .then_all(note)
    .then_all(await_death)
    .then(
        Command::new("display-message")
            .arg("-p")
            .option("-t", at.clone())
            .arg("#{pane_id}"),
    )
    .then(
        Command::new("rename-window")
            .option("-t", at)
            .arg(window.name),
    );
    let problem = |error| tmux_problem(&format!("cannot open the window {}", window.name), error);
    let output = town.server().run_private(batch).map_err(problem)?;
    output
        .trim()
        .parse()
        .map_err(|_| Problem::failed("tmux did not say which pane it made"))
}

/// Marks the failure of a window's command as reported. Returns the previous mark, or `None` if the
/// window is gone. tmux swaps the mark atomically, so that only one process sees an empty one.
pub(crate) fn mark_reported(town: &Town, pane: PaneId, mark: &str) -> Option<String> {
    let swap = vec![
        Command::new("display-message")
            .arg("-p")
            .target(pane)
            .arg(format!("#{{{}}}", tag::BESIDE_TOLD)),
        Command::new("set-option")
            .arg("-p")
            .target(pane)
            .args([tag::BESIDE_TOLD, mark]),
    ];
    let before = town.server().run(swap).or_debug("the window is gone")?;
    Some(before.trim().to_owned())
}

/// Ends the processes in these panes and closes the panes.
pub(crate) fn close(town: &Town, panes: &[&PaneRow]) -> Result<()> {
    if panes.is_empty() {
        return Ok(());
    }
    end_processes(panes);
    let mut batch = Batch::new();
    for row in panes {
        // One command line per pane: a pane that is already closed must not stop the others.
        batch = batch
            .then(Command::new("kill-pane").target(row.pane))
            .then_line();
    }
    match town.server().run_private(batch) {
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::NoSuchPane
                    | ErrorKind::NoSuchWindow
                    | ErrorKind::NoSuchSession
                    | ErrorKind::NoServer
                    | ErrorKind::ServerLost
            ) =>
        {
            Err(tmux_problem("cannot close a window", error))
        }
        _ => Ok(()),
    }
}

/// Ends the processes in these panes: TERM, a grace period, KILL.
pub(crate) fn end_processes(panes: &[&PaneRow]) {
    if panes.is_empty() {
        return;
    }
    let table = processes::snapshot();
    let members: BTreeSet<u32> = panes
        .iter()
        .flat_map(|row| match row.dead {
            true => table.left_by(row.pid),
            false => table.pane_members(row.pid),
        })
        .collect();
    processes::end_all(processes::hold(&table, &members), processes::GRACE);
}
