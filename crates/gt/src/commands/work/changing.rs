//! Creates and changes work items.

use super::super::{ids, stdin};
use super::listing::document;
use crate::context::Context;
use crate::output::{self, progress::ProgressLine};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::work::{Item, WorkId};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::base::files;
use gt_town::records::events;
use gt_town::records::items::{ChangedItem, ItemDraft, Patch, Work};
use gt_town::repo::rig;
use gt_town::supervision::scheduler;
use gt_town::workflow::merge;
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;

/// Make a work item
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Title, in one line
    title: String,
    /// The description; `-` reads it from standard input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// The rig it belongs to, or `hq` for the town [default: that of this folder, or the only one]
    #[arg(long)]
    rig: Option<String>,
    /// Kind of work: task, bug, feature, epic, chore, … [default: task]
    #[arg(long = "type", short = 't', short_alias = 'k', value_name = "TYPE")]
    kind: Option<String>,
    /// From 0, the most urgent, to 4 [default: 2]
    #[arg(long, short)]
    priority: Option<u8>,
    /// The assignee
    #[arg(long = "agent", alias = "assignee", value_name = "TARGET")]
    assignee: Option<String>,
    /// A label; may be given several times
    #[arg(long, short)]
    label: Vec<String>,
    /// The item it is a part of
    #[arg(long, value_name = "ITEM")]
    parent: Option<String>,
    /// Item that must be closed before it; may be given several times
    #[arg(long = "dep", value_name = "ITEM")]
    deps: Vec<String>,
    /// Mark it as ephemeral: it may be deleted once it is closed
    #[arg(long)]
    ephemeral: bool,
}

/// Change a work item
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Its id
    #[arg(value_name = "ITEM")]
    item: String,
    /// Title, in one line
    #[arg(long, allow_hyphen_values = true)]
    title: Option<String>,
    /// The description; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Kind of work: task, bug, feature, epic, chore, …
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    kind: Option<String>,
    /// From 0, the most urgent, to 4
    #[arg(long, short)]
    priority: Option<u8>,
    /// open, in_progress, blocked or pinned
    #[arg(long)]
    status: Option<String>,
    /// The assignee; an empty value removes it
    #[arg(long = "agent", alias = "assignee", value_name = "TARGET")]
    assignee: Option<String>,
    /// New notes, in place of the present ones
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    notes: Option<String>,
    /// Add a line to the notes
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "notes"
    )]
    append_notes: Option<String>,
    /// A label that it gets; may be given several times
    #[arg(long, value_name = "LABEL")]
    add_label: Vec<String>,
    /// A label that it loses; may be given several times
    #[arg(long, value_name = "LABEL")]
    remove_label: Vec<String>,
}

/// Close work items that are done or will not be done
#[derive(Debug, Args)]
pub(crate) struct CloseArgs {
    /// Their ids
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<String>,
    /// The reason
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
}

/// Open a closed work item again
#[derive(Debug, Args)]
pub(crate) struct ReopenArgs {
    /// Its id
    #[arg(value_name = "ITEM")]
    item: String,
}

/// Add or remove dependencies between items
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum DepCommand {
    /// Make ITEM wait until BLOCKER is closed
    Add(DepArgs),
    /// Remove the dependency of ITEM on BLOCKER
    Remove(DepArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DepArgs {
    /// The item that waits
    #[arg(value_name = "ITEM")]
    item: String,
    /// The item that it waits for
    #[arg(value_name = "BLOCKER")]
    blocker: String,
}

/// Import work items from a file of JSON lines, such as beads' issues.jsonl
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// `-` reads standard input
    file: PathBuf,
}

pub(super) fn create(args: CreateArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let parent = args
        .parent
        .as_deref()
        .map(|id| ids::full(town, id))
        .transpose()?;
    let prefix = match (&parent, &args.rig) {
        // The id of a part is derived from its parent.
        (Some(parent), rig) => {
            check_rig(town, parent, rig.as_deref())?;
            String::new()
        }
        (None, Some(rig)) => rig::work_prefix(town, rig)?,
        (None, None) => rig::work_prefix_here(town),
    };
    let draft = ItemDraft {
        prefix,
        parent,
        title: args.title,
        description: text(args.description)?.unwrap_or_default(),
        kind: args.kind,
        priority: args.priority,
        assignee: assignee(town, args.assignee)?.filter(|who| !who.is_empty()),
        labels: args.label,
        deps: ids::all(town, &args.deps)?,
        ephemeral: args.ephemeral,
    };
    let item = Work::of(town).create(&draft)?;
    events::note_items(town, "work_created", std::slice::from_ref(&item), &[]);
    told(&item, &format!("Made {}: {}", item.id, item.title), context)
}

/// Fails if another rig is named: a part belongs to the rig of its parent.
fn check_rig(town: &Town, parent: &WorkId, wanted: Option<&str>) -> Result<(), Problem> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    let wanted_prefix = rig::work_prefix(town, wanted)?;
    let by_prefix = || town.registry().split(parent.as_str());
    let own = match Work::of(town).rig_in_beads(parent)? {
        Some(rig) => Some(rig),
        None => by_prefix().map(|(rig, _)| rig.to_owned()),
    };
    let own = own.as_deref().unwrap_or(rig::TOWN_PREFIX);
    if rig::work_prefix(town, own)? == wanted_prefix {
        return Ok(());
    }
    Err(
        Problem::usage(format!("{parent} belongs to {own}, and so do its parts"))
            .hint(format!("without `--rig {wanted}`, or without `--parent`")),
    )
}

pub(super) fn update(args: UpdateArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let patch = Patch {
        title: args.title,
        description: text(args.description)?,
        kind: args.kind,
        priority: args.priority,
        status: args.status.as_deref().map(str::parse).transpose()?,
        assignee: assignee(town, args.assignee)?,
        notes: args.notes,
        append_notes: args.append_notes,
        add_labels: args.add_label,
        remove_labels: args.remove_label,
    };
    let id = own_item(town, &args.item)?;
    if patch == Patch::default() {
        return Err(
            Problem::usage("no change is given").hint("`gt work update --help` lists the fields")
        );
    }
    let changed = Work::of(town).update(&id, &patch)?;
    let item = std::slice::from_ref(&changed.item);
    events::note_items(town, "work_updated", item, &patch.fields());
    tell_withdrawn(town, &changed);
    told(&changed.item, &format!("Changed {id}."), context)
}

pub(super) fn close(args: &CloseArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let items: Result<Vec<WorkId>, Problem> =
        args.items.iter().map(|item| own_item(town, item)).collect();
    let closed = Work::of(town).close_all(&items?, args.reason.as_deref())?;
    events::note_items(town, "work_closed", &closed, &[]);
    scheduler::wake(town);
    if context.json {
        let documents: Vec<_> = closed.iter().map(document).collect();
        return output::json(&documents);
    }
    for item in &closed {
        output::line(output::clean(&format!(
            "Closed {}: {}",
            item.id, item.title
        )))?;
    }
    Ok(())
}

pub(super) fn reopen(args: &ReopenArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let id = own_item(town, &args.item)?;
    let changed = Work::of(town).reopen(&id)?;
    let item = std::slice::from_ref(&changed.item);
    events::note_items(town, "work_reopened", item, &[]);
    tell_withdrawn(town, &changed);
    told(&changed.item, &format!("{id} is open again."), context)
}

/// Returns the id of an item that the caller may change.
fn own_item(town: &Town, text: &str) -> Result<WorkId, Problem> {
    let id = ids::full(town, text)?;
    town.authorize_item(&Work::of(town).get(&id)?)?;
    Ok(id)
}

/// Warns about a merge that was withdrawn because its item was reopened.
fn tell_withdrawn(town: &Town, changed: &ChangedItem) {
    if let Some(entry) = &changed.withdrawn {
        merge::emit_withdrawn(town, entry);
        output::warn(entry.withdrawal());
    }
}

pub(super) fn dep(command: &DepCommand, town: &Town, context: &Context) -> Result<(), Problem> {
    let work = Work::of(town);
    let (item, words) = match command {
        DepCommand::Add(args) => {
            let blocker = ids::full(town, &args.blocker)?;
            let item = work.add_dependency(&own_item(town, &args.item)?, &blocker)?;
            let words = format!("{} waits for {blocker}.", item.id);
            (item, words)
        }
        DepCommand::Remove(args) => {
            let blocker = ids::full(town, &args.blocker)?;
            let item = work.remove_dependency(&ids::full(town, &args.item)?, &blocker)?;
            let words = format!("{} no longer waits for {blocker}.", item.id);
            (item, words)
        }
    };
    told(&item, &words, context)
}

pub(super) fn import(args: &ImportArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let text = if args.file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map_err(|error| Problem::failed("cannot read standard input").caused_by(error))?;
        bytes
    } else {
        let path = context.around().current_dir.join(&args.file);
        std::fs::read(&path).map_err(|error| files::io_problem("read", &path, &error))?
    };
    let imported = {
        let _progress = ProgressLine::spinner("Taking over work items");
        Work::of(town).import(&text)?
    };
    for (line, why) in &imported.skipped {
        output::warn(format!("line {line} was skipped: {why}"));
    }
    for (item, blocker) in &imported.cyclic_dependencies {
        output::warn(match item == blocker {
            true => format!("{item} was not made to wait for itself"),
            false => {
                format!("{item} was not made to wait for {blocker}, which waits for {item} already")
            }
        });
    }
    for (item, parent) in &imported.cyclic_parents {
        output::warn(match item == parent {
            true => format!("{item} was not made a part of itself"),
            false => {
                format!("{item} was not made a part of {parent}, which is a part of {item} already")
            }
        });
    }
    let taken = imported.new + imported.updated + imported.unchanged;
    if taken == 0 && !imported.skipped.is_empty() {
        return Err(Problem::failed("no line could be taken over")
            .hint("each line is a JSON object with an `id` and a `title`"));
    }
    if context.json {
        let skipped: Vec<usize> = imported.skipped.iter().map(|(line, _)| *line).collect();
        let parents = imported.cyclic_parents.iter();
        let parents = parents.map(|(item, parent)| json!({"item": item, "parent": parent}));
        let circles: Vec<Value> = imported
            .cyclic_dependencies
            .iter()
            .map(|(item, blocker)| json!({"item": item, "blocker": blocker}))
            .chain(parents)
            .collect();
        return output::json(&json!({
            "new": imported.new,
            "updated": imported.updated,
            "unchanged": imported.unchanged,
            "skipped_lines": skipped,
            "circles": circles,
        }));
    }
    output::line(format!(
        "{} new, {} updated, {} as they were.",
        imported.new, imported.updated, imported.unchanged
    ))
}

fn told(item: &Item, words: &str, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&document(item));
    }
    output::line(output::clean(words))
}

/// Resolves an agent by any target. Empty text stays empty.
fn assignee(town: &Town, given: Option<String>) -> Result<Option<String>, Problem> {
    match given.as_deref() {
        None => Ok(None),
        Some("") => Ok(Some(String::new())),
        Some(text) => Ok(Some(target::resolve(town, text)?.address())),
    }
}

/// Returns the given text, or reads standard input for `-`.
fn text(given: Option<String>) -> Result<Option<String>, Problem> {
    match given.as_deref() {
        Some("-") => standard_input().map(Some),
        _ => Ok(given),
    }
}

fn standard_input() -> Result<String, Problem> {
    stdin::check_present()?;
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Problem::failed("cannot read standard input").caused_by(error))?;
    Ok(text)
}
