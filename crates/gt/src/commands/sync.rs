use super::Answer;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_town::sync;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Make what is remembered agree with tmux
///
/// Agents that run and were never written down get a record, and records whose
/// container is gone get an end. It may be called at any time, and by many at once.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Only say what would be written
    #[arg(long)]
    dry_run: bool,
    /// Say it also where everything agrees
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &SyncArgs, context: &Context) -> Answer {
    let town = context.town()?;
    let lines = sync::sync(&town, args.dry_run)?;
    if context.json {
        let documents: Vec<Value> = lines
            .iter()
            .map(|(change, record)| json!({"change": change.word(), "record": record}))
            .collect();
        output::json(&documents)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (change, record) in &lines {
        let outcome = record.outcome.map_or("running", |outcome| outcome.word());
        output::line(format!("{} {}: {outcome}", change.word(), record.id))?;
    }
    if lines.is_empty() && args.verbose {
        output::line("Everything agrees.")?;
    }
    Ok(ExitCode::SUCCESS)
}
