//! Shows the queue as tables and JSON.

use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use gt_core::Problem;
use gt_core::merge::{Merge, MergeStatus, list_some, short};
use gt_core::work::Item;
use gt_town::Town;
use gt_town::records::items::Work;
use serde_json::json;

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
            Cell::address(merge.worker.as_str()),
            merge.reason.as_deref().unwrap_or_default().into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

fn status(status: MergeStatus) -> Cell {
    match status {
        MergeStatus::Merged => Cell::painted(status.as_str(), Paint::green),
        MergeStatus::Conflict | MergeStatus::Failed => Cell::painted(status.as_str(), Paint::red),
        MergeStatus::Merging | MergeStatus::Held => Cell::painted(status.as_str(), Paint::yellow),
        MergeStatus::Queued | MergeStatus::Rejected | MergeStatus::Withdrawn => {
            status.as_str().into()
        }
    }
}

/// Returns the warning that an entry needs a person, with the command that continues it.
pub(super) fn needs_person(merge: &Merge, repair: Option<&Item>) -> String {
    let Merge { id, item, .. } = merge;
    let why = match repair {
        Some(repair) => format!("its repair {} is {}", repair.id, repair.status.as_str()),
        None => "it has no repair".to_owned(),
    };
    let status = match merge.status {
        MergeStatus::Conflict => "is in conflict",
        _ => "has failed",
    };
    format!(
        "{id} of {item} {status}, and no agent works on it: {why}\n\
         `gt mq retry {id}` tries it again, `gt mq reject {id} --reason TEXT` gives it up"
    )
}

pub(super) fn print_one(merge: &Merge, town: &Town, context: &Context) -> Result<(), Problem> {
    let is_stuck = Work::of(town).stuck_with(merge)?;
    if context.json {
        let mut document = json!(merge);
        document["stuck"] = json!(is_stuck.is_some());
        return output::json(&document);
    }
    let repair = merge.repair.as_ref().map(ToString::to_string);
    let rows = [
        ("status", Some(merge.status.as_str().to_owned())),
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
            Some(list_some(&merge.files)).filter(|all| !all.is_empty()),
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
    if merge.status == MergeStatus::Held {
        let id = &merge.id;
        output::warn(format!(
            "{id} waits for your approval\n\
             `gt mq diff {id}` shows its changes, `gt mq approve {id}` merges it, \
             `gt mq reject {id} --reason TEXT` gives it up"
        ));
    }
    if let Some(repair) = is_stuck {
        output::warn(needs_person(merge, repair.as_ref()));
    }
    Ok(())
}
