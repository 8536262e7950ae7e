use super::start_flags::StartFlags;
use super::{CommandResult, rig, start};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::{Identity, Role};
use gt_town::catalog::directory;
use gt_town::supervision::daemon;

/// Start the town's own agents and those of its rigs
///
/// The daemon, the mayor, the deacon, and the witness and refinery of every rig that is neither
/// parked nor docked. Those that run already are left alone.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Do not start the daemon
    #[arg(long)]
    no_daemon: bool,
    /// The crew, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    flags: StartFlags,
}

pub(crate) fn run(args: UpArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut wanted: Vec<Identity> = [Role::Mayor, Role::Deacon].map(Identity::town).to_vec();
    for (name, entry) in &town.registry().rigs {
        if !entry.is_in_service() {
            continue;
        }
        wanted.extend(rig::own_agents(name));
        if args.all {
            wanted.extend(directory::workers(&town, name, Role::Crew));
        }
    }
    if !args.no_daemon && daemon::running(&town).is_none() {
        let pid = daemon::start(&town)?;
        if !context.json {
            output::line(format!("Started the daemon (process {pid})."))?;
        }
    }
    let mut options = args.flags.options(context)?;
    options.create = true;
    start::start_many(
        &town,
        &wanted,
        &options,
        context,
        start::RunningAlready::IsFine,
    )
}
