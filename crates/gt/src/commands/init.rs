use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_town::Town;
use gt_town::catalog::harnesses;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a town: the folder that holds everything
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder [default: ~/gt]
    path: Option<PathBuf>,
    /// Its name [default: that of the folder]
    #[arg(long)]
    name: Option<String>,
    /// A tmux server of its own: a socket name or an absolute path [default: tmux's own]
    #[arg(long, value_name = "SOCKET")]
    socket: Option<String>,
    /// The agent program for roles that name none
    #[arg(long, value_name = "NAME", default_value = harnesses::FALLBACK)]
    harness: String,
}

pub(crate) fn run(args: InitArgs, context: &Context) -> CommandResult {
    let around = context.around();
    let path = match args.path {
        Some(path) => around.current_dir.join(path),
        None => around.home().map(|home| home.join("gt")).ok_or_else(|| {
            Problem::usage("there is no HOME to make a town in").hint("name a folder")
        })?,
    };
    let socket = args.socket.unwrap_or_default();
    let root = Town::init(&path, args.name.as_deref(), &socket, &args.harness)?;
    let town = Town::open(&root, around.clone())?;
    // Reports a misspelt harness now instead of at the first start.
    let known = harnesses::resolve(&town, &args.harness);
    if context.json {
        output::json(&json!({"town": town.root(), "name": town.settings().name}))?;
    } else {
        output::line(format!("Made the town {}.", town.root().display()))?;
        output::line(
            "Next: `gt rig add PATH-OR-URL` adds a repository, `gt up` starts the town's own agents.",
        )?;
    }
    if let Err(problem) = known {
        output::warn(problem.message());
    }
    Ok(ExitCode::SUCCESS)
}
