//! Tracks the pane of an adopted program when the person moves it to another window.
//!
//! The pane keeps its id on its server. `break-pane`, `join-pane` and `move-pane` take it out of
//! the window that the container shows, and the container ends with its last window. The note of
//! the adoption has the data to link the pane's new window into the container, or to recreate the
//! container.

use super::linked::{LOCK_PATH, make_container};
use super::{Adopted, Container, tmux_problem};
use crate::base::lock::FileLock;
use crate::base::processes;
use crate::records::sessions::Sessions;
use crate::terminal::adopted::AdoptionNote;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::startup::tag;
use gt_tmux::{Command, ErrorKind, PaneId, SessionName, WindowId};

gt_tmux::query! {
    struct PaneOfWindow {
        pane: PaneId = "#{pane_id}",
        window: WindowId = "#{window_id}",
        pid: u32 = "#{pane_pid}",
    }
}

/// Repairs the containers of adopted agents whose panes were moved. Returns whether any was moved,
/// so that the caller reads the containers again. Lists one folder if there are no adopted agents,
/// and calls tmux only if a pane is not in its place.
pub(super) fn follow_moved(town: &Town, containers: &[Container]) -> bool {
    let socket = town.server().socket_path();
    let mut has_moved = false;
    for note in AdoptionNote::all(town) {
        if note.socket != socket || !note.program_runs() {
            continue;
        }
        let Some(identity) = Identity::from_address(&note.agent, town.registry()) else {
            continue;
        };
        let mut all = containers.iter();
        let own = all.find(|container| container.identity() == Some(&identity));
        if own.is_some_and(|own| !own.lost_agent_pane()) {
            continue;
        }
        // If the lock is held, an adoption or a release is running, which updates the container.
        let lock = FileLock::try_take(&town.runtime_dir().join(LOCK_PATH));
        if let Ok(Some(_lock)) = lock {
            // If the repair fails, the container is listed as it is.
            has_moved |= follow(town, &identity, note, own).unwrap_or(false);
        }
    }
    has_moved
}

/// Returns the window of the adopted pane, if it differs from the recorded window.
pub(crate) fn moved_to(home: &Town, note: &AdoptionNote) -> Result<Option<WindowId>> {
    let Some(pane) = note.pane() else {
        return Ok(None);
    };
    let list = Command::new("list-panes").target(pane);
    let rows = match home.server().rows::<PaneOfWindow>(list) {
        Ok(rows) => rows,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NoServer | ErrorKind::NoSuchPane | ErrorKind::NoSuchWindow
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(tmux_problem("cannot find the pane", error)),
    };
    let found = rows.into_iter().find(|row| row.pane == pane);
    // A restarted server counts its panes from 0 again, so the process must match too.
    let is_its = |row: &PaneOfWindow| {
        let tree = processes::trees(&[row.pid]).descendants(row.pid);
        row.pid == note.pid || tree.contains(&note.pid)
    };
    let window = found.filter(is_its).map(|row| row.window);
    Ok(window.filter(|window| note.window != window.to_string()))
}

fn follow(
    town: &Town,
    identity: &Identity,
    mut note: AdoptionNote,
    container: Option<&Container>,
) -> Result<bool> {
    let (Some(window), Some(pane)) = (moved_to(town, &note)?, note.pane()) else {
        return Ok(false);
    };
    match container {
        Some(container) => show(town, container, pane)?,
        None => make_again(town, &note, pane)?,
    }
    note.window = window.to_string();
    note.write(town, identity)?;
    Ok(true)
}

/// Shows the pane's new window in the container and removes the old window.
fn show(town: &Town, container: &Container, pane: PaneId) -> Result<()> {
    let link = Command::new("link-window").args(["-d", "-s", &pane.to_string()]);
    let link = link.target(container.id());
    town.server()
        .run(link)
        .map_err(|error| tmux_problem("cannot show the pane in its container", error))?;
    if container.adopted().is_some_and(|adopted| adopted.is_linked) {
        let mut windows: Vec<WindowId> = container.panes().iter().map(|row| row.window).collect();
        windows.dedup();
        for window in windows {
            let target = format!("{}:{window}", container.id());
            // tmux refuses this for a window that no other session shows: then it stays.
            let _ = town
                .server()
                .run(Command::new("unlink-window").args(["-t", &target]));
        }
    }
    Ok(())
}

/// Recreates a container that ended with its last window.
fn make_again(town: &Town, note: &AdoptionNote, pane: PaneId) -> Result<()> {
    let name = SessionName::try_from(note.container.as_str())
        .map_err(|error| gt_core::Problem::usage(error.to_string()))?;
    let known = Sessions::of(town).in_journal([note.session.as_str()].into_iter())?;
    let conversation = known
        .get(&note.session)
        .and_then(|session| session.harness_session_id.clone());
    let adopted = Adopted {
        pid: note.pid,
        birth: note.birth.clone(),
        is_linked: true,
    };
    let tags = note.tags.iter().map(|(option, value)| {
        let value = match (option.as_str(), &conversation) {
            (tag::ADOPTED, _) => adopted.to_tag(),
            (tag::HARNESS_SESSION, Some(id)) => id.clone(),
            _ => value.clone(),
        };
        (option.clone(), value)
    });
    make_container(town, &name, pane, &tags.collect::<Vec<_>>())
}
