//! Shows work items.

use super::super::ids;
use super::super::page::Page;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::beads::exported;
use gt_core::work::{Item, ItemStatus, WorkId, check_priority};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::records::items::{ItemQuery, Work};
use gt_town::repo::rig;
use serde_json::{Value, json};

/// List work items, the most urgent first
///
/// Molecules, their steps and handoff beads are listed only with a type, a label, a parent, the
/// status `pinned` or `--all`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: ItemFilterArgs,
    /// Only items with this status: open, hooked, in_progress, blocked, pinned, closed
    #[arg(long)]
    status: Option<String>,
    /// Include closed items
    #[arg(long)]
    all: bool,
}

/// List the items that can be started: open, without open blockers
#[derive(Debug, Args)]
pub(crate) struct ReadyArgs {
    #[command(flatten)]
    filter: ItemFilterArgs,
}

/// Search work items, including closed ones
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Text in the title, description, notes or id
    text: String,
    #[command(flatten)]
    filter: ItemFilterArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ItemFilterArgs {
    /// Only this rig's; `hq` stands for the town itself
    #[arg(long)]
    rig: Option<String>,
    /// Only items of this agent
    #[arg(long = "agent", alias = "assignee", value_name = "TARGET")]
    assignee: Option<String>,
    /// Only items of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only items with this label
    #[arg(long)]
    label: Option<String>,
    /// Only the parts of this item
    #[arg(long, value_name = "ITEM")]
    parent: Option<String>,
    /// Only items of this priority, from 0 to 4
    #[arg(long)]
    priority: Option<u8>,
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value_t = 500)]
    limit: usize,
    /// Show this page of as many items, from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    page: usize,
}

/// Show a work item in full
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its id
    #[arg(value_name = "ITEM")]
    item: String,
}

/// Print every work item as a line of JSON, as beads writes them
///
/// With --json all of them are one array.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// One JSON object per line, which is the default
    #[arg(long)]
    jsonl: bool,
}

impl ItemFilterArgs {
    fn page(&self) -> Page {
        Page {
            limit: self.limit,
            number: self.page,
        }
    }

    fn query(&self, town: &Town) -> Result<ItemQuery, Problem> {
        let prefix = self
            .rig
            .as_deref()
            .map(|rig| rig::work_prefix(town, rig))
            .transpose()?;
        let assignee = self.assignee.as_deref().map(|text| {
            // An agent that no longer exists may still be the assignee of an item.
            target::resolve(town, text).map_or_else(|_| text.to_owned(), |who| who.address())
        });
        let parent = self
            .parent
            .as_deref()
            .map(|id| ids::full(town, id))
            .transpose()?;
        if let Some(parent) = &parent {
            Work::of(town).get(parent)?;
        }
        self.priority.map_or(Ok(()), check_priority)?;
        self.page().check()?;
        Ok(ItemQuery {
            prefix,
            assignee,
            kind: self.kind.clone(),
            label: self.label.clone(),
            parent,
            priority: self.priority,
            limit: Some(self.page().to_read()),
            skip: self.page().skip(),
            ..ItemQuery::default()
        })
    }
}

pub(super) fn list(args: &ListArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = ItemQuery {
        status: args.status.as_deref().map(str::parse).transpose()?,
        all: args.all,
        ..args.filter.query(town)?
    };
    found(&query, args.filter.page(), town, context)
}

pub(super) fn ready(args: &ReadyArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = ItemQuery {
        ready: true,
        ..args.filter.query(town)?
    };
    found(&query, args.filter.page(), town, context)
}

pub(super) fn search(args: SearchArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let query = ItemQuery {
        all: true,
        ..args.filter.query(town)?
    };
    let query = ItemQuery {
        text: Some(args.text),
        ..query
    };
    found(&query, args.filter.page(), town, context)
}

fn found(query: &ItemQuery, page: Page, town: &Town, context: &Context) -> Result<(), Problem> {
    let work = Work::of(town);
    let mut items = work.find(query)?;
    let has_more = page.cut(&mut items);
    table(&items, context)?;
    if has_more {
        page.note_more("items");
    }
    warn_unread(&work)
}

pub(super) fn show(args: &ShowArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let id = ids::full(town, &args.item)?;
    let work = Work::of(town);
    let item = work.get(&id)?;
    let blockers = work.open_blockers(&id)?;
    if context.json {
        let mut document = document(&item);
        document["blocked_by"] = json!(blockers);
        return output::json(&document);
    }
    output::line(output::clean(&line_of(&item)))?;
    let paint = Paint::for_stdout();
    let list = |ids: &[WorkId]| {
        ids.iter()
            .map(WorkId::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let ephemeral = match item.ephemeral {
        true => "yes",
        false => "",
    };
    for (name, value) in [
        ("assignee", item.assignee.clone().unwrap_or_default()),
        ("labels", item.labels.join(", ")),
        ("ephemeral", ephemeral.to_owned()),
        (
            "parent",
            item.parent
                .as_ref()
                .map(WorkId::to_string)
                .unwrap_or_default(),
        ),
        ("waits for", list(&item.deps)),
        ("still open", list(&blockers)),
        ("created", item.created_at.clone()),
        ("updated", item.updated_at.clone()),
        ("closed", item.closed_at.clone().unwrap_or_default()),
        ("because", item.close_reason.clone().unwrap_or_default()),
    ] {
        if !value.is_empty() {
            let name = paint.dim(&format!("{name:<11}"));
            output::line(format!("{name} {}", output::clean(&value)))?;
        }
    }
    for text in [&item.body(), &item.notes] {
        if !text.is_empty() {
            output::line("")?;
        }
        output::lines(text)?;
    }
    Ok(())
}

pub(super) fn export(town: &Town, context: &Context) -> Result<(), Problem> {
    let work = Work::of(town);
    if !context.json {
        work.export(|item| output::line(exported(item).to_string()))?;
        return warn_unread(&work);
    }
    let mut all = output::JsonList::default();
    work.export(|item| all.add(&exported(item)))?;
    all.finish()?;
    warn_unread(&work)
}

/// Warns about beads that cannot be shown.
fn warn_unread(work: &Work) -> Result<(), Problem> {
    for (rig, bead, why) in work.unread_beads()? {
        output::warn(format!("{bead} in the beads of {rig} is not shown: {why}"));
    }
    Ok(())
}

/// Returns an item as JSON.
pub(crate) fn document(item: &Item) -> Value {
    json!(item)
}

/// Formats an item in one line.
pub(crate) fn line_of(item: &Item) -> String {
    format!(
        "{} {} [{}, {}, P{}]",
        item.id,
        item.title,
        item.kind,
        item.status.as_str(),
        item.priority
    )
}

fn table(items: &[Item], context: &Context) -> Result<(), Problem> {
    if context.json {
        let documents: Vec<Value> = items.iter().map(document).collect();
        return output::json(&documents);
    }
    if items.is_empty() {
        return output::line("No work items match.");
    }
    let mut table = Table::new(&["ID", "P", "STATUS", "TYPE", "ASSIGNEE", "TITLE"]);
    for item in items {
        table.row([
            item.id.to_string().into(),
            item.priority.to_string().into(),
            item.status.as_str().into(),
            item.kind.clone().into(),
            Cell::address(item.assignee.clone().unwrap_or_default()),
            item.title.clone().into(),
        ]);
    }
    let closed = items
        .iter()
        .filter(|item| item.status == ItemStatus::Closed)
        .count();
    output::print(&table.render(Paint::for_stdout()))?;
    match closed {
        0 => Ok(()),
        closed => output::line(format!("{} in all, {closed} closed", items.len())),
    }
}
