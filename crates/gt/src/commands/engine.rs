use super::CommandResult;
use clap::Args;
use gt_core::Problem;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Become the engine of an agent's container; started by the agent's broker
///
/// Podman detaches the processes of a container. The kernel makes them children of this process
/// again, so that they belong to the process tree of the agent's pane.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// The engine and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &EngineArgs) -> CommandResult {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))
        .map_err(|error| Problem::failed("cannot adopt processes").caused_by(error))?;
    let Some((engine, words)) = args.command.split_first() else {
        return Err(Problem::usage("there is no engine to become"));
    };
    let error = Command::new(engine).args(words).exec();
    let name = engine.to_string_lossy();
    Err(Problem::environment(format!("cannot start {name}")).caused_by(error))
}
