//! The switch that pauses the schedule, and the time of its last start: files in `.runtime`.

use crate::base::files;
use crate::{Result, Town};
use gt_core::Problem;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Since when the schedule is paused, and by which caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseNote {
    pub at: String,
    pub by: String,
}

/// Pauses the schedule: nothing starts from the queue. Returns the note of an earlier pause, which
/// stays.
pub fn pause(town: &Town) -> Result<Option<PauseNote>> {
    if let Some(note) = paused(town)? {
        return Ok(Some(note));
    }
    let note = PauseNote {
        at: town.clock().text(),
        by: town.caller().as_str().to_owned(),
    };
    let text = serde_json::to_vec(&note)
        .map_err(|error| Problem::failed("the pause cannot be written").caused_by(error))?;
    files::write_whole(&pause_path(town), &text)?;
    Ok(None)
}

/// Ends a pause. Returns whether there was one.
pub fn resume(town: &Town) -> Result<bool> {
    let was_paused = paused(town)?.is_some();
    files::remove_if_there(&pause_path(town))?;
    Ok(was_paused)
}

/// Returns the note of the current pause. A damaged note counts as a pause.
pub fn paused(town: &Town) -> Result<Option<PauseNote>> {
    let text = files::read_if_there(&pause_path(town))?;
    Ok(text.map(|text| {
        // The schedule stays paused until a person resumes it.
        serde_json::from_str(&text).unwrap_or_else(|_| PauseNote {
            at: String::new(),
            by: "unknown".to_owned(),
        })
    }))
}

/// Returns the time of the last start from the queue, in seconds since the epoch; `None` if it is
/// not known, so that a start does not wait.
pub(super) fn last_start(town: &Town) -> Option<i64> {
    let text = files::read_if_there(&start_path(town)).ok()??;
    text.trim()
        .parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_second)
}

/// Records a start from the queue.
pub(crate) fn note_start(town: &Town) {
    let text = town.clock().text();
    if let Err(problem) = files::write_passing(&start_path(town), text.as_bytes()) {
        // Only the spacing between this run of the scheduler and the next depends on it.
        tracing::warn!("{}", problem.line());
    }
}

fn pause_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("schedule-paused.json")
}

fn start_path(town: &Town) -> PathBuf {
    town.runtime_dir().join("schedule-last-start")
}
