//! Shows agents as tables and JSON.

use crate::commands::{CommandResult, dnd};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use gt_core::Problem;
use gt_core::health::Health;
use gt_core::state::{Reason, State};
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::agents::listing::AgentView;
use gt_town::records::items::Work;
use gt_town::records::limits;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::ExitCode;

/// Shows agents as a table or as JSON.
pub(crate) fn show(agents: &[AgentView], town: &Town, context: &Context) -> CommandResult {
    let none = "No agents run here. `gt up` starts the town's own, `gt crew start NAME` a worker.";
    show_or(none, agents, town, context)
}

/// Shows agents as a table or as JSON, or a line if there are none.
pub(crate) fn show_or(
    none: &str,
    agents: &[AgentView],
    town: &Town,
    context: &Context,
) -> CommandResult {
    if context.json {
        output::json(&documents(agents, town))?;
    } else if agents.is_empty() {
        output::fitted(none, 0)?;
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
pub(super) fn print_table(
    agents: &[AgentView],
    town: &Town,
    wide: bool,
    marks: bool,
) -> Result<(), Problem> {
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
            Cell::address(agent.identity.address()),
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
        let titles = Work::of(town).hooked_titles()?.into_iter();
        let named =
            titles.map(|(agent, id, title)| (agent, format!("{id} {title}").trim_end().to_owned()));
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
    let adds_nothing = matches!(
        agent.report.reason,
        Some(Reason::TookPrompt | Reason::FirstPrompt | Reason::Works)
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
            // Every turn begins with a prompt, and the state says that it works.
            None if adds_nothing => String::new(),
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

pub(super) fn health_cell(health: Health) -> Cell {
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
