//! Maintenance of the journal, the index and the archive.

use super::shown::document;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_core::plural::counted;
use gt_town::base::time;
use gt_town::records::sessions::Sessions;
use serde_json::json;

/// Print every session as a line of JSON, the oldest first
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// One JSON document in each line; the only form there is
    #[arg(long)]
    jsonl: bool,
}

/// Move old sessions out of the journal into compressed files
///
/// `show`, `chain`, `export` and `list --work` still find them. gt also does so automatically, once
/// a day, for sessions that ended more than `archive_after_days` (town.toml) ago.
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// Sessions that ended before: 90d, 2026-01-17 [default: as in town.toml]
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Only count them
    #[arg(long)]
    dry_run: bool,
}

/// Rebuild the index from the journal, the archive and tmux
#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {}

/// Prints every session. Reports damage of the archive at the end.
pub(super) fn export(sessions: &Sessions) -> Result<(), Problem> {
    let damages = sessions.for_each(|session| output::line(document(session).to_string()))?;
    for damage in &damages {
        output::warn(damage.to_string());
    }
    match damages.into_iter().next() {
        Some(damage) => Err(damage.hint("the other sessions were printed")),
        None => Ok(()),
    }
}

pub(super) fn rebuild(sessions: &Sessions, context: &Context) -> Result<(), Problem> {
    let rebuilt = sessions.rebuild()?;
    for damage in &rebuilt.damages {
        match damage.line {
            0 => output::warn(&damage.reason),
            line => output::warn(format!(
                "line {line} of the journal was skipped: {}",
                damage.reason
            )),
        }
    }
    if context.json {
        let lines = rebuilt.damages.iter().map(|damage| damage.line);
        let skipped: Vec<u64> = lines.filter(|line| *line > 0).collect();
        let archives = rebuilt.damages.iter().filter(|damage| damage.line == 0);
        let damaged: Vec<&str> = archives.map(|damage| damage.reason.as_str()).collect();
        return output::json(&json!({
            "lives": rebuilt.sessions,
            "archived": rebuilt.archived,
            "skipped_lines": skipped,
            "damaged_archives": damaged,
        }));
    }
    let archived = match rebuilt.archived {
        0 => String::new(),
        count => format!(" and knows of {count} in the archive"),
    };
    output::line(format!(
        "The index has {}{archived}.",
        counted(rebuilt.sessions, "session")
    ))
}

pub(super) fn archive(
    args: &ArchiveArgs,
    town: &gt_town::Town,
    sessions: &Sessions,
    context: &Context,
) -> Result<(), Problem> {
    let before = match (&args.before, town.settings().sessions.archive_after_days) {
        (Some(time), _) => time::recorded(time)?,
        (None, 0) => {
            return Err(Problem::usage("this town archives no sessions")
                .hint("name a time with `--before`, or set archive_after_days in town.toml"));
        }
        (None, days) => time::recorded(&format!("{days}d"))?,
    };
    let archived = sessions.archive(&before, args.dry_run)?;
    if context.json {
        return output::json(&json!({
            "lives": archived.sessions,
            "files": archived.files,
            "before": before,
        }));
    }
    let what = if args.dry_run { "would move" } else { "moved" };
    let count = match archived.sessions {
        0 => return output::line("No session is that old."),
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    output::line(format!(
        "{count} {what} into {}.",
        archived.files.join(", ")
    ))
}
