use super::CommandResult;
use crate::context::Context;
use crate::error;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_town::Town;
use gt_town::catalog::formulas::{self, FoundFormula};
use gt_town::repo::rig;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Formulas: how a kind of work is done, step by step
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum FormulaCommand {
    List(ListArgs),
    Show(ShowArgs),
}

/// List the formulas
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// As this rig has them
    #[arg(long)]
    rig: Option<String>,
}

/// Print a formula: its variables, and its steps in order
///
/// A file <rig>/formulas/<name>.toml overrides <town>/formulas/<name>.toml, which overrides a
/// built-in formula.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its name; `gt formula list` shows the available ones
    name: String,
    /// As this rig has it
    #[arg(long)]
    rig: Option<String>,
}

pub(crate) fn run(command: FormulaCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        FormulaCommand::List(args) => list(&town, args.rig.as_deref(), context)?,
        FormulaCommand::Show(args) => {
            let rig = checked(&town, args.rig.as_deref())?;
            show(&formulas::resolve(&town, &args.name, rig)?, context)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(town: &Town, rig: Option<&str>, context: &Context) -> Result<(), Problem> {
    let rig = checked(town, rig)?;
    let mut table = Table::new(&["FORMULA", "STEPS", "FROM", ""]);
    let mut documents: Vec<Value> = Vec::new();
    for name in formulas::names(town, rig) {
        // A broken formula does not hide the others.
        let found = match formulas::resolve(town, &name, rig) {
            Ok(found) => found,
            Err(problem) => {
                let because = problem.causes().iter().map(|cause| format!(": {cause}"));
                output::warn(format!("{problem}{}", because.collect::<String>()));
                let mut document = error::as_json(&problem);
                document["formula"] = json!(name);
                documents.push(document);
                continue;
            }
        };
        documents.push(json!({
            "formula": name,
            "description": found.formula.description,
            "steps": found.formula.steps.len(),
            "source": found.source,
        }));
        table.row([
            name.into(),
            found.formula.steps.len().to_string().into(),
            found.source.into(),
            found.formula.description.into(),
        ]);
    }
    if context.json {
        return output::json(&documents);
    }
    output::print(&table.render(Paint::for_stdout()))
}

fn show(found: &FoundFormula, context: &Context) -> Result<(), Problem> {
    let formula = &found.formula;
    if context.json {
        let mut document = json!(formula);
        document["source"] = json!(found.source);
        document["steps"] = json!(formula.order());
        return output::json(&document);
    }
    let paint = Paint::for_stdout();
    let say = |text: &str| output::line(output::clean(text));
    output::line(format!(
        "{} {}",
        paint.bold(&formula.name),
        paint.dim(&output::clean(&format!("({})", found.source)))
    ))?;
    say(&formula.description)?;
    for (name, variable) in &formula.vars {
        let default = match (&variable.default, variable.required) {
            (Some(default), _) => format!(" [default: {default}]"),
            (None, true) => " [required]".to_owned(),
            (None, false) => String::new(),
        };
        say(&format!(
            "  {{{{{name}}}}} {}{default}",
            variable.description
        ))?;
    }
    for (number, step) in formula.order().into_iter().enumerate() {
        let needs = match step.needs.as_slice() {
            [] => String::new(),
            needs => format!(" (after {})", needs.join(", ")),
        };
        say(&format!(
            "{}. {}: {}{needs}",
            number + 1,
            step.id,
            step.title
        ))?;
        for line in step.description.trim().lines() {
            say(&format!("     {line}"))?;
        }
    }
    Ok(())
}

fn checked<'r>(town: &Town, given: Option<&'r str>) -> Result<Option<&'r str>, Problem> {
    if let Some(name) = given {
        rig::entry(town, name)?;
    }
    Ok(given)
}
