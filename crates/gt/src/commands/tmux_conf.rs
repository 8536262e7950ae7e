use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_town::terminal::{tmux_conf, tmux_hooks};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the lines for ~/.tmux.conf that notify gt when containers come and go
///
/// Every start installs them in the running server. In the configuration file they take effect from
/// the start of the server.
#[derive(Debug, Args)]
pub(crate) struct TmuxConfArgs {
    /// Put them into the file, between markers
    #[arg(long)]
    install: bool,
    /// Take them out of the file again
    #[arg(long, conflicts_with = "install")]
    remove: bool,
    /// Another file [default: ~/.tmux.conf, or the one under ~/.config/tmux if only that exists]
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: TmuxConfArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let lines = tmux_hooks::configuration(&town);
    if !args.install && !args.remove {
        if context.json {
            output::json(&json!({"lines": lines.lines().collect::<Vec<_>>()}))?;
        } else {
            output::print(&lines)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let path = match args.file {
        Some(path) => context.around().current_dir.join(path),
        None => tmux_conf::default_path(context.around())?,
    };
    let changed = if args.install {
        tmux_conf::install(&path, town.root_text(), &lines)?
    } else {
        tmux_conf::remove(&path, town.root_text())?
    };
    if context.json {
        output::json(&json!({"file": path, "changed": changed}))?;
    } else {
        let what = match (changed, args.install) {
            (true, true) => "has the lines now",
            (false, true) => "had the lines already",
            (true, false) => "no longer has the lines",
            (false, false) => "had no such lines",
        };
        output::line(format!("{} {what}.", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
