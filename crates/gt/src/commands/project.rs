use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::project::{ProjectCommand, unapproved};
use gt_town::Town;
use gt_town::repo::approval::{self, Approval, SettingsFiles};
use gt_town::repo::{agent_settings, project, rig};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands that a repository brings along: show, approve, withdraw
///
/// `gt` runs the init, background and dev server commands of a repository's .gt.toml only after a
/// person has approved exactly these commands. The same applies to settings of agent programs in the
/// repository, such as .claude/settings.json, whose hooks and MCP servers are commands too. What is
/// new or changed has to be approved again.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ProjectCommands {
    Diff(DiffArgs),
    Allow(AllowArgs),
    Deny(DenyArgs),
}

/// Show the commands of a repository, and which of them are not approved
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    from: SettingsSource,
}

/// Approve all commands of a repository; only people may
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
    /// Read the files of this worktree instead of the base branch
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
}

pub(crate) fn run(command: &ProjectCommands, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        ProjectCommands::Diff(args) => diff(&town, &args.from, context)?,
        ProjectCommands::Allow(args) => {
            let read = args.from.read(&town)?;
            let rig = &read.rig;
            let known = approval::of_rig(&town, rig)?;
            approval::allow(&town, rig, &read.commands, &read.files)?;
            if context.json {
                output::json(&read.document(&known))?;
            } else if read.is_empty() {
                output::line(format!("{rig} has nothing to approve."))?;
            } else {
                read.show(&known)?;
                output::line(format!("All of this is approved for {rig}."))?;
            }
        }
        ProjectCommands::Deny(args) => {
            let rig = named(&town, args.rig.as_deref())?;
            let count = approval::deny(&town, &rig)?;
            match context.json {
                true => output::json(&json!({"rig": rig, "withdrawn": count}))?,
                false => output::line(format!("Nothing of {rig} is approved now."))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(town: &Town, from: &SettingsSource, context: &Context) -> Result<(), Problem> {
    let read = from.read(town)?;
    let approved = approval::of_rig(town, &read.rig)?;
    if context.json {
        return output::json(&read.document(&approved));
    }
    read.show(&approved)?;
    for it in &unapproved(&approved.commands, &read.commands) {
        output::line(row('-', it.kind.as_str(), &it.command))?;
    }
    let rig = &read.rig;
    let of = from.worktree.as_ref();
    let of = of.map_or_else(String::new, |dir| format!(" --worktree {}", dir.display()));
    let new = unapproved(&read.commands, &approved.commands).len()
        + approved.unapproved_files(&read.files).len();
    output::line(match (read.is_empty(), new) {
        (true, _) => format!("{rig} has nothing to approve."),
        (false, 0) => format!("All of this is approved for {rig}."),
        (false, new) => {
            let are = if new == 1 { "is" } else { "are" };
            let allow = output::clean(&format!("`gt project allow {rig}{of}`"));
            format!("{new} of {} {are} not approved: {allow}", read.count())
        }
    })
}

/// Commands and settings files of a repository.
struct RepositoryContent {
    rig: String,
    commands: Vec<ProjectCommand>,
    files: SettingsFiles,
}

impl RepositoryContent {
    fn count(&self) -> usize {
        self.commands.len() + self.files.len()
    }

    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn document(&self, approved: &Approval) -> Value {
        json!({
            "rig": self.rig,
            "commands": self.commands,
            "files": self.files,
            "unapproved": unapproved(&self.commands, &approved.commands),
            "unapproved_files": approved.unapproved_files(&self.files),
            "obsolete": unapproved(&approved.commands, &self.commands),
        })
    }

    /// Prints the commands and files; `+` marks those that are not approved.
    fn show(&self, approved: &Approval) -> Result<(), Problem> {
        let paint = Paint::for_stdout();
        let show = |is_known: bool, kind: &str, text: &str| match is_known {
            true => output::line(row(' ', kind, text)),
            false => output::line(paint.green(&row('+', kind, text))),
        };
        for it in &self.commands {
            show(
                approved.commands.contains(it),
                it.kind.as_str(),
                &it.command,
            )?;
        }
        let new = approved.unapproved_files(&self.files);
        for file in self.files.keys() {
            show(!new.contains(file), "settings", file)?;
        }
        Ok(())
    }
}

fn row(sign: char, kind: &str, text: &str) -> String {
    output::clean(&format!("{sign} {kind:<10}  {text}"))
}

impl SettingsSource {
    fn read(&self, town: &Town) -> Result<RepositoryContent, Problem> {
        let rig = named(town, self.rig.as_deref())?;
        let (project, files) = match &self.worktree {
            Some(dir) => (
                project::of_worktree(dir)?,
                agent_settings::of_worktree(town, dir)?,
            ),
            None => (
                project::of_rig(town, &rig)?,
                agent_settings::of_rig(town, &rig)?,
            ),
        };
        Ok(RepositoryContent {
            commands: project.commands(),
            files,
            rig,
        })
    }
}

fn named(town: &Town, name: Option<&str>) -> Result<String, Problem> {
    let rig = rig::named_or_only(town, name, "name it: `gt project diff RIG`")?;
    rig::entry(town, &rig)?;
    Ok(rig)
}
