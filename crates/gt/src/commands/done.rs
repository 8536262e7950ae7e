use super::CommandResult;
use super::hook::agent_or_caller;
use super::stop::{self, from_outside, own_container};
use super::words::SuggestedWords;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::merge::{DoneStatus, short};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::base::callback::Call;
use gt_town::records::items::Work;
use gt_town::supervision::scheduler;
use gt_town::workflow::done::{self, Done, DoneOptions};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Submit the work on the hook: queue its branch for merging, and end the session
///
/// Pushes and queues the branch of the worktree and empties the hook. The item is closed when the
/// branch is merged, or at once if there is nothing to merge. The merge queue is started in the
/// background, unless `automatic = false` under [merge] in town.toml. A polecat's session ends; its
/// worktree stays. If `gt done` is killed, running it again completes it.
#[derive(Debug, Args)]
pub(crate) struct DoneArgs {
    /// The result: completed, escalated (it needs help) or deferred
    #[arg(long, value_name = "STATUS", default_value = "completed", value_parser = SuggestedWords::of(DoneStatus::ALL.map(DoneStatus::as_str)))]
    status: String,
    /// Notes for the next agent
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    message: Option<String>,
    /// Do not push the branch; it is merged anyway
    #[arg(long)]
    no_push: bool,
    /// Submit despite uncommitted changes, which are kept under refs/gt/saved/
    #[arg(long)]
    force: bool,
    /// End the session of an agent that would keep running, such as crew
    #[arg(long)]
    exit: bool,
    /// The agent [default: the calling agent, or the agent of this folder or pane]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

pub(crate) fn run(args: DoneArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let agent = agent_or_caller(&town, args.agent.as_deref())?;
    let options = DoneOptions {
        leaving: args.status.parse()?,
        message: args.message,
        push: !args.no_push,
        force: args.force,
        exit: args.exit,
    };
    finish(&town, &agent, &options, context)
}

/// Ends the session of an agent that has submitted its work: the last step of [`finish`].
pub(super) fn end_session(agent: &str, context: &Context) -> CommandResult {
    let town = context.town()?;
    let agent = agent_or_caller(&town, Some(agent))?;
    done::end(&town, &agent, true)?;
    scheduler::wake(&town);
    Ok(ExitCode::SUCCESS)
}

/// Submits the work of an agent, and ends its session if required.
pub(super) fn finish(
    town: &Town,
    agent: &Identity,
    options: &DoneOptions,
    context: &Context,
) -> CommandResult {
    let done = done::done(town, agent, options)?;
    for warning in &done.warnings {
        output::warn(warning);
    }
    // Printed before the end: an agent that ends its own session sees nothing afterwards.
    show(town, &done, context)?;
    let own = own_container(town, context);
    let is_own = stop::is_own(town, agent, own);
    if done.ends && is_own {
        let [internal, end] = Call::EndSession.words();
        from_outside(town, &[internal, end, &agent.address()])?;
    } else {
        done::end(town, agent, done.ends)?;
        scheduler::wake(town);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(town: &Town, done: &Done, context: &Context) -> Result<(), Problem> {
    let finished = &done.finished;
    let item = match &finished.item {
        Some(id) => Some(Work::of(town).get(id)?),
        None => None,
    };
    if context.json {
        return output::json(&output::without_nulls(json!({
            "agent": finished.agent,
            "status": finished.leaving,
            "item": finished.item,
            "item_status": item.as_ref().map(|item| item.status),
            "branch": finished.branch,
            "commit": done.commit,
            "merge": finished.merge,
            "pushed": done.is_pushed,
            "saved": done.saved,
            "resumed": done.is_resumed,
            "ends": done.ends,
            "queue_log": done.queue_log,
            "warnings": Some(&done.warnings).filter(|all| !all.is_empty()).map_or(Value::Null, |all| json!(all)),
        })));
    }
    let paint = Paint::for_stdout();
    let on = |branch: &Option<String>| {
        branch
            .as_ref()
            .map_or_else(String::new, |branch| format!(" on {branch}"))
    };
    let line = match (&finished.item, finished.leaving, &finished.merge) {
        (None, ..) => "Nothing was on the hook.".to_owned(),
        (Some(id), DoneStatus::Completed, Some(merge)) => {
            format!(
                "{id} is done{}: queued for merging as {merge}.",
                on(&finished.branch)
            )
        }
        (Some(id), DoneStatus::Completed, None) => format!("{id} is done, with nothing to merge."),
        (Some(id), DoneStatus::Escalated, _) => {
            format!("{id} is blocked, and waits for help.")
        }
        (Some(id), DoneStatus::Deferred, _) => {
            format!("{id} is open again{}.", on(&finished.branch))
        }
    };
    output::line(format!("{} {}", paint.green("✓"), output::clean(&line)))?;
    if let (Some(commit), true) = (&done.commit, done.is_pushed) {
        output::line(format!("  {} was pushed.", short(commit)))?;
    }
    if let Some(saved) = &done.saved {
        output::line(format!("  What was not committed is kept as {saved}."))?;
    }
    if let Some(merge) = &finished.merge {
        output::line(later(merge, done.queue_log.is_some()))?;
    }
    Ok(())
}

fn later(merge: &WorkId, is_started: bool) -> String {
    let how = match is_started {
        true => "It is merged in the background",
        false => "`gt mq run` merges it",
    };
    format!("  {how}; `gt mq status {merge}` shows its status.")
}
