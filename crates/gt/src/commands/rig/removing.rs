//! `gt rig remove`.

use super::super::CommandResult;
use super::super::polecat::print_refusal;
use crate::context::Context;
use crate::error;
use crate::output;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::workflow::rig_removal::{self, RigRemoval};
use serde_json::json;
use std::process::ExitCode;

/// Remove a rig from the town, with its agents and worktrees
///
/// The source repository is not changed, and the rig's work items and sessions stay. Fails while
/// agents run, while merges wait, and if work would be lost.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The rig
    rig: String,
    /// Stop its agents, and keep unsaved work: as refs/gt/saved/ in the rig's clone, which moves to
    /// the folder .saved of the town
    #[arg(long)]
    force: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &RemoveArgs, context: &Context) -> CommandResult {
    let mut town = context.town()?;
    let removal = rig_removal::remove(&mut town, &args.rig, args.force, args.dry_run)?;
    if context.json {
        let refused = removal.refusal.as_ref().map(error::as_json);
        output::json(&output::without_nulls(json!({
            "rig": args.rig,
            "removed": !args.dry_run,
            "agents": removal.agents,
            "stopped": removal.stopped,
            "released": removal.released,
            "commits": removal.commits,
            "saved": removal.saved,
            "kept_at": removal.kept_at,
            "open_items": removal.open_items,
            "refused": refused.map(|refused| refused["error"].clone()),
        })))?;
        return Ok(ExitCode::SUCCESS);
    }
    tell(args, &removal)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(args: &RemoveArgs, removal: &RigRemoval) -> Result<(), Problem> {
    if let Some(refusal) = &removal.refusal {
        return print_refusal(refusal);
    }
    let rig = &args.rig;
    output::line(match args.dry_run {
        true => format!("Would remove the rig {rig}."),
        false => format!("Removed the rig {rig}."),
    })?;
    let names = |agents: &[Identity]| {
        let names: Vec<String> = agents.iter().map(Identity::address).collect();
        names.join(", ")
    };
    let released: Vec<String> = removal.released.iter().map(ToString::to_string).collect();
    for (what, which) in [
        ("Agents stopped:", names(&removal.stopped)),
        ("Folders of agents removed:", names(&removal.agents)),
        ("Work items open again:", released.join(", ")),
        ("Unsaved work kept as:", removal.saved.join(", ")),
    ] {
        if !which.is_empty() {
            output::line(format!("  {what} {which}"))?;
        }
    }
    if let Some(dir) = &removal.kept_at {
        let dir = dir.display();
        output::line(format!(
            "  Its copy of the repository is kept in {dir}/.repo.git."
        ))?;
    }
    if removal.open_items > 0 {
        output::line(format!(
            "  Open work items that stay: {} (`gt work list`).",
            removal.open_items
        ))?;
    }
    Ok(())
}
