//! Background tasks of a project (`[[background]]` in its `.gt.toml`): one window per task, beside
//! the agent.
//!
//! `task/start_steps.rs` opens the windows. A window closes when its command succeeds and shows the exit
//! code when it fails. Nothing restarts a task; this module only finds failed tasks, for cards and
//! for the event log.

use crate::Town;
use crate::base::lock::FileLock;
use crate::records::events::Events;
use crate::terminal::containers::{Container, PaneRow};
use crate::terminal::windows;
use gt_core::beside::was_ended;
use gt_core::card::{BackgroundState, BackgroundTask};
use gt_core::event::Event;
use gt_core::state::StateSource;

/// Prefix of the names of their windows.
pub(crate) const WINDOW: &str = "task-";

/// Returns the background tasks that run beside an agent or have failed there.
pub(crate) fn of_container(container: &Container) -> Vec<BackgroundTask> {
    let windows = container.own_windows();
    let tasks = windows.filter_map(|row| {
        let name = row.tag_window.strip_prefix(WINDOW)?;
        let state = match row.dead {
            false => BackgroundState::Running,
            true if has_failed(row) => BackgroundState::Failed,
            true => return None,
        };
        Some(BackgroundTask {
            name: name.to_owned(),
            state,
            exit_code: row.exit_status.filter(|_| row.dead),
            signal: signal(row),
        })
    });
    tasks.collect()
}

/// Returns whether this is the pane of a background task that failed by itself.
fn has_failed(row: &PaneRow) -> bool {
    let by_status = row.exit_status.is_some_and(|status| status != 0);
    row.dead
        && row.tag_window.starts_with(WINDOW)
        && (by_status || signal(row).is_some())
        && !was_ended(row.exit_status, row.exit_signal)
}

fn signal(row: &PaneRow) -> Option<i32> {
    row.exit_signal.filter(|signal| *signal != 0)
}

/// Writes the events of all background tasks that failed since the last call by any process. Skips
/// agents that another process is starting or stopping.
pub(crate) fn emit_failures(town: &Town, containers: &[Container]) {
    for container in containers {
        let Some(agent) = container.identity() else {
            continue;
        };
        for row in container.own_windows() {
            let is_task = row.dead && row.tag_window.starts_with(WINDOW) && !row.lost_its_status();
            if !is_task || FileLock::is_held(&town.lock_path(agent)) {
                continue;
            }
            // A task that a person ended is marked too, so that it is not checked again.
            let before = windows::mark_reported(town, row.pane, "failed");
            if before.is_none_or(|before| !before.is_empty()) || !has_failed(row) {
                continue;
            }
            let name = row.tag_window.strip_prefix(WINDOW).unwrap_or_default();
            let event = Event::new("background_failed", agent)
                .with("task", name)
                .with("exit_code", row.exit_status)
                .with("signal", signal(row))
                .known_by(StateSource::Process);
            Events::of(town).note(vec![event]);
        }
    }
}
