use super::CommandResult;
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::harness::Preset;
use gt_town::Town;
use gt_town::agents::account::{self, Account};
use gt_town::catalog::harnesses;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Accounts: configuration folders of agent programs, each with a login of its own
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AccountCommand {
    Add(AddArgs),
    /// List the accounts, and those that new agents use
    List,
    Use(UseArgs),
    Remove(RemoveArgs),
}

/// Make an account, or add a program to one
///
/// Log in by starting an agent with it: `gt start TARGET --account NAME`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the account
    name: String,
    /// A folder that the program uses already [default: one in the town]
    #[arg(long, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// The program it is for [default: GT_HARNESS, the town's]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
}

/// Let new agents use an account
#[derive(Debug, Args)]
pub(crate) struct UseArgs {
    /// The account; `gt account list` shows the available ones
    #[arg(required_unless_present = "none")]
    name: Option<String>,
    /// Use no account: new agents use their programs' own folders
    #[arg(long, conflicts_with = "name")]
    none: bool,
    /// Only agents of this program [default: all programs of the account, or all]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
}

/// Forget an account; its folders stay
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The account; `gt account list` shows the available ones
    name: String,
    /// Also delete the folders that gt made for it, with their logins and conversations
    #[arg(long)]
    purge: bool,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: AccountCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        AccountCommand::Add(args) => {
            let preset = preset(&town, args.harness.as_deref())?;
            let account = account::add(&town, &args.name, &preset, args.config_dir.as_deref())?;
            told(
                &account,
                &format!("Made the account {}", args.name),
                context,
            )?;
        }
        AccountCommand::List => list(&account::list(&town)?, context)?,
        AccountCommand::Use(args) => {
            let harness = args.harness.as_deref();
            match &args.name {
                Some(name) => {
                    let account = account::make_default(&town, name, harness)?;
                    told(&account, &format!("New agents use {name}"), context)?;
                }
                None => {
                    let accounts = account::use_none(&town, harness)?;
                    print_no_default(&accounts, harness, context)?;
                }
            }
        }
        AccountCommand::Remove(args) => remove(&args, &town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn preset(town: &Town, given: Option<&str>) -> Result<Preset, Problem> {
    let role = gt_core::role::RoleConfig::default();
    let harness = harnesses::choose(town, given, &role);
    Ok(harnesses::resolve(town, &harness)?.value)
}

fn remove(args: &RemoveArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let removed = account::remove(town, &args.name, args.purge, args.dry_run)?;
    if context.json {
        let mut document = json!(removed);
        document["dry_run"] = json!(args.dry_run);
        return output::json(&document);
    }
    let (forgotten, deleted) = match args.dry_run {
        true => ("would be forgotten", "would be deleted"),
        false => ("is forgotten", "is deleted"),
    };
    output::line(format!("The account {} {forgotten}.", removed.account))?;
    for (folders, word) in [(&removed.purged, deleted), (&removed.kept, "stays")] {
        for folder in folders {
            output::line(output::clean(&format!("{} {word}", folder.display())))?;
        }
    }
    Ok(())
}

fn told(account: &Account, words: &str, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(account);
    }
    output::line(format!("{words}."))?;
    for (harness, folder) in &account.folders {
        let mark = match account.default_for.contains(harness) {
            true => " (used by new agents)",
            false => "",
        };
        output::line(output::clean(&format!(
            "  {harness}: {}{mark}",
            folder.display()
        )))?;
    }
    Ok(())
}

fn print_no_default(
    accounts: &[Account],
    harness: Option<&str>,
    context: &Context,
) -> Result<(), Problem> {
    if context.json {
        return output::json(&accounts);
    }
    let of = harness.map_or_else(String::new, |harness| format!(" of {harness}"));
    output::line(format!("New agents{of} use no account."))
}

fn list(accounts: &[Account], context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&accounts);
    }
    if accounts.is_empty() {
        return output::line("There are no accounts: programs use their own folders.");
    }
    let mut table = Table::new(&["ACCOUNT", "HARNESS", "DEFAULT", "FOLDER"]);
    for account in accounts {
        for (harness, folder) in &account.folders {
            let is_default = account.default_for.contains(harness);
            table.row([
                account.account.clone().into(),
                harness.clone().into(),
                if is_default { "yes" } else { "" }.into(),
                folder.display().to_string().into(),
            ]);
        }
    }
    output::print(&table.render(Paint::for_stdout()))
}
