//! The windows that gt itself opens beside an agent: background tasks and servers.
//!
//! A window says by a tag of its pane what it is; its name alone may be the user's. It goes
//! with its agent, while panes of the user's own keep a container open.

use crate::containers::{PaneRow, tmux_problem};
use crate::{Result, Town, processes, tmux_hooks};
use gt_core::Problem;
use gt_core::startup::tag;
use gt_tmux::{Batch, Command, ErrorKind, PaneId, SessionName, format};
use std::collections::BTreeSet;
use std::path::Path;

/// The tag of a pane of ours beside the agent's: the name of its window.
pub const TAG: &str = "@gt_window";

/// What becomes of a window whose command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// It closes, unless the command failed.
    StayIfFailed,
    Stay,
}

pub(crate) struct Wish<'a> {
    pub(crate) name: &'a str,
    /// A shell line.
    pub(crate) command: &'a str,
    pub(crate) dir: &'a Path,
    pub(crate) env: &'a [(String, String)],
    pub(crate) after_end: AfterEnd,
    /// More tags of its pane.
    pub(crate) tags: &'a [(&'a str, &'a str)],
}

/// Opens a window, and does in the same call what makes it known.
pub(crate) fn open(
    town: &Town,
    container: &SessionName,
    wish: &Wish<'_>,
    note: Vec<Command>,
) -> Result<PaneId> {
    // Its own name may be that of another window: until it is marked it has one that no
    // other can have.
    let passing = format!("gt-{}", uuid::Uuid::now_v7().simple());
    let at = format!("={container}:={passing}");
    let mut make = Command::new("new-window")
        .arg("-d")
        .target(container.clone())
        .args(["-n", &passing, "-c"])
        .arg(format::escape(&wish.dir.to_string_lossy()));
    for (variable, value) in wish.env {
        make = make.arg("-e").arg(format!("{variable}={value}"));
    }
    let on_pane = |option: &str, value: &str| {
        Command::new("set-option")
            .arg("-p")
            .option("-t", at.clone())
            .args([option, value])
    };
    let remain = match wish.after_end {
        AfterEnd::StayIfFailed => "failed",
        AfterEnd::Stay => "on",
    };
    // Some versions of tmux would not close it, or know how it ended, before another child
    // of theirs ends.
    let await_death = tmux_hooks::loses_deaths(town).then(|| {
        Command::new("run-shell")
            .arg("-b")
            .option("-t", at.clone())
            .arg(tmux_hooks::await_death())
    });
    let batch = Batch::from(vec![
        make.args(["--", "sh", "-c", wish.command]),
        on_pane("remain-on-exit", remain),
        on_pane(TAG, wish.name),
    ])
    .then_all(wish.tags.iter().map(|(tag, value)| on_pane(tag, value)))
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
            .arg(wish.name),
    );
    let problem = |error| tmux_problem(&format!("cannot open the window {}", wish.name), error);
    let output = town.server().run_private(batch).map_err(problem)?;
    output
        .trim()
        .parse()
        .map_err(|_| Problem::failed("tmux did not say which pane it made"))
}

/// Marks the failure of a window's command as told, and returns the mark that it had before.
/// tmux swaps it in one go, so that of several processes one is the first. Returns `None` if
/// the window is gone.
pub(crate) fn mark_told(town: &Town, pane: PaneId, mark: &str) -> Option<String> {
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
    let before = town.server().run(swap).ok()?;
    Some(before.trim().to_owned())
}

/// Ends what runs in these panes and closes them.
pub(crate) fn close(town: &Town, panes: &[&PaneRow]) -> Result<()> {
    if panes.is_empty() {
        return Ok(());
    }
    end_processes(panes);
    let mut batch = Batch::new();
    for row in panes {
        // Each by itself: one may close when its process ends.
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

/// Ends what runs in these panes: TERM, a grace period, KILL.
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
