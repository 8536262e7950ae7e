use super::CommandResult;
use clap::Args;
use gt_core::Problem;
use gt_core::sandbox::{BROKER_FOLDER, EGRESS_PORT, EGRESS_SOCKET};
use gt_town::base::callback::Call;
use gt_town::base::egress;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Become a program inside a strict sandbox, and forward its connections to the proxy outside
///
/// Programs know only proxies with a TCP port, and a sandbox without a network has only a Unix
/// socket. A child process of the program forwards between them.
#[derive(Debug, Args)]
pub(crate) struct EgressBridgeArgs {
    /// The program and its arguments; without one, standard input is the listening socket
    #[arg(last = true)]
    program: Vec<OsString>,
}

pub(crate) fn run(args: &EgressBridgeArgs) -> CommandResult {
    match args.program.split_first() {
        Some((program, words)) => become_program(program, words),
        None => forward(),
    }
}

/// Starts the process that forwards, and becomes the program. The program finds the port open.
fn become_program(program: &OsString, words: &[OsString]) -> CommandResult {
    let cannot_forward = |error| Problem::failed("cannot open the proxy's port").caused_by(error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, EGRESS_PORT)).map_err(cannot_forward)?;
    let gt = std::env::current_exe().map_err(cannot_forward)?;
    Command::new(gt)
        .args(Call::EgressBridge.words())
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Keys that interrupt or stop the program are not for this process.
        .process_group(0)
        .spawn()
        .map_err(cannot_forward)?;
    let error = Command::new(program).args(words).exec();
    let name = program.to_string_lossy();
    Err(Problem::environment(format!("cannot start {name}")).caused_by(error))
}

fn forward() -> CommandResult {
    let cannot_forward = |error| Problem::failed("cannot forward connections").caused_by(error);
    let listener = std::io::stdin().as_fd().try_clone_to_owned();
    let listener = TcpListener::from(listener.map_err(cannot_forward)?);
    let socket = Path::new(BROKER_FOLDER).join(EGRESS_SOCKET);
    egress::bridge(&listener, &socket).map_err(cannot_forward)?;
    Ok(ExitCode::SUCCESS)
}
