mod removing;
mod showing;

pub(crate) use showing::running;

use super::start_flags::StartFlags;
use super::{CommandResult, restart, start, stop};
use crate::context::Context;
use crate::output;
use crate::output::progress::ProgressLine;
use clap::{Args, Subcommand};
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::catalog::directory;
use gt_town::repo::{agent_settings, project, rig};
use gt_town::workflow::merge::{self, background};
use serde_json::json;
use std::process::ExitCode;

/// Rigs: the repositories of a town
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RigCommand {
    Add(AddArgs),
    /// List the rigs
    List,
    /// Start a rig's witness and refinery
    Start(RigStartArgs),
    Stop(RigStopArgs),
    /// Park a rig: running agents continue, and nothing new is started
    Park(RigNameArgs),
    /// Take a parked rig back into service
    Unpark(RigNameArgs),
    Dock(RigDockArgs),
    /// Take a docked rig back into service; its agents are started with `gt rig start`
    Undock(RigNameArgs),
    /// Stop a rig's witness and refinery if they run, and start them
    Restart(RigStartArgs),
    /// Show one rig and its agents
    Status(RigNameArgs),
    Remove(removing::RemoveArgs),
}

/// Add a repository to the town
///
/// Makes a bare clone in the town; agents work in worktrees of that clone. The files of the source
/// repository are not changed.
#[derive(Debug, Args)]
#[command(override_usage = "gt rig add [OPTIONS] [NAME] <PATH-OR-URL>")]
pub(crate) struct AddArgs {
    /// The rig's name [default: that of the folder or repository]
    #[arg(value_name = "NAME")]
    first: String,
    /// The repository: a path, or a URL that `git clone` takes
    #[arg(value_name = "PATH-OR-URL")]
    second: Option<String>,
    /// The prefix of its containers and work items [default: made from the name]
    #[arg(long)]
    prefix: Option<String>,
}

/// Put a rig out of service: stop all its agents, and start none
///
/// Agents of a parked rig keep running; a docked rig has none. Worktrees and branches stay as they
/// are.
#[derive(Debug, Args)]
pub(crate) struct RigDockArgs {
    /// The rig
    rig: String,
    /// Do not ask the agents to quit first
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RigStartArgs {
    /// The rigs
    #[arg(required = true, value_name = "RIG")]
    rigs: Vec<String>,
    /// Also the crew
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    flags: StartFlags,
}

/// Stop a rig's witness and refinery
#[derive(Debug, Args)]
pub(crate) struct RigStopArgs {
    /// The rigs
    #[arg(required = true, value_name = "RIG")]
    rigs: Vec<String>,
    /// Also the crew and the polecats
    #[arg(long)]
    all: bool,
    /// Do not ask the agents to quit first
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RigNameArgs {
    /// The rig
    rig: String,
}

pub(crate) fn run(command: RigCommand, context: &Context) -> CommandResult {
    match command {
        RigCommand::Add(args) => add(&args, context),
        RigCommand::List => showing::list(context),
        RigCommand::Status(args) => showing::status(&args.rig, context),
        RigCommand::Remove(args) => removing::run(&args, context),
        RigCommand::Dock(args) => dock(&args, context),
        RigCommand::Undock(args) => undock(&args.rig, context),
        RigCommand::Restart(args) => {
            let town = context.town()?;
            let mut options = args.flags.options(context)?;
            options.create = true;
            restart::restart(&town, &started_by(&town, &args)?, &options, context)
        }
        RigCommand::Start(args) => {
            let town = context.town()?;
            let wanted = started_by(&town, &args)?;
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
        RigCommand::Stop(args) => {
            let town = context.town()?;
            let mut wanted = Vec::new();
            for name in &args.rigs {
                rig::entry(&town, name)?;
                wanted.extend(running_agents(&town, name, args.all)?);
            }
            stop::stop_many(&town, &wanted, args.force, context)
        }
        RigCommand::Park(args) => park(&args.rig, true, context),
        RigCommand::Unpark(args) => park(&args.rig, false, context),
    }
}

/// Returns the agents that `gt rig start` starts.
fn started_by(town: &Town, args: &RigStartArgs) -> Result<Vec<Identity>, Problem> {
    let mut wanted = Vec::new();
    for name in &args.rigs {
        rig::check_not_parked(town, name)?;
        wanted.extend(own_agents(name));
        if args.all {
            wanted.extend(directory::workers(town, name, Role::Crew));
        }
    }
    Ok(wanted)
}

/// Returns a rig's witness and refinery.
pub(crate) fn own_agents(rig: &str) -> [Identity; 2] {
    [Role::Witness, Role::Refinery].map(|role| Identity::of_rig(role, rig))
}

fn running_agents(town: &Town, rig: &str, all: bool) -> Result<Vec<Identity>, Problem> {
    let wanted = AgentFilter {
        rig: Some(rig),
        ..AgentFilter::default()
    };
    let running = listing::list(town, wanted)?
        .into_iter()
        .map(|agent| agent.identity);
    Ok(running
        .filter(|identity| all || matches!(identity.role(), Role::Witness | Role::Refinery))
        .collect())
}

fn add(args: &AddArgs, context: &Context) -> CommandResult {
    let mut town = context.town()?;
    context.catch_interrupts();
    let (name, source) = match &args.second {
        Some(source) => (args.first.clone(), source),
        None => (rig::name_for(&town, &args.first)?, &args.first),
    };
    let spinner = ProgressLine::spinner(&format!("copying {name}"));
    let added = rig::add(&mut town, &name, source, args.prefix.as_deref())?;
    drop(spinner);
    let warnings = merge::missing_submodules(&town, &name);
    for warning in &warnings {
        output::warn(output::clean(warning));
    }
    if context.json {
        output::json(&json!({
            "rig": name,
            "prefix": added.prefix,
            "default_branch": added.default_branch,
            "path": added.path,
            "warnings": warnings,
        }))?;
    } else {
        output::line(format!(
            "Added the rig {name} (prefix {}, branch {}).",
            added.prefix, added.default_branch
        ))?;
        output::line(format!("Next: `gt crew add {name}/NAME` makes a worker."))?;
        // A file that cannot be read is reported by the first command that needs it.
        let commands = project::of_rig(&town, &name).map_or(0, |it| it.commands().len());
        let files = agent_settings::of_rig(&town, &name).map_or(0, |files| files.len());
        if commands + files > 0 {
            output::line(format!(
                "It brings along commands, which run only after your approval: `gt project diff {name}`."
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn park(name: &str, parked: bool, context: &Context) -> CommandResult {
    let mut town = context.town()?;
    let running = if parked {
        showing::live(&town, name)?
    } else {
        0
    };
    let changed = rig::set_parked(&mut town, name, parked)?;
    let is_back = rig::entry(&town, name)?.is_in_service();
    if is_back {
        // Merges the work that was submitted while the rig was parked.
        background::start_if_waiting(&town, name)?;
    }
    if context.json {
        output::json(&json!({"rig": name, "parked": parked, "changed": changed}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = match (parked, is_back) {
        (true, _) => "parked",
        (_, true) => "back in service",
        _ => "not parked, but docked",
    };
    let already = if changed { "" } else { " already" };
    output::line(format!("The rig {name} is{already} {done}."))?;
    if running > 0 {
        output::line(format!(
            "{running} of its agents still run: `gt rig stop {name} --all` ends them."
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Docks a rig, then stops its agents: none can be started in between.
fn dock(args: &RigDockArgs, context: &Context) -> CommandResult {
    let mut town = context.town()?;
    let name = &args.rig;
    let changed = rig::set_docked(&mut town, name, true)?;
    let running = running_agents(&town, name, true)?;
    let mut stopped = Vec::new();
    stop::stop_into(&town, &running, args.force, context, &mut stopped)?;
    if context.json {
        output::json(&json!({
            "rig": name,
            "docked": true,
            "changed": changed,
            "stopped": running,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let already = if changed { "" } else { " already" };
    output::line(format!(
        "The rig {name} is{already} docked. `gt rig undock {name}` takes it back into service."
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn undock(name: &str, context: &Context) -> CommandResult {
    let mut town = context.town()?;
    let changed = rig::set_docked(&mut town, name, false)?;
    let parked = rig::entry(&town, name)?.parked;
    if !parked {
        // Merges the work that was submitted before.
        background::start_if_waiting(&town, name)?;
    }
    if context.json {
        output::json(&json!({"rig": name, "docked": false, "parked": parked, "changed": changed}))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(match (changed, parked) {
        (_, true) => format!("The rig {name} is still parked: `gt rig unpark {name}`."),
        (true, _) => {
            format!("The rig {name} is back in service. `gt rig start {name}` starts its agents.")
        }
        (false, _) => format!("The rig {name} is not docked."),
    })?;
    Ok(ExitCode::SUCCESS)
}
