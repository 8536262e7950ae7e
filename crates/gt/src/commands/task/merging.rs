//! `gt task merge` and `gt task pr`: two ways to bring a task's branch into the base.

use super::super::CommandResult;
use super::confirm;
use super::pausing::{done, warn};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::merge::{MergeStatus, list_some, short};
use gt_core::shell;
use gt_core::work::WorkId;
use gt_core::{Problem, ProblemKind};
use gt_town::Town;
use gt_town::workflow::merge::{MergeMessage, MergePlan};
use gt_town::workflow::task::{self, HandedIn, PullRequestOptions};
use serde_json::json;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Submit a task's branch to the merge queue, and wait for the result
///
/// Submits the branch as the agent's own `gt done` does, but the agent keeps running. The queue
/// runs in the background: it checks for conflicts, validates, and moves the base. A branch that
/// conflicts with the base is not queued; run `gt task update` first. The first merge of a rig
/// lists its steps and asks for confirmation.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Do not ask; the next merge in this rig does not ask either
    #[arg(long)]
    yes: bool,
    /// Only show what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// Open a pull request for a task's branch with gh
///
/// Pushes the branch first. If it already has an open pull request, the command prints its address.
#[derive(Debug, Args)]
pub(crate) struct PrArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Open it as a draft
    #[arg(long)]
    draft: bool,
    /// The title [default: the item's]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// The text [default: the item's description, and its id]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    body: Option<String>,
    /// Only show what would run: nothing is pushed
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn merge(town: &Town, args: &MergeArgs, context: &Context) -> CommandResult {
    let plan = task::merge_plan(town, &args.bead)?;
    if args.dry_run {
        return show_plan(&plan, args, context);
    }
    if !plan.is_confirmed {
        if !args.yes && !ask(&plan, args, context)? {
            output::line("Nothing was done.")?;
            return Ok(ExitCode::SUCCESS);
        }
        plan.remember(town)?;
    }
    context.catch_interrupts();
    let tell = |note: MergeMessage<'_>| match note {
        MergeMessage::Warning(text) => output::warn(text),
        MergeMessage::Progress(_) if context.json => {}
        MergeMessage::Progress(text) => drop(output::line(output::clean(text))),
    };
    let handed = task::hand_in(town, &args.bead, &tell)?;
    let merge = handed.merge.as_ref();
    if context.json {
        output::json(&output::without_nulls(json!({
            "bead": handed.id,
            "result": handed.status(),
            "branch": handed.branch,
            "base": handed.base,
            "merge": merge.map(|merge| &merge.id),
            "commit": merge.and_then(|merge| merge.merged_as.as_ref()),
            "reason": merge.and_then(|merge| merge.reason.as_ref()),
            "delivery": (handed.status() == MergeStatus::Merged).then_some(&handed.delivery),
            "log": merge.and_then(|merge| merge.log.as_ref()),
            "repair": merge.and_then(|merge| merge.repair.as_ref()),
            "files": handed.files,
        })))?;
    }
    if handed.status() != MergeStatus::Merged {
        return Err(not_merged(&handed));
    }
    if !context.json {
        let commit = merge.and_then(|merge| merge.merged_as.as_deref());
        let by = commit.map_or_else(String::new, |commit| format!(" as {}", short(commit)));
        done(&format!("{} is in {}{by}.", handed.branch, handed.base))?;
        output::line(format!("  {}", output::clean(&handed.delivery)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_plan(plan: &MergePlan, args: &MergeArgs, context: &Context) -> CommandResult {
    if context.json {
        let steps = plan.steps.iter().map(|step| json!({ "text": step }));
        output::json(&json!({
            "bead": args.bead,
            "rig": plan.rig,
            "branch": plan.branch,
            "base": plan.base,
            "steps": steps.collect::<Vec<_>>(),
            "confirmed": plan.is_confirmed,
        }))?;
    } else {
        tell_steps(plan, &args.bead)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_steps(plan: &MergePlan, bead: &WorkId) -> Result<(), Problem> {
    output::line(format!("Merging {bead} will:"))?;
    for step in &plan.steps {
        output::line(format!("  {}", output::clean(step)))?;
    }
    Ok(())
}

/// Describes the first merge of a rig, and asks for confirmation. Fails without a terminal.
fn ask(plan: &MergePlan, args: &MergeArgs, context: &Context) -> Result<bool, Problem> {
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if at_a_terminal && !context.json {
        tell_steps(plan, &args.bead)?;
        return Ok(confirm(
            "Continue, and do not ask again in this rig? [y/N] ",
        ));
    }
    let problem = Problem::new(
        ProblemKind::Unconfirmed,
        format!("the first merge in {} has to be confirmed", plan.rig),
    );
    let problem = plan
        .steps
        .iter()
        .fold(problem, |problem, step| problem.cause(output::clean(step)));
    Err(problem
        .hint(format!(
            "`gt task merge {} --yes` confirms it and merges",
            args.bead
        ))
        .hint("`confirm = false` under [merge] in town.toml never asks"))
}

fn not_merged(handed: &HandedIn) -> Problem {
    let HandedIn {
        id, branch, base, ..
    } = handed;
    let files = output::clean(&list_some(&handed.files));
    let with_files = |problem: Problem| match files.is_empty() {
        true => problem,
        false => problem.cause(files.clone()),
    };
    let Some(merge) = &handed.merge else {
        let problem = Problem::failed(format!(
            "{branch} is in conflict with {base}, and was not queued"
        ));
        return with_files(problem).hint(format!("`gt task update {id}` brings them together"));
    };
    let reason = merge.reason.as_deref().unwrap_or(merge.status.as_str());
    let problem = Problem::failed(format!(
        "{branch} was not merged: {}",
        output::clean(reason)
    ));
    with_files(problem).hint(format!(
        "`gt mq status {}` shows why; `gt task merge {id}` tries again",
        merge.id
    ))
}

pub(super) fn pull_request(town: &Town, args: PrArgs, context: &Context) -> CommandResult {
    context.catch_interrupts();
    let options = PullRequestOptions {
        draft: args.draft,
        title: args.title,
        body: args.body,
        dry_run: args.dry_run,
    };
    let request = task::pull_request(town, &args.bead, &options)?;
    if context.json {
        output::json(&output::without_nulls(json!({
            "bead": request.id,
            "branch": request.branch,
            "base": request.base,
            "url": request.url,
            "created": request.created,
            "dry_run": args.dry_run,
            "command": args.dry_run.then_some(&request.words),
            "body": args.dry_run.then_some(&request.body),
            "warnings": request.warnings,
        })))?;
        return Ok(ExitCode::SUCCESS);
    }
    warn(&request.warnings);
    if args.dry_run {
        let words: Vec<String> = request
            .words
            .iter()
            .map(|word| shell::quote(word))
            .collect();
        output::line(format!("{} would be pushed. Then:", request.branch))?;
        output::line(output::clean(&words.join(" ")))?;
        output::line("with this text:")?;
        for line in request.body.lines() {
            output::line(format!("    {}", output::clean(line)))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let url = request.url.as_deref().unwrap_or("made");
    match request.created {
        true => done(&format!("{}: {url}", request.branch))?,
        false => done(&format!("{} has a pull request: {url}", request.branch))?,
    }
    Ok(ExitCode::SUCCESS)
}
