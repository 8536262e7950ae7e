use super::{CommandResult, dnd, menu};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::health::Health;
use gt_core::state::{Reason, State};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter, AgentView};
use gt_town::agents::{environment, target};
use gt_town::records::items::{ItemQuery, Work};
use gt_town::records::limits;
use gt_town::terminal::{containers, pidfile};
use serde_json::{Value, json};
use std::collections::HashMap;
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
                named.push(target::default_agent(&town)?);
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

/// Shows agents as a table or as JSON.
pub(crate) fn show(agents: &[AgentView], town: &Town, context: &Context) -> CommandResult {
    if context.json {
        output::json(&documents(agents, town))?;
    } else if agents.is_empty() {
        output::fitted(
            "No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.",
            0,
        )?;
    } else {
        print(agents, town, false)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints agents as a table.
pub(crate) fn print(agents: &[AgentView], town: &Town, wide: bool) -> Result<(), Problem> {
    print_table(agents, town, wide, false)
}

/// Prints agents as a table. `marks` are signs behind the states of unconfined agents.
fn print_table(agents: &[AgentView], town: &Town, wide: bool, marks: bool) -> Result<(), Problem> {
    let items = hooked_items(town);
    let mut titles = vec!["AGENT", "STATE", "SINCE"];
    if wide {
        titles.extend(["HEALTH", "HARNESS", "CONTAINER", "NOTES"]);
    }
    titles.push("WHAT");
    let mut table = Table::new(&titles);
    for agent in agents {
        let since = agent.report.since.or(agent.created_at);
        let mut row: Vec<Cell> = vec![
            agent.identity.address().into(),
            state_cell_with(
                agent,
                if marks && agent.is_unconfined() {
                    " !"
                } else {
                    ""
                },
            ),
            since.map(output::age).unwrap_or_default().into(),
        ];
        if wide {
            row.push(health_cell(agent.health));
            row.push(agent.harness.clone().unwrap_or_default().into());
            row.push(agent.container.clone().into());
            row.push(remarks(agent).into());
        }
        let item = items.get(&agent.identity.address()).map(String::as_str);
        let what = Some(activity(agent, item)).filter(|what| !what.is_empty());
        let what: Vec<String> = what.into_iter().chain(undisturbed(agent)).collect();
        row.push(what.join(", ").into());
        table.row(row);
    }
    output::print(&table.render(Paint::for_stdout()))
}

/// Returns the item on each hook, as `he-5n2wj Write a poem`, by the agent's address.
fn hooked_items(town: &Town) -> HashMap<String, String> {
    let read = || -> Result<HashMap<String, String>, Problem> {
        let work = Work::of(town);
        let hooks = work.hooks()?;
        let titles = match hooks.is_empty() {
            true => Vec::new(),
            false => work.find(&ItemQuery::default())?,
        };
        let titles: HashMap<WorkId, String> = titles
            .into_iter()
            .map(|item| (item.id, item.title))
            .collect();
        let named = hooks.into_iter().map(|(agent, id)| {
            let title = titles.get(&id).map_or("", String::as_str);
            (agent, format!("{id} {title}").trim_end().to_owned())
        });
        Ok(named.collect())
    };
    // The list of agents is useful without their items.
    read().unwrap_or_else(|problem| {
        output::warn(format!(
            "items are not shown: {}",
            problem.message_with_causes()
        ));
        HashMap::new()
    })
}

/// Returns what an agent does or needs: its question, the end of its limit, the reason of its
/// failure, or else the item on its hook.
fn activity(agent: &AgentView, item: Option<&str>) -> String {
    let reason = agent.report.reason.as_deref().map(output::clean);
    let reason = || reason.clone().unwrap_or_default();
    let is_new_turn = matches!(
        agent.report.reason,
        Some(Reason::TookPrompt | Reason::FirstPrompt)
    );
    match agent.report.state {
        State::Waiting => reason(),
        State::Limited => match limits::resets_at(&agent.report) {
            Some(at) => format!("limited until {}", output::clock(at)),
            None => reason(),
        },
        State::Error | State::Crashed | State::Paused => reason(),
        // The state already says so.
        State::Stopped => String::new(),
        _ if agent.health.has_problem() => health_with_cause(agent),
        State::Busy | State::Starting | State::Initializing => match item {
            Some(item) => output::clean(item),
            // Every turn begins with a prompt, so this adds nothing.
            None if is_new_turn => String::new(),
            None => reason(),
        },
        _ => item.map(output::clean).unwrap_or_default(),
    }
}

/// Returns a line for each open question, with the command that answers it. The table has the
/// question itself.
pub(crate) fn questions(agents: &[AgentView]) -> Vec<String> {
    let waiting = agents
        .iter()
        .filter(|agent| agent.report.state == State::Waiting);
    let line = |agent: &AgentView| {
        let who = agent.identity.address();
        format!("{who} waits for an answer: `gt answer {who}`")
    };
    waiting.map(line).collect()
}

/// Returns the agent's health with its cause: the message of the failed turn, or the end of the
/// limit.
fn health_with_cause(agent: &AgentView) -> String {
    let health = agent.health.describe();
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

/// Returns until when the agent is not to be disturbed.
fn undisturbed(agent: &AgentView) -> Option<String> {
    agent.dnd.as_ref().map(dnd::describe)
}

/// Returns whether the agent is attached, and whether it is adopted.
fn remarks(agent: &AgentView) -> String {
    let adopted = match &agent.socket {
        Some(socket) => Some(format!("adopted, on {socket}")),
        None => agent.adopted.then(|| "adopted".to_owned()),
    };
    let attached = agent.attached.then(|| "attached".to_owned());
    let all: Vec<String> = [attached, adopted].into_iter().flatten().collect();
    all.join(", ")
}

pub(crate) fn state_cell(agent: &AgentView) -> Cell {
    state_cell_with(agent, "")
}

fn state_cell_with(agent: &AgentView, sign: &str) -> Cell {
    let word = format!("{}{sign}", agent.report.label());
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
        Health::Healthy => health.describe().into(),
        Health::SessionDead => Cell::painted("-", Paint::dim),
        Health::Exited => Cell::painted(health.describe(), Paint::dim),
        Health::Limited => Cell::painted(health.describe(), Paint::yellow),
        Health::AgentDead | Health::AgentHung | Health::TurnFailed => {
            Cell::painted(health.describe(), Paint::red)
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
        output::warn(format!(
            "hooks are not shown: {}",
            problem.message_with_causes()
        ));
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
        "sandbox": agent.sandbox,
        "never_asks": agent.never_asks.then_some(true),
        "dnd": agent.dnd.as_ref().map(dnd::document),
    }))
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
                    "process {} lives without it: `gt doctor --fix` ends it",
                    tracked.pid
                ),
                None => "its process is gone, too".to_owned(),
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
