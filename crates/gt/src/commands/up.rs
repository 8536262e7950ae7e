use super::start_flags::StartFlags;
use super::{CommandResult, rig, start};
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::catalog::{directory, harnesses, roles};
use gt_town::supervision::daemon::{self, DaemonError};
use gt_town::supervision::digest;

/// Start the town's own agents and those of its rigs
///
/// Starts the daemon and the mayor. The deacon, and the witness and refinery of a rig that is neither
/// parked nor docked, are started on demand: when something needs their decision. Those whose role
/// has `on_demand = false` are started now. Agents that run already are left alone.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Do not start the daemon
    #[arg(long)]
    no_daemon: bool,
    /// Also start the agents that run on demand: deacon, witnesses and refineries
    #[arg(long)]
    all_roles: bool,
    /// Also start the crew
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    flags: StartFlags,
}

pub(crate) fn run(args: UpArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut roles: Vec<Identity> = [Role::Mayor, Role::Deacon].map(Identity::town).to_vec();
    let mut crew = Vec::new();
    for (name, entry) in &town.registry().rigs {
        if !entry.is_in_service() {
            continue;
        }
        roles.extend(rig::own_agents(name));
        if args.all {
            crew.extend(directory::workers(&town, name, Role::Crew));
        }
    }
    let mut wanted = Vec::new();
    let mut later = Vec::new();
    for agent in roles {
        match !args.all_roles && is_on_demand(&town, &agent)? {
            true => later.push(agent),
            false => wanted.push(agent),
        }
    }
    wanted.extend(crew);
    // A wrong option changes nothing.
    let mut options = args.flags.options(context)?;
    options.create = true;
    if let Some(harness) = &options.harness {
        harnesses::resolve(&town, harness)?;
    }
    // Before the daemon: if it cannot be started, timers still wake role agents.
    digest::mark_up(&town)?;
    if !args.no_daemon {
        match daemon::start(&town) {
            Err(DaemonError::Running(_)) => {}
            started => {
                let pid = started?;
                if !context.json {
                    output::line(format!("Started the daemon (process {pid})."))?;
                }
            }
        }
    }
    let started = start::start_many(
        &town,
        &wanted,
        &options,
        context,
        start::RunningAlready::IsFine,
    )?;
    if !context.json {
        tell(&town, &later)?;
    }
    Ok(started)
}

/// Returns whether an agent is started only when something needs its decision.
pub(super) fn is_on_demand(town: &Town, agent: &Identity) -> Result<bool, Problem> {
    let role = roles::resolve(town, agent.role(), agent.rig())?;
    Ok(role.value.start.on_demand)
}

/// Names the agents that were not started.
fn tell(town: &Town, later: &[Identity]) -> Result<(), Problem> {
    let running = listing::list(town, AgentFilter::default())?;
    let is_running = |agent: &&Identity| running.iter().any(|it| it.identity == **agent);
    let names: Vec<String> = later
        .iter()
        .filter(|agent| !is_running(agent))
        .map(Identity::address)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let paint = Paint::for_stdout();
    output::line(format!(
        "{} started on demand: {}. `gt up --all-roles` starts them now.",
        paint.dim("·"),
        names.join(", ")
    ))
}
