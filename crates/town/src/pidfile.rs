//! PID files: the second net under a container.
//!
//! `<town>/.runtime/pids/<container>.pid` holds `<pid>|<birth certificate>` of
//! the agent's first process. Should the container go without its processes,
//! `gt down` and `gt doctor --fix` find them here; a pid that was given out
//! again has another certificate and is left alone.

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
    files::write_whole(
        &path(town, container),
        format!("{pid}|{certificate}\n").as_bytes(),
    )
}

/// Forgets a container's process.
pub fn remove(town: &Town, container: &str) -> Result<()> {
    files::remove_if_there(&path(town, container))
}

/// A PID file, and the process if it is still the same one.
#[derive(Debug)]
pub struct Tracked {
    pub container: String,
    pub pid: u32,
    pub alive: Option<Handle>,
}

/// Every PID file of the town. One that cannot be read names no process.
pub fn all(town: &Town) -> Vec<Tracked> {
    let mut tracked: Vec<Tracked> = std::fs::read_dir(dir(town))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let container = file.strip_suffix(".pid")?.to_owned();
            let text = std::fs::read_to_string(entry.path()).ok()?;
            let parsed = text.trim().split_once('|');
            let pid = parsed.and_then(|(pid, _)| pid.parse().ok()).unwrap_or(0);
            let alive = parsed.and_then(|(_, certificate)| processes::is_born_as(pid, certificate));
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
