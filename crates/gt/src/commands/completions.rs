use super::CommandResult;
use crate::args::complete::VARIABLE;
use crate::args::table;
use crate::output;
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;
use gt_core::Problem;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shells whose script asks `gt` for the names of agents, items, rigs and sessions.
const DYNAMIC: &[Shell] = &[Shell::Bash, Shell::Zsh, Shell::Fish];

/// Print the completion script for a shell
///
/// In bash, zsh and fish, Tab completes the names of agents, items, rigs, sessions, harnesses and
/// roles, too.
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
    let name = args.shell.to_string();
    match Shells::builtins().completer(&name) {
        Some(shell) if DYNAMIC.contains(&args.shell) => shell
            .write_registration(VARIABLE, "gt", "gt", "gt", &mut script)
            .map_err(|error| Problem::failed("cannot write the script").caused_by(error))?,
        _ => clap_complete::generate(args.shell, &mut table(), "gt", &mut script),
    }
    if args.shell == Shell::Zsh {
        // zsh loads the file as the function `_gt` at the first Tab.
        script.extend(b"\nif [ \"$funcstack[1]\" = \"_gt\" ]; then\n    _clap_dynamic_completer_gt \"$@\"\nfi\n");
    }
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
