use super::CommandResult;
use crate::args::table;
use crate::output;
use clap::Args;
use clap_complete::Shell;
use gt_core::Problem;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the completion script for a shell
///
/// For bash: gt completions bash > ~/.local/share/bash-completion/completions/gt
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Write the manual pages
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder for them
    dir: PathBuf,
}

pub(crate) fn run(args: &CompletionsArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut table(), "gt", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_man(args: &ManArgs) -> CommandResult {
    std::fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(table(), &args.dir))
        .map_err(|error| {
            Problem::failed(format!("cannot write to {}", args.dir.display())).caused_by(error)
        })?;
    Ok(ExitCode::SUCCESS)
}
