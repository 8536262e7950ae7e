mod container;

use super::CommandResult;
use crate::context::Context;
use clap::Args;
use gt_core::egress::AllowList;
use gt_core::sandbox::{
    BROKER_VARIABLE, EGRESS_PORT, EGRESS_SOCKET, SandboxLevel, SandboxLimits, SandboxTool,
};
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::sandbox::leftovers::BrokerFolder;
use gt_town::agents::sandbox::{self, bubblewrap};
use gt_town::base::callback::Call;
use gt_town::base::egress::{self, EgressEvent};
use gt_town::base::files;
use gt_town::base::job::{Job, JobEnd};
use gt_town::catalog::{harnesses, roles, secrets};
use gt_town::records::events;
use gt_town::terminal::broker;
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Time within which a sandbox that the system refuses has ended.
const COMES_UP: Duration = Duration::from_secs(5);

/// Become an agent's program, with the secret variables of its role; started by tmux
///
/// The values are only in the environment of this process, and so in the program's. A variable
/// that tmux sets would also be in the table of the session. With a sandbox, this process stays
/// outside as the agent's broker.
#[derive(Debug, Args)]
pub(crate) struct RunAgentArgs {
    /// The address of the agent
    agent: String,
    /// The sandbox of the program
    #[arg(long, value_name = "LEVEL", requires = "harness")]
    sandbox: Option<String>,
    /// The harness of the program
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

pub(crate) fn run(args: RunAgentArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let agent = Identity::from_address(&args.agent, town.registry()).ok_or_else(|| {
        Problem::usage(format!("{:?} is not the address of an agent", args.agent))
    })?;
    let mut role = roles::resolve(&town, agent.role(), agent.rig())?.value;
    let values = secrets::resolve(&town, &role)?;
    let Some((program, words)) = args.program.split_first() else {
        return Err(Problem::usage("there is no program to become"));
    };
    let level = match args.sandbox.as_deref() {
        None => SandboxLevel::None,
        Some(word) => SandboxLevel::from_word(word)
            .ok_or_else(|| Problem::usage(format!("there is no sandbox {word:?}")))?,
    };
    if level == SandboxLevel::None {
        let error = Command::new(program).args(words).envs(values).exec();
        return Err(cannot_start(program).caused_by(error));
    }
    role.sandbox.level = Some(level);
    let harness = args.harness.as_deref().unwrap_or_default();
    let preset = harnesses::resolve(&town, harness)?.value;
    if level == SandboxLevel::Container {
        let contained = container::ContainedAgent {
            town: &town,
            agent: &agent,
            role: &role,
            preset: &preset,
            values,
        };
        return container::run(contained, program, words);
    }
    let mut command = Command::new(bubblewrap::locate(&town)?);
    let folder = BrokerFolder::make(&town)?;
    let listener = broker::listen(&folder.path, broker::SOCKET)?;
    let plan = sandbox::plan(
        &town,
        &agent,
        &role,
        &preset,
        &folder.path,
        Path::new(program),
    )?;
    let tool = SandboxTool::HERE;
    let temporary = temporary_folder(&folder.path)?;
    command.args(tool.arguments(&plan, &temporary));
    if level == SandboxLevel::Strict {
        let allowed = sandbox::allowed_hosts(&role, &preset)?;
        command.envs(allowed.proxy_variables(EGRESS_PORT));
        command.arg(&town.around().gt);
        command.args(Call::EgressBridge.words()).arg("--");
        serve_egress(&town, &agent, &folder.path, allowed)?;
    }
    let mut limits = role.sandbox.limits;
    if !tool.counts_own_processes() {
        limits = SandboxLimits {
            processes: 0,
            ..limits
        };
    }
    let socket = format!("{}/{}", tool.broker_folder(&plan), broker::SOCKET);
    command
        .args(limits.words())
        .arg(program)
        .args(words)
        .envs(plan.env)
        .envs(values)
        .envs(&preset.sandbox.env)
        .envs(tool.variables(&temporary))
        .env(BROKER_VARIABLE, socket);
    let began = Instant::now();
    let (around, work_dir) = (town.around().clone(), town.around().current_dir.clone());
    std::thread::spawn(move || broker::serve(listener, around, work_dir));
    let job = Job::start(command).map_err(|error| cannot_start(program).caused_by(error))?;
    pass_signals_on(ENDING, move |signal| job.signal(signal));
    let ended = job
        .wait()
        .map_err(|error| Problem::failed("cannot wait for the sandbox").caused_by(error))?;
    drop(folder);
    if ended != JobEnd::Exited(0) && began.elapsed() < COMES_UP {
        bubblewrap::forget(&town);
    }
    report_end(ended)
}

/// Makes the folder for temporary files, for a tool that makes no private `/tmp`.
fn temporary_folder(broker: &Path) -> Result<String, Problem> {
    let folder = broker.join("tmp");
    if !SandboxTool::HERE.variables("").is_empty() {
        files::make_dir(&folder)?;
    }
    let text = folder.to_str().map(str::to_owned);
    text.ok_or_else(|| Problem::usage(format!("{} is not UTF-8", folder.display())))
}

/// Ends this process with the exit code or the signal that ended the program.
fn report_end(ended: JobEnd) -> CommandResult {
    match ended {
        JobEnd::Exited(code) => Ok(ExitCode::from(code)),
        JobEnd::Signalled(signal) => {
            // tmux reports the signal that ended the program.
            let ended = signal_hook::low_level::emulate_default_handler(signal);
            Err(Problem::failed(format!(
                "ended by signal {signal}: {ended:?}"
            )))
        }
    }
}

/// Serves the proxy through which the agent reaches its allowed hosts.
fn serve_egress(
    town: &Town,
    agent: &Identity,
    folder: &Path,
    allowed: AllowList,
) -> Result<(), Problem> {
    let listener = broker::listen(folder, EGRESS_SOCKET)?;
    let (town, agent) = (town.clone(), agent.address());
    let note = move |event: EgressEvent| {
        let reason = match event.destination {
            Some(destination) => format!("connection to {destination}: {}", event.denial),
            None => format!("connection: {}", event.denial),
        };
        events::note_sandbox_denial(&town, &agent, &reason);
    };
    std::thread::spawn(move || {
        if let Err(error) = egress::serve(listener, allowed, note) {
            tracing::error!("the proxy of the sandbox has ended: {error}");
        }
    });
    Ok(())
}

/// The signals that ask the pane's first process to end.
const ENDING: &[Signal] = &[Signal::HUP, Signal::INT, Signal::TERM];

/// Calls `send` with each of these signals that this process gets.
pub(super) fn pass_signals_on(signals: &[Signal], send: impl Fn(Signal) + Clone + Send + 'static) {
    for signal in signals {
        let Ok((mut ours, theirs)) = UnixStream::pair() else {
            // Without it the signal ends this process, and the sandbox with it.
            continue;
        };
        if signal_hook::low_level::pipe::register(signal.as_raw(), theirs).is_err() {
            continue;
        }
        let (send, signal) = (send.clone(), *signal);
        std::thread::spawn(move || {
            let mut byte = [0];
            while ours.read_exact(&mut byte).is_ok() {
                send(signal);
            }
        });
    }
}

fn cannot_start(program: &OsStr) -> Problem {
    Problem::environment(format!("cannot start {}", program.to_string_lossy()))
}
