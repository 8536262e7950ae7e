use super::{Answer, start};
use crate::context::Context;
use crate::error;
use crate::output::progress::Progress;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::stop::{self, StopOptions, Stopped};
use gt_town::{Town, target};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Stop agents of any role
///
/// Each is asked to leave; then its processes get TERM, two seconds, and KILL; then
/// the container goes. Panes that you opened beside the agent stay.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// Do not ask the agent first
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: StopArgs, context: &Context) -> Answer {
    let town = context.town()?;
    let mut identities = Vec::new();
    for text in &args.targets {
        identities.push(target::resolve(&town, text)?);
    }
    stop_many(&town, &identities, args.force, context)
}

/// Stops agents together, and tells what came of each.
pub(crate) fn stop_many(
    town: &Town,
    identities: &[Identity],
    force: bool,
    context: &Context,
) -> Answer {
    let mut documents = Vec::new();
    let answer = stop_into(town, identities, force, context, &mut documents);
    if context.json {
        output::json(&documents)?;
    } else if identities.is_empty() {
        output::line("Nothing runs there.")?;
    }
    answer
}

/// The same for one of several groups: the JSON is collected, not printed.
pub(crate) fn stop_into(
    town: &Town,
    identities: &[Identity],
    force: bool,
    context: &Context,
    documents: &mut Vec<Value>,
) -> Answer {
    if identities.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let options = StopOptions {
        force,
        ..StopOptions::default()
    };
    let spinner = Progress::spinner(&format!("stopping {}", identities.len()));
    let results = stop::stop_all(town, identities, options);
    drop(spinner);
    let paint = Paint::for_stdout();
    let mut failures: Vec<(&Identity, &Problem)> = Vec::new();
    for (identity, result) in &results {
        match result {
            Ok(stopped) => {
                documents.push(stopped_json(stopped));
                if !context.json {
                    output::line(stopped_line(stopped, paint))?;
                }
            }
            Err(problem) => {
                let mut document = error::as_json(problem);
                document["agent"] = json!(identity);
                document["stopped"] = json!(false);
                documents.push(document);
                failures.push((identity, problem));
            }
        }
    }
    start::finish(&failures, results.len(), "stopped")
}

fn stopped_line(stopped: &Stopped, paint: Paint) -> String {
    let mut line = format!(
        "{} {} stopped",
        paint.green("✓"),
        paint.bold(&stopped.identity.address())
    );
    if stopped.killed > 0 {
        line.push_str(&format!(" ({} processes had to be killed)", stopped.killed));
    }
    if stopped.kept_panes > 0 {
        line.push_str(&format!(
            "; {} stays for {} of your own panes",
            stopped.container, stopped.kept_panes
        ));
    }
    line
}

fn stopped_json(stopped: &Stopped) -> Value {
    json!({
        "agent": stopped.identity,
        "stopped": true,
        "container": stopped.container,
        "graceful": stopped.graceful,
        "killed": stopped.killed,
        "kept_panes": stopped.kept_panes,
    })
}
