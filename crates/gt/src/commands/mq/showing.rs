//! The queue as tables and JSON.

use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use gt_core::Problem;
use gt_core::merge::{Merge, Status, short};

pub(super) fn list(merges: &[Merge], context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&merges);
    }
    if merges.is_empty() {
        return output::line("Nothing waits to be merged.");
    }
    let mut table = Table::new(&["ID", "STATUS", "RIG", "ITEM", "BRANCH", "WORKER", "REASON"]);
    for merge in merges {
        table.row([
            merge.id.as_str().into(),
            status(merge.status),
            merge.rig.as_str().into(),
            merge.item.as_str().into(),
            merge.branch.as_str().into(),
            merge.worker.as_str().into(),
            merge.reason.as_deref().unwrap_or_default().into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

fn status(status: Status) -> Cell {
    match status {
        Status::Merged => Cell::painted(status.word(), Paint::green),
        Status::Conflict | Status::Failed => Cell::painted(status.word(), Paint::red),
        Status::Merging => Cell::painted(status.word(), Paint::yellow),
        Status::Queued | Status::Rejected | Status::Withdrawn => status.word().into(),
    }
}

pub(super) fn one(merge: &Merge, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(merge);
    }
    let repair = merge.repair.as_ref().map(ToString::to_string);
    let rows = [
        ("status", Some(merge.status.word().to_owned())),
        ("rig", Some(merge.rig.clone())),
        ("item", Some(merge.item.to_string())),
        ("branch", Some(merge.branch.clone())),
        ("commit", Some(short(&merge.commit).to_owned())),
        ("base", Some(merge.base.clone())),
        ("worker", Some(merge.worker.clone())),
        ("attempts", Some(merge.attempts.to_string())),
        ("reason", merge.reason.clone()),
        (
            "files",
            Some(merge.files.join(", ")).filter(|all| !all.is_empty()),
        ),
        ("log", merge.log.clone()),
        ("repair", repair),
        (
            "merged as",
            merge.merged_as.as_deref().map(|id| short(id).to_owned()),
        ),
        ("queued at", Some(merge.created_at.clone())),
        ("changed at", Some(merge.updated_at.clone())),
    ];
    output::line(merge.id.as_str())?;
    for (name, value) in rows {
        if let Some(value) = value {
            output::line(output::clean(&format!("  {name:<11}{value}")))?;
        }
    }
    Ok(())
}
