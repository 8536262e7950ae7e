//! PID files: a way to find an agent's processes without its container.
//!
//! `<town>/.runtime/pids/<container>.pid` holds `<pid>|<birth certificate>|<socket>`: the agent's
//! first process and the tmux server that it was started on. If processes outlive their container,
//! `gt down` and `gt doctor --fix` find them here. A birth certificate identifies the process: a
//! later process with the same pid has another certificate and is not touched.

use crate::base::files;
use crate::base::or_log::OrLog;
use crate::base::processes::{self, ProcessHandle};
use crate::terminal::containers::Container;
use crate::{Result, Town};
use gt_core::{Identity, Problem, ProblemKind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn dir(town: &Town) -> PathBuf {
    town.runtime_dir().join("pids")
}

/// Returns the path of a container's PID file.
pub(crate) fn path(town: &Town, container: &str) -> PathBuf {
    dir(town).join(format!("{container}.pid"))
}

/// Returns the path of the file by which the agent of a process is found.
fn agent_path(town: &Town, pid: u32) -> PathBuf {
    town.runtime_dir().join("agents").join(pid.to_string())
}

/// Records the agent of the first process of a container.
pub(crate) fn write_agent(town: &Town, agent: &Identity, container: &str, pid: u32) -> Result<()> {
    match processes::birth_certificate(pid) {
        None => Ok(()), // The process has already ended.
        Some(certificate) => {
            let line = format!("{certificate}|{container}|{agent}");
            files::overwrite_line(&agent_path(town, pid), &line)
        }
    }
}

/// Returns the agent whose first process this is, and its container.
pub(crate) fn agent_of(town: &Town, pid: u32) -> Option<(Identity, Option<String>)> {
    // Most processes have no such file.
    let line = std::fs::read_to_string(agent_path(town, pid)).ok()?;
    let mut parts = line.trim_end().splitn(3, '|');
    let (certificate, container) = (parts.next()?, parts.next()?);
    let agent = Identity::from_address(parts.next()?, town.registry())?;
    let is_it = processes::is_alive(pid, certificate);
    is_it.then(|| (agent, Some(container.to_owned())))
}

/// Removes the records of agents whose processes have ended.
pub(crate) fn remove_ended_agents(town: &Town) {
    let files = std::fs::read_dir(town.runtime_dir().join("agents"));
    for file in files.into_iter().flatten().flatten() {
        let pid = file.file_name().to_str().and_then(|name| name.parse().ok());
        if pid.is_some_and(|pid| agent_of(town, pid).is_none()) {
            let removed = files::remove_if_there(&file.path());
            removed.or_debug("the record of an ended process stays");
        }
    }
}

/// Records the first process of a container.
pub fn write(town: &Town, container: &str, pid: u32) -> Result<()> {
    let Some(certificate) = processes::birth_certificate(pid) else {
        return Ok(()); // The process has already ended.
    };
    let socket = town.server().socket_path();
    // A line that a crash left incomplete has no valid certificate, so it names no process.
    let line = format!("{pid}|{certificate}|{}", socket.display());
    files::overwrite_line(&path(town, container), &line)
}

/// Removes the PID file of a container, unless it was written for another tmux server.
pub fn remove(town: &Town, container: &str) -> Result<()> {
    let path = path(town, container);
    match read(&path) {
        Some(entry) if !entry.is_of(town) => Ok(()),
        Some(entry) => {
            files::remove_if_there(&agent_path(town, entry.pid))?;
            files::remove_if_there(&path)
        }
        None => files::remove_if_there(&path),
    }
}

/// Removes the PID file of a container if it names this process.
pub(crate) fn remove_of(town: &Town, container: &str, pid: u32) -> Result<()> {
    let path = path(town, container);
    match read(&path) {
        Some(entry) if entry.pid == pid && entry.is_of(town) => {
            files::remove_if_there(&agent_path(town, pid))?;
            files::remove_if_there(&path)
        }
        _ => Ok(()),
    }
}

/// Returns the process that a container was started with, if it still runs.
pub fn process(town: &Town, container: &str) -> Option<u32> {
    let entry = read(&path(town, container))?;
    entry.alive().map(|_| entry.pid)
}

/// Fails if a process of this agent runs on another tmux server.
pub(crate) fn refuse_elsewhere(town: &Town, identity: &Identity, container: &str) -> Result<()> {
    match on_other_server(town, container) {
        None => Ok(()),
        Some((pid, socket)) => {
            let socket = socket.display();
            Err(Problem::new(
                ProblemKind::Running,
                format!("{identity} runs already, on the tmux server {socket} (process {pid})"),
            )
            .hint(format!(
                "`GT_TMUX_SOCKET={socket} gt attach {identity}` goes there, `… gt stop {identity}` ends it"
            )))
        }
    }
}

/// Returns the running process of a container that was started on another tmux server, and that
/// server's socket.
pub(crate) fn on_other_server(town: &Town, container: &str) -> Option<(u32, PathBuf)> {
    let entry = read(&path(town, container))?;
    let is_alive = !entry.is_of(town) && entry.alive().is_some();
    is_alive.then_some((entry.pid, entry.socket?))
}

/// The line of a PID file.
struct PidfileEntry {
    pid: u32,
    certificate: String,
    socket: Option<PathBuf>,
}

impl PidfileEntry {
    fn alive(&self) -> Option<ProcessHandle> {
        processes::is_born_as(self.pid, &self.certificate)
    }

    /// Returns whether it was written for the town's tmux server.
    fn is_of(&self, town: &Town) -> bool {
        let own = town.server().socket_path();
        self.socket.as_ref().is_none_or(|socket| {
            // One server may have several paths.
            let real = |path: &Path| path.canonicalize().ok();
            *socket == own || (real(socket).is_some() && real(socket) == real(&own))
        })
    }
}

fn read(path: &Path) -> Option<PidfileEntry> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        text => text.or_warn(format_args!("{} cannot be read", path.display()))?,
    };
    let mut parts = text.lines().next().unwrap_or_default().splitn(3, '|');
    Some(PidfileEntry {
        pid: parts.next().and_then(|pid| pid.parse().ok()).unwrap_or(0),
        certificate: parts.next().unwrap_or_default().to_owned(),
        socket: parts.next().map(PathBuf::from),
    })
}

/// A PID file, with a handle if its process still runs.
#[derive(Debug)]
pub struct Tracked {
    pub container: String,
    pub pid: u32,
    pub alive: Option<ProcessHandle>,
}

/// Returns all PID files that were written for the town's tmux server. The state of other servers
/// is unknown here. An unreadable file names no process.
pub fn all(town: &Town) -> Vec<Tracked> {
    let tracked = names(town).into_iter();
    tracked
        .filter_map(|container| tracked_in(town, container))
        .collect()
}

/// Returns the containers that have a PID file, sorted.
fn names(town: &Town) -> Vec<String> {
    let mut names: Vec<String> = files::entries(&dir(town))
        .filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            Some(name.strip_suffix(".pid")?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// Reads the PID file of a container, if it was written for the town's tmux server.
fn tracked_in(town: &Town, container: String) -> Option<Tracked> {
    let entry = read(&path(town, &container)).filter(|entry| entry.is_of(town))?;
    Some(Tracked {
        container,
        pid: entry.pid,
        alive: entry.alive(),
    })
}

/// Returns the PID files whose containers are gone. Leaves out processes that are in another pane,
/// because their container may have been renamed.
pub fn without_container<C: AsRef<[Container]>>(
    town: &Town,
    containers: impl FnOnce() -> Result<C>,
) -> Result<Vec<Tracked>> {
    // The files are listed before the containers: in the other order, a container that is created
    // in between would seem to be gone.
    let names = names(town);
    let containers = containers()?;
    let rows = || containers.as_ref().iter().flat_map(Container::panes);
    let present: HashSet<&str> = rows().map(|row| row.session_name.as_str()).collect();
    let gone = names
        .into_iter()
        .filter(|name| !present.contains(name.as_str()));
    let tracked = gone.filter_map(|container| tracked_in(town, container));
    Ok(tracked
        .filter(|tracked| rows().all(|row| row.pid != tracked.pid))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;

    #[test]
    fn a_file_of_another_server_is_kept_and_names_the_living_agent() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/one", "demo").unwrap();
        let on = |socket: &str| {
            let env = [("GT_TMUX_SOCKET".to_owned(), socket.to_owned())];
            let around = Surroundings {
                env: env.into(),
                ..Surroundings::default()
            };
            Town::open(&root, around).unwrap()
        };
        let (one, two) = (on("/tmp/one"), on("/tmp/two"));
        let (name, own) = ("hq-deacon", std::process::id());
        let deacon = Identity::town(gt_core::Role::Deacon);
        write(&one, name, own).unwrap();
        let problem = refuse_elsewhere(&two, &deacon, name).unwrap_err();
        assert!(problem.message().contains("/tmp/one"), "{problem}");
        assert!(refuse_elsewhere(&one, &deacon, name).is_ok());
        remove(&two, name).unwrap();
        remove_of(&two, name, own).unwrap();
        remove_of(&one, name, own + 1).unwrap();
        assert_eq!(process(&one, name), Some(own), "it is still there");
        assert!(all(&two).is_empty());
        remove_of(&one, name, own).unwrap();
        assert_eq!(process(&one, name), None);
    }

    #[test]
    fn the_file_of_a_dead_process_refuses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/one", "demo").unwrap();
        let town = Town::open(&root, Surroundings::default()).unwrap();
        let path = path(&town, "hq-deacon");
        files::overwrite_line(&path, "1|no such birth|/tmp/two").unwrap();
        assert_eq!(on_other_server(&town, "hq-deacon"), None);
    }
}
