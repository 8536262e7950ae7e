use super::Answer;
use crate::context::Context;
use clap::Args;
use gt_core::Problem;
use gt_town::terminal::recording::{self, Wish};
use std::path::PathBuf;
use std::process::ExitCode;

/// Record what a pane prints; started by tmux beside an agent
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The life that is recorded
    life: String,
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

pub(crate) fn run(args: RecordArgs, context: &Context) -> Answer {
    let unreadable = |what: &str| Problem::usage(format!("{what} cannot be read"));
    let wish = Wish {
        life: args.life.parse().map_err(|_| unreadable(&args.life))?,
        pane: args.pane.parse().map_err(|_| unreadable(&args.pane))?,
        pid: args.pid,
        tty: args.tty,
        columns: args.columns,
        rows: args.rows,
        title: args.title,
        term: args.term,
        max_bytes: args.max_bytes,
    };
    recording::record(&context.town()?, &wish, std::io::stdin())?;
    Ok(ExitCode::SUCCESS)
}
