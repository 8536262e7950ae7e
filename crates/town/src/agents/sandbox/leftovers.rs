//! Folders of the brokers of sandboxed agents, and containers whose broker was killed.
//!
//! A container normally ends with its broker: its first process notices the end of the broker, and
//! the engine removes it (`--rm`). If that fails, the note about the container is still there, and
//! [`remove_leftovers`] removes the container. Notes are beside the folders: an agent can see the
//! folder of its broker, and must not choose what is removed.

use super::container::InstalledEngine;
use crate::base::or_log::OrLog;
use crate::base::{files, processes};
use crate::terminal::broker;
use crate::{Result, Town};
use gt_core::role::SandboxConfig;
use gt_core::sandbox::container::{ContainerEngine, EMPTY_FILE, EMPTY_FOLDER};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const NOTE: &str = "container";

/// The folder of the broker's sockets. It ends with the process.
#[derive(Debug)]
pub struct BrokerFolder {
    pub path: PathBuf,
}

/// A container and the broker that it belongs to.
#[derive(Debug, Serialize, Deserialize)]
struct ContainerNote {
    engine: ContainerEngine,
    name: String,
    broker: u32,
    /// Certificate of the broker's process.
    born: String,
}

impl BrokerFolder {
    /// Makes the folder of this process, and removes those of brokers that were killed.
    pub fn make(town: &Town) -> Result<Self> {
        remove_leftovers(town).or_warn("a container of a killed agent stays");
        let path = parent(town).join(std::process::id().to_string());
        files::make_dir(&path)?;
        files::remove_if_there(&path.join(broker::SOCKET))?;
        Ok(BrokerFolder { path })
    }

    /// Notes a container before it is made, with the empty file and folder that it hides paths
    /// with.
    pub fn note_container(&self, engine: ContainerEngine, name: &str) -> Result<()> {
        files::make_dir(&self.path.join(EMPTY_FOLDER))?;
        files::write_whole(&self.path.join(EMPTY_FILE), b"")?;
        let broker = std::process::id();
        let note = ContainerNote {
            engine,
            name: name.to_owned(),
            broker,
            born: processes::birth_certificate(broker).unwrap_or_default(),
        };
        let text = serde_json::to_vec(&note).map_err(|error| {
            gt_core::Problem::failed("cannot encode the note about a container").caused_by(error)
        })?;
        files::write_whole(&self.path.with_extension(NOTE), &text)
    }

    /// Removes the container of this broker, if it is still there, and the note.
    pub fn remove_container(&self, town: &Town) -> Result<()> {
        let path = self.path.with_extension(NOTE);
        match read(&path)? {
            Some(note) => remove(town, &path, &note),
            None => Ok(()),
        }
    }
}

impl Drop for BrokerFolder {
    fn drop(&mut self) {
        // The next start removes what is left.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn parent(town: &Town) -> PathBuf {
    town.runtime_dir().join("sandbox")
}

fn read(path: &Path) -> Result<Option<ContainerNote>> {
    let Some(text) = files::read_if_there(path)? else {
        return Ok(None);
    };
    let problem = |error| {
        gt_core::Problem::failed(format!("{} cannot be read", path.display())).caused_by(error)
    };
    serde_json::from_str(&text).map(Some).map_err(problem)
}

fn remove(town: &Town, path: &Path, note: &ContainerNote) -> Result<()> {
    let settings = SandboxConfig {
        engine: Some(note.engine),
        ..SandboxConfig::default()
    };
    InstalledEngine::find(town, &settings)?.remove(town, &note.name)?;
    files::remove_if_there(path)
}

/// Returns the notes about containers whose broker is gone.
fn left(town: &Town) -> Vec<(PathBuf, ContainerNote)> {
    let mut left = Vec::new();
    for entry in files::entries(&parent(town)) {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != NOTE) {
            continue;
        }
        // Another process may remove it at the same time.
        let note = read(&path).or_warn("a note about a container is ignored");
        if let Some(note) = note.flatten()
            && processes::is_born_as(note.broker, &note.born).is_none()
        {
            left.push((path, note));
        }
    }
    left
}

/// Returns the names of containers whose broker is gone and which are not removed yet.
pub fn left_containers(town: &Town) -> Vec<String> {
    let left = left(town).into_iter();
    left.map(|(_, note)| note.name).collect()
}

/// Removes the folders and the containers of brokers that are gone. Starts no process if there is
/// no such container.
pub fn remove_leftovers(town: &Town) -> Result<()> {
    for entry in files::entries(&parent(town)) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if pid.is_some_and(|pid: u32| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Another start may remove it at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let mut last = Ok(());
    for (path, note) in left(town) {
        // All are tried; the last failure is returned.
        if let Err(problem) = remove(town, &path, &note) {
            last = Err(problem);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_of_a_live_broker_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.container");
        let own = std::process::id();
        let note = |broker, born: Option<String>| ContainerNote {
            engine: ContainerEngine::Podman,
            name: "x".to_owned(),
            broker,
            born: born.unwrap_or_default(),
        };
        for (note, is_gone) in [
            (note(own, processes::birth_certificate(own)), false),
            (note(own, None), true),
        ] {
            std::fs::write(&path, serde_json::to_vec(&note).unwrap()).unwrap();
            let read = read(&path).unwrap().unwrap();
            let found = processes::is_born_as(read.broker, &read.born);
            assert_eq!(found.is_none(), is_gone);
        }
        assert!(read(&folder.path().join("none")).unwrap().is_none());
    }
}
