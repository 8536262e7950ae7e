//! Reads the town's containers from tmux: one listing, then the contents of the panes.

use crate::base::time::timestamp;
use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::save::{SavedContainer, SavedPane, SavedWindow, ServerId};
use gt_tmux::{Command, ErrorKind, PaneId, SessionId};

/// Number of panes captured in one call, so that other clients are served in between.
const PORTION: usize = 16;

gt_tmux::query! {
    /// One pane, with its window and the tags of its session.
    struct SavedPaneRow {
        server_pid: u32 = "#{pid}",
        server_started: i64 = "#{start_time}",
        session: SessionId = "#{session_id}",
        session_name: String = "#{session_name}",
        window_index: u32 = "#{window_index}",
        window_name: String = "#{window_name}",
        window_layout: String = "#{window_layout}",
        window_active: bool = "#{window_active}",
        window_zoomed: bool = "#{window_zoomed_flag}",
        window_columns: u32 = "#{window_width}",
        window_rows: u32 = "#{window_height}",
        named_by_tmux: bool = "#{automatic-rename}",
        pane: PaneId = "#{pane_id}",
        index: u32 = "#{pane_index}",
        active: bool = "#{pane_active}",
        dead: bool = "#{pane_dead}",
        died_at: Option<i64> = "#{pane_dead_time}",
        columns: u32 = "#{pane_width}",
        rows: u32 = "#{pane_height}",
        command: String = "#{pane_current_command}",
        title: String = "#{pane_title}",
        folder: String = "#{pane_current_path}",
        tag_town: String = "#{@gt_town}",
        tag_agent: String = "#{@gt_agent}",
        tag_session: String = "#{@gt_session}",
        tag_chain: String = "#{@gt_chain}",
        tag_harness: String = "#{@gt_harness}",
        tag_harness_session: String = "#{@gt_harness_session}",
        tag_pane: Option<PaneId> = "#{@gt_pane}",
        tag_start: String = "#{@gt_start}",
        tag_state: String = "#{@gt_state}",
        tag_auto_respawn: bool = "#{@gt_auto_respawn}",
        tag_window: String = "#{@gt_window}",
        tag_adopted: String = "#{@gt_adopted}",
    }
}

/// Returns the town's containers and their server; `None` if no server runs.
pub(super) fn read_containers(
    town: &Town,
    now: i64,
) -> Result<Option<(ServerId, Vec<SavedContainer>)>> {
    let list = Command::new("list-panes").arg("-a");
    let rows = match town.server().rows::<SavedPaneRow>(list) {
        Ok(rows) => rows,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NoServer | ErrorKind::ServerLost | ErrorKind::NoSuchSession
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(tmux_problem("cannot list the containers", error)),
    };
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let server = ServerId {
        pid: first.server_pid,
        started: first.server_started,
    };
    let ours: Vec<SavedPaneRow> = rows
        .into_iter()
        .filter(|row| row.tag_town == town.root_text())
        .filter(|row| Identity::from_address(&row.tag_agent, town.registry()).is_some())
        // A container without a session has nothing to restore, and our own windows are opened
        // again.
        .filter(|row| !row.tag_session.is_empty() && row.tag_window.is_empty())
        // The other panes beside an adopted program belong to the person.
        .filter(|row| row.tag_adopted.is_empty() || row.tag_pane == Some(row.pane))
        .collect();
    let texts = capture(town, &ours)?;
    Ok(Some((server, group(ours, texts, server, now))))
}

/// Returns the text of each pane; empty for a pane that has gone meanwhile.
fn capture(town: &Town, panes: &[SavedPaneRow]) -> Result<Vec<String>> {
    let lines = town.settings().save.scrollback_lines;
    let command = |row: &SavedPaneRow| {
        Command::new("capture-pane")
            .args(["-p", "-e", "-J"])
            .target(row.pane)
            .args(["-S", &format!("-{lines}")])
    };
    let mut texts = Vec::with_capacity(panes.len());
    for portion in panes.chunks(PORTION) {
        let commands: Vec<Command> = portion.iter().map(command).collect();
        match town.server().run_each(commands) {
            Ok(captured) => texts.extend(captured),
            Err(error) if error.kind() == ErrorKind::NoSuchPane => {
                // The pane that is gone is saved without text.
                let one = |row| town.server().run(command(row)).unwrap_or_default();
                texts.extend(portion.iter().map(one));
            }
            Err(error) => return Err(tmux_problem("cannot read the panes", error)),
        }
    }
    Ok(texts)
}

fn group(
    rows: Vec<SavedPaneRow>,
    texts: Vec<String>,
    server: ServerId,
    now: i64,
) -> Vec<SavedContainer> {
    let mut found: Vec<(SessionId, SavedContainer)> = Vec::new();
    for (row, text) in rows.into_iter().zip(texts) {
        let pane = SavedPane {
            id: row.pane.to_string(),
            index: row.index,
            folder: row.folder,
            command: row.command,
            title: row.title,
            is_agents: row.tag_pane == Some(row.pane),
            active: row.active,
            dead: row.dead,
            dead_for_seconds: row.died_at.filter(|_| row.dead).map(|at| (now - at).max(0)),
            columns: row.columns,
            rows: row.rows,
            text: tidy(&text),
        };
        if found.last().is_none_or(|(id, _)| *id != row.session) {
            let text = |value: String| Some(value).filter(|value| !value.is_empty());
            let container = SavedContainer {
                name: row.session_name,
                agent: row.tag_agent,
                chain: text(row.tag_chain).unwrap_or_else(|| row.tag_session.clone()),
                session: row.tag_session,
                harness: row.tag_harness,
                harness_session: text(row.tag_harness_session),
                start: row.tag_start,
                auto_respawn: row.tag_auto_respawn,
                state: row.tag_state,
                seen_at: timestamp(now),
                server,
                windows: Vec::new(),
            };
            found.push((row.session, container));
        }
        let Some((_, container)) = found.last_mut() else {
            continue;
        };
        let is_its = |window: &SavedWindow| window.index == row.window_index;
        if !container.windows.last().is_some_and(is_its) {
            container.windows.push(SavedWindow {
                index: row.window_index,
                name: row.window_name,
                named_by_tmux: row.named_by_tmux,
                layout: row.window_layout,
                active: row.window_active,
                zoomed: row.window_zoomed,
                columns: row.window_columns,
                rows: row.window_rows,
                panes: Vec::new(),
            });
        }
        if let Some(window) = container.windows.last_mut() {
            window.panes.push(pane);
        }
    }
    found.into_iter().map(|(_, container)| container).collect()
}

/// Removes trailing blanks of lines and screen, which would wrap on a narrower screen.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim_end_matches(' '))
        .collect();
    lines.join("\n").trim_end_matches('\n').to_owned()
}
