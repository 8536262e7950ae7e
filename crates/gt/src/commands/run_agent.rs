use super::CommandResult;
use crate::context::Context;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::catalog::{roles, secrets};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;

/// Become an agent's program, with the secret variables of its role; started by tmux
///
/// The values are only in the environment of this process, and so in the program's. A variable
/// that tmux sets would also be in the table of the session.
#[derive(Debug, Args)]
pub(crate) struct RunAgentArgs {
    /// The address of the agent
    agent: String,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

pub(crate) fn run(args: RunAgentArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let agent = Identity::from_address(&args.agent, town.registry()).ok_or_else(|| {
        Problem::usage(format!("{:?} is not the address of an agent", args.agent))
    })?;
    let role = roles::resolve(&town, agent.role(), agent.rig())?.value;
    let values = secrets::resolve(&town, &role)?;
    let Some((program, words)) = args.program.split_first() else {
        return Err(Problem::usage("there is no program to become"));
    };
    let error = std::process::Command::new(program)
        .args(words)
        .envs(values)
        .exec();
    let name = program.to_string_lossy();
    Err(Problem::environment(format!("cannot start {name}")).caused_by(error))
}
