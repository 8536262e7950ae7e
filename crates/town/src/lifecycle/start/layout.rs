//! Recreates the user's own windows and panes beside a restored agent.
//!
//! Each pane gets a shell in the same folder, with the saved text. The program that ran there is
//! only named, not restarted. Then sizes, active panes and zoom are restored. The agent's own
//! program starts after this.

use super::restored::{self, NextProgram, displayable, note};
use crate::terminal::containers::tmux_problem;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::save::{SavedContainer, SavedPane, SavedWindow, is_layout};
use gt_tmux::{Command, PaneId, format};

/// Recreates the windows of a saved container around the restored agent.
pub(super) fn restore(town: &Town, saved: &SavedContainer, agent: PaneId) -> Result<()> {
    let Some((agents, _)) = saved.agents_pane() else {
        return Ok(());
    };
    let room = Room::of(town, saved, agent)?;
    let mut active = None;
    // The agent's own window comes first: it may have to make room for the others.
    room.place(agents)?;
    for window in &saved.windows {
        let panes = match window.index == agents.index {
            true => room.fill(window)?,
            false => room.open(window)?,
        };
        room.arrange(window, &panes)?;
        if window.active {
            active = panes.first().copied();
        }
    }
    if let Some(pane) = active.filter(|_| saved.windows.len() > 1) {
        room.run(Command::new("select-window").target(pane))?;
    }
    Ok(())
}

/// The container that the windows are created in.
struct Room<'a> {
    town: &'a Town,
    saved: &'a SavedContainer,
    agent: PaneId,
    /// The session's id, which is exact regardless of its name.
    session: String,
    window_index: String,
    shell: String,
}

impl<'a> Room<'a> {
    fn of(town: &'a Town, saved: &'a SavedContainer, agent: PaneId) -> Result<Self> {
        let facts = run(
            town,
            Command::new("display-message")
                .arg("-p")
                .target(agent)
                .arg("#{session_id}\n#{window_index}\n#{default-shell}"),
        )?;
        let mut facts = facts.lines().map(str::to_owned);
        let mut next = || facts.next().unwrap_or_default();
        Ok(Room {
            town,
            saved,
            agent,
            session: next(),
            window_index: next(),
            shell: next(),
        })
    }

    fn run(&self, command: Command) -> Result<String> {
        run(self.town, command)
    }

    fn at(&self, index: u32) -> String {
        format!("{}:{index}", self.session)
    }

    /// Gives the agent's window its saved index and name.
    fn place(&self, window: &SavedWindow) -> Result<()> {
        if self.window_index != window.index.to_string() {
            let from = self.agent.to_string();
            self.run(
                Command::new("move-window")
                    .option("-s", from)
                    .option("-t", self.at(window.index)),
            )?;
        }
        if window.named_by_tmux {
            return Ok(());
        }
        self.run(
            Command::new("rename-window")
                .target(self.agent)
                .arg(format::escape(&window.name)),
        )
        .map(drop)
    }

    /// Creates the panes beside the agent's, in their order.
    fn fill(&self, window: &SavedWindow) -> Result<Vec<PaneId>> {
        let mut panes = Vec::new();
        let mut after_agent = false;
        for pane in &window.panes {
            if pane.is_agents {
                after_agent = true;
                panes.push(self.agent);
                continue;
            }
            let neighbour = panes.last().copied().unwrap_or(self.agent);
            let (place, neighbour) = match after_agent {
                true => ("-v", neighbour),
                // Each is inserted right before the agent's pane, and so after the earlier ones.
                false => ("-bv", self.agent),
            };
            panes.push(self.split(pane, place, neighbour)?);
        }
        Ok(panes)
    }

    /// Creates a window of the user's own.
    fn open(&self, window: &SavedWindow) -> Result<Vec<PaneId>> {
        let Some((first, others)) = window.panes.split_first() else {
            return Ok(Vec::new());
        };
        let mut command = Command::new("new-window")
            .args(["-d", "-P", "-F", "#{pane_id}"])
            .option("-t", self.at(window.index));
        if !window.named_by_tmux {
            command = command.option("-n", format::escape(&window.name));
        }
        let mut panes = vec![self.made(command, first)?];
        for pane in others {
            let neighbour = panes[panes.len() - 1];
            panes.push(self.split(pane, "-v", neighbour)?);
        }
        Ok(panes)
    }

    fn split(&self, pane: &SavedPane, place: &str, neighbour: PaneId) -> Result<PaneId> {
        // The layout is evened out first, or there is soon no room for another pane.
        self.run(Command::new("select-layout").target(neighbour).arg("tiled"))?;
        let command = Command::new("split-window")
            .args(["-d", place, "-P", "-F", "#{pane_id}"])
            .target(neighbour);
        self.made(command, pane)
    }

    /// Creates a pane with a shell in its folder. Returns its id.
    fn made(&self, command: Command, pane: &SavedPane) -> Result<PaneId> {
        let command = command.option("-c", format::escape(&pane.folder));
        let text = displayable(&pane.text, &self.note(pane));
        let name = format!("{}-{}", self.saved.session, pane.id.trim_start_matches('%'));
        let file = restored::write(self.town, &name, &text)?;
        let words = restored::command(self.town, &file, NextProgram::Login(&self.shell));
        let id = self.run(command.arg("--").args(words))?;
        id.trim()
            .parse()
            .map_err(|_| Problem::failed("tmux did not say which pane it made"))
    }

    fn note(&self, pane: &SavedPane) -> String {
        let shell = self.shell.rsplit('/').next().unwrap_or_default();
        let back = note(self.saved);
        if pane.command.is_empty() || pane.command == shell || pane.dead {
            return back;
        }
        // The command name is external text as well.
        let ran = gt_core::save::printable(&pane.command).replace('\n', " ");
        format!("{back}; this ran here: {ran}")
    }

    /// Restores sizes, the active pane and the zoom.
    fn arrange(&self, window: &SavedWindow, panes: &[PaneId]) -> Result<()> {
        let Some(first) = panes.first() else {
            return Ok(());
        };
        if panes.len() < 2 {
            return Ok(());
        }
        if is_layout(&window.layout) {
            self.run(
                Command::new("select-layout")
                    .target(*first)
                    .arg(&*window.layout),
            )?;
        }
        let active = window.panes.iter().position(|pane| pane.active);
        if let Some(pane) = active.and_then(|at| panes.get(at)) {
            self.run(Command::new("select-pane").target(*pane))?;
            if window.zoomed {
                self.run(Command::new("resize-pane").arg("-Z").target(*pane))?;
            }
        }
        Ok(())
    }
}

fn run(town: &Town, command: Command) -> Result<String> {
    town.server()
        .run(command)
        .map_err(|error| tmux_problem("cannot make its windows again", error))
}
