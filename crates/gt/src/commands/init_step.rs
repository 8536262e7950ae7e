use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_town::repo::init_step::{self as step, InitStep};
use rustix::termios::tcgetwinsize;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Do one step of a task's initialisation; typed by `gt task start` into its shell
///
/// Waits for the command and records its exit code. Ctrl-C ends the command, and not this process.
#[derive(Debug, Args)]
pub(crate) struct InitStepArgs {
    /// The file with the command
    file: PathBuf,
}

pub(crate) fn run(args: &InitStepArgs, context: &Context) -> CommandResult {
    outlive_interrupts();
    match step::begin(&args.file)? {
        None => Ok(ExitCode::SUCCESS),
        Some(InitStep::Run(line)) => run_line(&line, &args.file),
        Some(InitStep::Keep) => keep(&args.file, context),
    }
}

/// Keeps this process alive at Ctrl-C. Installs a handler instead of ignoring the signal, because
/// the command would inherit the ignored state.
fn outlive_interrupts() {
    use signal_hook::consts::{SIGINT, SIGQUIT};
    for signal in [SIGINT, SIGQUIT] {
        // If this fails, Ctrl-C also ends this process, and the waiting start notices that.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
}

fn run_line(line: &str, file: &Path) -> CommandResult {
    let paint = Paint::for_stdout();
    output::line(paint.bold(&format!("▸ {}", output::clean(line))))?;
    let status = Command::new("sh").args(["-c", line]).status();
    let code = match &status {
        Ok(status) => status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
        Err(_) => 127,
    };
    step::end(file, code)?;
    if code != 0 {
        output::line(paint.red(&format!("✗ exit code {code}")))?;
    }
    status
        .map(|_| ExitCode::from(u8::try_from(code).unwrap_or(1)))
        .map_err(|error| Problem::environment("cannot run sh").caused_by(error))
}

fn keep(file: &Path, context: &Context) -> CommandResult {
    step::save_environment(file, &context.around().env)?;
    // The next program uses the whole screen: scrolls the present text into the history.
    let rows = tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_row);
    output::print(&"\n".repeat(usize::from(rows)))?;
    step::end(file, 0)?;
    Ok(ExitCode::SUCCESS)
}
