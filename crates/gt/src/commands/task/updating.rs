//! `gt task update` and `gt task abort-merge`.

use super::super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::merge::all_of;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::catalog::harnesses;
use gt_town::workflow::task::{self, UpdateResult, Updated};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Merge the base into a task's branch
///
/// Without conflicts the branch is merged at once. With conflicts the merge is started in the
/// worktree, and an agent in the window `merge` resolves the conflicting files; the command exits
/// with 1, as does every further call until the merge is committed. Conflicts under .beads/ do not
/// count: the branch keeps its own files.
#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Continue if an init command fails while a container is made for the conflicts
    #[arg(long)]
    continue_on_failure: bool,
}

/// Abort a merge in a task's worktree
///
/// Restores the worktree to the state before `gt task update`, and closes the window `merge`.
#[derive(Debug, Args)]
pub(crate) struct AbortMergeArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
}

pub(super) fn update(town: &Town, args: &UpdateArgs, context: &Context) -> CommandResult {
    context.catch_interrupts();
    let updated = merged(town, &args.bead, args.continue_on_failure, context)?;
    if context.json {
        output::json(&document(&updated))?;
    } else if updated.result.is_done() {
        output::line(line(&updated, Paint::for_stdout()))?;
    }
    match updated.result.is_done() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(conflict(town, &updated)),
    }
}

/// Updates the branch, and prints warnings.
pub(super) fn merged(
    town: &Town,
    id: &WorkId,
    continue_on_failure: bool,
    context: &Context,
) -> Result<Updated, Problem> {
    let updated = task::update(town, id, continue_on_failure)?;
    if !context.json {
        for warning in &updated.warnings {
            output::warn(warning);
        }
    }
    Ok(updated)
}

pub(super) fn line(updated: &Updated, paint: Paint) -> String {
    let (base, id) = (&updated.base, &updated.id);
    let words = match (updated.result, updated.commits) {
        (UpdateResult::Merged, 1) => format!("{id}: 1 commit of {base} merged."),
        (UpdateResult::Merged, commits) => format!("{id}: {commits} commits of {base} merged."),
        _ => format!("{id} is up to date with {base}."),
    };
    format!("{} {}", paint.green("✓"), output::clean(&words))
}

/// Returns the problem of a branch that could not be updated automatically.
pub(super) fn conflict(town: &Town, updated: &Updated) -> Problem {
    let id = &updated.id;
    let resolver = updated.resolver.as_ref().map(|harness| {
        let preset = harnesses::resolve(town, harness);
        preset.map_or_else(|_| harness.clone(), |preset| preset.value.title)
    });
    let words = match (resolver, updated.result, updated.files.is_empty()) {
        (Some(title), ..) => format!("Conflicts detected. {title} started to resolve."),
        (None, UpdateResult::Merging, true) => {
            format!("a merge is under way in {id}: all is resolved, and not committed yet")
        }
        (None, UpdateResult::Merging, false) => {
            format!("a merge is under way in {id}, and not all is resolved")
        }
        (None, ..) => "Conflicts detected, and no agent resolves them.".to_owned(),
    };
    let mut problem = Problem::failed(words);
    if !updated.files.is_empty() {
        problem = problem.cause(output::clean(&all_of(&updated.files)));
    }
    problem
        .hint(format!(
            "`gt task attach {id} --skip` goes there: see its window merge; then try again"
        ))
        .hint(format!("`gt task abort-merge {id}` aborts the merge"))
}

fn document(updated: &Updated) -> Value {
    output::without_nulls(json!({
        "bead": updated.id,
        "result": updated.result.as_str(),
        "branch": updated.branch,
        "base": updated.base,
        "commits": updated.commits,
        "files": updated.files,
        "resolver": updated.resolver,
        "warnings": updated.warnings,
    }))
}

pub(super) fn abort(town: &Town, args: &AbortMergeArgs, context: &Context) -> CommandResult {
    let files = task::abort_merge(town, &args.bead)?;
    if context.json {
        let document = json!({"bead": args.bead, "aborted": true, "files": files});
        output::json(&document)?;
    } else {
        let paint = Paint::for_stdout();
        let words = format!("the merge in {} was aborted.", args.bead);
        output::line(format!("{} {words}", paint.green("✓")))?;
    }
    Ok(ExitCode::SUCCESS)
}
