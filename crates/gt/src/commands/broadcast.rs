use super::CommandResult;
use super::nudge::{self as one, NudgeFlags};
use crate::context::Context;
use crate::error;
use crate::output;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::agents::listing::{self, AgentFilter};
use gt_town::messaging::nudge::{self, SentMessage};
use std::process::ExitCode;

/// Send the same message to many agents at once
#[derive(Debug, Args)]
pub(crate) struct BroadcastArgs {
    /// The message, in one line or several
    #[arg(required_unless_present = "stdin")]
    message: Option<String>,
    /// Read the message from standard input
    #[arg(long, conflicts_with = "message")]
    stdin: bool,
    /// To this rig's agents
    #[arg(long)]
    rig: Option<String>,
    /// To the agents of this role
    #[arg(long)]
    role: Option<String>,
    /// To all agents of the town
    #[arg(long, conflicts_with_all = ["rig", "role"])]
    all: bool,
    #[command(flatten)]
    flags: NudgeFlags,
}

pub(crate) fn run(args: BroadcastArgs, context: &Context) -> CommandResult {
    if !args.all && args.rig.is_none() && args.role.is_none() {
        return Err(Problem::usage("to whom?").hint("`--rig RIG`, `--role ROLE` or `--all`"));
    }
    let town = context.town()?;
    if let Some(rig) = &args.rig {
        gt_town::repo::rig::entry(&town, rig)?;
    }
    let wanted = AgentFilter {
        stopped: false,
        rig: args.rig.as_deref(),
        role: args.role.as_deref().map(super::role::parse).transpose()?,
    };
    // The caller does not receive its own broadcast.
    let caller = town.caller();
    let identities: Vec<Identity> = listing::list(&town, wanted)?
        .into_iter()
        .map(|agent| agent.identity)
        .filter(|identity| !caller.is_agent(&identity.address()))
        .collect();
    let text = one::message(args.message)?;
    let request = args.flags.request(&text, &town)?;
    let is_json = context.json;
    context.catch_interrupts();
    let results: Vec<(Identity, Result<SentMessage, Problem>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = identities
            .iter()
            .map(|identity| {
                (
                    identity,
                    scope.spawn(|| {
                        nudge::send_reporting_wait(&town, identity, &request, &|reason| {
                            if !is_json {
                                output::note(one::waiting(identity, &request, reason));
                            }
                        })
                        .map_err(Problem::from)
                    }),
                )
            })
            .collect();
        let lost = || Err(Problem::failed("the delivery did not finish"));
        let joined = threads.into_iter();
        joined
            .map(|(identity, thread)| (identity.clone(), thread.join().unwrap_or_else(|_| lost())))
            .collect()
    });
    let mut failures = Vec::new();
    let mut documents = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for (identity, result) in &results {
        match result {
            Ok(sent) => {
                documents.push(one::document(identity, args.flags.mode(), sent));
                let its = one::code(args.flags.mode(), sent);
                if its != ExitCode::SUCCESS {
                    code = its;
                }
                if !context.json {
                    output::line(one::line(identity, sent))?;
                }
            }
            Err(problem) => {
                let mut document = error::as_json(problem);
                document["agent"] = serde_json::json!(identity);
                documents.push(document);
                failures.push((identity, problem));
            }
        }
    }
    if context.json {
        output::json(&documents)?;
    } else if results.is_empty() {
        output::line("No agents run there.")?;
    }
    error::finish(&failures, results.len(), "reached").map(|_| code)
}
