//! The emergency stop: a file that blocks starts, messages and merges, of the town or of one rig.
//!
//! `.runtime/estop.json` exists only while a stop is in force, so that a check costs one system
//! call. A file that cannot be read counts as a stop of the town. This module only reads and writes
//! the file; `workflow/estop.rs` interrupts the agents and resumes them.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::{Result, Town};
use gt_core::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for the lock of the file.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One emergency stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstopNote {
    /// The rig that is stopped; `None` for the whole town.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person or agent that stopped it.
    pub by: String,
    pub at: String,
    /// Agents whose turn was interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupted: Vec<String>,
}

impl EstopNote {
    /// Returns the stop in one line.
    pub fn line(&self) -> String {
        let what = match &self.rig {
            Some(rig) => format!("the rig {rig} is stopped"),
            None => "the town is stopped".to_owned(),
        };
        let reason = self.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        format!("{what} by {}{reason}", self.by)
    }

    fn thaw(&self) -> String {
        match &self.rig {
            Some(rig) => format!("`gt thaw --rig {rig}` ends the emergency stop"),
            None => "`gt thaw` ends the emergency stop".to_owned(),
        }
    }
}

/// The file: the stop of the town under the empty name, those of rigs under theirs.
type Stops = BTreeMap<String, EstopNote>;

/// Returns the stop that applies to a rig, or to agents of the town.
pub fn read(town: &Town, rig: Option<&str>) -> Option<EstopNote> {
    let stops = stops(town);
    let found = stops.get("").or_else(|| stops.get(rig?));
    found.cloned()
}

/// Returns all stops, that of the town first.
pub fn all(town: &Town) -> Vec<EstopNote> {
    stops(town).into_values().collect()
}

/// Fails if the town or the rig is stopped.
pub fn check(town: &Town, rig: Option<&str>) -> Result<()> {
    match read(town, rig) {
        None => Ok(()),
        Some(note) => Err(Problem::conflict(note.line()).hint(note.thaw())),
    }
}

/// Adds a stop, or replaces the one of the same scope.
pub fn set(town: &Town, note: &EstopNote) -> Result<()> {
    change(town, |stops| {
        stops.insert(note.rig.clone().unwrap_or_default(), note.clone());
    })
}

/// Removes the stop of the town or of a rig. Returns it if there was one.
pub fn clear(town: &Town, rig: Option<&str>) -> Result<Option<EstopNote>> {
    let mut removed = None;
    change(town, |stops| {
        removed = stops.remove(rig.unwrap_or_default());
    })?;
    Ok(removed)
}

fn change(town: &Town, change: impl FnOnce(&mut Stops)) -> Result<()> {
    let lock = town.runtime_dir().join("locks/estop.lock");
    let _lock = FileLock::take(&lock, TIMEOUT)?;
    let mut stops = stops(town);
    change(&mut stops);
    if stops.is_empty() {
        return files::remove_if_there(&path(town));
    }
    let text = serde_json::to_vec(&stops)
        .map_err(|error| Problem::failed("cannot write the emergency stop").caused_by(error))?;
    files::write_whole(&path(town), &text)
}

fn stops(town: &Town) -> Stops {
    let text = match files::read_if_there(&path(town)) {
        Ok(None) => return Stops::new(),
        Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        Err(problem) => Err(problem.line()),
    };
    text.unwrap_or_else(|error| {
        let note = EstopNote {
            by: "gt".to_owned(),
            reason: Some(format!(".runtime/estop.json cannot be read: {error}")),
            ..EstopNote::default()
        };
        Stops::from([(String::new(), note)])
    })
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("estop.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::surroundings::Surroundings;

    fn town(folder: &tempfile::TempDir) -> Town {
        let root = folder.path().join("town");
        Town::init(&root, None, "/tmp/none", "demo").unwrap();
        Town::open(&root, Surroundings::default()).unwrap()
    }

    fn note(rig: Option<&str>) -> EstopNote {
        EstopNote {
            rig: rig.map(str::to_owned),
            by: "ada".to_owned(),
            reason: Some("wrong branch".to_owned()),
            ..EstopNote::default()
        }
    }

    #[test]
    fn stop_of_a_rig_applies_to_that_rig_alone() {
        let folder = tempfile::tempdir().unwrap();
        let town = town(&folder);
        assert_eq!(read(&town, Some("lab")), None);
        set(&town, &note(Some("lab"))).unwrap();
        assert!(check(&town, None).is_ok() && check(&town, Some("other")).is_ok());
        let problem = check(&town, Some("lab")).unwrap_err();
        assert_eq!(
            problem.message(),
            "the rig lab is stopped by ada: wrong branch"
        );
        set(&town, &note(None)).unwrap();
        assert!(check(&town, Some("other")).is_err());
        assert_eq!(all(&town).len(), 2);
        assert!(clear(&town, None).unwrap().is_some());
        assert!(check(&town, Some("lab")).is_err());
        assert!(clear(&town, Some("lab")).unwrap().is_some());
        assert_eq!(clear(&town, Some("lab")).unwrap(), None);
        assert!(!path(&town).exists());
    }

    #[test]
    fn unreadable_file_stops_the_town() {
        let folder = tempfile::tempdir().unwrap();
        let town = town(&folder);
        std::fs::write(path(&town), "{").unwrap();
        assert!(check(&town, Some("lab")).is_err());
        assert!(clear(&town, None).unwrap().is_some());
        assert!(check(&town, Some("lab")).is_ok());
    }
}
