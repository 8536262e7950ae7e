//! Notifications that are held during a do-not-disturb of the person.
//!
//! They are in `.runtime/held-notices.json`, the newest for each agent and kind.

use crate::base::files;
use crate::base::lock::FileLock;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::notify::NoticeKind;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum wait for the lock of the file.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A notification that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldNotice {
    pub(super) event: NoticeKind,
    pub(super) agent: String,
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<String>,
}

/// Adds a notification, in place of an earlier one of the same agent and kind.
pub(super) fn add(town: &Town, notice: HeldNotice) -> Result<()> {
    let _lock = lock(town)?;
    let mut held = read(town)?;
    held.retain(|other| (other.event, &other.agent) != (notice.event, &notice.agent));
    held.push(notice);
    write(town, &held)
}

/// Calls `give` with each notification, oldest first, and removes it.
pub(super) fn take_all(town: &Town, give: impl Fn(&HeldNotice)) -> Result<()> {
    if !path(town).exists() {
        return Ok(());
    }
    let _lock = lock(town)?;
    let mut held = read(town)?;
    while !held.is_empty() {
        let first = held.remove(0);
        give(&first);
        write(town, &held)?;
    }
    Ok(())
}

pub(super) fn read(town: &Town) -> Result<Vec<HeldNotice>> {
    let text = files::read_if_there(&path(town))?.unwrap_or_default();
    // A damaged file only means that earlier notifications are lost; the events stay in the feed.
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

fn write(town: &Town, held: &[HeldNotice]) -> Result<()> {
    if held.is_empty() {
        return files::remove_if_there(&path(town));
    }
    let text = serde_json::to_vec(held)
        .map_err(|error| Problem::failed("cannot hold a notification").caused_by(error))?;
    files::write_whole(&path(town), &text)
}

fn lock(town: &Town) -> Result<FileLock> {
    FileLock::take(&town.runtime_dir().join("locks/held-notices.lock"), TIMEOUT)
}

fn path(town: &Town) -> PathBuf {
    town.runtime_dir().join("held-notices.json")
}
