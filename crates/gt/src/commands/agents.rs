mod shown;

pub(crate) use shown::{document, documents, print, questions, show, show_or, state_cell};

use super::{CommandResult, menu};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::health::Health;
use gt_core::state::State;
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter, AgentView};
use gt_town::agents::{environment, target};
use gt_town::terminal::{containers, pidfile};
use serde_json::json;
use shown::{health_cell, print_table};
use std::process::ExitCode;

/// Note about the agents that are marked.
const UNCONFINED: &str = "! no permission prompts and no sandbox: `gt doctor`";

/// List the agents that run
///
/// The mayor first, then the deacon, then rig by rig. WHAT is the open question, the work
/// item on the hook, the end of a usage limit or the reason of a failure. With --json,
/// polecats are listed only with --all.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    /// Only these agents, even if they do not run
    #[arg(value_name = "TARGET", conflicts_with_all = ["rig", "role"])]
    targets: Vec<String>,
    /// Only the calling agent, or the agent of this folder or pane
    #[arg(long, conflicts_with_all = ["targets", "rig", "role"])]
    own: bool,
    /// Include polecats in the JSON output
    #[arg(long)]
    all: bool,
    /// Also show health, harness and container
    #[arg(long)]
    wide: bool,
    /// Include agents that do not run
    #[arg(long)]
    stopped: bool,
    /// Only this rig's
    #[arg(long)]
    rig: Option<String>,
    /// Only this role's
    #[arg(long)]
    role: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum AgentsCommand {
    /// Check every agent; the exit code is 1 if one is unhealthy
    Check,
    /// List the names and origins of an agent's environment variables, without their values
    Env(EnvArgs),
    Menu(menu::MenuArgs),
}

#[derive(Debug, Args)]
struct EnvArgs {
    /// The agent
    #[arg(value_name = "TARGET")]
    target: String,
}

pub(crate) fn run(args: AgentsArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match args.command {
        Some(AgentsCommand::Check) => check(&town, context),
        Some(AgentsCommand::Env(args)) => list_environment(&town, &args.target, context),
        Some(AgentsCommand::Menu(args)) => menu::run(&args, &town),
        None => {
            if let Some(rig) = &args.rig {
                gt_town::repo::rig::entry(&town, rig)?;
            }
            let role = args.role.as_deref().map(super::role::parse).transpose()?;
            let mut named: Vec<Identity> = Vec::new();
            for text in &args.targets {
                named.push(target::resolve_known(&town, text)?);
            }
            if args.own {
                named.push(own_agent(&town)?);
            }
            let wanted = AgentFilter {
                stopped: args.stopped || !named.is_empty(),
                rig: args.rig.as_deref(),
                role,
            };
            let containers = containers::list_everywhere(&town)?;
            let mut agents = engine::list_among(&town, &containers, wanted)?;
            agents.retain(|agent| named.is_empty() || named.contains(&agent.identity));
            if context.json {
                // Scripts rely on it.
                if !args.all && named.is_empty() && role != Some(Role::Polecat) {
                    agents.retain(|agent| agent.identity.role() != Role::Polecat);
                }
                output::json(&documents(&agents, &town))?;
            } else if agents.is_empty() {
                output::line(none_found(role, args.rig.as_deref(), args.stopped))?;
            } else {
                print_table(&agents, &town, args.wide, true)?;
                for line in questions(&agents) {
                    output::fitted(&line, 2)?;
                }
                if agents.iter().any(AgentView::is_unconfined) {
                    output::fitted(UNCONFINED, 2)?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the calling agent, or the agent of this folder or pane.
fn own_agent(town: &Town) -> Result<Identity, Problem> {
    target::default_agent_if_any(town)?.ok_or_else(|| {
        let caller = town.caller();
        Problem::usage(format!(
            "{} is no agent, and this is not the folder or pane of one",
            caller.as_str()
        ))
        .hint("`gt agents` lists the agents that run")
    })
}

/// Returns the message for an empty list: the agents that were asked for, and the command that
/// starts one.
fn none_found(role: Option<Role>, rig: Option<&str>, stopped_too: bool) -> String {
    let place = rig.map_or_else(|| "here".to_owned(), |rig| format!("in the rig {rig}"));
    let verb = if stopped_too { "exist" } else { "run" };
    let Some(role) = role else {
        let starts = match rig {
            None => "`gt up` starts the town's own, `gt crew start NAME` a worker".to_owned(),
            Some(rig) => {
                format!("`gt rig start {rig}` starts its own, `gt crew start {rig}/NAME` a worker")
            }
        };
        return format!("No agents {verb} {place}. {starts}.");
    };
    let rig = rig.unwrap_or("RIG");
    let starts = match role {
        Role::Mayor | Role::Deacon => format!("gt {role} start"),
        Role::Boot | Role::Overseer => format!("gt start {role}"),
        Role::Dog => "gt dog run ERRAND".to_owned(),
        Role::Witness | Role::Refinery => format!("gt {role} start {rig}"),
        Role::Crew => format!("gt crew start {rig}/NAME"),
        Role::Polecat => "gt sling ITEM".to_owned(),
        Role::Agent => "gt agent start NAME".to_owned(),
        Role::Task => "gt task start ITEM".to_owned(),
    };
    format!("No agents of the role {role} {verb} {place}. `{starts}` starts one.")
}

fn list_environment(town: &Town, target: &str, context: &Context) -> CommandResult {
    let agent = target::resolve_known(town, target)?;
    let names = environment::of_agent(town, &agent)?;
    if context.json {
        output::json(&names)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["NAME", "ORIGIN"]);
    for variable in names {
        table.row([variable.name.into(), variable.origin.describe().into()]);
    }
    output::print(&table.render(Paint::for_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn check(town: &Town, context: &Context) -> CommandResult {
    let agents = engine::list(town, AgentFilter::default())?;
    // A PID file without a container: the tmux session ended before its agent.
    let lost = pidfile::without_container(town, || containers::list(town))?;
    let ill = agents
        .iter()
        .filter(|agent| agent.health.has_problem())
        .count()
        + lost.len();
    if context.json {
        let mut documents = documents(&agents, town);
        documents.extend(lost.iter().map(|tracked| {
            output::without_nulls(json!({
                "container": tracked.container,
                "state": State::Stopped,
                "health": Health::SessionDead,
                "orphan_pid": tracked.alive.as_ref().map(|_| tracked.pid),
            }))
        }));
        output::json(&documents)?;
    } else {
        let mut table = Table::new(&["CONTAINER", "HEALTH", "STATE", "REASON"]);
        for agent in &agents {
            table.row([
                agent.container.clone().into(),
                health_cell(agent.health),
                state_cell(agent),
                agent.report.reason.as_deref().unwrap_or_default().into(),
            ]);
        }
        for tracked in &lost {
            let reason = match &tracked.alive {
                Some(_) => format!(
                    "process {} runs without its container: `gt doctor --fix` ends it",
                    tracked.pid
                ),
                None => "its process is gone as well".to_owned(),
            };
            table.row([
                tracked.container.clone().into(),
                Cell::painted(Health::SessionDead.describe(), Paint::red),
                "stopped".into(),
                reason.into(),
            ]);
        }
        output::print(&table.render(Paint::for_stdout()))?;
        let all = agents.len() + lost.len();
        output::line(format!("{} of {all} are healthy.", all - ill))?;
    }
    Ok(ExitCode::from(u8::from(ill > 0)))
}
