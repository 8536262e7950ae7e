mod recurring;

use super::{CommandResult, ids};
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::records::items::{QueuedAssignment, Work};
use gt_town::supervision::scheduler::{self, ScheduleRun};
use gt_town::workflow::schedule;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Work items that wait for a free polecat, and recurring work
///
/// If a limit is reached, `gt sling` puts items here. They start by priority as soon as the limits
/// of the town allow it. Recurring work creates and queues an item at each of its times.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ScheduleCommand {
    List(ListArgs),
    Add(recurring::AddArgs),
    Run(RunArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Remove(RemoveArgs),
}

/// List queued items in the order of their start and why each waits, and recurring work
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

/// Run the scheduler now: start every item that the limits allow
///
/// Without the command it starts by itself: when a polecat finishes or stops, and within
/// seconds if the daemon runs. With the name of recurring work, its item is queued first.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Recurring work that runs now, whether or not it is due
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Stop starting items from the queue; `gt sling` still starts an item if a slot is free
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {}

/// End a pause, and run the scheduler
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {}

/// Remove recurring work, or take items out of the queue; the items stay open
///
/// For example: gt schedule remove nightly gt-4k2qz
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Names of recurring work, and work items
    #[arg(required = true, value_name = "NAME|ITEM")]
    words: Vec<String>,
}

pub(crate) fn run(command: ScheduleCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        ScheduleCommand::List(ListArgs {}) => list(&town, context)?,
        ScheduleCommand::Add(args) => recurring::add(args, &town, context)?,
        ScheduleCommand::Run(args) => return run_now(&args, &town, context),
        ScheduleCommand::Pause(PauseArgs {}) => pause(&town, context)?,
        ScheduleCommand::Resume(ResumeArgs {}) => resume(&town, context)?,
        ScheduleCommand::Remove(args) => remove(&args, &town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the scheduler for a background process; failures are in the log.
pub(super) fn run_unattended(context: &Context) -> CommandResult {
    context.catch_interrupts();
    let town = context.town()?;
    let report = scheduler::run(&town)?;
    for (id, problem) in &report.failed {
        tracing::error!("{id} could not be started: {}", problem.line());
    }
    Ok(ExitCode::SUCCESS)
}

fn list(town: &Town, context: &Context) -> Result<(), Problem> {
    let waiting = schedule::waiting(town)?;
    let paused = schedule::paused(town)?;
    let recurring = recurring::list(town)?;
    if context.json {
        let entries = waiting.iter().enumerate();
        let queue: Vec<Value> = entries
            .map(|(place, (entry, reason))| document(place + 1, entry, reason.as_deref()))
            .collect();
        return output::json(&json!({
            "paused": paused,
            "running": scheduler::is_running(town),
            "queue": queue,
            "recurring": recurring.iter().map(recurring::document).collect::<Vec<_>>(),
        }));
    }
    if let Some(note) = &paused {
        let (by, age) = (&note.by, output::age_of(&note.at));
        output::line(format!(
            "Paused by {by} {age} ago; `gt schedule resume` continues it."
        ))?;
    }
    queue_table(&waiting)?;
    recurring::table(&recurring)
}

fn queue_table(waiting: &[(QueuedAssignment, Option<String>)]) -> Result<(), Problem> {
    if waiting.is_empty() {
        return output::line("Nothing waits.");
    }
    let mut table = Table::new(&["#", "ITEM", "PRIORITY", "RIG", "WAITS", "REASON", "TITLE"]);
    for (place, (entry, reason)) in waiting.iter().enumerate() {
        let mut reason = reason
            .clone()
            .unwrap_or_else(|| "it starts next".to_owned());
        if let Some(error) = &entry.last_error {
            reason = format!("{reason} ({error})");
        }
        let place = (place + 1).to_string();
        let priority = entry.item.priority.to_string();
        let age = output::age_of(&entry.queued_at);
        table.row([
            place.as_str().into(),
            entry.item.id.as_str().into(),
            priority.as_str().into(),
            entry.rig.as_str().into(),
            age.as_str().into(),
            reason.as_str().into(),
            entry.item.title.as_str().into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

fn document(place: usize, entry: &QueuedAssignment, reason: Option<&str>) -> Value {
    output::without_nulls(json!({
        "place": place,
        "bead": entry.item.id,
        "title": entry.item.title,
        "rig": entry.rig,
        "priority": entry.item.priority,
        "queued_at": entry.queued_at,
        "queued_by": entry.queued_by,
        "reason": reason,
        "holder": entry.holder,
        "failures": entry.failures,
        "last_error": entry.last_error,
        "not_before": entry.not_before,
        "options": entry.options,
    }))
}

fn run_now(args: &RunArgs, town: &Town, context: &Context) -> CommandResult {
    context.catch_interrupts();
    if let Some(name) = &args.name {
        recurring::run(name, town, context)?;
    }
    let report = scheduler::run(town)?;
    let waiting = schedule::waiting(town)?.len();
    if context.json {
        output::json(&run_document(&report, waiting))?;
    } else {
        tell(&report, waiting)?;
    }
    Ok(ExitCode::from(u8::from(!report.failed.is_empty())))
}

fn run_document(report: &ScheduleRun, waiting: usize) -> Value {
    let started: Vec<Value> = report.started.iter().map(super::sling::document).collect();
    let failed: Vec<Value> = report
        .failed
        .iter()
        .map(|(id, problem)| {
            let mut document = crate::error::as_json(problem);
            document["bead"] = json!(id);
            document
        })
        .collect();
    let removed: Vec<Value> = report
        .removed
        .iter()
        .map(|(id, reason)| json!({"bead": id, "reason": reason}))
        .collect();
    output::without_nulls(json!({
        "started": started,
        "failed": failed,
        "removed": removed,
        "waiting": waiting,
        "held": report.held,
    }))
}

fn tell(report: &ScheduleRun, waiting: usize) -> Result<(), Problem> {
    let paint = Paint::for_stdout();
    for slung in &report.started {
        output::line(super::sling::line(slung, paint))?;
    }
    for (id, reason) in &report.removed {
        output::line(format!("{id} leaves the queue: {reason}"))?;
    }
    for (id, problem) in &report.failed {
        output::line(format!("{} {id}: {}", paint.red("✗"), problem.line()))?;
    }
    let waits = match waiting {
        0 => "Nothing waits".to_owned(),
        1 => "1 item waits".to_owned(),
        many => format!("{many} items wait"),
    };
    output::line(match &report.held {
        Some(reason) => format!("{waits}: {reason}."),
        None if waiting > 0 => format!("{waits}; `gt schedule list` shows why."),
        None => format!("{waits}."),
    })
}

fn pause(town: &Town, context: &Context) -> Result<(), Problem> {
    let earlier = schedule::pause(town)?;
    if context.json {
        return output::json(&json!({"paused": schedule::paused(town)?}));
    }
    output::line(match earlier {
        Some(note) => format!("Paused already, by {}.", note.by),
        None => "Paused. `gt schedule resume` continues it.".to_owned(),
    })
}

fn resume(town: &Town, context: &Context) -> Result<(), Problem> {
    let was_paused = schedule::resume(town)?;
    scheduler::wake(town);
    if context.json {
        return output::json(&json!({"paused": null}));
    }
    output::line(match was_paused {
        true => "Resumed.",
        false => "It was not paused.",
    })
}

fn remove(args: &RemoveArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let known: Vec<String> = Work::of(town)
        .recurring()?
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    // A name such as `night-build` could be an item, too.
    let (names, items): (Vec<&String>, Vec<&String>) =
        args.words.iter().partition(|word| known.contains(word));
    let unknown = |word: &str| {
        Problem::not_found(format!(
            "{word} is neither in the queue nor the name of recurring work"
        ))
        .hint("`gt schedule list` shows both")
    };
    let ids: Result<Vec<WorkId>, Problem> = items
        .iter()
        .map(|word| match word.parse::<WorkId>() {
            Ok(_) => ids::full(town, word),
            Err(_) => Err(unknown(word)),
        })
        .collect();
    let ids = ids?;
    for id in &ids {
        if Work::of(town).queued_assignment(id)?.is_none() {
            return Err(unknown(id.as_str()));
        }
    }
    for id in &ids {
        schedule::remove(town, id)?;
        if !context.json {
            output::line(format!("{id} is no longer in the schedule; it stays open."))?;
        }
    }
    for name in &names {
        recurring::remove(name, town, context)?;
    }
    if context.json {
        let items = ids.iter().map(WorkId::as_str);
        let removed: Vec<&str> = items
            .chain(names.iter().map(|name| name.as_str()))
            .collect();
        output::json(&json!({"removed": removed}))?;
    }
    Ok(())
}
