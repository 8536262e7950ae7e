use super::CommandResult;
use crate::context::Context;
use clap::Args;
use gt_core::sandbox::{BROKER_FOLDER, BROKER_VARIABLE, SandboxLevel};
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::sandbox;
use gt_town::base::files;
use gt_town::base::job::{Job, JobEnd};
use gt_town::catalog::{harnesses, roles, secrets};
use gt_town::terminal::broker;
use rustix::process::Signal;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

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
    let role = roles::resolve(&town, agent.role(), agent.rig())?.value;
    let values = secrets::resolve(&town, &role)?;
    let Some((program, words)) = args.program.split_first() else {
        return Err(Problem::usage("there is no program to become"));
    };
    let level = args.sandbox.as_deref().map(SandboxLevel::from_word);
    let mut command = match level {
        None | Some(Some(SandboxLevel::None)) => {
            let error = Command::new(program).args(words).envs(values).exec();
            return Err(cannot_start(program).caused_by(error));
        }
        Some(Some(SandboxLevel::Workspace)) => Command::new(sandbox::check_available(&town)?),
        Some(None) => return Err(Problem::usage("there is no such sandbox")),
    };
    let harness = args.harness.as_deref().unwrap_or_default();
    let preset = harnesses::resolve(&town, harness)?.value;
    let folder = BrokerFolder::make(&town)?;
    let listener = broker::listen(&folder.path)?;
    let plan = sandbox::plan(
        &town,
        &agent,
        &role,
        &preset,
        &folder.path,
        Path::new(program),
    )?;
    command
        .args(plan.bwrap())
        .arg(program)
        .args(words)
        .envs(values)
        .envs(&preset.sandbox.env)
        .env(
            BROKER_VARIABLE,
            format!("{BROKER_FOLDER}/{}", broker::SOCKET),
        );
    let (around, work_dir) = (town.around().clone(), town.around().current_dir.clone());
    std::thread::spawn(move || broker::serve(listener, around, work_dir));
    let job = Job::start(command).map_err(|error| cannot_start(program).caused_by(error))?;
    pass_signals_on(job);
    let ended = job
        .wait()
        .map_err(|error| Problem::failed("cannot wait for the sandbox").caused_by(error))?;
    drop(folder);
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

/// Passes the signals that ask the pane's first process to end on to the program.
fn pass_signals_on(job: Job) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let signals = [
        (SIGHUP, Signal::HUP),
        (SIGINT, Signal::INT),
        (SIGTERM, Signal::TERM),
    ];
    for (number, signal) in signals {
        let Ok((mut ours, theirs)) = UnixStream::pair() else {
            // Without it the signal ends this process, and the sandbox with it.
            continue;
        };
        if signal_hook::low_level::pipe::register(number, theirs).is_err() {
            continue;
        }
        std::thread::spawn(move || {
            let mut byte = [0];
            while ours.read_exact(&mut byte).is_ok() {
                job.signal(signal);
            }
        });
    }
}

fn cannot_start(program: &OsString) -> Problem {
    Problem::environment(format!("cannot start {}", program.to_string_lossy()))
}

/// The folder of the broker's socket. It ends with the process.
struct BrokerFolder {
    path: PathBuf,
}

impl BrokerFolder {
    fn make(town: &Town) -> Result<Self, Problem> {
        let parent = town.runtime_dir().join("sandbox");
        remove_stale(&parent);
        let path = parent.join(std::process::id().to_string());
        files::make_dir(&path)?;
        files::remove_if_there(&path.join(broker::SOCKET))?;
        Ok(BrokerFolder { path })
    }
}

impl Drop for BrokerFolder {
    fn drop(&mut self) {
        // The next start removes what is left.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of brokers that were killed.
fn remove_stale(parent: &Path) {
    for entry in files::entries(parent) {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if pid.is_some_and(|pid: u32| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Another start may remove it at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
