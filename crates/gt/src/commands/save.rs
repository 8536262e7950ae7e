use super::CommandResult;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_town::lifecycle::save::{self, SaveEntry};
use gt_town::records::items::Work;
use gt_town::supervision::daemon::{self, DaemonError};
use gt_town::supervision::scheduler;
use gt_town::supervision::upkeep::{self, Saving};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Save all containers, for `gt restore`
///
/// Windows, layouts, panes, folders, scrollback, and which conversation each agent is in.
/// A town saves itself after starts and stops, and every few minutes while anything runs.
/// Work items, mail and the merge queue are backed up along with it (.work/backups).
#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// List the saves
    #[arg(long)]
    list: bool,
}

/// Saves for tmux, which ignores the output: warnings and errors go to the log. With `timer`, saves
/// only if the newest save is old. Also does the other periodic work of a town, and restarts a
/// daemon that was killed.
pub(super) fn run_unattended(timer: bool, context: &Context) -> CommandResult {
    let town = context.town()?;
    let saving = match timer {
        true => Saving::IfDue,
        false => Saving::Now,
    };
    // Failures are logged by `upkeep`; the next call retries.
    let _ = upkeep::run(&town, saving);
    if daemon::running(&town).is_none() {
        scheduler::wake(&town);
    }
    if daemon::was_killed(&town) {
        match daemon::start(&town) {
            Ok(pid) => tracing::warn!("the daemon was killed; started again as process {pid}"),
            Err(DaemonError::Running(_)) => {}
            Err(DaemonError::Other(problem)) => tracing::error!("{}", problem.line()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(args: &SaveArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if args.list {
        return list(&save::list(&town), context);
    }
    let made = save::save(&town, false);
    let backed_up = Work::of(&town).back_up(None)?;
    let made = made?;
    for warning in made.iter().flat_map(|made| &made.warnings) {
        output::warn(warning);
    }
    if context.json {
        let answer = made.map(|made| {
            json!({
                "save": made.name, "containers": made.containers,
                "carried": made.carried, "bytes": made.bytes,
                "backup": backed_up.map(|backup| backup.path),
            })
        });
        output::json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    match made {
        Some(made) => {
            let carried = match made.carried {
                0 => String::new(),
                1 => ", and 1 that is not back yet".to_owned(),
                carried => format!(", and {carried} that are not back yet"),
            };
            let containers = match made.containers {
                1 => "1 container".to_owned(),
                many => format!("{many} containers"),
            };
            let (name, size) = (made.name, size(made.bytes as u64));
            output::line(format!("Saved {containers}{carried}: {name} ({size})"))?;
        }
        None => output::line("Nothing runs, so no container was saved.")?,
    }
    if let Some(backup) = backed_up {
        let (items, size) = (backup.items, size(backup.bytes));
        let path = backup.path.display();
        output::line(format!(
            "Backed up {items} work items and mails: {path} ({size})"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(entries: &[SaveEntry], context: &Context) -> CommandResult {
    for entry in entries {
        if let Err(problem) = &entry.save {
            output::warn(problem.to_string());
        }
    }
    if context.json {
        let documents: Vec<Value> = entries.iter().map(document).collect();
        output::json(&documents)?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        output::line("Nothing was saved yet.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["SAVE", "AGE", "CONTAINERS", "SIZE", "BY"]);
    for entry in entries {
        let Ok(save) = &entry.save else {
            let cells = [entry.name.as_str(), "", "damaged", &size(entry.bytes)];
            table.row(cells.map(Cell::from));
            continue;
        };
        let header = &save.header;
        let at = header.saved_at.parse::<jiff::Timestamp>();
        let by = if header.automatic { "itself" } else { "hand" };
        let cells = [
            entry.name.clone(),
            at.map_or_else(|_| String::new(), |at| output::age(at.as_second())),
            header.containers.to_string(),
            size(entry.bytes),
            by.to_owned(),
        ];
        table.row(cells.map(Cell::from));
    }
    output::print(&table.render(Paint::for_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn document(entry: &SaveEntry) -> Value {
    let Ok(save) = &entry.save else {
        return json!({"save": entry.name, "bytes": entry.bytes, "damaged": true});
    };
    let agents: Vec<&str> = save.containers.iter().map(|c| c.agent.as_str()).collect();
    json!({
        "save": entry.name,
        "saved_at": save.header.saved_at,
        "host": save.header.host,
        "automatic": save.header.automatic,
        "containers": save.header.containers,
        "agents": agents,
        "bytes": entry.bytes,
        "damaged": false,
    })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
