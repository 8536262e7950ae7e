use super::work::{document, line_of};
use super::{CommandResult, ids};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::work::ItemStatus;
use gt_core::{Identity, Problem, mail};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::catalog::directory;
use gt_town::records::items::{Hooked, Work};
use gt_town::supervision::scheduler;
use gt_town::terminal::containers;
use gt_town::work::hook;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Show what is on an agent's hook, or put a work item there
///
/// An agent has one item on its hook, and an item is on one agent's hook.
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The work item to put there
    #[arg(value_name = "ITEM")]
    item: Option<String>,
    /// The agent [default: the calling agent, or the agent of this folder or pane]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

/// Take a work item off an agent's hook: it is open again
#[derive(Debug, Args)]
pub(crate) struct UnhookArgs {
    /// The work item, on any hook
    #[arg(value_name = "ITEM", conflicts_with = "agent")]
    item: Option<String>,
    /// The agent [default: the calling agent, or the agent of this folder or pane]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

pub(crate) fn run(args: &HookArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let agent = agent_or_caller(&town, args.agent.as_deref())?;
    let hooked = match &args.item {
        Some(item) => {
            check_there(&town, &agent)?;
            let id = ids::full(&town, item)?;
            Some(hook::hook_item(&town, &agent, &id)?.hooked)
        }
        None => Work::of(&town).hooked(&agent.address())?,
    };
    if context.json {
        output::json(&hooked.as_ref().map_or(Value::Null, whole_document))?;
        return Ok(ExitCode::SUCCESS);
    }
    match (&hooked, &args.item) {
        (None, _) => output::line(format!("Nothing is on the hook of {agent}."))?,
        (Some(hooked), Some(_)) => {
            output::line(format!("{} is on the hook of {agent}.", hooked.item.id))?;
        }
        (Some(hooked), None) => show(hooked)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_unhook(args: &UnhookArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let taken = match &args.item {
        Some(item) => {
            let id = ids::full(&town, item)?;
            hook::take_off_item(&town, &id)?
        }
        None => {
            let agent = agent_or_caller(&town, args.agent.as_deref())?;
            hook::take_off(&town, &agent)?
        }
    };
    scheduler::wake(&town);
    if context.json {
        let answer = taken
            .as_ref()
            .map(|taken| json!({"agent": taken.agent, "item": taken.item.id}));
        output::json(&answer)?;
    } else {
        output::line(match &taken {
            Some(taken) if taken.item.kind == mail::KIND => {
                format!("{} is off the hook of {}.", taken.item.id, taken.agent)
            }
            Some(taken) => {
                let now = match taken.item.status {
                    ItemStatus::Open => "open again",
                    status => status.as_str(),
                };
                let (id, agent) = (&taken.item.id, &taken.agent);
                format!("{id} is off the hook of {agent}, and {now}.")
            }
            None => "Nothing was on that hook.".to_owned(),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(hooked: &Hooked) -> Result<(), Problem> {
    output::line(output::clean(&line_of(&hooked.item)))?;
    output::lines(&hooked.item.body())?;
    let Some(mail) = &hooked.mail else {
        return Ok(());
    };
    output::line("")?;
    output::line(output::clean(&format!(
        "With it came the message {}: {}",
        mail.id, mail.title
    )))?;
    output::lines(&mail.description)
}

/// Returns the item as JSON, with the message attached to it.
fn whole_document(hooked: &Hooked) -> Value {
    let mut whole = document(&hooked.item);
    if let Some(mail) = &hooked.mail {
        whole["letter"] = document(mail);
    }
    whole
}

/// Fails if the agent does not exist: work on its hook would never be done.
fn check_there(town: &Town, agent: &Identity) -> Result<(), Problem> {
    if directory::has(town, agent) || containers::of_agent(town, agent)?.is_some() {
        return Ok(());
    }
    Err(Problem::not_found(format!("there is no agent {agent}"))
        .hint("`gt agents --all --stopped` lists all agents")
        .hint("`gt sling` gives work to a polecat that is made for it"))
}

/// Returns the named agent, or the one that calls or whose folder or pane this is.
pub(super) fn agent_or_caller(town: &Town, given: Option<&str>) -> Result<Identity, Problem> {
    match given {
        Some(given) => target::resolve_known(town, given),
        // An agent that asks about itself exists, so the check is skipped: the agent waits for the
        // answer.
        None => target::default_agent(town),
    }
}
