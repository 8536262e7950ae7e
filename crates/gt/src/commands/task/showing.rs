//! `gt task diff`.

use super::super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::workflow::task::{self, ChangedFile, Diff};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Show what a task has changed since its branch left the base
///
/// Includes uncommitted changes and untracked files, but no ignored files. It is git's own diff,
/// with your colours and your pager.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Only the changed files and the number of changed lines
    #[arg(long)]
    stat: bool,
}

pub(super) fn diff(town: &Town, args: &DiffArgs, context: &Context) -> CommandResult {
    let diff = task::diff(town, &args.bead)?;
    if context.json {
        output::json(&document(&diff, !args.stat)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Ctrl-C is for the pager: if this process ended first, the pager would stay on the terminal.
    let ignored = Arc::new(AtomicBool::new(false));
    // If this fails, Ctrl-C ends both.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, ignored);
    let status = diff
        .command(args.stat)
        .status()
        .map_err(|error| Problem::environment("cannot run git").caused_by(error))?;
    match status.success() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Problem::failed(format!("git ended with {status}"))),
    }
}

fn document(diff: &Diff<'_>, with_patch: bool) -> Result<Value, Problem> {
    let files = diff.files()?;
    let sum =
        |lines: fn(&ChangedFile) -> Option<u32>| -> u32 { files.iter().filter_map(lines).sum() };
    let patch = match with_patch {
        true => Some(diff.patch()?),
        false => None,
    };
    let all = files.iter().map(|file| {
        output::without_nulls(json!({
            "path": file.path,
            "from": file.from,
            "added": file.added,
            "removed": file.removed,
        }))
    });
    Ok(output::without_nulls(json!({
        "bead": diff.id,
        "branch": diff.branch,
        "base": diff.base,
        "merge_base": diff.merge_base,
        "added": sum(|file| file.added),
        "removed": sum(|file| file.removed),
        "files": all.collect::<Vec<Value>>(),
        "patch": patch,
    })))
}
