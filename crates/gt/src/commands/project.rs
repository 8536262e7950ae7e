use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::project::{FILE, ProjectCommand, unapproved};
use gt_town::Town;
use gt_town::repo::{approval, project, rig};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// The commands of a repository's .gt.toml: show, approve, withdraw
///
/// `gt` runs the init, background and dev server commands of a repository only after a person has
/// approved exactly these commands. A changed or new command has to be approved again.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ProjectCommands {
    Diff(DiffArgs),
    Allow(AllowArgs),
    Deny(DenyArgs),
}

/// Show the commands, and which of them are not approved
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    from: SettingsSource,
}

/// Approve the commands; only people may
#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    #[command(flatten)]
    from: SettingsSource,
}

/// Withdraw all approvals of a rig
#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// The rig [default: that of this folder, or the only one]
    #[arg(value_name = "RIG")]
    rig: Option<String>,
}

#[derive(Debug, Args)]
struct SettingsSource {
    /// The rig [default: that of this folder, or the only one]
    #[arg(value_name = "RIG")]
    rig: Option<String>,
    /// Read .gt.toml of this worktree instead of the base branch
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
}

pub(crate) fn run(command: &ProjectCommands, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        ProjectCommands::Diff(args) => diff(&town, &args.from, context)?,
        ProjectCommands::Allow(args) => {
            let (rig, commands) = args.from.read(&town)?;
            let known = approval::of_rig(&town, &rig)?.commands;
            let new = unapproved(&commands, &known);
            approval::allow(&town, &rig, &commands)?;
            if context.json {
                output::json(&json!({"rig": rig, "approved": commands, "new": new}))?;
            } else if commands.is_empty() {
                output::line(format!("{rig} has no commands in {FILE}."))?;
            } else {
                show(&commands, &known)?;
                output::line(format!("These commands of {rig} are approved."))?;
            }
        }
        ProjectCommands::Deny(args) => {
            let rig = named(&town, args.rig.as_deref())?;
            let count = approval::deny(&town, &rig)?;
            match context.json {
                true => output::json(&json!({"rig": rig, "withdrawn": count}))?,
                false => output::line(format!("No command of {rig} is approved now."))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(town: &Town, from: &SettingsSource, context: &Context) -> Result<(), Problem> {
    let (rig, commands) = from.read(town)?;
    let approved = approval::of_rig(town, &rig)?;
    let new = unapproved(&commands, &approved.commands);
    let gone = unapproved(&approved.commands, &commands);
    if context.json {
        return output::json(&json!({
            "rig": rig,
            "commands": commands,
            "unapproved": new,
            "obsolete": gone,
        }));
    }
    show(&commands, &approved.commands)?;
    for it in &gone {
        output::line(row('-', it))?;
    }
    let of = from.worktree.as_ref();
    let of = of.map_or_else(String::new, |dir| format!(" --worktree {}", dir.display()));
    let allow = output::clean(&format!("`gt project allow {rig}{of}`"));
    output::line(match (commands.is_empty(), new.len()) {
        (true, _) => format!("{rig} has no commands in {FILE}."),
        (false, 0) => format!("All commands of {rig} are approved."),
        (false, count) => {
            let are = if count == 1 { "is" } else { "are" };
            format!("{count} of {} {are} not approved: {allow}", commands.len())
        }
    })
}

/// Prints the commands; `+` marks those that are not approved.
fn show(commands: &[ProjectCommand], approved: &[ProjectCommand]) -> Result<(), Problem> {
    let paint = Paint::for_stdout();
    for it in commands {
        match approved.contains(it) {
            true => output::line(row(' ', it))?,
            false => output::line(paint.green(&row('+', it)))?,
        }
    }
    Ok(())
}

fn row(sign: char, it: &ProjectCommand) -> String {
    output::clean(&format!("{sign} {:<10}  {}", it.kind.as_str(), it.command))
}

impl SettingsSource {
    /// Returns the rig and the commands of its project.
    fn read(&self, town: &Town) -> Result<(String, Vec<ProjectCommand>), Problem> {
        let rig = named(town, self.rig.as_deref())?;
        let project = match &self.worktree {
            Some(dir) => project::of_worktree(dir)?,
            None => project::of_rig(town, &rig)?,
        };
        Ok((rig, project.commands()))
    }
}

fn named(town: &Town, name: Option<&str>) -> Result<String, Problem> {
    let rig = rig::named_or_only(town, name, "name it: `gt project diff RIG`")?;
    rig::entry(town, &rig)?;
    Ok(rig)
}
