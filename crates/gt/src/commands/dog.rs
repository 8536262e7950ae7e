use super::{CommandResult, agents, sling};
use crate::context::Context;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Role;
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::workflow::dog::{self, Errand};
use serde_json::json;
use std::process::ExitCode;

/// Dogs: helpers that run one errand each and end
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum DogCommand {
    Run(RunArgs),
    List(ListArgs),
}

/// Send a dog on an errand
///
/// The errand becomes a work item on the hook of a dog that is free, or of a new one, and the dog is
/// started with it. It reports the result by mail to the sender, and its session ends with `gt done`.
///
/// Example: gt dog run 'Find out which branches are merged and still there'
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The errand; its first line is the title of the item
    errand: String,
    /// The name of the dog [default: a free one, or a new one]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The agent program [default: the role's, GT_HARNESS, the town's]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The model, by the agent program's own name for it [default: the role's, the harness's]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

/// List the dogs, running or not
#[derive(Debug, Args)]
pub(crate) struct ListArgs {}

pub(crate) fn run(command: DogCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let args = match command {
        DogCommand::Run(args) => args,
        DogCommand::List(ListArgs {}) => {
            let wanted = AgentFilter {
                stopped: true,
                rig: None,
                role: Some(Role::Dog),
            };
            let none = "No dogs. `gt dog run ERRAND` sends one on an errand.";
            return agents::show_or(none, &listing::list(&town, wanted)?, &town, context);
        }
    };
    context.catch_interrupts();
    let errand = Errand {
        text: args.errand,
        dog: args.name,
        harness: args.harness,
        model: args.model,
    };
    let (item, slung) = dog::send(&town, &errand)?;
    for warning in &slung.warnings {
        output::warn(warning);
    }
    if context.json {
        let mut document = sling::document(&slung);
        document["title"] = json!(item.title);
        output::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    output::line(format!(
        "{} {} → {} (started in {})",
        paint.green("✓"),
        item.id,
        paint.bold(&slung.agent.address()),
        slung.container
    ))?;
    Ok(ExitCode::SUCCESS)
}
