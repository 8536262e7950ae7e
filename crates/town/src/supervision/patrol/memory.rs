//! The memory of the patrol: `.runtime/patrol.json`.

use super::path;
use crate::base::files;
use crate::base::or_log::OrLog;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::patrol::PatrolMemory;

/// Reads the memory. A damaged file counts as empty: its loss repeats actions at most once more.
pub(super) fn read(town: &Town) -> Result<PatrolMemory> {
    let path = path(town);
    let Some(text) = files::read_if_there(&path)? else {
        return Ok(PatrolMemory::default());
    };
    let memory = serde_json::from_str(&text);
    let memory = memory.or_warn(format_args!("{} cannot be read", path.display()));
    Ok(memory.unwrap_or_default())
}

/// Replaces the file atomically.
pub(super) fn write(town: &Town, memory: &PatrolMemory) -> Result<()> {
    let text = serde_json::to_vec(memory)
        .map_err(|error| Problem::failed("cannot write the patrol's memory").caused_by(error))?;
    files::write_whole(&path(town), &text)
}
