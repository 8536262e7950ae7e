use super::CommandResult;
use super::run_agent::pass_signals_on;
use clap::Args;
use gt_core::Problem;
use gt_core::sandbox::BROKER_FOLDER;
use gt_core::sandbox::container::{FIRST_PROCESS, HANDOVER_SOCKET};
use gt_town::base::callback::Call;
use gt_town::base::job::{Job, JobEnd};
use gt_town::terminal::first_process::{self, ContainerProgram};
use rustix::process::{DumpableBehavior, Signal};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Time between the end of the broker and the end of the container.
const GRACE: Duration = Duration::from_secs(2);
/// Exit code of a shell for a program that it did not find.
const NOT_FOUND: u8 = 127;
/// A shell adds the number of the signal that ended a program to this exit code.
const SIGNALLED: u8 = 128;
/// The signals that ask a process to end.
const ENDING: &[Signal] = &[Signal::HUP, Signal::INT, Signal::TERM];
/// The signals of a terminal.
const OF_TERMINAL: &[Signal] = &[Signal::HUP, Signal::INT, Signal::QUIT, Signal::WINCH];

/// Run the program of an agent in its container, as the first process there
///
/// It starts the program that the broker hands over, passes signals on to it, and reaps the
/// processes that lose their parent. When it ends, the kernel ends all processes of the container.
/// So the container ends with its broker, even if that was killed.
#[derive(Debug, Args)]
pub(crate) struct ContainerInitArgs {
    /// Become this program, in a terminal session of its own
    #[arg(last = true)]
    program: Vec<OsString>,
}

pub(crate) fn run(args: &ContainerInitArgs) -> CommandResult {
    match args.program.split_first() {
        Some((program, words)) => become_program(program, words),
        None => run_first_process(),
    }
}

fn become_program(program: &OsStr, words: &[OsString]) -> CommandResult {
    rustix::process::setsid()
        .map_err(|error| Problem::failed("cannot leave the terminal session").caused_by(error))?;
    not_started(&Command::new(program).args(words).exec())
}

fn run_first_process() -> CommandResult {
    let socket = Path::new(BROKER_FOLDER).join(HANDOVER_SOCKET);
    let (program, mut line) = first_process::receive(&socket)?;
    // Other processes of the container have the same user. They must not stop this one from ending
    // them.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| Problem::failed("cannot protect this process").caused_by(error))?;
    let new_session = program.new_session;
    let command = command(program)?;
    let started = match new_session {
        true => Job::start_in_group(command),
        false => Job::start(command),
    };
    let job = match started {
        Ok(job) => job,
        Err(error) => return not_started(&error),
    };
    match new_session {
        // The terminal sends its signals to this process.
        true => {
            pass_signals_on(OF_TERMINAL, move |signal| job.signal_group(signal));
            pass_signals_on(&[Signal::TERM], move |signal| job.signal_directly(signal));
        }
        false => pass_signals_on(ENDING, move |signal| job.signal_directly(signal)),
    }
    std::thread::spawn(move || {
        while let Some(signal) = first_process::next_signal(&mut line) {
            job.signal_directly(signal);
        }
        job.signal_directly(Signal::TERM);
        std::thread::sleep(GRACE);
        std::process::exit(i32::from(SIGNALLED) + Signal::KILL.as_raw());
    });
    let ended = job
        .wait_as_init()
        .map_err(|error| Problem::failed("cannot wait for the program").caused_by(error))?;
    Ok(ExitCode::from(match ended {
        JobEnd::Exited(code) => code,
        JobEnd::Signalled(signal) => {
            SIGNALLED.saturating_add(u8::try_from(signal).unwrap_or_default())
        }
    }))
}

/// Returns the program with the environment of the image, the agent's over it, and `gt` on the
/// `PATH`.
fn command(program: ContainerProgram) -> Result<Command, Problem> {
    let mut words: Vec<OsString> = Vec::new();
    if program.new_session {
        words.push(FIRST_PROCESS.into());
        words.extend(Call::ContainerInit.words().map(OsString::from));
        words.push("--".into());
    }
    words.extend(program.words.into_iter().map(OsString::from_vec));
    let Some((first, rest)) = words.split_first() else {
        return Err(Problem::usage("there is no program to start"));
    };
    let mut command = Command::new(first);
    command.args(rest).envs(program.env);
    let own = Path::new(FIRST_PROCESS).parent().map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    // The folder of gt contains no colon, and the others were split at colons.
    let path = std::env::join_paths(folders).unwrap_or(path);
    command.env("PATH", path);
    Ok(command)
}

#[expect(
    clippy::print_stderr,
    reason = "the pane shows why the program did not start"
)]
fn not_started(error: &io::Error) -> CommandResult {
    eprintln!("error: the image of this sandbox cannot run the program of the agent: {error}");
    eprintln!("hint: install it in the image, or name another image: `sandbox.image` of the role");
    Ok(ExitCode::from(NOT_FOUND))
}
