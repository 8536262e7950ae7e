mod attaching;
mod cleaning;
mod merging;
mod pausing;
mod showing;
mod updating;

use super::start_flags::{PermissionFlags, sandbox_level};
use super::{CommandResult, agents, attach, stop};
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::sandbox::SandboxLevel;
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::agents::states::ResolverReport;
use gt_town::repo::rig;
use gt_town::terminal::containers;
use gt_town::workflow::task::{self, InitResult, StartedTask, Task, TaskOptions};
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

/// Tasks: one work item each, with a worktree, a container and an agent of its own
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TaskCommand {
    Start(StartArgs),
    List(ListArgs),
    Show(ShowArgs),
    Stop(StopArgs),
    Attach(attaching::AttachArgs),
    Update(updating::UpdateArgs),
    AbortMerge(updating::AbortMergeArgs),
    Pause(pausing::PauseArgs),
    Resume(pausing::ResumeArgs),
    Diff(showing::DiffArgs),
    Merge(merging::MergeArgs),
    Pr(merging::PrArgs),
    Cleanup(cleaning::CleanupArgs),
}

/// Start a task, or attach to it if it runs
///
/// Makes its worktree on a branch named after the item, copies what the project's .gt.toml names,
/// puts the item on the hook, runs the init commands in the container's shell, and starts the agent
/// program and the background tasks. Continues a start that was interrupted.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    bead: WorkId,
    /// Tell the agent to work on the item
    #[arg(long)]
    work: bool,
    /// The agent program does not ask for permission
    #[arg(long, conflicts_with = "ask_permissions")]
    yolo: bool,
    #[command(flatten)]
    permissions: PermissionFlags,
    /// First message to the agent
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The agent program [default: the project's, the role's, GT_HARNESS, the town's]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The model, by the agent program's own name for it [default: the project's, the role's, the
    /// harness's]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The account under which the agent program runs
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// The sandbox: `none`, `workspace`, `strict` or `container` [default: the role's, the town's]
    #[arg(long, value_name = "LEVEL", value_parser = sandbox_level)]
    sandbox: Option<SandboxLevel>,
    /// Continue if an init command fails
    #[arg(long)]
    continue_on_failure: bool,
    /// Start it even if the item waits for others
    #[arg(long)]
    force: bool,
    /// Only the worktree, the container and the init commands
    #[arg(long, conflicts_with_all = ["work", "yolo", "ask_permissions", "prompt", "harness", "model", "account", "sandbox"])]
    no_agent: bool,
    /// Do not attach
    #[arg(long)]
    no_attach: bool,
}

/// List the tasks that are on a hook or have a container
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this rig's
    rig: Option<String>,
}

/// Show one task
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    bead: WorkId,
}

/// Stop tasks: their agents and everything in their containers that gt has opened
///
/// The worktree stays, and the item stays on the hook.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The work items
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<WorkId>,
    /// Do not ask the agents to quit first
    #[arg(long)]
    force: bool,
}

impl TaskCommand {
    /// Returns the ids of the command's items.
    fn ids(&mut self) -> Vec<&mut WorkId> {
        match self {
            TaskCommand::List(_) => Vec::new(),
            TaskCommand::Stop(args) => args.beads.iter_mut().collect(),
            TaskCommand::Start(args) => vec![&mut args.bead],
            TaskCommand::Show(args) => vec![&mut args.bead],
            TaskCommand::Attach(args) => vec![&mut args.bead],
            TaskCommand::Update(args) => vec![&mut args.bead],
            TaskCommand::AbortMerge(args) => vec![&mut args.bead],
            TaskCommand::Pause(args) => vec![&mut args.bead],
            TaskCommand::Resume(args) => vec![&mut args.bead],
            TaskCommand::Diff(args) => vec![&mut args.bead],
            TaskCommand::Merge(args) => vec![&mut args.bead],
            TaskCommand::Pr(args) => vec![&mut args.bead],
            TaskCommand::Cleanup(args) => vec![&mut args.bead],
        }
    }
}

pub(crate) fn run(mut command: TaskCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    for id in command.ids() {
        *id = gt_town::records::items::Work::of(&town).expand(id)?;
    }
    match command {
        TaskCommand::Start(args) => start(&town, args, context),
        TaskCommand::List(args) => list(&town, args.rig.as_deref(), context),
        TaskCommand::Show(args) => show(&task::show(&town, &args.bead)?, context),
        TaskCommand::Stop(args) => {
            let agents = args.beads.iter().map(|id| task::agent_of(&town, id));
            let agents: Result<Vec<_>, Problem> = agents.map(|it| Ok(it?.0)).collect();
            stop::stop_many(&town, &agents?, args.force, context)
        }
        TaskCommand::Attach(args) => attaching::run(&town, &args, context),
        TaskCommand::Update(args) => updating::update(&town, &args, context),
        TaskCommand::AbortMerge(args) => updating::abort(&town, &args, context),
        TaskCommand::Pause(args) => pausing::pause(&town, &args, context),
        TaskCommand::Resume(args) => pausing::resume(&town, args, context),
        TaskCommand::Diff(args) => showing::diff(&town, &args, context),
        TaskCommand::Merge(args) => merging::merge(&town, &args, context),
        TaskCommand::Pr(args) => merging::pull_request(&town, args, context),
        TaskCommand::Cleanup(args) => cleaning::run(&town, &args, context),
    }
}

fn start(town: &Town, args: StartArgs, context: &Context) -> CommandResult {
    let (agent, _) = task::agent_of(town, &args.bead)?;
    let options = TaskOptions {
        work: args.work,
        yolo: args.yolo,
        ask_permissions: args.permissions.ask_permissions,
        prompt: args.prompt,
        harness: args.harness,
        model: args.model,
        account: args.account,
        sandbox: args.sandbox,
        continue_on_failure: args.continue_on_failure,
        force: args.force,
        no_agent: args.no_agent,
        as_before: None,
        asked_by: None,
    };
    context.catch_interrupts();
    if containers::of_agent(town, &agent)?.is_none() {
        for warning in gt_town::lifecycle::start::pre_sync(town, &[agent]) {
            output::warn(warning);
        }
    }
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let may_ask = at_a_terminal && !context.json;
    let mut go_on = |ran: &InitResult| may_ask && ask_to_go_on(ran);
    let started = task::start(town, &args.bead, &options, &mut go_on)?;
    for ran in started.init.iter().filter(|ran| ran.has_failed()) {
        output::warn(format!("the init command {}", ran.words()));
    }
    for warning in &started.warnings {
        output::warn(format!("{}: {warning}", started.agent));
    }
    if context.json {
        output::json(&started_json(&started))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(started_line(&started, Paint::for_stdout()))?;
    // An agent that starts a task has no terminal, and must not move the user's client.
    if args.no_attach || !at_a_terminal {
        return Ok(ExitCode::SUCCESS);
    }
    attach::attach_terminal(town, &started.container, false, context)
}

/// Asks a person whether to continue after a failed init command.
fn ask_to_go_on(ran: &InitResult) -> bool {
    confirm(&format!(
        "The init command {}. Continue? [y/N] ",
        ran.words()
    ))
}

/// Asks a yes-or-no question. Returns true for yes.
fn confirm(question: &str) -> bool {
    // Flushed, because the question has no line end.
    if output::print(question).is_err() || std::io::stdout().flush().is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn started_line(started: &StartedTask, paint: Paint) -> String {
    let what = match (started.started, started.session) {
        (true, _) => "started",
        (false, Some(_)) => "runs already",
        (false, None) => "has a shell",
    };
    let branch = started
        .branch
        .as_ref()
        .map_or_else(String::new, |branch| format!(", branch {branch}"));
    format!(
        "{} {} {what} in {} ({}{branch})",
        paint.green("✓"),
        paint.bold(&started.agent.address()),
        started.container,
        started.work_dir.display(),
    )
}

fn started_json(started: &StartedTask) -> Value {
    let init = started.init.iter().map(|ran| {
        output::without_nulls(json!({"command": ran.command, "exit_code": ran.exit_code}))
    });
    output::without_nulls(json!({
        "bead": started.id,
        "agent": started.agent,
        "container": started.container,
        "branch": started.branch,
        "work_dir": started.work_dir,
        "session": started.session,
        "harness": started.harness,
        "started": started.started,
        "reused": started.reused,
        "copied": started.copied,
        "init": init.collect::<Vec<Value>>(),
        "windows": started.windows,
        "warnings": started.warnings,
    }))
}

fn list(town: &Town, only: Option<&str>, context: &Context) -> CommandResult {
    if let Some(name) = only {
        rig::entry(town, name)?;
    }
    let tasks = task::list(town, only)?;
    if context.json {
        output::json(&tasks.iter().map(document).collect::<Vec<Value>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if tasks.is_empty() {
        output::line("There are no tasks.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["BEAD", "STATE", "BRANCH", "WINDOWS", "TITLE"]);
    for task in &tasks {
        let title = task.item.as_ref().map(|item| output::clean(&item.title));
        let windows: Vec<&str> = task.windows.iter().map(|it| it.name.as_str()).collect();
        table.row([
            task.id.to_string().into(),
            task.view
                .as_ref()
                .map_or_else(|| "stopped".into(), agents::state_cell),
            task.branch.clone().unwrap_or_else(|| "-".to_owned()).into(),
            windows.join(" ").into(),
            title.unwrap_or_default().into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn show(task: &Task, context: &Context) -> CommandResult {
    if context.json {
        output::json(&document(task))?;
        return Ok(ExitCode::SUCCESS);
    }
    let document = document(task);
    for (name, field) in [
        ("item", "bead"),
        ("title", "title"),
        ("status", "status"),
        ("agent", "agent"),
        ("container", "container"),
        ("harness", "harness"),
        ("state", "state"),
        ("because", "state_reason"),
        ("branch", "branch"),
        ("folder", "work_dir"),
    ] {
        if let Some(value) = document[field].as_str() {
            output::line(format!("{name:<10} {}", output::clean(value)))?;
        }
    }
    if let Some(reason) = document["resolver"]["reason"].as_str() {
        output::line(format!("{:<10} {}", "resolver", output::clean(reason)))?;
    }
    for window in &task.windows {
        let state = match (window.running, window.exit_code) {
            (true, _) => "running".to_owned(),
            (false, Some(code)) => format!("ended with exit code {code}"),
            (false, None) => "ended".to_owned(),
        };
        output::line(format!("window     {} {state}", window.name))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn resolver(it: &ResolverReport) -> Value {
    output::without_nulls(json!({
        "window": it.window,
        "state": it.report.state,
        "since": it.report.since.and_then(output::time),
        "reason": it.report.reason,
    }))
}

/// Returns a task as JSON. Unknown values are absent.
fn document(task: &Task) -> Value {
    let mut all = task.view.as_ref().map_or_else(
        || json!({"agent": task.agent, "state": "stopped"}),
        agents::document,
    );
    let windows = task.windows.iter().map(|window| {
        output::without_nulls(json!({
            "name": window.name,
            "running": window.running,
            "exit_code": window.exit_code,
        }))
    });
    let own = output::without_nulls(json!({
        "bead": task.id,
        "rig": task.agent.rig(),
        "title": task.item.as_ref().map(|item| &item.title),
        "status": task.item.as_ref().map(|item| item.status.as_str()),
        "initialized": task.initialized,
        "work_dir": task.work_dir,
        "branch": task.branch,
        "windows": windows.collect::<Vec<Value>>(),
        "resolver": task.resolver.as_ref().map(resolver),
    }));
    if let (Some(all), Value::Object(own)) = (all.as_object_mut(), own) {
        all.extend(own);
    }
    all
}
