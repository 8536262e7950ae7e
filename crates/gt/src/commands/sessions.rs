mod filter;
mod player;
mod replay;
mod shown;
mod stats;
mod upkeep;

use super::{CommandResult, ids};
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand};
use filter::SessionFilterArgs;
use gt_core::Problem;
use gt_town::Town;
use gt_town::lifecycle::{epilogue, sync};
use gt_town::records::sessions::{SessionQuery, Sessions};
use gt_town::records::usage;
use gt_town::terminal::recording::Recordings;
use std::process::ExitCode;
use upkeep::{ArchiveArgs, ExportArgs, RebuildArgs};

/// The history of sessions
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SessionsCommand {
    List(ListArgs),
    Show(ShowArgs),
    Chain(ChainArgs),
    Stats(stats::StatsArgs),
    Replay(replay::ReplayArgs),
    Export(ExportArgs),
    Rebuild(RebuildArgs),
    Archive(ArchiveArgs),
}

/// List sessions, the newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: SessionFilterArgs,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show one session in full
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its id, or a prefix of it
    id: String,
}

/// Show a chain: the sessions that continued each other's work
#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    /// A session, a chain, or a work item
    #[arg(value_name = "ID-OR-BEAD")]
    what: String,
    /// Maximum number of sessions; the newest are shown
    #[arg(long, value_name = "N", default_value_t = 500)]
    limit: usize,
}

pub(crate) fn run(command: SessionsCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let sessions = Sessions::of(&town);
    if !matches!(command, SessionsCommand::Rebuild(_)) {
        notice_a_lost_server(&town, &sessions)?;
    }
    match command {
        SessionsCommand::List(args) => {
            let query = SessionQuery {
                // One more tells whether there are more.
                limit: Some(args.limit.saturating_add(1)),
                ..args.filter.query(&town, &sessions)?
            };
            let mut records = sessions.find(&query)?;
            let has_more = records.len() > args.limit;
            records.truncate(args.limit);
            usage::refresh(&town, &mut records);
            shown::list(&records, query.work.as_deref(), context)?;
            if let (true, Some(last)) = (has_more, records.last()) {
                shown::note_older(last);
            }
        }
        SessionsCommand::Show(args) => {
            let mut session = sessions.get(&args.id)?;
            usage::refresh_all(&town, std::slice::from_mut(&mut session));
            // Completes the record if a killed process has left it incomplete. Failure is harmless.
            let _ = epilogue::complete(&town, &sessions, &mut session);
            let recording = Recordings::of(&town).find(&session.id)?;
            let detail = sessions.detail(&session.id)?;
            shown::show(&session, detail, recording.as_ref(), context)?;
        }
        SessionsCommand::Chain(args) => {
            let mut chain = sessions.chain(&ids::full_or_text(&town, &args.what)?, args.limit)?;
            usage::refresh_all(&town, &mut chain.sessions);
            if chain.is_partial {
                output::note(format!(
                    "Only the newest {} sessions, and their totals; `--limit N` shows more.",
                    args.limit
                ));
            }
            shown::chain(&chain, context)?;
        }
        SessionsCommand::Stats(args) => stats::run(&args, &town, &sessions, context)?,
        SessionsCommand::Export(ExportArgs { .. }) => upkeep::export(&sessions)?,
        SessionsCommand::Rebuild(RebuildArgs {}) => {
            upkeep::rebuild(&sessions, context)?;
            sync::sync(&town, &sessions, false)?;
        }
        SessionsCommand::Replay(args) => replay::run(&args, &town, &sessions, context)?,
        SessionsCommand::Archive(args) => upkeep::archive(&args, &town, &sessions, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Syncs if the server is gone: tmux reports every end except its own.
fn notice_a_lost_server(town: &Town, sessions: &Sessions) -> Result<(), Problem> {
    if !town.server().is_running() {
        sync::sync(town, sessions, false)?;
    }
    Ok(())
}
