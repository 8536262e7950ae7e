//! `gt task cleanup`.

use super::super::CommandResult;
use super::confirm;
use super::pausing::{done, warn};
use crate::context::Context;
use crate::error;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::workflow::task::{self, CleanupOptions, CleanupPlan};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::process::ExitCode;

/// Clean up a task: remove its container, worktree and branches, and reopen its item
///
/// Lists everything that it will do, and asks first. Work that exists nowhere else is not removed:
/// uncommitted files, and commits that are not in the base, not pushed and not in the merge queue.
/// The remote's branch is removed only if it is in the base. The next call completes a clean-up
/// that was interrupted.
#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Only show what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Close the item
    #[arg(long)]
    close: bool,
    /// Clean up even if there is unsaved work, which is kept under refs/gt/saved/; also remove the
    /// remote's branch
    #[arg(long)]
    force: bool,
}

pub(super) fn run(town: &Town, args: &CleanupArgs, context: &Context) -> CommandResult {
    let options = CleanupOptions {
        close: args.close,
        force: args.force,
    };
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let may_ask = at_a_terminal && !context.json;
    if !args.dry_run && !args.yes && !may_ask {
        return Err(
            Problem::usage("there is no terminal to ask for a confirmation")
                .hint("`--dry-run` shows what would be done, `--yes` does it"),
        );
    }
    let plan = task::cleanup_plan(town, &args.bead, options)?;
    if args.dry_run {
        return tell_plan(&plan, context);
    }
    if let Some(refusal) = plan.refusal {
        return Err(refusal);
    }
    if !context.json {
        show(&plan)?;
    }
    if !args.yes && !plan.steps.is_empty() && !confirm("Continue? [y/N] ") {
        output::line("Nothing was done.")?;
        return Ok(ExitCode::SUCCESS);
    }
    context.catch_interrupts();
    let cleaned = task::cleanup(town, &args.bead, options)?;
    if context.json {
        let mut document = document(&cleaned.plan, true);
        document["saved"] = json!(cleaned.saved);
        output::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    if cleaned.plan.steps.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    done(&format!("{} is cleaned up.", args.bead))?;
    for name in &cleaned.saved {
        output::line(format!("  Work is kept as {}.", output::clean(name)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_plan(plan: &CleanupPlan, context: &Context) -> CommandResult {
    if context.json {
        output::json(&document(plan, false))?;
        return Ok(ExitCode::SUCCESS);
    }
    show(plan)?;
    if let Some(refusal) = &plan.refusal {
        output::line(format!("Refused: {refusal}."))?;
        for hint in refusal.hints() {
            output::line(format!("  {hint}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(plan: &CleanupPlan) -> Result<(), Problem> {
    warn(&plan.warnings);
    if plan.steps.is_empty() {
        output::line(format!("There is nothing of {} to clean up.", plan.id))?;
    } else {
        output::line(format!("Cleaning up {} will:", plan.id))?;
    }
    let paint = Paint::for_stdout();
    for step in &plan.steps {
        let what = paint.bold(&output::clean(&step.what));
        output::line(format!("  {} {what}", step.action.words()))?;
    }
    for kept in &plan.kept {
        output::line(format!("  {} {}", paint.dim("stays:"), output::clean(kept)))?;
    }
    Ok(())
}

fn document(plan: &CleanupPlan, is_done: bool) -> Value {
    let steps = plan.steps.iter().map(|step| {
        json!({
            "action": step.action.as_str(),
            "what": step.what,
            "text": format!("{} {}", step.action.words(), step.what),
        })
    });
    let refused = plan.refusal.as_ref().map(error::as_json);
    output::without_nulls(json!({
        "bead": plan.id,
        "agent": plan.agent,
        "done": is_done,
        "steps": steps.collect::<Vec<Value>>(),
        "kept": plan.kept,
        "refused": refused.map(|refused| refused["error"].clone()),
        "warnings": plan.warnings,
    }))
}
