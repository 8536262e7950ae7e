use super::CommandResult;
use super::events::{ViewFlags, feed_line, show};
use crate::context::Context;
use clap::Args;
use gt_town::records::events::EventQuery;
use std::process::ExitCode;

/// Show the events of the town that matter to people
#[derive(Debug, Args)]
pub(crate) struct FeedArgs {
    #[command(flatten)]
    view: ViewFlags,
}

pub(crate) fn run(args: &FeedArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let query = EventQuery {
        feed: true,
        ..EventQuery::default()
    };
    show(&town, query, &args.view, feed_line, context)?;
    Ok(ExitCode::SUCCESS)
}
