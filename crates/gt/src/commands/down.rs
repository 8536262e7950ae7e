use super::{CommandResult, stop};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::lifecycle::stop as engine;
use gt_town::supervision::{daemon, digest};
use serde_json::json;
use std::process::ExitCode;

/// Stop the town's own agents and those of its rigs
///
/// First the daemon and the mayor, then boot (which would start the deacon again), then the deacon;
/// then the witnesses and refineries, together. Processes that outlived their
/// containers are ended as well.
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Also stop crew, polecats and all other agents
    #[arg(long)]
    all: bool,
    /// Do not ask the agents to quit first
    #[arg(long)]
    force: bool,
    /// Only show what would be stopped
    #[arg(long)]
    dry_run: bool,
}

/// Order in which the town's own agents are stopped.
const FIRST: [Role; 3] = [Role::Mayor, Role::Boot, Role::Deacon];

pub(crate) fn run(args: DownArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let running: Vec<Identity> = listing::list(&town, AgentFilter::default())?
        .into_iter()
        .map(|agent| agent.identity)
        .collect();
    let mut groups: Vec<Vec<Identity>> = FIRST
        .iter()
        .map(|role| {
            running
                .iter()
                .filter(|i| i.role() == *role)
                .cloned()
                .collect()
        })
        .collect();
    let later = |role: Role| match role {
        Role::Witness | Role::Refinery => true,
        role => args.all && !FIRST.contains(&role),
    };
    groups.push(
        running
            .iter()
            .filter(|i| later(i.role()))
            .cloned()
            .collect(),
    );
    // The agent that runs this command is stopped last, because its end also ends this process.
    let own = stop::own_container(&town, context);
    let (own, others): (Vec<Identity>, Vec<Identity>) = groups
        .iter()
        .flatten()
        .cloned()
        .partition(|identity| stop::is_own(&town, identity, own));
    for group in &mut groups {
        group.retain(|identity| others.contains(identity));
    }
    groups.push(own);
    groups.retain(|group| !group.is_empty());
    if args.dry_run {
        if context.json {
            let would: Vec<_> = groups
                .iter()
                .flatten()
                .map(|i| json!({"agent": i, "stopped": false}))
                .collect();
            output::json(&would)?;
            return Ok(ExitCode::SUCCESS);
        }
        if daemon::running(&town).is_some() {
            output::line("Would stop the daemon.")?;
        }
        for identity in groups.iter().flatten() {
            output::line(format!("Would stop {identity}."))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // No timer and no daemon starts role agents from here on.
    digest::mark_down(&town)?;
    let daemon = daemon::stop(&town)?;
    if let (Some(pid), false) = (daemon, context.json) {
        output::line(format!("Stopped the daemon (process {pid})."))?;
    }
    let mut documents = Vec::new();
    let mut failed: Option<Problem> = None;
    for group in &groups {
        if let Err(problem) = stop::stop_into(&town, group, args.force, context, &mut documents)
            && any_runs(&town, group)?
        {
            failed.get_or_insert(problem);
        }
    }
    let orphans = engine::end_orphans(&town, gt_town::base::processes::GRACE)?;
    if context.json {
        output::json(&documents)?;
    } else {
        for container in &orphans {
            output::line(format!("Ended the leftover processes of {container}."))?;
        }
        if groups.is_empty() && orphans.is_empty() && daemon.is_none() {
            output::line("Nothing runs.")?;
        }
        let left = running.len() - groups.iter().flatten().count();
        if left > 0 {
            output::line(format!(
                "{left} others still run: `gt down --all` stops them too."
            ))?;
        }
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Returns whether one of these agents still runs. An agent that ends by itself while others are
/// stopped is not a failure.
fn any_runs(town: &Town, group: &[Identity]) -> Result<bool, Problem> {
    let running = listing::list(town, AgentFilter::default())?;
    Ok(running.iter().any(|agent| group.contains(&agent.identity)))
}
