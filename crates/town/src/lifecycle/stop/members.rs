//! Processes of agents: those of their panes, and those that have left their terminal.

use crate::Town;
use crate::base::processes::{self, ProcessHandle};
use crate::terminal::containers::Container;
use gt_core::process::ProcessTable;
use gt_core::session::SessionId;
use gt_tmux::PaneId;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) fn roots(victims: &[Container]) -> BTreeSet<u32> {
    let alive = victims
        .iter()
        .filter(|c| !c.pane().dead && !c.lost_agent_pane());
    alive.map(|container| container.pane().pid).collect()
}

/// Sends TERM, waits for the grace period and sends KILL, to all members at once: those in `before`
/// and, if time has passed since, those in `later`. Returns the killed processes.
pub(super) fn end_members(
    town: &Town,
    victims: &[Container],
    before: &ProcessTable,
    mut later: Option<ProcessTable>,
    grace: Duration,
) -> BTreeSet<u32> {
    let mut killed = BTreeSet::new();
    // Twice: processes that were forked during the first round are found in the second.
    for timeout in [grace, Duration::ZERO] {
        let now = later.as_ref().unwrap_or(before);
        let members = members(town, victims, before, now);
        let handles = processes::hold(now, &members);
        if handles.is_empty() {
            break;
        }
        processes::signal_all(&handles, Signal::TERM);
        let left = processes::wait_all(handles, timeout);
        processes::signal_all(&left, Signal::KILL);
        killed.extend(left.iter().map(ProcessHandle::pid));
        // The next snapshot shows those that are left.
        let _ = processes::wait_all(left, processes::KILL_TIMEOUT);
        later = Some(processes::snapshot());
    }
    killed
}

/// Returns the live processes of these agents: those of their panes, in either snapshot, and strays
/// that carry the variables of their panes.
fn members(
    town: &Town,
    victims: &[Container],
    before: &ProcessTable,
    now: &ProcessTable,
) -> BTreeSet<u32> {
    let mut members = BTreeSet::new();
    for container in victims {
        members.extend(of_pane(container, now));
        let still = |pid: &u32| {
            let started = |table: &ProcessTable| table.get(*pid).map(|process| process.started);
            started(before) == started(now)
        };
        members.extend(of_pane(container, before).into_iter().filter(still));
    }
    members.extend(strays(town, victims, before, now));
    spare(&mut members, now);
    members
}

/// Removes the processes that must not be ended: this process, and a tmux server that the agent has
/// started, which holds panes that are not the agent's.
pub(super) fn spare(members: &mut BTreeSet<u32>, now: &ProcessTable) {
    members.remove(&std::process::id());
    members.retain(|pid| {
        now.get(*pid)
            .is_none_or(|process| !process.name.starts_with("tmux"))
    });
}

/// Returns the processes of the agent's pane, or the remaining ones if the pane is dead.
pub(super) fn of_pane(container: &Container, table: &ProcessTable) -> BTreeSet<u32> {
    let pane = container.pane();
    match (container.lost_agent_pane(), pane.dead) {
        (true, _) => BTreeSet::new(),
        (false, true) => table.left_by(pane.pid),
        (false, false) => table.pane_members(pane.pid),
    }
}

/// Returns processes that left their terminal but still carry the variables of the agent's pane.
/// The session's id alone proves nothing: the user's panes in the container have it too, and so
/// does a tmux server that the agent started, with everything in it.
fn strays(
    town: &Town,
    victims: &[Container],
    before: &ProcessTable,
    now: &ProcessTable,
) -> BTreeSet<u32> {
    let marks: Vec<[String; 3]> = victims
        .iter()
        .filter(|container| !container.lost_agent_pane())
        .filter_map(|container| Some(marks(town, container.session_id()?, container.pane().pane)))
        .collect();
    // No process of an agent is older than its pane's first process.
    let born = |container: &Container| {
        let pane = container.pane();
        let first = before.get(pane.pid).filter(|_| !pane.dead);
        first.map_or(0, |process| process.started)
    };
    let oldest = victims.iter().map(born).min().unwrap_or_default();
    marked(&marks, oldest, now)
}

/// Returns the variables of an agent's pane.
pub(super) fn marks(town: &Town, session: SessionId, pane: PaneId) -> [String; 3] {
    [
        format!("GT_SESSION_UUID={session}"),
        format!("TMUX_PANE={pane}"),
        format!("TMUX={},", town.server().socket_path().display()),
    ]
}

/// Returns the processes that carry such variables and are not older than `oldest`, except the
/// ancestors of this process.
pub(super) fn marked(marks: &[[String; 3]], oldest: u64, now: &ProcessTable) -> BTreeSet<u32> {
    let young = now.iter().filter(|process| process.started >= oldest);
    let young: Vec<u32> = young.map(|process| process.pid).collect();
    let mut strays = processes::with_variables(&young, marks);
    let mut ancestor = Some(std::process::id());
    while let Some(pid) = ancestor {
        strays.remove(&pid);
        ancestor = now
            .get(pid)
            .map(|process| process.parent)
            .filter(|pid| *pid > 1);
    }
    strays
}
