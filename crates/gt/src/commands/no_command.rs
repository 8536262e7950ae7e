//! `gt` alone: the status of the town, or the first commands if there is no town.

use super::{CommandResult, status};
use crate::context::Context;
use crate::output::{self, Paint};
use gt_town::Town;
use std::process::ExitCode;

/// First commands of a new user.
const FIRST: &[(&str, &str)] = &[
    (
        "gt init",
        "makes a town, the folder for everything, in ~/gt",
    ),
    (
        "gt rig add PATH-OR-URL",
        "adds a git repository to the town",
    ),
    ("gt board", "shows all work and all agents on one screen"),
];

pub(super) fn run(context: &Context) -> CommandResult {
    // A named town must exist, and JSON needs one.
    let has_town = context.names_town() || Town::find_unnamed(context.around()).is_some();
    if has_town || context.json {
        return status::run(status::StatusArgs::default(), context);
    }
    let paint = Paint::for_stdout();
    output::line("gt runs AI coding agents as named tmux sessions. There is no town here yet:\n")?;
    for (command, about) in FIRST {
        output::line(format!(
            "  {}  {about}",
            paint.bold(&format!("{command:<22}"))
        ))?;
    }
    output::line(
        "\n`gt demo` shows everything with a built-in agent, `gt help` lists the commands.",
    )?;
    Ok(ExitCode::SUCCESS)
}
