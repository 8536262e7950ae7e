use super::CommandResult;
use clap::Args;
use gt_town::base::processes;
use std::process::ExitCode;
use std::time::Duration;

/// Wait until a process has ended; started by tmux beside an agent
///
/// Old versions of tmux may miss the end of a pane's process until another of their child processes
/// ends. This process is that child.
#[derive(Debug, Args)]
pub(crate) struct AwaitDeathArgs {
    pid: u32,
}

/// Delay after the process has ended. tmux cleans up the pane first, and may miss the end of a
/// child meanwhile.
const AFTERWARDS: Duration = Duration::from_millis(100);
/// Practically unlimited timeout; the wait requires one.
const LONG: Duration = Duration::from_secs(60 * 60 * 24 * 365);

pub(crate) fn run(args: &AwaitDeathArgs) -> CommandResult {
    let process = processes::hold_one(args.pid);
    // Returns only after its end.
    let _ = processes::wait_all(process.into_iter().collect(), LONG);
    std::thread::sleep(AFTERWARDS);
    Ok(ExitCode::SUCCESS)
}
