//! Snapshot of the containers, from which they can be restored after their tmux server is gone.
//!
//! A save is a [`SaveHeader`] and a [`SavedContainer`] for each container. It holds what tmux shows,
//! and nothing of an agent's environment, which may contain secrets. This module has the format and
//! the decisions: which agents to restore ([`judge`]), in which conversation ([`conversation`]), and
//! which entries the next save must keep ([`carried_over`]). The engine writes and reads the file.

mod text;

pub use text::printable;

use crate::harness::Preset;
use crate::record::{Outcome, Record};
use crate::role::OnExit;
use crate::startup::Conversation;
use serde::{Deserialize, Serialize};

/// Format version. It is raised when an older `gt` could no longer read the file.
pub const VERSION: u32 = 1;

/// Maximum duration of a machine's shutdown, from the first process to the last.
const SHUTDOWN_SECONDS: i64 = 120;

/// Metadata of a save. Times are RFC 3339, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveHeader {
    pub version: u32,
    pub town: String,
    pub host: String,
    pub saved_at: String,
    /// Whether `gt` made the save without a request.
    pub automatic: bool,
    /// Number of containers that follow.
    pub containers: usize,
}

/// Unique identity of a tmux server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerId {
    pub pid: u32,
    /// Seconds since the epoch.
    pub started: i64,
}

/// One container of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedContainer {
    pub name: String,
    /// Address of the agent.
    pub agent: String,
    /// Session in the container, and the chain that it belongs to.
    #[serde(rename = "life")]
    pub session: String,
    pub chain: String,
    pub harness: String,
    /// Id of the conversation in the agent program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness_session: Option<String>,
    /// Start options, as the tag holds them.
    #[serde(default)]
    pub start: String,
    #[serde(default)]
    pub auto_respawn: bool,
    #[serde(default)]
    pub state: String,
    /// Time and server of the observation. Older than the save if the entry was carried over from
    /// the previous one.
    pub seen_at: String,
    pub server: ServerId,
    pub windows: Vec<SavedWindow>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedWindow {
    pub index: u32,
    pub name: String,
    /// tmux gave it its name and may change it.
    #[serde(default)]
    pub named_by_tmux: bool,
    pub layout: String,
    pub active: bool,
    pub zoomed: bool,
    pub columns: u32,
    pub rows: u32,
    pub panes: Vec<SavedPane>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPane {
    pub id: String,
    pub index: u32,
    pub folder: String,
    /// Name of the foreground process.
    pub command: String,
    pub title: String,
    /// Whether it is the agent's pane, and not one that the user has opened.
    pub is_agents: bool,
    pub active: bool,
    pub dead: bool,
    /// Time since its death, at the time of the save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_for_seconds: Option<i64>,
    pub columns: u32,
    pub rows: u32,
    /// Scrollback and screen, with escape sequences as tmux gives them.
    pub text: String,
}

impl SavedContainer {
    /// Returns the window and the pane of the agent itself.
    pub fn agents_pane(&self) -> Option<(&SavedWindow, &SavedPane)> {
        self.windows.iter().find_map(|window| {
            let pane = window.panes.iter().find(|pane| pane.is_agents)?;
            Some((window, pane))
        })
    }

    /// Returns whether the agent had ended and would not have been respawned. An orderly shutdown
    /// of the machine ends the agents a moment before their server, and a save may still record
    /// that: an agent that had only just died counts as lost with the server.
    fn was_over(&self) -> bool {
        if self.windows.is_empty() {
            // No save has recorded it: only the journal lists it, as a lost session.
            return false;
        }
        let long_dead = self.agents_pane().is_none_or(|(_, pane)| {
            let just_now = pane.dead_for_seconds.is_some_and(|s| s <= SHUTDOWN_SECONDS);
            pane.dead && !just_now
        });
        long_dead && !self.auto_respawn
    }
}

/// Present state of a saved container's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameOwner {
    Nothing,
    /// The agent, in any state.
    Itself,
    /// Something else; the text describes it.
    Another(String),
    /// No container, and its folder is gone too; a start does not create the folder.
    NoFolder,
}

/// Action of a restore for a saved container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreDecision {
    Restore,
    /// It is running.
    Runs,
    Taken(String),
    /// Its session was ended on purpose after the save.
    Ended(Outcome),
    /// Its agent had already ended, and would not have been respawned.
    WasOver,
    /// The agent was removed.
    Removed,
}

/// Decides on one saved container. `last` is the agent's newest session in the journal, which is
/// more current than the save; `named` means that the caller asked for this agent by name, and
/// `on_exit` is its role's setting for clean exits.
pub fn judge(
    saved: &SavedContainer,
    here: NameOwner,
    last: Option<&Record>,
    named: bool,
    on_exit: OnExit,
) -> RestoreDecision {
    let is_removed = here == NameOwner::NoFolder;
    match here {
        NameOwner::Itself => return RestoreDecision::Runs,
        NameOwner::Another(words) => return RestoreDecision::Taken(words),
        NameOwner::Nothing | NameOwner::NoFolder => {}
    }
    if named {
        return RestoreDecision::Restore;
    }
    match ended_on_request(saved, last, on_exit) {
        Some(outcome) => RestoreDecision::Ended(outcome),
        None if saved.was_over() => RestoreDecision::WasOver,
        None if is_removed => RestoreDecision::Removed,
        None => RestoreDecision::Restore,
    }
}

/// Returns the outcome of a session that was ended on purpose. Any other session was lost, even if
/// the journal does not have its end yet; so was a session that would have been restarted after its
/// clean exit.
fn ended_on_request(
    saved: &SavedContainer,
    last: Option<&Record>,
    on_exit: OnExit,
) -> Option<Outcome> {
    let restarts = saved.auto_respawn && on_exit == OnExit::Restart;
    last?.outcome.filter(|outcome| match outcome {
        Outcome::Crash => false,
        Outcome::Exited => !restarts,
        _ => true,
    })
}

/// Returns the containers of the previous save that the next one carries over, so that the newest
/// save alone lists every agent to restore: agents without a container that were lost with a server
/// other than the running ones. A container that is missing from its own server was closed on
/// purpose. The first of `servers` runs since `server_since`; `last` returns an agent's newest
/// session, and `on_exit` its role's setting for clean exits.
pub fn carried_over(
    before: Vec<SavedContainer>,
    now: &[SavedContainer],
    servers: &[ServerId],
    server_since: &str,
    not_before: &str,
    last: impl Fn(&str) -> Option<Record>,
    on_exit: impl Fn(&str) -> OnExit,
) -> Vec<SavedContainer> {
    let is_lost = |saved: &SavedContainer| {
        if servers.contains(&saved.server)
            || saved.seen_at.as_str() < not_before
            || saved.was_over()
            || now.iter().any(|other| other.agent == saved.agent)
        {
            return false;
        }
        let last = last(&saved.agent);
        // It has run again since, even if no save has recorded it. A failed attempt has its end in
        // the journal.
        let was_back = last.as_ref().is_some_and(|session| {
            session.id != saved.session
                && session.outcome.is_none()
                && session.started_at.as_deref() >= Some(server_since)
        });
        !was_back && ended_on_request(saved, last.as_ref(), on_exit(&saved.agent)).is_none()
    };
    before.into_iter().filter(is_lost).collect()
}

/// Returns the conversation that an agent continues: the one with this id, if it is known.
///
/// Without an id the fallback is the newest conversation of its folder, but only for programs that
/// never report theirs: for the others a missing id means that no conversation had begun. The
/// fallback also requires that no other agent uses the folder, or two agents would continue one
/// conversation.
pub fn conversation(preset: &Preset, id: Option<&str>, alone_in_folder: bool) -> Conversation {
    let command = &preset.command;
    let tells_its_id = !command.session_id.is_empty() || preset.hooks.installer.is_some();
    match id {
        Some(id) if !command.resume.is_empty() => Conversation::Resume(id.to_owned()),
        _ if tells_its_id && !command.resume.is_empty() => Conversation::New,
        _ if alone_in_folder && !command.r#continue.is_empty() => Conversation::Continue,
        _ => Conversation::New,
    }
}

/// Returns whether a text is made only of characters of a tmux layout.
pub fn is_layout(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || matches!(c, ',' | 'x' | '{' | '}' | '[' | ']'))
}

#[cfg(test)]
mod tests;
