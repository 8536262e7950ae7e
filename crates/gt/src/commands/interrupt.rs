use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_town::agents::target;
use gt_town::messaging::interrupt;
use serde_json::json;
use std::process::ExitCode;

/// Stop an agent's turn with the keys of its program; the agent keeps running
#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    /// The agents: addresses or short forms of them, container names, or prefixes of session ids
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
}

pub(crate) fn run(args: &InterruptArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut documents = Vec::new();
    for text in &args.targets {
        let agent = target::resolve(&town, text)?;
        let interrupted = interrupt::interrupt_turn(&town, &agent)?;
        if !context.json {
            output::line(match (interrupted.interrupted, interrupted.asks) {
                (true, _) => format!("{agent} is interrupted."),
                (false, true) => format!(
                    "{agent} asks a question, which stays open: `gt answer {agent}` answers it."
                ),
                (false, false) => format!("{agent} was not busy."),
            })?;
        }
        documents.push(json!({
            "agent": agent,
            "interrupted": interrupted.interrupted,
            "asks": interrupted.asks,
        }));
    }
    if context.json {
        output::json(&documents)?;
    }
    Ok(ExitCode::SUCCESS)
}
