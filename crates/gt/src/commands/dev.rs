use super::CommandResult;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::records::items::Work;
use gt_town::terminal::dev_servers::{self, DevServerError, DevServerState, RunningServer};
use gt_town::workflow::task;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// Development servers, in windows beside an agent
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum DevCommand {
    /// List servers with their ports and states
    List(ListArgs),
    /// Start servers on free ports, which they keep
    ///
    /// A task that has no container gets one: its worktree, a shell and the init commands.
    Start(StartArgs),
    /// Stop servers, and close their windows
    Stop(WhichArgs),
    /// Stop servers and start them again, on the same ports
    Restart(StartArgs),
    /// Open a server in the browser
    Open(WhichArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// A work item or an agent [default: all that have a container]
    #[arg(value_name = "BEAD|TARGET")]
    whose: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// A work item or an agent [default: the calling agent, or the agent of this folder]
    #[arg(value_name = "BEAD|TARGET")]
    whose: Option<String>,
    /// The server [default: all of the project]
    name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Continue if an init command fails
    #[arg(long)]
    continue_on_failure: bool,
}

/// Change to apply to servers.
enum ServerChange {
    Start { continue_on_failure: bool },
    Stop,
    Restart { continue_on_failure: bool },
}

impl StartArgs {
    fn change(self, change: fn(bool) -> ServerChange) -> (WhichArgs, ServerChange) {
        (self.which, change(self.continue_on_failure))
    }
}

pub(crate) fn run(command: DevCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let (args, change) = match command {
        DevCommand::List(args) => return list(&town, args.whose.as_deref(), context),
        DevCommand::Open(args) => return open(&town, &args, context),
        DevCommand::Start(args) => args.change(|continue_on_failure| ServerChange::Start {
            continue_on_failure,
        }),
        DevCommand::Stop(args) => (args, ServerChange::Stop),
        DevCommand::Restart(args) => args.change(|continue_on_failure| ServerChange::Restart {
            continue_on_failure,
        }),
    };
    let (agent, name) = which(&town, &args)?;
    context.catch_interrupts();
    let servers = match change {
        ServerChange::Start {
            continue_on_failure,
        } => start(&town, &agent, name, continue_on_failure)?,
        ServerChange::Stop => dev_servers::stop(&town, &agent, name)?,
        ServerChange::Restart {
            continue_on_failure,
        } => {
            dev_servers::stop(&town, &agent, name)?;
            start(&town, &agent, name, continue_on_failure)?
        }
    };
    if servers.is_empty() && !context.json {
        output::line("The project has no servers: [[dev_servers]] in its .gt.toml names them.")?;
        return Ok(ExitCode::SUCCESS);
    }
    tell(&servers, context)?;
    let now = town.clock().seconds();
    // A server that fails at once makes the command fail.
    let failed = servers.iter().find(|it| it.state == DevServerState::Error);
    match failed {
        Some(server) => {
            Err(
                Problem::failed(format!("{} failed: {}", server.window, how(server, now))).hint(
                    format!("its window shows why: `gt attach {}`", server.agent),
                ),
            )
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn list(town: &Town, whose: Option<&str>, context: &Context) -> CommandResult {
    let servers = match whose {
        Some(word) => dev_servers::list(town, &agent(town, word)?, None)?,
        None => dev_servers::list_all(town)?,
    };
    if servers.is_empty() && !context.json {
        output::line("There are no servers.")?;
        return Ok(ExitCode::SUCCESS);
    }
    tell(&servers, context)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts servers, on the ports that they had before.
fn start(
    town: &Town,
    agent: &Identity,
    name: Option<&str>,
    continue_on_failure: bool,
) -> Result<Vec<RunningServer>, Problem> {
    let words = name.map_or_else(String::new, |name| format!(" {name}"));
    let command = format!("gt dev start {}{words}", agent.short_name());
    task::ensure_container(town, agent, continue_on_failure, command)?;
    dev_servers::start(town, agent, name)
}

fn tell(servers: &[RunningServer], context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&servers.iter().map(document).collect::<Vec<Value>>());
    }
    let now = context.around().clock.seconds();
    let mut table = Table::new(&["AGENT", "SERVER", "STATE", "PORT", "URL"]);
    for server in servers {
        let state = match server.state {
            DevServerState::Running => {
                Cell::painted(DevServerState::Running.as_str(), Paint::green)
            }
            DevServerState::Starting => {
                Cell::painted(DevServerState::Starting.as_str(), Paint::yellow)
            }
            DevServerState::Stopped => Cell::painted(DevServerState::Stopped.as_str(), Paint::dim),
            DevServerState::Error => {
                Cell::painted(format!("error: {}", how(server, now)), Paint::red)
            }
        };
        let port = server.port.map(|port| port.to_string());
        table.row([
            server.agent.address().into(),
            server.name.clone().into(),
            state,
            port.unwrap_or_else(|| "-".to_owned()).into(),
            server.url().unwrap_or_else(|| "-".to_owned()).into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

/// Returns the reason of the failure, and for a live server its duration.
fn how(server: &RunningServer, now: i64) -> String {
    let reason = server.reason.clone().unwrap_or_default();
    match (server.since, server.pid) {
        (Some(since), Some(_)) => {
            let seconds = now - since;
            format!("{reason}, for {seconds} s")
        }
        _ => reason,
    }
}

fn document(server: &RunningServer) -> Value {
    output::without_nulls(json!({
        "agent": server.agent,
        "name": server.name,
        "window": server.window,
        "command": server.command,
        "container": server.container,
        "work_dir": server.work_dir,
        "state": server.state.as_str(),
        "since": server.since.and_then(output::time),
        "reason": server.reason,
        "port": server.port,
        "ports": server.ports,
        "url": server.url(),
        "pane": server.pane.map(|pane| pane.to_string()),
        "pid": server.pid,
        "exit_code": server.exit_code,
        "changed": server.changed,
    }))
}

fn open(town: &Town, args: &WhichArgs, context: &Context) -> CommandResult {
    let (agent, name) = which(town, args)?;
    let servers = dev_servers::list(town, &agent, name)?;
    let up = servers
        .iter()
        .find(|it| it.state == DevServerState::Running);
    let server = up.or(servers.first()).ok_or_else(|| {
        Problem::not_found("the project has no servers")
            .hint("[[dev_servers]] in its .gt.toml names them")
    })?;
    let Some(url) = server
        .url()
        .filter(|_| server.state == DevServerState::Running)
    else {
        return Err(
            Problem::conflict(format!("{} is {}", server.window, server.state.as_str()))
                .hint(format!("`gt dev start {agent} {}` starts it", server.name)),
        );
    };
    match context.json {
        true => output::json(&document(server))?,
        false => output::line(&url)?,
    }
    let around = context.around();
    let usual = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let program = around.find_program(around.var("BROWSER").unwrap_or(usual));
    let Some(program) = program else {
        output::warn("there is no program to show it with: set BROWSER");
        return Ok(ExitCode::SUCCESS);
    };
    let mut command = Command::new(&program);
    command
        .arg(&url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    // The browser may run longer than this command.
    command.spawn().map(drop).map_err(|error| {
        Problem::environment(format!("cannot run {}", program.display())).caused_by(error)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the agent and the server that the arguments name. A single word may be either.
fn which<'a>(town: &Town, args: &'a WhichArgs) -> Result<(Identity, Option<&'a str>), Problem> {
    let name = args.name.as_deref();
    let Some(word) = args.whose.as_deref() else {
        return Ok((target::default_agent(town)?, None));
    };
    if name.is_none()
        && let Ok(caller) = target::default_agent(town)
    {
        match dev_servers::list(town, &caller, Some(word)) {
            Ok(_) => return Ok((caller, Some(word))),
            Err(DevServerError::NoWorktree(_) | DevServerError::Unknown(_)) => {}
            // The word may still name another agent; if not, this is the reason.
            Err(DevServerError::Other(problem)) => {
                return agent(town, word)
                    .map(|agent| (agent, name))
                    .map_err(|_| problem);
            }
        }
    }
    Ok((agent(town, word)?, name))
}

/// Returns the agent of a work item, or the named agent. For an item that another agent works on,
/// returns that agent.
fn agent(town: &Town, word: &str) -> Result<Identity, Problem> {
    let Ok(id) = word.parse::<WorkId>() else {
        return target::resolve(town, word);
    };
    let work = Work::of(town);
    let id = work.expand(&id)?;
    if work.lookup(&id)?.is_none() {
        // The error of an unknown item is clearer than that of an unknown agent.
        return target::resolve(town, word).or_else(|unknown| work.get(&id).and(Err(unknown)));
    }
    let holder = work.holder(&id)?;
    let holder = holder.and_then(|it| Identity::from_address(&it, town.registry()));
    holder.map_or_else(|| Ok(task::agent_of(town, &id)?.0), Ok)
}
