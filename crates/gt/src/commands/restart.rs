//! Stops and starts agents, for the commands of every role.

use super::start_flags::StartFlags;
use super::{CommandResult, start, stop};
use crate::context::Context;
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter};
use gt_town::agents::target;
use gt_town::lifecycle::start::StartOptions;
use std::borrow::Cow;

/// Stop agents of any role if they run, and start them
///
/// They continue their conversations, with the options of their last start.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The agents: addresses or short forms of them, container names, or prefixes of session ids
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    #[command(flatten)]
    flags: StartFlags,
}

pub(crate) fn run(args: RestartArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identities = args.targets.iter().map(|text| target::resolve(&town, text));
    let identities: Result<Vec<Identity>, Problem> = identities.collect();
    restart(&town, &identities?, &args.flags.options(context)?, context)
}

/// Stops the running agents and starts all.
pub(crate) fn restart(
    town: &Town,
    wanted: &[Identity],
    options: &StartOptions,
    context: &Context,
) -> CommandResult {
    let running: Vec<Identity> = engine::list(town, AgentFilter::default())?
        .into_iter()
        .map(|agent| agent.identity)
        .filter(|identity| wanted.contains(identity))
        .collect();
    let own = stop::own_container(town, context);
    for identity in wanted {
        if stop::is_own(town, identity, own) {
            return Err(
                Problem::conflict(format!("{identity} cannot restart itself"))
                    .hint("run this from another terminal or agent"),
            );
        }
    }
    // Checked first: an agent that could not be started again is not stopped.
    let mut again: Vec<start::Wanted<'_>> = Vec::new();
    for identity in wanted {
        let options = gt_town::lifecycle::start::options_again(town, identity, options)?;
        gt_town::lifecycle::start::check(town, identity, &options)?;
        again.push((identity, Cow::Owned(options)));
    }
    // The JSON output is that of the start.
    stop::stop_into(town, &running, false, context, &mut Vec::new())?;
    start::start_each(town, &again, context, start::RunningAlready::IsAProblem)
}
