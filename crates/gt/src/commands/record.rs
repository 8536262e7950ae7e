use super::CommandResult;
use crate::context::Context;
use clap::Args;
use gt_core::Problem;
use gt_town::terminal::recording::{self, RecordRequest};
use std::path::PathBuf;
use std::process::ExitCode;

/// Record what a pane prints; started by tmux beside an agent
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The session that is recorded
    session: String,
    #[arg(long)]
    pane: String,
    /// The pane's first process
    #[arg(long)]
    pid: u32,
    #[arg(long)]
    tty: PathBuf,
    #[arg(long)]
    columns: u16,
    #[arg(long)]
    rows: u16,
    #[arg(long)]
    title: String,
    #[arg(long)]
    term: String,
    /// The most that the recording may take on the disk
    #[arg(long)]
    max_bytes: u64,
}

pub(crate) fn run(args: RecordArgs, context: &Context) -> CommandResult {
    let unreadable = |what: &str| Problem::usage(format!("{what} cannot be read"));
    let request = RecordRequest {
        session: args
            .session
            .parse()
            .map_err(|_| unreadable(&args.session))?,
        pane: args.pane.parse().map_err(|_| unreadable(&args.pane))?,
        pid: args.pid,
        tty: args.tty,
        columns: args.columns,
        rows: args.rows,
        title: args.title,
        term: args.term,
        max_bytes: args.max_bytes,
    };
    recording::record(&context.town()?, &request, std::io::stdin())?;
    Ok(ExitCode::SUCCESS)
}
