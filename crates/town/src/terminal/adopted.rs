//! Notes about adopted agents: `.runtime/adopted/<address>.json`.
//!
//! tmux is the source of truth for running agents. A note stores the tmux server of the agent, the
//! data to recreate its container, and the settings file that has our hooks.

use crate::base::or_log::OrLog;
use crate::base::{files, processes};
use crate::{Result, Town};
use gt_core::Identity;
use gt_core::process::Process;
use gt_tmux::PaneId;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdoptionNote {
    pub(crate) agent: String,
    pub(crate) socket: PathBuf,
    pub(crate) container: String,
    pub(crate) session: String,
    /// The program's process id and birth; the birth distinguishes it from a later process with the
    /// same id.
    #[serde(default)]
    pub(crate) pid: u32,
    #[serde(default)]
    pub(crate) birth: String,
    /// The person's pane, and the window of that pane, which the container shows.
    #[serde(default)]
    pub(crate) pane: String,
    #[serde(default)]
    pub(crate) window: String,
    /// The container's tags, from which it can be recreated.
    #[serde(default)]
    pub(crate) tags: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hooks: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hook_command: Option<String>,
}

const FOLDER: &str = "adopted";

/// Timeout of calls to a person's own server: a suspended server must not block the town.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);

impl AdoptionNote {
    pub(crate) fn write(&self, town: &Town, identity: &Identity) -> Result<()> {
        // Cannot fail: all fields are plain values.
        let text = serde_json::to_vec(self).unwrap_or_default();
        files::write_whole(&town.agent_file_path(identity, FOLDER), &text)
    }

    pub(crate) fn pane(&self) -> Option<PaneId> {
        self.pane.parse().ok()
    }

    /// Returns whether the program runs. Returns true for a note of an earlier version, which has
    /// no process id.
    pub(crate) fn program_runs(&self) -> bool {
        self.pid == 0 || processes::is_alive(self.pid, &self.birth)
    }

    pub(crate) fn read(town: &Town, identity: &Identity) -> Option<Self> {
        read(&town.agent_file_path(identity, FOLDER))
    }

    pub(crate) fn remove(town: &Town, identity: &Identity) {
        // A note that remains only costs the next listing one more server query.
        let _ = files::remove_if_there(&town.agent_file_path(identity, FOLDER));
    }

    pub(crate) fn all(town: &Town) -> Vec<Self> {
        let entries = files::entries(&town.runtime_dir().join(FOLDER));
        entries.filter_map(|entry| read(&entry.path())).collect()
    }
}

fn read(path: &Path) -> Option<AdoptionNote> {
    let text = files::read_if_there(path).or_warn("an adopted agent is not found");
    let unreadable = format_args!("{} cannot be read", path.display());
    serde_json::from_str(&text??).or_warn(unreadable)
}

/// Returns whether the agent was adopted.
pub(crate) fn has_note(town: &Town, identity: &Identity) -> bool {
    town.agent_file_path(identity, FOLDER).exists()
}

/// Returns the town with the tmux server that holds this agent as its server.
pub fn home_of<'a>(town: &'a Town, identity: &Identity) -> Cow<'a, Town> {
    match AdoptionNote::read(town, identity) {
        Some(note) if note.socket != town.server().socket_path() => {
            Cow::Owned(town.with_server(&note.socket))
        }
        _ => Cow::Borrowed(town),
    }
}

/// Returns the adopted agent that runs in this pane.
pub(crate) fn agent_of_pane(town: &Town, socket: &Path, pane: PaneId) -> Option<Identity> {
    let mut notes = AdoptionNote::all(town).into_iter();
    let note = notes
        .find(|note| note.socket == socket && note.pane() == Some(pane) && note.program_runs())?;
    Identity::from_address(&note.agent, town.registry())
}

/// The program of an adopted agent.
pub(crate) struct AdoptedProcess {
    note: AdoptionNote,
    agent: Identity,
}

impl AdoptedProcess {
    /// Returns the agent and its container if this process is its program.
    pub(crate) fn is(&self, process: &Process) -> Option<(Identity, Option<String>)> {
        let is_it = process.pid == self.note.pid && self.note.program_runs();
        is_it.then(|| (self.agent.clone(), Some(self.note.container.clone())))
    }
}

/// Returns the programs of all adopted agents, running or not.
pub(crate) fn processes(town: &Town) -> Vec<AdoptedProcess> {
    let notes = AdoptionNote::all(town).into_iter();
    let process = |note: AdoptionNote| {
        let agent = Identity::from_address(&note.agent, town.registry())?;
        Some(AdoptedProcess { note, agent })
    };
    notes.filter_map(process).collect()
}

/// Returns one copy of the town for each other tmux server that holds its agents.
pub fn on_other_servers(town: &Town) -> Vec<Town> {
    let own = town.server().socket_path();
    let mut sockets: Vec<PathBuf> = AdoptionNote::all(town)
        .into_iter()
        .map(|note| note.socket)
        .collect();
    sockets.sort();
    sockets.dedup();
    sockets.retain(|socket| *socket != own);
    let home = |socket: &PathBuf| town.with_server(socket).with_timeout(SERVER_TIMEOUT);
    sockets.iter().map(home).collect()
}
