use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_town::lifecycle::respawn::{self, RespawnOutcome};
use gt_town::supervision::scheduler;
use serde_json::json;
use std::process::ExitCode;

/// Handle the death of an agent; called by a tmux hook
#[derive(Debug, Args)]
pub(crate) struct RespawnArgs {
    container: String,
    /// The pane that died
    #[arg(long)]
    pane: String,
    /// The delay of the respawn has passed
    #[arg(long)]
    due: bool,
}

pub(crate) fn run(args: RespawnArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let pane = args
        .pane
        .parse()
        .map_err(|_| Problem::usage(format!("{:?} is not a pane", args.pane)))?;
    let outcome = respawn::respawn(&town, &args.container, pane, args.due)?;
    if matches!(
        outcome,
        RespawnOutcome::Exited | RespawnOutcome::GaveUp { .. }
    ) {
        scheduler::wake(&town);
    }
    let word = match &outcome {
        RespawnOutcome::LeftAlone => "left-alone",
        RespawnOutcome::Exited => "exited",
        RespawnOutcome::Later(_) => "later",
        RespawnOutcome::GaveUp { .. } => "gave-up",
        RespawnOutcome::Respawned(_) => "respawned",
    };
    let seconds = match outcome {
        RespawnOutcome::Later(seconds) => Some(seconds),
        _ => None,
    };
    if context.json {
        let answer = json!({"container": args.container, "outcome": word, "seconds": seconds});
        output::json(&output::without_nulls(answer))?;
    } else {
        output::line(format!("{}: {word}", args.container))?;
    }
    Ok(ExitCode::SUCCESS)
}
