//! The windows that `gt` itself opens beside an agent: background tasks and servers.
//!
//! A tag on the pane identifies such a window, because a window of the user may have the same name.
//! These windows close when the agent stops; panes of the user keep a container open.

use crate::base::or_log::OrLog;
use crate::base::processes;
use crate::terminal::containers::{PaneRow, tmux_problem};
use crate::terminal::tmux_hooks;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::startup::tag;
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
    pub(crate) dir: &'a Path,
    pub(crate) env: &'a [(String, String)],
    pub(crate) after_end: AfterEnd,
    /// Additional tags of its pane.
    pub(crate) tags: &'a [(&'a str, &'a str)],
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
    let batch = Batch::from(vec![
        make.args(["--", "sh", "-c", window.command]),
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
