//! `gt mq run`.

use super::super::{CommandResult, ids};
use super::showing;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::merge::{Merge, MergeRefusal, MergeStatus, list_some};
use gt_core::work::WorkId;
use gt_core::{Problem, merge::PREFIX};
use gt_town::Town;
use gt_town::records::items::Work;
use gt_town::repo::rig;
use gt_town::supervision::scheduler;
use gt_town::workflow::merge::{self, MergeMessage, RunOptions, background};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Merge the waiting entries: check for conflicts, validate, then move the base
///
/// The rig's commands (`validate` under [rigs.RIG.merge] in town.toml) must succeed on the merged
/// commit before the base moves to it. An entry that cannot be merged gets a repair item.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Rigs, or entries of the queue [default: all rigs]
    #[arg(value_name = "RIG|ID")]
    what: Vec<String>,
    /// Merge at most one entry of each rig
    #[arg(long)]
    once: bool,
    /// Only predict the results: no command runs, and nothing changes
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &RunArgs, town: &Town, context: &Context) -> CommandResult {
    let wanted = wanted(args, town)?;
    if args.dry_run {
        return predict(&wanted, town, context);
    }
    context.catch_interrupts();
    // Progress lines are for people; with `--json`, stdout has only JSON.
    let tell = |note: MergeMessage<'_>| match note {
        MergeMessage::Warning(text) => output::warn(text),
        MergeMessage::Progress(_) if context.json => {}
        // A closed stdout does not stop the merge: the results are also stored.
        MergeMessage::Progress(text) => drop(output::line(output::clean(text))),
    };
    let mut all: Vec<Merge> = Vec::new();
    let mut failed: Option<Problem> = None;
    for (rig, only) in &wanted {
        let options = RunOptions {
            only: only.clone(),
            once: args.once,
        };
        let result = merge::run(town, rig, &options, &tell, |merge| all.push(merge));
        if let Err(problem) = result {
            failed.get_or_insert(problem);
            if town.around().cancel.is_set() {
                break;
            }
        }
    }
    let not_merged: Vec<&str> = all
        .iter()
        .filter(|merge| merge.status != MergeStatus::Merged)
        .map(|merge| merge.id.as_str())
        .collect();
    let broken = not_merged.len();
    if context.json {
        output::json(&all)?;
    } else if all.is_empty() && failed.is_none() {
        output::line("Nothing waits to be merged.")?;
    } else {
        let paint = Paint::for_stdout();
        let merged = all.len() - broken;
        output::line(paint.bold(&format!("{merged} merged, {broken} not.")))?;
    }
    let told = tell_stuck(&wanted, town);
    match failed {
        // This problem takes precedence: it is why the run is incomplete. The next run reports
        // stuck entries again.
        Some(problem) => Err(problem),
        None if told.is_err() => told.map(|()| ExitCode::SUCCESS),
        None if broken > 0 => Err(Problem::failed(format!(
            "{broken} of {} could not be merged",
            all.len()
        ))
        .hint(format!(
            "`gt mq status {}` shows why, and the item that repairs it",
            not_merged[0]
        ))),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Leaves the caller's session and starts the process that merges in the background.
pub(in crate::commands) fn merge_detached(rig: &str, context: &Context) -> CommandResult {
    background::detach(&context.town()?, rig)?;
    Ok(ExitCode::SUCCESS)
}

/// Merges the queue of a rig in the background. Its output is a log: every line has its time.
pub(in crate::commands) fn merge_in_background(rig: &str, context: &Context) -> CommandResult {
    let town = context.town()?;
    context.catch_interrupts();
    let log = |text: &str| {
        let at = town.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ");
        // A failure to write the log does not stop the merge.
        drop(output::line(format!("{at} {}", output::clean(text))));
    };
    let tell = |note: MergeMessage<'_>| match note {
        MergeMessage::Warning(text) => log(&format!("warning: {text}")),
        MergeMessage::Progress(text) => log(text),
    };
    let result = background::run(&town, rig, &tell);
    if let Err(problem) = &result {
        let causes = problem.causes().iter().map(|cause| format!(": {cause}"));
        log(&format!("error: {problem}{}", causes.collect::<String>()));
    }
    // Merged work closes items that others may wait for.
    scheduler::wake(&town);
    // The log has the problem, and no process reads the exit code.
    Ok(ExitCode::SUCCESS)
}

/// Warns about entries that no run takes up by itself, for rigs that are run as a whole.
fn tell_stuck(wanted: &BTreeMap<String, Vec<WorkId>>, town: &Town) -> Result<(), Problem> {
    for (rig, _) in wanted.iter().filter(|(_, only)| only.is_empty()) {
        for (merge, repair) in Work::of(town).stuck_merges(Some(rig))? {
            output::warn(showing::needs_person(&merge, repair.as_ref()));
        }
    }
    Ok(())
}

/// Returns the wanted entries by rig. Parked and docked rigs are left out unless named.
fn wanted(args: &RunArgs, town: &Town) -> Result<BTreeMap<String, Vec<WorkId>>, Problem> {
    let mut wanted: BTreeMap<String, Vec<WorkId>> = BTreeMap::new();
    if args.what.is_empty() {
        let rigs = town.registry().rigs.iter();
        let at_work = rigs.filter(|(_, entry)| entry.is_in_service());
        wanted.extend(at_work.map(|(name, _)| (name.clone(), Vec::new())));
    }
    let mut whole: Vec<&String> = Vec::new();
    for word in &args.what {
        if town.registry().rigs.contains_key(word) {
            whole.push(word);
            continue;
        }
        let is_id = word.starts_with(&format!("{PREFIX}-"));
        if !is_id {
            // The error lists the rigs.
            rig::entry(town, word)?;
        }
        let merge = Work::of(town).merge(&ids::full(town, word)?)?;
        if !merge.status.is_waiting() {
            let verb = match merge.status {
                MergeStatus::Held => "approve",
                _ => "retry",
            };
            let status = merge.status.as_str();
            return Err(Problem::conflict(format!("{} is {status}", merge.id))
                .hint(format!("`gt mq {verb} {}` queues it again", merge.id)));
        }
        wanted.entry(merge.rig).or_default().push(merge.id);
    }
    for rig in whole {
        wanted.insert(rig.clone(), Vec::new());
    }
    Ok(wanted)
}

fn predict(
    wanted: &BTreeMap<String, Vec<WorkId>>,
    town: &Town,
    context: &Context,
) -> CommandResult {
    let mut foreseen: Vec<(Merge, Option<MergeRefusal>)> = Vec::new();
    for (rig, only) in wanted {
        foreseen.extend(merge::predict(town, rig, only)?);
    }
    if context.json {
        let documents: Vec<Value> = foreseen
            .iter()
            .map(|(merge, refusal)| {
                let mut document = json!(merge);
                document["would"] =
                    json!(refusal.as_ref().map_or("merge", |no| no.status.as_str()));
                if let Some(refusal) = refusal {
                    document["reason"] = json!(refusal.reason);
                    document["files"] = json!(refusal.files);
                }
                document
            })
            .collect();
        output::json(&documents)?;
    } else if foreseen.is_empty() {
        output::line("Nothing waits to be merged.")?;
    } else {
        for (merge, refusal) in &foreseen {
            let what = match refusal {
                None => "would be validated and merged".to_owned(),
                Some(refusal) => format!("{}: {}", refusal.reason, list_some(&refusal.files)),
            };
            let line = format!("{} {}: {what}", merge.id, merge.branch);
            output::line(output::clean(&line))?;
        }
    }
    tell_stuck(wanted, town)?;
    Ok(ExitCode::SUCCESS)
}
