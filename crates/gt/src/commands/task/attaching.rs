//! `gt task attach`: attaches to the container of a task, and updates its branch if requested.

use super::super::{CommandResult, attach};
use super::updating;
use crate::context::Context;
use crate::output::{self, Paint};
use crate::raw_mode::RawMode;
use clap::Args;
use gt_core::card::Branch;
use gt_core::work::WorkId;
use gt_core::{Identity, Problem};
use gt_tmux::Command;
use gt_town::Town;
use gt_town::repo::workspace;
use gt_town::terminal::containers;
use gt_town::workflow::task;
use serde_json::json;
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

/// Open a task's container in this terminal
///
/// If its branch is behind the base, gt asks first: m merges the base and attaches, s attaches
/// without a merge, Esc cancels. Without a terminal, --merge or --skip is required.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The work item
    #[arg(value_name = "BEAD")]
    pub(super) bead: WorkId,
    /// Merge the base into its branch first, if it is behind
    #[arg(long, conflicts_with = "skip")]
    merge: bool,
    /// Attach without a merge
    #[arg(long)]
    skip: bool,
    /// Read-only: no key reaches the agent
    #[arg(long)]
    read_only: bool,
    /// Only show how far its branch is behind the base
    #[arg(long, conflicts_with_all = ["merge", "skip", "read_only"])]
    dry_run: bool,
}

/// Action for a branch that is behind its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BehindBaseChoice {
    Merge,
    Skip,
    Cancel,
}

pub(super) fn run(town: &Town, args: &AttachArgs, context: &Context) -> CommandResult {
    let id = &args.bead;
    let (agent, rig) = task::agent_of(town, id)?;
    let container = containers::of_agent(town, &agent)?.ok_or_else(|| {
        Problem::not_found(format!("{id} is not running"))
            .hint(format!("`gt task start {id}` starts it"))
    })?;
    if args.dry_run {
        return show_behind(town, id, (&agent, &rig), context);
    }
    let choice = match (args.merge, args.skip) {
        // Without a worktree no branch can be behind.
        _ if workspace::task_worktree(town, &agent).is_none() => BehindBaseChoice::Skip,
        (true, _) => BehindBaseChoice::Merge,
        (_, true) => BehindBaseChoice::Skip,
        _ => {
            workspace::try_fetch(town, &rig);
            let branch = task::branch_of(town, id)?;
            match branch.behind {
                0 => BehindBaseChoice::Skip,
                // A merge is in progress; a second one is not started.
                _ if branch.merging => BehindBaseChoice::Skip,
                _ => choose(id, &branch, context)?,
            }
        }
    };
    match choice {
        BehindBaseChoice::Cancel => return Ok(ExitCode::SUCCESS),
        BehindBaseChoice::Skip => {}
        BehindBaseChoice::Merge => {
            let updated = updating::merged(town, id, false, context)?;
            if !updated.result.is_done() {
                return Err(updating::conflict(town, &updated));
            }
            if !context.json {
                output::line(updating::line(&updated, Paint::for_stdout()))?;
            }
        }
    }
    let dir = workspace::task_worktree(town, &agent);
    let is_merging = dir.is_some_and(|dir| gt_town::base::git::is_merging(&dir));
    let resolver = container.resolver_pane().filter(|_| is_merging);
    if let Some(pane) = resolver.filter(|_| !args.read_only) {
        // Shows the window of the conflict resolver. Fails harmlessly if it was closed meanwhile.
        let _ = town
            .server()
            .run(Command::new("select-window").target(pane.pane));
    }
    attach::attach_terminal(town, container.name(), args.read_only, context)
}

/// Shows how far the branch is behind, after a fetch.
fn show_behind(
    town: &Town,
    id: &WorkId,
    (agent, rig): (&Identity, &str),
    context: &Context,
) -> CommandResult {
    // Without a worktree no branch can be behind.
    let branch = match workspace::task_worktree(town, agent) {
        Some(_) => {
            workspace::try_fetch(town, rig);
            task::branch_of(town, id)?
        }
        None => Branch::default(),
    };
    let Branch {
        base,
        behind,
        merging,
        ..
    } = &branch;
    match context.json {
        true => output::json(&json!({
            "bead": id,
            "branch": branch.name,
            "base": base,
            "behind": behind,
            "merging": merging,
        }))?,
        false if *behind == 0 => output::line(format!("{id} is not behind its base."))?,
        false => output::line(format!("{id} is {} behind {base}.", commits(*behind)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the person. Fails without a terminal.
fn choose(id: &WorkId, branch: &Branch, context: &Context) -> Result<BehindBaseChoice, Problem> {
    let at_a_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if context.json || !at_a_terminal {
        return Err(Problem::conflict(format!(
            "{id} is {} behind {}",
            commits(branch.behind),
            branch.base
        ))
        .hint(format!(
            "`--merge` merges {} first, `--skip` goes there as it is",
            branch.base
        )));
    }
    output::print(&question(branch))?;
    // Flushed, because the prompt has no line end.
    let _ = std::io::stdout().flush();
    let _raw =
        RawMode::enter().map_err(|error| Problem::failed("cannot read a key").caused_by(error))?;
    let mut keys = std::io::stdin().lock().bytes();
    loop {
        match keys.next() {
            Some(Ok(b'm' | b'M')) => return Ok(BehindBaseChoice::Merge),
            Some(Ok(b's' | b'S')) => return Ok(BehindBaseChoice::Skip),
            // Esc, Ctrl-C, or a terminal that is gone.
            Some(Ok(0x1b | 0x03) | Err(_)) | None => return Ok(BehindBaseChoice::Cancel),
            Some(Ok(_)) => {}
        }
    }
}

fn question(branch: &Branch) -> String {
    let base = output::clean(&branch.base);
    format!(
        "↓ Branch Behind {base}\n\n{} behind\nMerge {base} into your branch before attaching?\n\n\
         m: Merge & Attach (pull latest {base})\ns: Skip & Attach (attach without merge)\n\
         Esc: Cancel\n",
        commits(branch.behind)
    )
}

fn commits(count: u32) -> String {
    match count {
        1 => "1 commit".to_owned(),
        count => format!("{count} commits"),
    }
}
