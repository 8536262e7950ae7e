use super::{CommandResult, hook_report};
use crate::context::Context;
use clap::Args;
use gt_core::signal::HookEvent;
use gt_core::{Identity, Problem, Role};
use gt_town::lifecycle::adopt;
use gt_town::messaging::signal;
use gt_town::workflow::task;
use gt_town::{Surroundings, Town};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Record the report of an agent's hook; for hooks, with their JSON on standard input
///
/// It prints nothing and always succeeds, so that it never blocks an agent. Errors are in the log:
/// `gt logs`.
#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    /// The event [default: that of the JSON]
    event: Option<String>,
    /// The container [default: GT_SESSION, or the one that has the conversation]
    #[arg(long, value_name = "CONTAINER")]
    session: Option<String>,
    /// Only for the adopted agent in whose pane this runs; do nothing if there is none
    #[arg(long, hide = true, conflicts_with = "session")]
    adopted: bool,
    /// Print errors, and fail
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: SignalArgs, context: &Context) -> CommandResult {
    let result = note(&args, context);
    if args.strict {
        result?;
    } else if let Err(problem) = result {
        tracing::error!("{}", problem.line());
    }
    Ok(ExitCode::SUCCESS)
}

/// Deadline for a report. Programs do not retry, so it is close to the timeout that
/// `gt_town::catalog::hook_installers` gives them. Programs with a shorter timeout continue without it.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Maximum wait for the report; the rest of the time is for recording it.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

fn note(args: &SignalArgs, context: &Context) -> Result<(), Problem> {
    let town = context.town_for_hook(TIMEOUT)?;
    let report = hook_report::read(READ_TIMEOUT);
    match report.problem {
        // Without an event argument, only the report names the event.
        Some(problem) if args.event.is_none() => return Err(problem),
        _ => {}
    }
    if args.adopted {
        return note_adopted(&town, args.event.as_deref(), &report.value, context);
    }
    if let Some(container) = &args.session {
        town.check_own_container("--session", container)?;
    }
    note_report(
        &town,
        args.event.as_deref(),
        args.session.as_deref(),
        &report.value,
        context,
    )?;
    report.problem.map_or(Ok(()), Err)
}

/// Records a report of a program that a person started. Every program in the folder calls this
/// hook; most are not agents of the town and are ignored.
fn note_adopted(
    town: &Town,
    event: Option<&str>,
    report: &Value,
    context: &Context,
) -> Result<(), Problem> {
    let around = context.around();
    let pane = around.var("TMUX_PANE").and_then(|pane| pane.parse().ok());
    let socket = super::attach::inside(around);
    // An agent started by `gt` has its own hooks.
    let (Some(socket), Some(pane), None) = (socket, pane, around.var("GT_SESSION")) else {
        return Ok(());
    };
    let home = match socket == town.server().socket_path() {
        true => town.clone(),
        false => town.with_server(&socket),
    };
    match adopt::container_of_pane(&home, pane)? {
        Some(container) => {
            let word = event.or(report["hook_event_name"].as_str());
            if let Some(event) = word.and_then(HookEvent::from_word) {
                adopt::note_end(&home, &container, event, report)?;
            }
            note_report(&home, event, Some(&container), report, context)
        }
        None => Ok(()),
    }
}

/// Records a report for the given event, or for the event that the report names.
pub(super) fn note_report(
    town: &Town,
    event: Option<&str>,
    session: Option<&str>,
    report: &Value,
    context: &Context,
) -> Result<(), Problem> {
    let word = event
        .or(report["hook_event_name"].as_str())
        .or(report["type"].as_str());
    let word = word.ok_or_else(|| Problem::usage("no event is named"))?;
    let event = HookEvent::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = HookEvent::words().collect();
        Problem::usage(format!("there is no event {word:?}")).hint(words.join(", "))
    })?;
    let report = &with_conversation(report, context.around());
    let given = session.or_else(|| context.around().var("GT_SESSION"));
    let container = match given {
        Some(container) => Some(container.to_owned()),
        // A hook may run in the environment of a shared daemon, without the agent's variables.
        None => match report["session_id"].as_str() {
            Some(id) => signal::container_of_conversation(town, id)?,
            None => None,
        },
    };
    let container =
        container.ok_or_else(|| Problem::not_found("no container has this conversation"))?;
    let noted = signal::note(town, &container, event, report);
    noted.and(end_pause(town, event))
}

/// Ends the pause of a task whose agent got a prompt, before the agent continues.
fn end_pause(town: &Town, event: HookEvent) -> Result<(), Problem> {
    let address = town
        .around()
        .var("GT_ROLE")
        .filter(|_| event == HookEvent::Prompt);
    let agent = address.and_then(|address| Identity::from_address(address, town.registry()));
    match agent.filter(|agent| agent.role() == Role::Task) {
        Some(agent) => task::undo_pause_commit(town, &agent),
        None => Ok(()),
    }
}

/// Variables in which Claude Code passes the id of its conversation: older releases, newer ones.
const CONVERSATION: [&str; 2] = ["CLAUDE_SESSION_ID", "CLAUDE_CODE_SESSION_ID"];

/// Returns the conversation that the environment of this process names.
pub(super) fn conversation_of(around: &Surroundings) -> Option<&str> {
    CONVERSATION.iter().find_map(|name| around.var(name))
}

/// Returns the report with the conversation id from the environment, if the report has none.
fn with_conversation(report: &Value, around: &Surroundings) -> Value {
    let mut report = report.clone();
    let Some(id) = conversation_of(around).filter(|_| !report["session_id"].is_string()) else {
        return report;
    };
    if report.is_null() {
        report = json!({});
    }
    if let Some(fields) = report.as_object_mut() {
        fields.insert("session_id".to_owned(), id.into());
    }
    report
}
