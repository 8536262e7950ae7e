//! PID files: the second net under a container.
//!
//! `<town>/.runtime/pids/<container>.pid` holds `<pid>|<birth certificate>|<socket>`
//! of the agent's first process and the tmux server it was started on. Should the container go without its processes,
//! `gt down` and `gt doctor --fix` find them here; a pid that was given out
//! again has another certificate and is left alone.

use crate::containers::Container;
use crate::processes::{self, Handle};
use crate::{Result, Town, files};
use std::path::PathBuf;

fn dir(town: &Town) -> PathBuf {
    town.runtime_dir().join("pids")
}

fn path(town: &Town, container: &str) -> PathBuf {
    dir(town).join(format!("{container}.pid"))
}

/// Remembers the first process of a container.
pub fn write(town: &Town, container: &str, pid: u32) -> Result<()> {
    let Some(certificate) = processes::birth_certificate(pid) else {
        return Ok(()); // It has ended already: there is nothing to remember.
    };
    let socket = town.server().socket_path();
    // Half a line has no certificate that fits, and names no process.
    let line = format!("{pid}|{certificate}|{}", socket.display());
    files::overwrite_line(&path(town, container), &line)
}

/// Forgets a container's process.
pub fn remove(town: &Town, container: &str) -> Result<()> {
    files::remove_if_there(&path(town, container))
}

/// Returns the process that a container was started with, if it still runs.
pub fn process(town: &Town, container: &str) -> Option<u32> {
    let text = std::fs::read_to_string(path(town, container)).ok()?;
    let mut parts = text.lines().next()?.splitn(3, '|');
    let pid = parts.next()?.parse().ok()?;
    processes::is_born_as(pid, parts.next()?).map(|_| pid)
}

/// A PID file, and the process if it is still the same one.
#[derive(Debug)]
pub struct Tracked {
    pub container: String,
    pub pid: u32,
    pub alive: Option<Handle>,
}

/// Every PID file of the town that was written for its tmux server: of others
/// nobody can say from here what became. One that cannot be read names no process.
pub fn all(town: &Town) -> Vec<Tracked> {
    let server = town.server().socket_path();
    let mut tracked: Vec<Tracked> = std::fs::read_dir(dir(town))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let container = file.strip_suffix(".pid")?.to_owned();
            let text = std::fs::read_to_string(entry.path()).ok()?;
            let line = text.lines().next().unwrap_or_default();
            let mut parts = line.splitn(3, '|');
            let pid = parts.next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
            let certificate = parts.next().unwrap_or_default();
            if parts
                .next()
                .is_some_and(|socket| std::path::Path::new(socket) != server)
            {
                return None;
            }
            let alive = processes::is_born_as(pid, certificate);
            Some(Tracked {
                container,
                pid,
                alive,
            })
        })
        .collect();
    tracked.sort_by(|a, b| a.container.cmp(&b.container));
    tracked
}

/// Those whose containers are gone, and whose processes are in no other pane:
/// a container may have been renamed.
pub fn lost(
    town: &Town,
    containers: impl FnOnce() -> Result<Vec<Container>>,
) -> Result<Vec<Tracked>> {
    // The files first: one that is written while we look is not in the list.
    let all = all(town);
    let containers = containers()?;
    let rows = || containers.iter().flat_map(Container::panes);
    Ok(all
        .into_iter()
        .filter(|tracked| {
            rows().all(|row| row.session_name != tracked.container && row.pid != tracked.pid)
        })
        .collect())
}
