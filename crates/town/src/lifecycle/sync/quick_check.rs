//! A cheap check whether anything has changed at all. Usually nothing has, and this reads much less
//! from tmux than a sync.

use super::{Synced, of_another_town};
use crate::base::processes;
use crate::records::sessions::Sessions;
use crate::terminal::background_tasks;
use crate::terminal::containers::Adopted;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::record::Record;
use gt_tmux::{Command, PaneId, SessionId};
use std::collections::HashMap;

gt_tmux::query! {
    struct ContainerRow {
        session: SessionId = "#{session_id}",
        name: String = "#{session_name}",
        pane: PaneId = "#{pane_id}",
        dead: bool = "#{pane_dead}",
        town: String = "#{@gt_town}",
        agent_session: String = "#{@gt_session}",
        agent_pane: Option<PaneId> = "#{@gt_pane}",
        conversation: String = "#{@gt_harness_session}",
        window: String = "#{@gt_window}",
        failure_told: String = "#{@gt_beside_told}",
        adopted: String = "#{@gt_adopted}",
    }
}

/// Returns the result of a sync if the journal already has everything; `None` if a full sync is
/// needed. `running` are the sessions that the journal has as running on this server.
pub(super) fn all_agrees(
    town: &Town,
    sessions: &Sessions,
    running: &[Record],
) -> Result<Option<Synced>> {
    let listing = Command::new("list-panes").arg("-a");
    // The full sync reports any error.
    let Ok(rows) = town.server().rows::<ContainerRow>(listing) else {
        return Ok(None);
    };
    let open: HashMap<&str, &Record> = running
        .iter()
        .map(|agent_session| (agent_session.id.as_str(), agent_session))
        .collect();
    let (mut alive, mut dead, mut left_alone) = (0, Vec::new(), Vec::new());
    for panes in rows.chunk_by(|a, b| a.session == b.session) {
        let first = &panes[0];
        if first.town.is_empty() {
            // The session may be only named like an agent's.
            if Identity::from_container(&first.name, town.registry()).is_some() {
                return Ok(None);
            }
            continue;
        }
        if first.town != town.root_text() {
            left_alone.push((first.name.clone(), of_another_town(&first.town)));
            continue;
        }
        // A command beside the agent has ended, and its failure was not reported yet.
        let is_untold = |row: &ContainerRow| {
            row.dead
                && row.window.starts_with(background_tasks::WINDOW)
                && row.failure_told.is_empty()
        };
        if panes.iter().any(is_untold) {
            return Ok(None);
        }
        if first.agent_session.is_empty() {
            continue;
        }
        // tmux does not see the end of a program under a person's shell.
        let adopted = Adopted::parse(&first.adopted);
        if adopted.is_some_and(|it| !processes::is_alive(it.pid, &it.birth)) {
            return Ok(None);
        }
        let own = panes
            .iter()
            .find(|row| row.agent_pane.is_none_or(|pane| pane == row.pane));
        match (own, open.get(first.agent_session.as_str())) {
            (Some(row), Some(agent_session)) if !row.dead && agrees(row, agent_session) => {
                alive += 1;
            }
            (Some(row), None) if row.dead => dead.push(row.agent_session.as_str()),
            _ => return Ok(None),
        }
    }
    let is_complete = alive == running.len();
    let known = sessions.find_known(dead.iter().copied())?;
    Ok((is_complete && known.len() == dead.len()).then(|| Synced {
        unchanged: alive + dead.len(),
        left_alone,
        ..Synced::default()
    }))
}

fn agrees(row: &ContainerRow, agent_session: &Record) -> bool {
    let conversation = agent_session.harness_session_id.as_deref();
    agent_session.tmux_session.as_deref() == Some(&row.name)
        && (row.conversation.is_empty() || conversation == Some(&row.conversation))
}
