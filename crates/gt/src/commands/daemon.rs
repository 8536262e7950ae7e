use super::{CommandResult, logs};
use crate::context::Context;
use crate::output;
use crate::output::table::{Cell, Table};
use crate::served::ServedCommands;
use clap::{Args, Subcommand, ValueEnum};
use gt_core::Problem;
use gt_core::caller::{self, Caller};
use gt_core::environment::belongs_to_an_agent;
use gt_town::supervision::daemon::{self, DaemonNote};
use gt_town::{Surroundings, Town};
use serde_json::json;
use std::process::ExitCode;

/// The process that watches an unattended town
///
/// It reacts at once to what happens in the town: deaths, finished work, messages and
/// limits. It is optional: without it a town reacts with the next command, or with the
/// timer of tmux.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum DaemonCommand {
    Run(RunArgs),
    Start(StartArgs),
    Stop(StopArgs),
    Restart(RestartArgs),
    Status(StatusArgs),
    Logs(logs::LogsArgs),
    Unit(UnitArgs),
}

/// Run the daemon in this terminal, until Ctrl-C or SIGTERM
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Detach from the terminal; used by `gt daemon start`
    #[arg(long, hide = true)]
    detach: bool,
}

/// Start the daemon in the background
#[derive(Debug, Args)]
pub(crate) struct StartArgs {}

/// Stop the daemon; it saves the containers first
#[derive(Debug, Args)]
pub(crate) struct StopArgs {}

/// Stop the daemon if it runs, and start it
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {}

/// Show whether the daemon runs, and its duties; exit code 1 if it does not run
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {}

/// Print a unit with which the system starts the daemon
///
/// For example: gt daemon unit > ~/.config/systemd/user/gt.service; `loginctl enable-linger` lets a
/// systemd user unit run before the first login and after the last logout.
#[derive(Debug, Args)]
pub(crate) struct UnitArgs {
    /// The service manager [default: that of this system]
    #[arg(long = "for", value_name = "MANAGER")]
    manager: Option<Manager>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Manager {
    Systemd,
    Launchd,
}

pub(crate) fn run(command: DaemonCommand, context: &Context) -> CommandResult {
    match command {
        DaemonCommand::Run(args) => run_here(&args, context),
        DaemonCommand::Start(StartArgs {}) => start(&context.town()?, "Started", context),
        DaemonCommand::Stop(StopArgs {}) => stop(&context.town()?, context),
        DaemonCommand::Restart(RestartArgs {}) => {
            let town = context.town()?;
            let done = match daemon::stop(&town)? {
                Some(_) => "Restarted",
                None => "Started",
            };
            start(&town, done, context)
        }
        DaemonCommand::Status(StatusArgs {}) => status(&context.town()?, context),
        DaemonCommand::Logs(args) => logs::run_for(&args, "daemon", context),
        DaemonCommand::Unit(args) => unit(&args, context),
    }
}

fn run_here(args: &RunArgs, context: &Context) -> CommandResult {
    if args.detach {
        // Fails only for the leader of a process group, which has no terminal to leave.
        let _ = rustix::process::setsid();
    }
    let socket = context.town()?.socket_text();
    let mut around: Surroundings = context.around().clone();
    // The daemon belongs to the town, even if an agent or a pane of tmux started it.
    around
        .env
        .retain(|name, _| !belongs_to_an_agent(name) && !matches!(&**name, "TMUX" | "TMUX_PANE"));
    for (name, value) in [
        ("GT_TMUX_SOCKET", &*socket),
        (caller::VARIABLE, Caller::Gt.as_str()),
    ] {
        around.env.insert(name.to_owned(), value.to_owned());
    }
    let root = context.root()?;
    if !args.detach && !context.json {
        output::line("The daemon runs; Ctrl-C ends it.")?;
    }
    let served = ServedCommands {
        root: root.clone(),
        around: around.clone(),
    };
    gt_daemon::run(&root, around, env!("CARGO_PKG_VERSION"), Box::new(served))?;
    Ok(ExitCode::SUCCESS)
}

fn start(town: &Town, done: &str, context: &Context) -> CommandResult {
    let pid = daemon::start(town)?;
    if context.json {
        output::json(&json!({"running": true, "pid": pid}))?;
    } else {
        output::line(format!("{done} the daemon (process {pid})."))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn stop(town: &Town, context: &Context) -> CommandResult {
    let ended = daemon::stop(town)?;
    if context.json {
        output::json(&json!({"running": false, "pid": ended}))?;
    } else {
        output::line(match ended {
            Some(pid) => format!("Stopped the daemon (process {pid})."),
            None => "No daemon runs.".to_owned(),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn status(town: &Town, context: &Context) -> CommandResult {
    let running = daemon::running(town);
    let note = daemon::note(town)?;
    if context.json {
        let document = json!({
            "running": running.is_some(),
            "pid": running,
            "killed": daemon::was_killed(town),
            "version": note.as_ref().map(|note| &note.version),
            "started_at": note.as_ref().map(|note| &note.started_at),
            "duties": note.as_ref().map(|note| &note.duties),
        });
        output::json(&output::without_nulls(document))?;
    } else {
        tell(town, running, note.as_ref())?;
    }
    Ok(ExitCode::from(u8::from(running.is_none())))
}

fn tell(town: &Town, running: Option<u32>, note: Option<&DaemonNote>) -> Result<(), Problem> {
    let Some((pid, note)) = running.zip(note) else {
        return output::line(match daemon::was_killed(town) {
            true => "No daemon runs: the last one was killed. `gt daemon start` starts it.",
            false => "No daemon runs. `gt daemon start` starts it.",
        });
    };
    let since = output::age_of(&note.started_at);
    output::line(format!(
        "The daemon runs (process {pid}, started {since} ago)."
    ))?;
    if note.version != env!("CARGO_PKG_VERSION") {
        let version = &note.version;
        output::line(format!(
            "It is gt {version}; `gt daemon restart` replaces it with {}.",
            env!("CARGO_PKG_VERSION")
        ))?;
    }
    let mut table = Table::new(&["DUTY", "RUNS", "LAST", "TOOK", "FAILED", "LAST ERROR"]);
    for (name, record) in &note.duties {
        let cells = [
            name.clone(),
            record.runs.to_string(),
            output::age_of(&record.last_at),
            format!("{} ms", record.last_ms),
            record.failures.to_string(),
            record.last_error.clone().unwrap_or_default(),
        ];
        table.row(cells.map(Cell::from));
    }
    output::print(&table.render(output::Paint::for_stdout()))
}

fn unit(args: &UnitArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let usual = match cfg!(target_os = "macos") {
        true => Manager::Launchd,
        false => Manager::Systemd,
    };
    let gt = &context.around().gt;
    output::print(&match args.manager.unwrap_or(usual) {
        Manager::Systemd => gt_daemon::systemd(gt, town.root()),
        Manager::Launchd => {
            let label = format!("gt.daemon.{}", town.settings().name);
            gt_daemon::launchd(gt, town.root(), &label)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
