use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_town::agents::target;
use gt_town::messaging::{inject, nudge, signal};
use gt_town::records::events::{self, Events};
use gt_town::terminal::adopted;
use serde_json::json;
use std::process::ExitCode;

/// Press keys in an agent's pane, without reading its screen first
///
/// Keys have tmux's names: Enter, Escape, Up, C-c, M-x; other words are typed as they are.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// The keys in tmux's names, such as Escape, Enter, Up or C-c
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
}

pub(crate) fn run(args: KeysArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let town = adopted::home_of(&town, &identity).into_owned();
    let container = nudge::with_process(&town, &identity)?;
    let pane = container.pane().pane;
    inject::press(&town, pane, &args.keys)?;
    // The keys themselves may be secret.
    let event = events::about(&town, "keys", &identity.address()).with("count", args.keys.len());
    Events::of(&town).note(vec![event]);
    // The keys may have closed a dialog that blocked messages.
    signal::wake_deliveries(&town, std::slice::from_ref(&container));
    if context.json {
        output::json(&json!({"agent": identity, "pane": pane.to_string(), "keys": args.keys}))?;
    }
    Ok(ExitCode::SUCCESS)
}
