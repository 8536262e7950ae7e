//! Do not disturb: a file that names the agents and people whose messages are held.
//!
//! `.runtime/dnd.json` exists only while do-not-disturb is on for an agent or the person, so that a
//! check costs one system call. A file that cannot be read holds nothing. This module only reads
//! and writes the file; `messaging/dnd.rs` delivers the held messages at the end.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for the lock of the file.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Do not disturb, of one agent or of the person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DndNote {
    /// End in seconds since the epoch; `None` until it is turned off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// The person or agent that turned it on.
    pub by: String,
    /// Start in seconds since the epoch.
    pub since: i64,
}

impl DndNote {
    fn is_over(&self, now: i64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// The file: notes by address. The person has the address of their mailbox.
pub type DndNotes = BTreeMap<String, DndNote>;

/// Returns the note of an agent or of the person, if it has not ended.
pub fn read(town: &Town, who: &str) -> Option<DndNote> {
    all(town).remove(who)
}

/// Returns all notes that have not ended.
pub fn all(town: &Town) -> DndNotes {
    let now = town.clock().seconds();
    let mut notes = notes(town);
    notes.retain(|_, note| !note.is_over(now));
    notes
}

/// Adds a note, or replaces the one of the same address.
pub(crate) fn set(town: &Town, who: &str, note: &DndNote) -> Result<()> {
    change(town, |notes| {
        notes.insert(who.to_owned(), note.clone());
    })
}

/// Removes the note of an address. Returns it if there was one.
pub(crate) fn clear(town: &Town, who: &str) -> Result<Option<DndNote>> {
    let mut removed = None;
    change(town, |notes| removed = notes.remove(who))?;
    Ok(removed)
}

/// Removes the notes that have ended. Returns their addresses.
pub(crate) fn clear_over(town: &Town) -> Result<Vec<String>> {
    let now = town.clock().seconds();
    if notes(town).values().all(|note| !note.is_over(now)) {
        return Ok(Vec::new());
    }
    let mut over = Vec::new();
    change(town, |notes| {
        let is_over = |(_, note): &(&String, &DndNote)| note.is_over(now);
        over = notes
            .iter()
            .filter(is_over)
            .map(|it| it.0.clone())
            .collect();
        notes.retain(|_, note| !note.is_over(now));
    })?;
    Ok(over)
}

fn change(town: &Town, change: impl FnOnce(&mut DndNotes)) -> Result<()> {
    let lock = town.runtime_dir().join("locks/dnd.lock");
    let _lock = FileLock::take(&lock, TIMEOUT)?;
    let mut notes = notes(town);
    change(&mut notes);
    if notes.is_empty() {
        return files::remove_if_there(&path(town));
    }
    let text = serde_json::to_vec(&notes).map_err(|error| {
        Problem::failed("cannot write the do-not-disturb file").caused_by(error)
    })?;
    files::write_whole(&path(town), &text)
}

fn notes(town: &Town) -> DndNotes {
    let path = path(town);
    let text = files::read_if_there(&path).or_warn("the do-not-disturb file cannot be read");
    let Some(text) = text.flatten() else {
        return DndNotes::new();
    };
    let notes = serde_json::from_str(&text);
    let notes = notes.or_warn(format_args!("{} cannot be read", path.display()));
    notes.unwrap_or_default()
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("dnd.json")
}
