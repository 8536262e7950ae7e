use super::CommandResult;
use crate::context::Context;
use clap::{Args, ValueEnum};
use gt_core::Problem;
use gt_tmux::{Command, SessionName};
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::terminal::containers::tmux_problem;
use std::process::ExitCode;

/// Bring a client to the next or previous agent
#[derive(Debug, Args)]
pub(crate) struct CycleArgs {
    direction: Direction,
    /// The container to start from
    #[arg(long)]
    session: String,
    #[arg(long)]
    client: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    Next,
    Previous,
}

pub(crate) fn run(args: CycleArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let names: Vec<String> = listing::list(&town, AgentFilter::default())?
        .into_iter()
        .map(|agent| agent.container)
        .collect();
    let here = names
        .iter()
        .position(|name| *name == args.session)
        .unwrap_or(0);
    let step = match args.direction {
        Direction::Next => 1,
        Direction::Previous => names.len().saturating_sub(1),
    };
    let Some(name) = names.get((here + step) % names.len().max(1)) else {
        return Err(Problem::not_found("no agents run here"));
    };
    let name =
        SessionName::try_from(name.as_str()).map_err(|error| Problem::failed(error.to_string()))?;
    let mut command = Command::new("switch-client").target(name);
    if let Some(client) = &args.client {
        command = command.args(["-c", client]);
    }
    town.server()
        .run(command)
        .map_err(|error| tmux_problem("cannot switch to it", error))?;
    Ok(ExitCode::SUCCESS)
}
