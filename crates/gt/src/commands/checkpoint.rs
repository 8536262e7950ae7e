use super::CommandResult;
use super::hook::agent_or_caller;
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::checkpoint::Checkpoint;
use gt_town::work::checkpoint::{self, CheckpointNotes};
use serde_json::json;
use std::process::ExitCode;

/// Checkpoints: the state of an agent's work, for the next session after a crash
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CheckpointCommand {
    Write(WriteArgs),
    /// Show the checkpoint of an agent
    Read(WhoseArgs),
    /// Delete the checkpoint of an agent
    Clear(WhoseArgs),
}

/// Write a checkpoint: git state, hook and step
#[derive(Debug, Args)]
pub(crate) struct WriteArgs {
    /// Notes for the next session
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    notes: Option<String>,
    /// The molecule that is being worked on [default: that of the session]
    #[arg(long, value_name = "ID")]
    molecule: Option<String>,
    /// The step that is being worked on [default: the last one that `gt step` reported]
    #[arg(long, value_name = "ID")]
    step: Option<String>,
    #[command(flatten)]
    whose: WhoseArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WhoseArgs {
    /// The agent [default: the calling agent, or the agent of this folder or pane]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

pub(crate) fn run(command: CheckpointCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        CheckpointCommand::Write(args) => {
            let agent = agent_or_caller(&town, args.whose.agent.as_deref())?;
            let said = CheckpointNotes {
                molecule: args.molecule,
                step: args.step,
                notes: args.notes,
            };
            let dir = checkpoint::folder(&town, &agent)?;
            let written = checkpoint::write(&town, &agent, &dir, said)?;
            show(Some(&written), context)?;
        }
        CheckpointCommand::Read(args) => {
            let agent = agent_or_caller(&town, args.agent.as_deref())?;
            show(checkpoint::read(&town, &agent)?.as_ref(), context)?;
        }
        CheckpointCommand::Clear(args) => {
            let agent = agent_or_caller(&town, args.agent.as_deref())?;
            let cleared = checkpoint::clear(&town, &agent)?;
            if context.json {
                output::json(&json!({"cleared": cleared}))?;
            } else {
                output::line(if cleared {
                    "Deleted the checkpoint."
                } else {
                    "There was no checkpoint."
                })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(checkpoint: Option<&Checkpoint>, context: &Context) -> Result<(), Problem> {
    let stale = checkpoint.is_some_and(|found| {
        Checkpoint::is_stale(checkpoint::age(found, context.around().clock.now()))
    });
    if context.json {
        let document = checkpoint.map(|found| {
            let mut document = json!(found);
            document["stale"] = json!(stale);
            document
        });
        return output::json(&document);
    }
    let Some(found) = checkpoint else {
        return output::line("There is no checkpoint.");
    };
    let age = output::duration(checkpoint::age(found, context.around().clock.now()));
    let stale = if stale { " (stale)" } else { "" };
    output::line(output::clean(&format!("{}{stale}", found.summary(&age))))?;
    for file in &found.modified_files {
        output::line(output::clean(&format!("  {file}")))?;
    }
    for line in found.notes.iter().flat_map(|notes| notes.lines()) {
        output::line(output::clean(line))?;
    }
    Ok(())
}
