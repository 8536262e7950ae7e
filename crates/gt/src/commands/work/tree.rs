//! Shows a work item with its parts.

use super::listing::document;
use crate::commands::ids;
use crate::context::Context;
use crate::output::usage::dollars;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::tree::{ItemProgress, WorkNode};
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::views::work_tree;
use serde_json::{Value, json};

/// Show a work item and its parts: progress, holders and cost
///
/// For example the batch of `gt sling`. Works for every item that has parts.
#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Its id
    #[arg(value_name = "ITEM")]
    item: String,
}

pub(super) fn run(args: &TreeArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let id = ids::full(town, &args.item)?;
    let tree = work_tree::read(town, &id)?;
    if context.json {
        return output::json(&as_json(&tree));
    }
    let mut lines = Vec::new();
    draw(&tree, "", "", &mut lines, Paint::for_stdout());
    lines.iter().try_for_each(output::line)
}

fn as_json(node: &WorkNode) -> Value {
    let children: Vec<Value> = node.children.iter().map(as_json).collect();
    let failed: Vec<&WorkId> = node.failed().iter().map(|child| &child.item.id).collect();
    let parts = node.parts().map(|parts| {
        json!({
            "landed": parts.closed,
            "total": parts.all,
            "failed": failed,
        })
    });
    let mut value = document(&node.item);
    let more = output::without_nulls(json!({
        "progress": node.progress.as_str(),
        "reason": node.reason,
        "holder": node.holder,
        "owner": node.owner,
        "cost_usd": node.cost,
        "total_cost_usd": node.total_cost(),
        "parts": parts,
        "children": children,
    }));
    if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
        value.extend(more.clone());
    }
    value
}

/// Draws a node and its parts. `own` precedes its line, `below` the lines of its parts.
fn draw(node: &WorkNode, own: &str, below: &str, lines: &mut Vec<String>, paint: Paint) {
    lines.push(format!("{}{}", paint.dim(own), line(node, paint)));
    let last = node.children.len().saturating_sub(1);
    for (place, child) in node.children.iter().enumerate() {
        let (branch, gap) = match place == last {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        let (own, gap) = (format!("{below}{branch}"), format!("{below}{gap}"));
        draw(child, &own, &gap, lines, paint);
    }
}

fn line(node: &WorkNode, paint: Paint) -> String {
    let mark = match node.progress {
        ItemProgress::Landed => paint.green("✓"),
        ItemProgress::Failed => paint.red("✗"),
        ItemProgress::Working | ItemProgress::Merging => paint.cyan("●"),
        ItemProgress::Queued | ItemProgress::Blocked => paint.yellow("…"),
        ItemProgress::Open => paint.dim("○"),
    };
    let mut facts = vec![match &node.reason {
        Some(reason) => format!("{}: {}", node.progress.as_str(), output::clean(reason)),
        None => node.progress.as_str().to_owned(),
    }];
    if let Some(parts) = node.parts() {
        // A parent is shown by the progress of its parts.
        let landed = format!("{} of {} landed", parts.closed, parts.all);
        match node.progress {
            ItemProgress::Working if node.holder.is_none() => facts = vec![landed],
            _ => facts.push(landed),
        }
    }
    match node.failed().len() {
        0 => {}
        failed => facts.push(paint.red(&format!("{failed} failed"))),
    }
    facts.extend(node.holder.clone());
    facts.extend(node.owner.as_ref().map(|owner| format!("by {owner}")));
    if node.total_cost() > 0.0 {
        facts.push(dollars(node.total_cost()));
    }
    let (id, title) = (paint.bold(node.item.id.as_str()), &node.item.title);
    format!(
        "{mark} {id} {} ({})",
        output::clean(title),
        facts.join(", ")
    )
}
