//! Finds agent programs in this user's tmux panes that are not agents yet, on every reachable
//! server.

use super::conversation::{self, FoundConversation};
use crate::Town;
use crate::base::{files, processes};
use crate::catalog::programs::Programs;
use gt_core::process::ProcessTable;
use gt_core::{Identity, Role};
use gt_tmux::{Command, PaneId, Socket, WindowId};
use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum wait for one server: a stopped server must not block the others.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);

/// A program that could be adopted.
#[derive(Clone, Debug)]
pub struct AdoptionCandidate {
    pub pid: u32,
    pub harness: String,
    pub socket: PathBuf,
    pub server_pid: u32,
    pub session_name: String,
    /// The pane in tmux's notation: `session:window.pane`.
    pub place: String,
    pub window: WindowId,
    pub pane: PaneId,
    pub title: String,
    pub folder: Option<PathBuf>,
    pub conversation: Option<FoundConversation>,
    /// The agent that the program already is by its session's name.
    pub identity: Option<Identity>,
}

impl AdoptionCandidate {
    /// Returns whether the text names this candidate.
    pub fn is_called(&self, text: &str) -> bool {
        text == self.pid.to_string()
            || text == self.pane.to_string()
            || text == self.place
            || text == self.session_name
            || self
                .identity
                .as_ref()
                .is_some_and(|it| it.address() == text)
    }
}

gt_tmux::query! {
    struct CandidateRow {
        server_pid: u32 = "#{pid}",
        session_name: String = "#{session_name}",
        place: String = "#{session_name}:#{window_index}.#{pane_index}",
        window: WindowId = "#{window_id}",
        pane: PaneId = "#{pane_id}",
        pid: u32 = "#{pane_pid}",
        dead: bool = "#{pane_dead}",
        title: String = "#{pane_title}",
        agent: String = "#{@gt_agent}",
        agent_pane: Option<PaneId> = "#{@gt_pane}",
        own_window: String = "#{@gt_window}",
    }
}

/// Returns all candidates, sorted by server and pane.
pub fn candidates(town: &Town) -> Vec<AdoptionCandidate> {
    let table = processes::snapshot();
    let programs = Programs::of(town);
    let own = town.server().socket_path();
    let mut found = Vec::new();
    for socket in sockets(town, &table, &programs) {
        let server = match socket == own {
            true => town.clone(),
            false => town.with_server(&socket),
        };
        let server = server.with_timeout(SERVER_TIMEOUT);
        let list = Command::new("list-panes").arg("-a");
        // A server that does not answer or has another version has no candidates.
        if let Ok(rows) = server.server().rows::<CandidateRow>(list) {
            found.extend(on_server(town, &socket, &rows, &table, &programs));
        }
    }
    found
}

fn on_server(
    town: &Town,
    socket: &Path,
    rows: &[CandidateRow],
    table: &ProcessTable,
    programs: &Programs,
) -> Vec<AdoptionCandidate> {
    // Several sessions may show one window, and one of them may be a container.
    let taken: HashSet<PaneId> = rows
        .iter()
        .filter(|row| !row.agent.is_empty())
        .filter_map(|row| row.agent_pane)
        .collect();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for row in rows {
        if row.dead || taken.contains(&row.pane) || !row.own_window.is_empty() {
            continue;
        }
        let Some((pid, preset)) = programs.find(table, row.pid) else {
            continue;
        };
        if !seen.insert(row.pane) {
            continue;
        }
        let details = processes::details(pid);
        let identity = Identity::from_container(&row.session_name, town.registry());
        found.push(AdoptionCandidate {
            pid,
            harness: preset.name.clone(),
            socket: socket.to_owned(),
            server_pid: row.server_pid,
            session_name: row.session_name.clone(),
            place: row.place.clone(),
            window: row.window,
            pane: row.pane,
            title: row.title.clone(),
            conversation: conversation::find(town, preset, pid, &details),
            folder: details.folder,
            identity: identity.filter(|it| it.role() == Role::Agent),
        });
    }
    found
}

/// Returns the sockets of this user's tmux servers: the town's, those in tmux's own folders, and
/// those in the environment of running agent programs.
fn sockets(town: &Town, table: &ProcessTable, programs: &Programs) -> Vec<PathBuf> {
    let mut sockets = BTreeSet::from([town.server().socket_path()]);
    let folder = Socket::Default.path();
    if let Some(folder) = folder.parent() {
        sockets.extend(files::entries(folder).map(|entry| entry.path()));
    }
    let around = town.around().var("TMUX").map(str::to_owned);
    let theirs = table.iter().filter_map(|process| {
        programs.preset(process.pid, &process.name)?;
        processes::details(process.pid).env.remove("TMUX")
    });
    let named = theirs.chain(around).filter_map(|value| {
        let (socket, _) = value.split_once(',')?;
        Some(PathBuf::from(socket))
    });
    sockets.extend(named.collect::<Vec<_>>());
    let me = rustix::process::geteuid().as_raw();
    let mut seen = HashSet::new();
    let mut is_new = |path: &PathBuf| {
        // A socket that is gone is skipped.
        let meta = path.metadata().ok();
        let own = meta.filter(|meta| meta.file_type().is_socket() && meta.uid() == me);
        // One socket may have several paths.
        own.is_some_and(|meta| seen.insert((meta.dev(), meta.ino())))
    };
    let mut sockets: Vec<PathBuf> = sockets.into_iter().collect();
    // The town's own path comes first, so that its server is recognised by that path.
    let own = town.server().socket_path();
    sockets.sort_by_key(|path| *path != own);
    sockets.retain(&mut is_new);
    sockets
}
