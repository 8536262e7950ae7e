mod running;
mod showing;

pub(super) use running::{merge_detached, merge_in_background};

use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::merge::{Merge, PREFIX, short};
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::records::items::{Rejection, Work};
use gt_town::repo::rig;
use gt_town::workflow::merge;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// The merge queue: branches of finished work that are merged into the base
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MqCommand {
    List(ListArgs),
    Status(StatusArgs),
    Run(running::RunArgs),
    Retry(RetryArgs),
    Diff(DiffArgs),
    Approve(ApproveArgs),
    Reject(RejectArgs),
    Pull(PullArgs),
}

/// List the waiting entries in the order of merging
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this rig
    #[arg(long)]
    rig: Option<String>,
    /// Include merged, rejected and withdrawn entries
    #[arg(long)]
    all: bool,
}

/// Show one entry in full
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The entry's id, or a prefix of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Queue a conflicting or failed entry again, with the current commit of its branch
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// The entry's id, or a prefix of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Print the changes of an entry against its base
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The entry's id, or a prefix of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Approve an entry that changes protected files, and queue it; only people may
///
/// `protected` under [rigs.RIG.merge] in town.toml names the files. The approval is for the present
/// commit of the branch; another commit is held again.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The entry's id, or a prefix of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Take an entry out of the queue: it will not be merged
#[derive(Debug, Args)]
pub(crate) struct RejectArgs {
    /// The entry's id, or a prefix of it
    #[arg(value_name = "ID")]
    id: String,
    /// The reason
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: String,
    /// Reopen the item instead of closing it
    #[arg(long)]
    reopen: bool,
}

/// Fast-forward your checkout to the merged work
///
/// Moves the base branch of the checkout that the rig was cloned from to the work that the queue
/// has merged, and updates its files if the branch is checked out. A checkout with uncommitted
/// changes, or with commits that the merged work lacks, is not changed.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The rig [default: that of this folder, or the only one]
    #[arg(value_name = "RIG")]
    rig: Option<String>,
    /// Another checkout than the one that the rig was cloned from
    #[arg(long, value_name = "DIR")]
    checkout: Option<PathBuf>,
}

pub(crate) fn run(command: MqCommand, context: &Context) -> CommandResult {
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
            showing::print_one(&merge, &town, context)?;
        }
        MqCommand::Run(args) => return running::run(&args, &town, context),
        MqCommand::Retry(args) => {
            let merge = merge::retry(&town, &entry(&town, &args.id)?)?;
            requeued(&town, &merge, "queued again", context)?;
        }
        MqCommand::Diff(args) => {
            let id = entry(&town, &args.id)?;
            let diff = merge::diff(&town, &id)?;
            match context.json {
                true => output::json(&json!({"id": id, "diff": diff}))?,
                false => output::lines(&diff)?,
            }
        }
        MqCommand::Approve(args) => {
            let merge = merge::approve(&town, &entry(&town, &args.id)?)?;
            requeued(&town, &merge, "approved and queued", context)?;
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
        MqCommand::Pull(args) => pull(&args, &town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the queue of an entry that waits again, and reports it.
fn requeued(town: &Town, merge: &Merge, what: &str, context: &Context) -> Result<(), Problem> {
    let how = match merge::background::start(town, &merge.rig)? {
        Some(_) => ", and merged in the background",
        None => "",
    };
    told(merge, &format!("{} is {what}{how}.", merge.id), context)
}

fn pull(args: &PullArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let rig = rig::named_or_only(town, args.rig.as_deref(), "name it: `gt mq pull RIG`")?;
    rig::entry(town, &rig)?;
    let pulled = merge::pull(town, &rig, args.checkout.as_deref())?;
    if context.json {
        return output::json(&json!({
            "rig": pulled.rig,
            "checkout": pulled.checkout,
            "branch": pulled.branch,
            "from": pulled.from,
            "to": pulled.to,
            "commits": pulled.commits,
        }));
    }
    let (dir, branch) = (pulled.checkout.display(), &pulled.branch);
    let text = match pulled.commits {
        0 => format!("{branch} in {dir} has all merged work."),
        count => {
            let commits = if count == 1 { "commit" } else { "commits" };
            let to = short(&pulled.to);
            format!("{branch} in {dir} is at {to}, {count} {commits} further.")
        }
    };
    let paint = Paint::for_stdout();
    output::line(format!("{} {}", paint.green("✓"), output::clean(&text)))
}

/// Parses the id of an entry. If the id is that of a work item, the error names the item's entry.
fn entry(town: &Town, text: &str) -> Result<WorkId, Problem> {
    let id: WorkId = text.parse().map_err(|_| {
        Problem::usage(format!("{text:?} is not the id of a merge")).hint(format!(
            "such as {PREFIX}-7x0ha: `gt mq list --all` shows them"
        ))
    })?;
    let id = Work::of(town).expand(&id)?;
    match Work::of(town).merge_of(&id)? {
        Some(merge) => Err(
            Problem::not_found(format!("{id} is a work item, not a merge"))
                .hint(format!("its merge is {}", merge.id)),
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
