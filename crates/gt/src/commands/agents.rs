use super::{CommandResult, dnd, menu};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::health::Health;
use gt_core::state::State;
use gt_core::work::WorkId;
use gt_core::{Identity, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter, AgentView};
use gt_town::agents::target;
use gt_town::records::items::Work;
use gt_town::records::limits;
use gt_town::terminal::{containers, pidfile};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::ExitCode;

/// List the agents that run
///
/// The mayor first, then the deacon, then rig by rig. Polecats come and go and are
/// shown with --all.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    /// Only these agents, also if they do not run
    #[arg(value_name = "TARGET", conflicts_with_all = ["rig", "role"])]
    targets: Vec<String>,
    /// Only the agent that calls, or whose folder or pane this is
    #[arg(long, conflicts_with_all = ["targets", "rig", "role"])]
    own: bool,
    /// Polecats, too
    #[arg(long)]
    all: bool,
    /// Those that do not run, too
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
    /// Examine every agent; the exit code is 1 if one is not well
    Check,
    Menu(menu::MenuArgs),
}

pub(crate) fn run(args: AgentsArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match args.command {
        Some(AgentsCommand::Check) => check(&town, context),
        Some(AgentsCommand::Menu(args)) => menu::run(&args, &town),
        None => {
            if let Some(rig) = &args.rig {
                gt_town::repo::rig::entry(&town, rig)?;
            }
            let role = args.role.as_deref().map(super::role::parse).transpose()?;
            let mut named: Vec<Identity> = Vec::new();
            for text in &args.targets {
                named.push(target::known(&town, text)?);
            }
            if args.own {
                named.push(target::own(&town)?);
            }
            let wanted = AgentFilter {
                stopped: args.stopped || !named.is_empty(),
                rig: args.rig.as_deref(),
                role,
            };
            let containers = containers::list_everywhere(&town)?;
            let mut agents = engine::list_among(&town, &containers, wanted)?;
            agents.retain(|agent| named.is_empty() || named.contains(&agent.identity));
            let all = agents.len();
            if !args.all && named.is_empty() && role != Some(Role::Polecat) {
                agents.retain(|agent| agent.identity.role() != Role::Polecat);
            }
            let hidden = all - agents.len();
            if agents.is_empty() && !context.json {
                // The line below mentions the hidden polecats.
                if hidden == 0 {
                    output::line(none_found(role, args.rig.as_deref(), args.stopped))?;
                }
            } else {
                show(&agents, &town, context)?;
            }
            if hidden > 0 && !context.json {
                output::line(format!("(polecats not shown: {hidden}; `gt agents --all`)"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the answer if no agent is found: the agents asked for, and the command that starts one.
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

/// Shows agents as a table or as JSON.
pub(crate) fn show(agents: &[AgentView], town: &Town, context: &Context) -> CommandResult {
    if context.json {
        output::json(&documents(agents, town))?;
    } else if agents.is_empty() {
        output::line(
            "No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.",
        )?;
    } else {
        let mut table = Table::new(&[
            "AGENT",
            "STATE",
            "AGE",
            "HEALTH",
            "HARNESS",
            "CONTAINER",
            "",
        ]);
        for agent in agents {
            table.row([
                agent.identity.address().into(),
                state_cell(agent),
                agent.created_at.map(output::age).unwrap_or_default().into(),
                health_cell(agent.health),
                agent.harness.clone().unwrap_or_default().into(),
                agent.container.clone().into(),
                remarks(agent).into(),
            ]);
        }
        output::print(&table.render(Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the agent's health with its cause: the message of the failed turn, or the end of the
/// limit.
pub(crate) fn complaint(agent: &AgentView) -> String {
    let health = agent.health.words();
    let reason = agent.report.reason.as_deref().map(output::clean);
    match (agent.health, reset(agent), reason) {
        (Health::Limited, Some(reset), _) => format!("{health}, {reset}"),
        (Health::TurnFailed | Health::Limited, _, Some(reason)) => format!("{health}: {reason}"),
        _ => health.to_owned(),
    }
}

/// Returns the end of the agent's usage limit, in the local time zone.
fn reset(agent: &AgentView) -> Option<String> {
    let at = output::time(limits::resets_at(&agent.report)?);
    let continues = agent.report.limit.as_ref()?.continues;
    let verb = if continues { "continues" } else { "resets" };
    Some(format!("{verb} {}", output::minute(at.as_deref())))
}

/// Returns why the agent is paused by a rule.
fn held(agent: &AgentView) -> Option<String> {
    let reason = agent.report.reason.as_deref().map(output::clean)?;
    let is_held = agent.report.state == State::Paused && reason.starts_with("budget of ");
    is_held.then_some(reason)
}

/// Returns until when the agent is not to be disturbed.
fn undisturbed(agent: &AgentView) -> Option<String> {
    agent.dnd.as_ref().map(dnd::words)
}

/// Returns the last column: the end of the usage limit, do not disturb, whether the agent is attached, and whether
/// it is adopted.
fn remarks(agent: &AgentView) -> String {
    let adopted = match &agent.socket {
        Some(socket) => Some(format!("adopted, on {socket}")),
        None => agent.adopted.then(|| "adopted".to_owned()),
    };
    let attached = agent.attached.then(|| "attached".to_owned());
    let all: Vec<String> = [
        reset(agent),
        held(agent),
        undisturbed(agent),
        attached,
        adopted,
    ]
    .into_iter()
    .flatten()
    .collect();
    all.join(", ")
}

pub(crate) fn state_cell(agent: &AgentView) -> Cell {
    let word = agent.report.label();
    match agent.report.state {
        State::Busy => Cell::painted(word, Paint::green),
        State::Waiting | State::Limited | State::Initializing | State::Starting => {
            Cell::painted(word, Paint::yellow)
        }
        State::Error | State::Crashed => Cell::painted(word, Paint::red),
        State::Stopped | State::Exited => Cell::painted(word, Paint::dim),
        State::Done => Cell::painted(word, Paint::green),
        State::Idle | State::Running | State::Paused => word.into(),
    }
}

fn health_cell(health: Health) -> Cell {
    match health {
        Health::Healthy => health.words().into(),
        Health::SessionDead => Cell::painted("-", Paint::dim),
        Health::Exited => Cell::painted(health.words(), Paint::dim),
        Health::Limited => Cell::painted(health.words(), Paint::yellow),
        Health::AgentDead | Health::AgentHung | Health::TurnFailed => {
            Cell::painted(health.words(), Paint::red)
        }
    }
}

/// Returns agents as JSON, with the items on their hooks.
pub(crate) fn documents<'a>(
    agents: impl IntoIterator<Item = &'a AgentView>,
    town: &Town,
) -> Vec<Value> {
    // The list of agents is useful without their hooks.
    let hooks = Work::of(town).hooks().unwrap_or_else(|problem| {
        output::warn(format!("hooks are not shown: {}", problem.whole()));
        Vec::new()
    });
    let hooks: HashMap<String, WorkId> = hooks.into_iter().collect();
    let agents = agents.into_iter();
    agents
        .map(|agent| {
            let mut document = document(agent);
            if let Some(item) = hooks.get(&agent.identity.address()) {
                document["hook"] = json!(item);
            }
            document
        })
        .collect()
}

/// Returns an agent as JSON. Unknown values are absent.
pub(crate) fn document(agent: &AgentView) -> Value {
    let identity = &agent.identity;
    output::without_nulls(json!({
        "agent": identity,
        "role": identity.role(),
        "rig": identity.rig(),
        "name": identity.name(),
        "container": agent.container,
        "harness": agent.harness,
        "model": agent.model,
        "state": agent.report.state,
        "state_since": agent.report.since.and_then(output::time),
        "state_source": agent.report.source,
        "state_reason": agent.report.reason,
        "background": Some(agent.report.background).filter(|count| *count > 0),
        "resets_at": limits::resets_at(&agent.report).and_then(output::time),
        "continues": agent.report.limit.as_ref().map(|limit| limit.continues),
        "health": agent.health,
        "session": agent.session,
        "pid": agent.pid,
        "pane": agent.pane.map(|pane| pane.to_string()),
        "work_dir": agent.work_dir,
        "attached": agent.attached,
        "created_at": agent.created_at.and_then(output::time),
        "adopted": agent.adopted.then_some(true),
        "socket": agent.socket,
        "keepalive_age_seconds": agent.keepalive_age,
        "dnd": agent.dnd.as_ref().map(dnd::document),
    }))
}

fn check(town: &Town, context: &Context) -> CommandResult {
    let agents = engine::list(town, AgentFilter::default())?;
    // A PID file without a container: the tmux session ended before its agent.
    let lost = pidfile::lost(town, || containers::list(town))?;
    let ill = agents.iter().filter(|agent| agent.health.is_ill()).count() + lost.len();
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
                    "process {} lives without it: `gt doctor --fix` ends it",
                    tracked.pid
                ),
                None => "its process is gone, too".to_owned(),
            };
            table.row([
                tracked.container.clone().into(),
                Cell::painted(Health::SessionDead.words(), Paint::red),
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
