use super::hook::agent_or_caller;
use super::{CommandResult, ids};
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::work::{Item, ItemStatus};
use gt_town::Town;
use gt_town::work::molecule::{self, FormulaRequest, MoleculeStatus};
use serde_json::json;
use std::process::ExitCode;

/// Molecules: formulas poured for one agent, and the progress through their steps
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MolCommand {
    Attach(AttachArgs),
    /// Show an agent's molecule: its steps, and what comes next
    Status(WhoseArgs),
    /// Report that a step begins or is done
    #[command(subcommand)]
    Step(MoleculeStepCommand),
    /// Abandon an agent's molecule: its open steps are closed
    Detach(WhoseArgs),
}

/// Pour a formula for an agent
///
/// Its steps become work items that wait for each other. An agent has one molecule at a
/// time.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Its name; `gt formula list` shows the available ones
    formula: String,
    /// A variable of the formula; may be given several times
    #[arg(long = "var", value_name = "NAME=VALUE")]
    vars: Vec<String>,
    /// The work item that it is about; fills in the variables `bead` and `title`
    /// [default: what is on the agent's hook]
    #[arg(long, value_name = "ITEM")]
    on: Option<String>,
    #[command(flatten)]
    whose: WhoseArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WhoseArgs {
    /// The agent [default: the calling agent, or the agent of this folder or pane]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum MoleculeStepCommand {
    /// Report that a step begins
    Start(StepArgs),
    Done(DoneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StepArgs {
    /// Its id in the formula, or that of its work item
    step: String,
    #[command(flatten)]
    whose: WhoseArgs,
}

/// Report that a step is done; the last step completes the molecule
#[derive(Debug, Args)]
pub(crate) struct DoneArgs {
    #[command(flatten)]
    step: StepArgs,
    /// Text for the notes of the step
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,
}

pub(crate) fn run(command: MolCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let agent = |args: &WhoseArgs| agent_or_caller(&town, args.agent.as_deref());
    match command {
        MolCommand::Attach(args) => attach(&args, &town, context)?,
        MolCommand::Status(args) => {
            let agent = agent(&args)?;
            match molecule::status(&town, &agent)? {
                Some(status) => show(&status, context)?,
                None if context.json => output::json(&serde_json::Value::Null)?,
                None => output::line(format!("{agent} has no molecule."))?,
            }
        }
        MolCommand::Step(MoleculeStepCommand::Start(args)) => {
            let agent = agent(&args.whose)?;
            let name = ids::full_or_text(&town, &args.step)?;
            let (status, step) = molecule::start_step(&town, &agent, &name)?;
            told(&status, &step, context)?;
        }
        MolCommand::Step(MoleculeStepCommand::Done(args)) => {
            let agent = agent(&args.step.whose)?;
            let name = ids::full_or_text(&town, &args.step.step)?;
            let note = args.note.as_deref();
            let (status, step) = molecule::finish_step(&town, &agent, &name, note)?;
            told(&status, &step, context)?;
        }
        MolCommand::Detach(args) => {
            let agent = agent(&args)?;
            let before = molecule::detach(&town, &agent)?;
            if context.json {
                let answer = before.as_ref().map(|before| {
                    json!({
                        "agent": before.agent,
                        "molecule": before.molecule,
                        "formula": before.formula,
                        "done": before.done,
                        "total": before.total,
                    })
                });
                output::json(&answer)?;
            } else {
                output::line(match before {
                    Some(before) => format!("{}, and given up.", before.line()),
                    None => format!("{agent} has no molecule."),
                })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn attach(args: &AttachArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let agent = agent_or_caller(town, args.whose.agent.as_deref())?;
    let request = FormulaRequest {
        formula: &args.formula,
        vars: molecule::variables(&args.vars)?,
        on: args
            .on
            .as_deref()
            .map(|id| ids::full(town, id))
            .transpose()?,
    };
    show(&molecule::attach(town, &agent, request)?, context)
}

fn show(status: &MoleculeStatus, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(status);
    }
    for line in status.text().lines() {
        output::line(output::clean(line))?;
    }
    Ok(())
}

/// Prints the result of a step, and the next step.
fn told(status: &MoleculeStatus, step: &Item, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(status);
    }
    let word = match step.status {
        ItemStatus::Closed => "Done with",
        _ => "Began",
    };
    output::line(output::clean(&format!(
        "{word} {}: {}",
        step.id, step.title
    )))?;
    if status.status == ItemStatus::Closed {
        return output::line(format!("{}. The molecule is done.", status.line()));
    }
    for step in &status.ready {
        output::line(format!("Next: `gt mol step start {step}`"))?;
    }
    Ok(())
}
