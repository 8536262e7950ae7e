use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_core::sync::JournalChange;
use gt_town::lifecycle::epilogue;
use gt_town::lifecycle::stop::LeavingProcesses;
use gt_town::lifecycle::sync::{self, Synced};
use gt_town::records::items::Work;
use gt_town::records::sessions::Sessions;
use gt_town::terminal::tmux_hooks;
use gt_town::workflow::recovery;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Reconcile the recorded sessions with tmux
///
/// Records running agents that have no record, and ends the records of sessions whose container is
/// gone. It may be called at any time and concurrently; tmux calls it automatically whenever
/// containers come and go. With --verbose or VERBOSE=1 it also lists what it skips, and reports
/// that everything agrees.
///
/// Called by hand, it also resumes work of killed processes: waiting messages, and runs of the
/// merge queue.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Only show what would be written
    #[arg(long)]
    dry_run: bool,
    /// Another file for the index than <town>/.sessions/index.db [env: DATABASE_PATH]
    #[arg(long, value_name = "PATH")]
    database: Option<PathBuf>,
}

/// Waits for the end of an adopted program, and records it.
pub(super) fn record_end(pid: u32, context: &Context) -> CommandResult {
    let town = context.town()?;
    outlive_the_server();
    sync::settle_adopted_after(&town, pid);
    Ok(ExitCode::SUCCESS)
}

/// Does the deferred part of a handoff, once the session has ended: ends the processes that it left
/// running and writes its epilogue.
pub(super) fn settle(
    session: String,
    leaving: Option<LeavingProcesses>,
    context: &Context,
) -> CommandResult {
    let town = context.town()?;
    let sessions = Sessions::of(&town);
    if let Some(leaving) = leaving {
        leaving.end(&town);
    }
    tmux_hooks::renew(&town);
    epilogue::write(&town, &sessions, &[session]);
    sessions.tidy();
    Work::of(&town).tidy();
    Ok(ExitCode::SUCCESS)
}

/// Makes the journal agree with tmux, for a hook of tmux.
pub(super) fn run_for_hook(context: &Context) -> CommandResult {
    let town = context.town()?;
    outlive_the_server();
    sync::after_hook(&town, &Sessions::of(&town))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run(args: SyncArgs, context: &Context) -> CommandResult {
    let began = Instant::now();
    let town = context.town()?;
    let mut sessions = Sessions::of(&town);
    let variable = |name| context.around().var(name);
    let database = args
        .database
        .or_else(|| variable("DATABASE_PATH").map(PathBuf::from));
    let verbose = context.verbose || variable("VERBOSE").is_some_and(is_on);
    // A dry run creates no file.
    if let Some(path) = database.filter(|_| !args.dry_run) {
        sessions = sessions.with_database(&context.around().current_dir.join(path));
    }
    let rebuilt = match args.dry_run {
        true => None,
        false => sessions.compare_index()?,
    };
    let synced = sync::sync(&town, &sessions, args.dry_run)?;
    if !args.dry_run {
        // Lets other programs that read the index see the new records.
        sessions.tidy();
        recovery::resume_unattended(&town)?;
    }
    if context.json {
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        output::json(&document(&synced, rebuilt.as_deref(), milliseconds))?;
    } else {
        if let Some(reason) = rebuilt {
            output::line(format!("rebuilt the index: {reason}"))?;
        }
        tell(&synced, verbose)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the value of a variable enables a switch.
fn is_on(value: &str) -> bool {
    !matches!(value, "0" | "false" | "no" | "off")
}

/// Makes this process survive TERM and HUP. A server that ends sends TERM to the processes of its
/// hooks, exactly when there is most to record.
fn outlive_the_server() {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    for signal in [SIGHUP, SIGTERM] {
        // If this fails, the next sync records the changes.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}

fn document(synced: &Synced, rebuilt: Option<&str>, milliseconds: f64) -> Value {
    let count = |wanted: &[JournalChange]| {
        let lines = synced.lines.iter();
        lines.filter(|(change, _)| wanted.contains(change)).count()
    };
    let changes: Vec<Value> = synced
        .lines
        .iter()
        .map(|(change, record)| json!({"change": change.as_str(), "record": record}))
        .collect();
    let left_alone: Vec<Value> = synced
        .left_alone
        .iter()
        .map(|(container, why)| json!({"container": container, "reason": why}))
        .collect();
    let busy: Vec<String> = synced.busy.iter().map(gt_core::Identity::address).collect();
    json!({
        "created": count(&[JournalChange::Found]),
        "adopted": count(&[JournalChange::Adopted]),
        "renamed": count(&[JournalChange::Renamed]),
        "updated": count(&[JournalChange::Updated, JournalChange::Revived]),
        "stopped": count(&[JournalChange::Died, JournalChange::Exited, JournalChange::Gone]),
        "unchanged": synced.unchanged,
        "ms": (milliseconds * 100.0).round() / 100.0,
        "changes": changes,
        "left_alone": left_alone,
        "busy": busy,
        "rebuilt": rebuilt,
    })
}

fn tell(synced: &Synced, verbose: bool) -> Result<(), Problem> {
    for (change, record) in &synced.lines {
        let outcome = record.outcome.map_or("running", |outcome| outcome.as_str());
        output::line(format!("{} {}: {outcome}", change.as_str(), record.id))?;
    }
    for agent in &synced.busy {
        output::line(format!(
            "left alone {agent}: it is being started or stopped"
        ))?;
    }
    if !verbose {
        return Ok(());
    }
    for (container, why) in &synced.left_alone {
        output::line(format!("left alone {container}: {why}"))?;
    }
    if synced.lines.is_empty() && synced.busy.is_empty() {
        output::line("Everything agrees.")?;
    }
    Ok(())
}
