use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_town::base::log::{Log, LogEntry, LogReader};
use gt_town::base::time;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tracing::Level;

/// Default number of entries, without `-n` and `--since`.
const SHOWN: usize = 100;
/// Default number of earlier entries with `--follow`.
const SHOWN_BEFORE: usize = 10;
/// Interval at which `--follow` looks for new entries.
const POLL: Duration = Duration::from_millis(250);

/// Show the warnings and errors of gt itself, the newest last
///
/// Hooks, timers and background processes have no terminal: their warnings and errors
/// are in <town>/.runtime/gt.log. GT_LOG=debug (or --verbose) also prints the steps of
/// a command on stderr.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Only entries since: 90m, 24h, yesterday, 2026-01-17
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Maximum number of entries; the newest are shown [default: 100, or all with --since]
    #[arg(long = "lines", short = 'n', value_name = "N")]
    lines: Option<usize>,
    /// Follow new entries; with --json, one document per line
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn run(args: &LogsArgs, context: &Context) -> CommandResult {
    run_for(args, "", context)
}

/// Shows the entries of commands that begin with this word; all of them with an empty one.
pub(super) fn run_for(args: &LogsArgs, command: &str, context: &Context) -> CommandResult {
    let is_of = |entry: &LogEntry| {
        command.is_empty()
            || entry
                .command
                .split(' ')
                .next()
                .is_some_and(|first| first == command)
    };
    // Only the folder is needed: the log of a town that cannot be opened can be read.
    let log = Log::at(&context.root()?);
    let since = args.since.as_deref().map(time::parse_time).transpose()?;
    let (mut entries, reader) = LogReader::begin(&log)?;
    entries.retain(|entry| is_of(entry) && since.is_none_or(|since| entry.at >= since));
    let usual = match (since, args.follow) {
        (Some(_), _) => usize::MAX,
        (None, true) => SHOWN_BEFORE,
        (None, false) => SHOWN,
    };
    let shown = args.lines.unwrap_or(usual);
    entries.drain(..entries.len().saturating_sub(shown));
    if args.follow {
        follow(entries, reader, is_of, context)?;
    } else if context.json {
        output::json(&entries.iter().map(document).collect::<Vec<_>>())?;
    } else if entries.is_empty() {
        output::line("No warnings or errors.")?;
    } else {
        output::print(&as_text(&entries))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn follow(
    mut entries: Vec<LogEntry>,
    mut reader: LogReader,
    is_of: impl Fn(&LogEntry) -> bool,
    context: &Context,
) -> Result<(), Problem> {
    context.catch_interrupts();
    loop {
        let text = match context.json {
            true => entries
                .iter()
                .map(|entry| format!("{}\n", document(entry)))
                .collect(),
            false => as_text(&entries),
        };
        output::print(&text)?;
        if context.around().cancel.is_set() || !output::has_reader() {
            return Ok(());
        }
        std::thread::sleep(POLL);
        entries = reader.next_entries()?;
        entries.retain(&is_of);
    }
}

fn document(entry: &LogEntry) -> Value {
    json!({
        "ts": entry.at.to_string(),
        "level": entry.level.as_str().to_lowercase(),
        "command": entry.command,
        "message": entry.text,
    })
}

fn as_text(entries: &[LogEntry]) -> String {
    let paint = Paint::for_stdout();
    let line = |entry: &LogEntry| {
        let at = entry.at.to_zoned(jiff::tz::TimeZone::system());
        let at = at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let level = format!("{:<5}", entry.level.as_str().to_lowercase());
        let level = match entry.level {
            Level::ERROR => paint.red(&level),
            Level::WARN => paint.yellow(&level),
            _ => level,
        };
        let text = output::clean(&format!("{}: {}", entry.command, entry.text));
        format!("{}  {level}  {text}\n", paint.dim(&at))
    };
    entries.iter().map(line).collect()
}
