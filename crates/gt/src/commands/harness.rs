use super::Answer;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_town::harnesses;
use serde_json::json;
use std::process::ExitCode;

/// Harnesses: the agent programs that can be run
#[derive(Debug, Subcommand)]
pub(crate) enum HarnessCommand {
    /// List them, and which are installed here
    List,
    Show(ShowArgs),
}

/// Print a preset as it is resolved, and where each field came from
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    name: String,
}

pub(crate) fn run(command: HarnessCommand, context: &Context) -> Answer {
    let town = context.town()?;
    match command {
        HarnessCommand::List => {
            let default = harnesses::choose(&town, None, &gt_core::role::RoleConfig::default());
            let mut table = Table::new(&["HARNESS", "PROGRAM", "INSTALLED", "", ""]);
            let mut documents = Vec::new();
            for name in harnesses::names(&town) {
                let preset = harnesses::resolve(&town, &name)?.value;
                let path = context.around().find_program(&preset.command.program);
                documents.push(output::without_nulls(json!({
                    "harness": name,
                    "title": preset.title,
                    "program": preset.command.program,
                    "installed": path.is_some(),
                    "path": path,
                    "default": name == default,
                    "install": preset.install,
                })));
                let installed = match &path {
                    Some(path) => Cell::painted(path.display().to_string(), Paint::green),
                    None => Cell::painted("no", Paint::dim),
                };
                table.row([
                    name.as_str().into(),
                    preset.command.program.replace("{gt}", "gt").into(),
                    installed,
                    if name == default { "default" } else { "" }.into(),
                    preset.title.into(),
                ]);
            }
            if context.json {
                output::json(&documents)?;
            } else {
                output::print(&table.render(Paint::for_stdout()))?;
            }
        }
        HarnessCommand::Show(args) => {
            let resolved = harnesses::resolve(&town, &args.name)?;
            super::role::show(&args.name, "harness", &resolved.fields, context)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
