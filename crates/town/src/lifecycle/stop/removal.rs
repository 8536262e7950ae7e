//! Removes containers, and keeps the panes of the user.

use crate::terminal::containers::{self, Container, PaneRow, linked, tmux_problem};
use crate::terminal::windows;
use crate::{Result, Town};
use gt_core::startup::tag;
use gt_tmux::{Batch, Command, ErrorKind, PaneId};

pub(super) fn kept_panes(container: &Container) -> usize {
    if container.adopted().is_some() {
        return 0;
    }
    let agents = usize::from(!container.lost_agent_pane());
    container.panes().len() - agents - container.own_windows().count()
}

/// Removes one container, or only the agent's pane if the user has others.
pub fn remove_container(town: &Town, container: &Container) -> Result<()> {
    remove_containers(town, std::slice::from_ref(container))
}

/// Removes one container with everything in it.
pub(crate) fn remove_whole(town: &Town, container: &Container) -> Result<()> {
    if container.adopted().is_some() {
        return remove_container(town, container);
    }
    let kill = Command::new("kill-session").target(container.id());
    town.server()
        .run(kill)
        .map(drop)
        .map_err(|error| tmux_problem("its container could not be removed", error))
}

pub(super) fn remove_containers(town: &Town, victims: &[Container]) -> Result<()> {
    // Windows that gt has opened beside an agent are removed with it.
    let beside: Vec<&PaneRow> = victims.iter().flat_map(Container::own_windows).collect();
    windows::end_processes(&beside);
    let mut batch = Batch::new();
    let (adopted, own): (Vec<_>, Vec<_>) = victims
        .iter()
        .partition(|victim| victim.adopted().is_some());
    for container in adopted {
        linked::release(town, container)?;
        if let Some(identity) = container.identity() {
            linked::forget(town, identity);
        }
    }
    for container in own {
        if kept_panes(container) == 0 {
            batch = batch.then(Command::new("kill-session").target(container.id()));
        } else {
            // The tag of the town stays: without it the name alone would indicate that the agent
            // still runs here.
            for option in [tag::AGENT, tag::SESSION, tag::PANE, tag::STATE] {
                batch = batch.then(
                    Command::new("set-option")
                        .arg("-u")
                        .target(container.id())
                        .arg(option),
                );
            }
            batch = batch.then_all(containers::pack(container.id()));
            let mut ours: Vec<PaneId> = container.own_windows().map(|row| row.pane).collect();
            if !container.lost_agent_pane() {
                ours.push(container.pane().pane);
            }
            for pane in ours {
                // The pane may have closed by itself, because its process has just ended.
                batch = batch
                    .then_line()
                    .then(Command::new("kill-pane").target(pane));
            }
        }
        batch = batch.then_line();
    }
    if batch.is_empty() {
        return Ok(());
    }
    match town.server().run_private(batch) {
        Ok(_) => Ok(()),
        // A container that is already gone is the wanted result.
        Err(error) if is_gone(error.kind()) => Ok(()),
        Err(error) => Err(tmux_problem("its container could not be removed", error)),
    }
}

fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NoServer
            | ErrorKind::ServerLost
            | ErrorKind::NoSuchSession
            | ErrorKind::NoSuchPane
    )
}
