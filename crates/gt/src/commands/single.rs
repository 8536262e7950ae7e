//! Commands for roles with one agent: the town's mayor and deacon, a rig's witness and refinery.

use super::start_flags::StartFlags;
use super::{CommandResult, agents, restart, start, stop};
use crate::context::Context;
use clap::{Args, Subcommand};
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter};
use gt_town::repo::rig;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TownCommand {
    /// Start the agent
    Start(TownStart),
    /// Stop the agent
    Stop(TownStop),
    /// Stop the agent if it runs, and start it
    Restart(TownStart),
    /// Show the state of the agent
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct TownStart {
    #[command(flatten)]
    flags: StartFlags,
}

#[derive(Debug, Args)]
pub(crate) struct TownStop {
    /// Do not ask it to quit first
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SingleRigCommand {
    /// Start the agent
    Start(RigStart),
    /// Stop the agent
    Stop(RigStop),
    /// Stop the agent if it runs, and start it
    Restart(RigStart),
    /// Show the state of the agent
    Status(RigStatus),
}

#[derive(Debug, Args)]
pub(crate) struct RigStart {
    /// The rig [default: the one of this folder, or the only one]
    rig: Option<String>,
    #[command(flatten)]
    flags: StartFlags,
}

#[derive(Debug, Args)]
pub(crate) struct RigStop {
    /// The rig [default: the one of this folder, or the only one]
    rig: Option<String>,
    /// Do not ask it to quit first
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RigStatus {
    /// The rig [default: the one of this folder, or the only one]
    rig: Option<String>,
}

pub(crate) fn run_town(role: Role, command: TownCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let wanted = [Identity::town(role)];
    match command {
        TownCommand::Start(args) => begin(&town, &wanted, &args.flags, context),
        TownCommand::Stop(args) => stop::stop_many(&town, &wanted, args.force, context),
        TownCommand::Restart(args) => {
            restart::restart(&town, &wanted, &args.flags.options(context)?, context)
        }
        TownCommand::Status => status(&town, &wanted[0], context),
    }
}

pub(crate) fn run_rig(role: Role, command: SingleRigCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let verb = match &command {
        SingleRigCommand::Start(_) => "start",
        SingleRigCommand::Stop(_) => "stop",
        SingleRigCommand::Restart(_) => "restart",
        SingleRigCommand::Status(_) => "status",
    };
    let of = |given: &Option<String>| {
        let how_to_name = format!("`gt {} {verb} RIG`", role.as_str());
        let name = rig::named_or_only(&town, given.as_deref(), &how_to_name)?;
        rig::entry(&town, &name)?;
        Ok::<_, Problem>([Identity::of_rig(role, name)])
    };
    match command {
        SingleRigCommand::Start(args) => begin(&town, &of(&args.rig)?, &args.flags, context),
        SingleRigCommand::Stop(args) => {
            stop::stop_many(&town, &of(&args.rig)?, args.force, context)
        }
        SingleRigCommand::Restart(args) => {
            let mut options = args.flags.options(context)?;
            options.create = true;
            restart::restart(&town, &of(&args.rig)?, &options, context)
        }
        SingleRigCommand::Status(args) => status(&town, &of(&args.rig)?[0], context),
    }
}

fn begin(town: &Town, wanted: &[Identity], flags: &StartFlags, context: &Context) -> CommandResult {
    let mut options = flags.options(context)?;
    // The role has one agent, so a new worktree cannot come from a misspelt name.
    options.create = true;
    start::start_many(
        town,
        wanted,
        &options,
        context,
        start::RunningAlready::IsAProblem,
    )
}

fn status(town: &Town, identity: &Identity, context: &Context) -> CommandResult {
    let wanted = AgentFilter {
        stopped: true,
        rig: identity.rig(),
        role: Some(identity.role()),
    };
    agents::show(&engine::list(town, wanted)?, town, context)
}
