//! Items that are reopened while they wait to be merged.
//!
//! The submitted branch is then incomplete. If it were merged anyway, the item would be closed
//! while an agent works on it.

use crate::Result;
use crate::records::items::change::close;
use crate::records::items::hook::holder;
use crate::records::items::merge_entries::{find, of_item};
use crate::records::items::store::now;
use crate::records::items::store::problem;
use gt_core::Problem;
use gt_core::merge::{Merge, MergeStatus};
use gt_core::work::WorkId;
use rusqlite::{Connection, params};

/// Withdraws the waiting or failed entry of an item that is being reopened, and returns it. If the
/// item is a repair, its entry waits for the repair again. An entry that is being merged at this
/// moment cannot be withdrawn.
pub(crate) fn withdraw(db: &Connection, id: &WorkId) -> Result<Option<Merge>> {
    let Some(merge) = waiting(db, id)? else {
        return Ok(None);
    };
    let is_own = merge.item == *id;
    let repair = merge.repair.as_ref().filter(|_| is_own);
    let holder = repair.map_or(Ok(None), |repair| holder(db, repair))?;
    let (status, reason) = match (is_own, repair, &holder) {
        (true, Some(repair), Some(holder)) => (
            MergeStatus::Withdrawn,
            format!("{id} was reopened; its repair {repair} stays on the hook of {holder}"),
        ),
        (true, ..) => (MergeStatus::Withdrawn, format!("{id} was reopened")),
        (false, ..) => (MergeStatus::Failed, format!("its repair {id} was reopened")),
    };
    db.execute(
        "UPDATE merges SET status = ?2, reason = ?3, handed = 0, updated_at = ?4 WHERE id = ?1",
        params![merge.id.as_str(), status.as_str(), reason, now(db)?],
    )
    .map_err(problem)?;
    if let (Some(repair), None) = (repair, &holder) {
        close(db, repair, Some(&reason))?;
    }
    find(db, &merge.id)
}

/// Refuses an item that was submitted and waits to be merged or repaired: it has to be reopened
/// first.
pub(crate) fn check_not_handed_in(db: &Connection, id: &WorkId) -> Result<()> {
    match waiting(db, id)? {
        Some(merge) => Err(handed_in(id, &merge)),
        None => Ok(()),
    }
}

/// Returns the entry of an item that waits to be merged or repaired and may be withdrawn. Fails if
/// it is being merged.
fn waiting(db: &Connection, id: &WorkId) -> Result<Option<Merge>> {
    let waiting = of_item(db, id)?.filter(|merge| {
        merge.status.is_pending() || (merge.status.is_broken() && merge.item == *id)
    });
    match waiting {
        Some(merge) if merge.status == MergeStatus::Merging => {
            Err(
                Problem::conflict(format!("{id} is being merged ({})", merge.id)).hint(format!(
                    "try again when it is done; `gt mq run {}` ends what a killed run has left",
                    merge.id
                )),
            )
        }
        waiting => Ok(waiting),
    }
}

/// Returns the error for assigning an item that was submitted.
fn handed_in(id: &WorkId, merge: &Merge) -> Problem {
    let entry = &merge.id;
    let frees = format!("`gt work update {id} --status open` frees it");
    match &merge.repair {
        _ if merge.status.is_pending() => {
            Problem::conflict(format!("{id} waits to be merged ({entry})"))
                .hint(format!("{frees}, and withdraws the merge"))
        }
        Some(repair) if repair != id => Problem::conflict(format!(
            "{id} could not be merged ({entry}), and is repaired by {repair}"
        ))
        .hint(format!("`gt work show {repair}` shows who has it"))
        .hint(frees),
        _ => Problem::conflict(format!("{id} could not be merged ({entry})"))
            .hint(format!("`gt mq retry {entry}` tries it once more"))
            .hint(frees),
    }
}
