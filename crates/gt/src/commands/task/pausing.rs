//! `gt task pause` and `gt task resume`.

use super::super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::merge::short;
use gt_core::nudge::NotNow;
use gt_core::startup::Conversation;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::workflow::task::{self, Paused, ResumeOptions, Resumed, Undone};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Interrupt a task's agent, to continue later
///
/// Interrupts its turn; the program and its conversation stay. Uncommitted changes become a commit
/// `wip: paused session`. Messages for the agent wait until `gt task resume`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Reason, shown with the task
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Resume a task that was paused, or whose agent has ended
///
/// Undoes the commit of the pause, if it is the last commit of the branch and was not pushed, so
/// that its changes are uncommitted again. A running agent is told to continue; an ended one is
/// started again in the same conversation.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Leave the commit of the pause as it is
    #[arg(long)]
    keep_wip: bool,
    /// Message to the agent [default: continue]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Continue if an init command fails
    #[arg(long)]
    continue_on_failure: bool,
}

pub(super) fn pause(town: &Town, args: &PauseArgs, context: &Context) -> CommandResult {
    context.catch_interrupts();
    let paused = task::pause(town, &args.bead, args.reason.as_deref())?;
    if context.json {
        output::json(&paused_document(&paused))?;
        return Ok(ExitCode::SUCCESS);
    }
    warn(&paused.warnings);
    let what = match (paused.interrupted, paused.asks) {
        (true, _) => "was stopped and is paused",
        (false, true) => "is paused; its question is still open",
        (false, false) => "is paused; it was idle",
    };
    done(&format!("{} {what}.", paused.id))?;
    if let Some(wip) = &paused.wip {
        output::line(format!("  What was not committed is in {}.", short(wip)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn paused_document(paused: &Paused) -> Value {
    output::without_nulls(json!({
        "bead": paused.id,
        "agent": paused.agent,
        "state": "paused",
        "interrupted": paused.interrupted,
        "asks": paused.asks,
        "wip": paused.wip,
        "warnings": paused.warnings,
    }))
}

pub(super) fn resume(town: &Town, args: ResumeArgs, context: &Context) -> CommandResult {
    context.catch_interrupts();
    let options = ResumeOptions {
        keep_wip: args.keep_wip,
        prompt: args.prompt,
        continue_on_failure: args.continue_on_failure,
    };
    let resumed = task::resume(town, &args.bead, &options)?;
    match context.json {
        true => output::json(&resumed_document(&resumed))?,
        false => show_resumed(&resumed)?,
    }
    match resumed.still_paused {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => Err(still_paused(&resumed, why)),
    }
}

fn still_paused(resumed: &Resumed, why: NotNow) -> Problem {
    let (id, agent) = (&resumed.id, &resumed.agent);
    Problem::failed(format!(
        "{id} is still paused: the message is in its input line and could not be submitted: {}",
        why.describe()
    ))
    .hint(format!(
        "`gt attach {agent}` shows it; Enter there submits it"
    ))
    .hint(format!("`gt task resume {id}` tries it again"))
}

fn show_resumed(resumed: &Resumed) -> Result<(), Problem> {
    warn(&resumed.warnings);
    let what = match &resumed.started {
        None => "continues",
        Some(Conversation::New) => "was started again, in a new conversation",
        Some(_) => "was started again and resumed its conversation",
    };
    if resumed.still_paused.is_none() {
        done(&format!("{} {what}.", resumed.id))?;
    }
    match &resumed.wip {
        Undone::Nothing => {}
        Undone::Commit(wip) => output::line(format!(
            "  The commit {} is undone; its files are as they were.",
            short(wip)
        ))?,
        Undone::Kept(wip, why) => {
            output::line(format!("  The commit {} stays: {why}.", short(wip)))?;
        }
    }
    if let Some(why) = resumed.waits {
        output::line(format!(
            "  The message is delivered later: {}.",
            why.describe()
        ))?;
    }
    Ok(())
}

fn resumed_document(resumed: &Resumed) -> Value {
    let conversation = resumed.started.as_ref().map(|it| match it {
        Conversation::New => "new",
        Conversation::Resume(_) => "resumed",
        Conversation::Continue => "continued",
        Conversation::Fork(_) => "forked",
    });
    let (undone, kept) = match &resumed.wip {
        Undone::Nothing => (None, None),
        Undone::Commit(wip) => (Some(wip), None),
        Undone::Kept(wip, why) => (None, Some(json!({"commit": wip, "reason": why}))),
    };
    output::without_nulls(json!({
        "bead": resumed.id,
        "agent": resumed.agent,
        "container": resumed.container,
        "session": resumed.session,
        "started": resumed.started.is_some(),
        "conversation": conversation,
        "undone": undone,
        "kept": kept,
        "still_paused": resumed.still_paused.map(NotNow::describe),
        "queued": resumed.waits.map(NotNow::describe),
        "warnings": resumed.warnings,
    }))
}

pub(super) fn warn(warnings: &[String]) {
    for warning in warnings {
        output::warn(warning);
    }
}

pub(super) fn done(words: &str) -> Result<(), Problem> {
    let paint = Paint::for_stdout();
    output::line(format!("{} {}", paint.green("✓"), output::clean(words)))
}
