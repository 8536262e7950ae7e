use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::terminal::peek;
use serde_json::json;
use std::process::ExitCode;

/// Show an agent's screen
#[derive(Debug, Args)]
pub(crate) struct PeekArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// The last N lines, scrollback included [default: the visible screen]
    #[arg(value_name = "N", conflicts_with = "lines")]
    last: Option<u32>,
    /// The last N lines, scrollback included
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u32>,
    /// Keep colours
    #[arg(long)]
    ansi: bool,
}

pub(crate) fn run(args: PeekArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let screen = peek::peek(&town, &identity, args.lines.or(args.last), args.ansi)?;
    if context.json {
        output::json(&json!({
            "agent": identity,
            "container": screen.container,
            "pane": screen.pane.to_string(),
            "title": screen.title,
            "lines": screen.lines,
        }))?;
    } else {
        let mut text = screen.lines.join("\n");
        if args.ansi {
            text.push_str("\u{1b}[0m");
        }
        text.push('\n');
        output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the last lines of an agent's screen.
pub(crate) fn print_last(town: &Town, identity: &Identity, lines: u32) -> Result<(), Problem> {
    let screen = peek::peek(town, identity, Some(lines), false)?;
    output::print(&format!("{}\n", screen.lines.join("\n")))
}
