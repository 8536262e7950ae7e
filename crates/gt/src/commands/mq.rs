mod running;
mod showing;

use super::Answer;
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::merge::{Merge, PREFIX};
use gt_core::work::WorkId;
use gt_town::work::{Rejection, Work};
use gt_town::{Town, merge, rig};
use std::process::ExitCode;

/// The merge queue: branches of finished work, on their way into the base
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MqCommand {
    List(ListArgs),
    Status(StatusArgs),
    Run(running::RunArgs),
    Retry(RetryArgs),
    Reject(RejectArgs),
}

/// List what waits, in the order in which it is merged
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this rig alone
    #[arg(long)]
    rig: Option<String>,
    /// Also what is merged or rejected
    #[arg(long)]
    all: bool,
}

/// Show all of one entry
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[arg(value_name = "ID")]
    id: String,
}

/// Queue again what was in conflict or failed, as its branch is now
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    #[arg(value_name = "ID")]
    id: String,
}

/// Take an entry out of the queue: it will not be merged
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    #[arg(value_name = "ID")]
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: String,
    /// The work is still to be done: its item is open again, and not closed
    #[arg(long)]
    reopen: bool,
}

pub(crate) fn run(command: MqCommand, context: &Context) -> Answer {
    let town = context.town()?;
    match command {
        MqCommand::List(args) => {
            if let Some(name) = &args.rig {
                rig::entry(&town, name)?;
            }
            let merges = Work::of(&town).merges(args.rig.as_deref(), args.all)?;
            showing::list(&merges, context)?;
        }
        MqCommand::Status(args) => {
            let merge = Work::of(&town).merge(&entry(&town, &args.id)?)?;
            showing::one(&merge, &town, context)?;
        }
        MqCommand::Run(args) => return running::run(&args, &town, context),
        MqCommand::Retry(args) => {
            let merge = merge::retry(&town, &entry(&town, &args.id)?)?;
            told(&merge, &format!("{} is queued again.", merge.id), context)?;
        }
        MqCommand::Reject(args) => {
            let rejection = Rejection {
                reason: &args.reason,
                reopen: args.reopen,
            };
            let merge = merge::reject(&town, &entry(&town, &args.id)?, &rejection)?;
            let item = if args.reopen { "open again" } else { "closed" };
            let text = format!("{} is rejected; {} is {item}.", merge.id, merge.item);
            told(&merge, &text, context)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The id of an entry. Whoever names its item is told which one it has.
fn entry(town: &Town, text: &str) -> Result<WorkId, Problem> {
    let id: WorkId = text.parse().map_err(|_| {
        Problem::usage(format!("{text:?} is no id of a merge")).hint(format!(
            "such as {PREFIX}-7x0ha: `gt mq list --all` shows them"
        ))
    })?;
    match Work::of(town).merge_of(&id)? {
        Some(merge) => Err(
            Problem::not_found(format!("{id} is a work item, and no merge"))
                .hint(format!("the merge of it is {}", merge.id)),
        ),
        None => Ok(id),
    }
}

fn told(merge: &Merge, text: &str, context: &Context) -> Result<(), Problem> {
    match context.json {
        true => output::json(merge),
        false => output::line(text),
    }
}
