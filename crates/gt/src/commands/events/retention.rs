//! `gt events stats|prune|retention`: how long events are kept.

use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_core::event::RetentionRule;
use gt_core::plural::counted;
use gt_town::Town;
use gt_town::records::retention::{AutoPrune, EventRetention, Pruned};
use serde_json::json;

/// Show statistics of the log and the feed, by event type
#[derive(Debug, Args)]
pub(super) struct StatsArgs {}

/// Remove expired events
///
/// The newest events stay regardless of their age. Events that are written meanwhile are not lost.
#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Only if the town's interval has passed since the last prune
    #[arg(long)]
    auto: bool,
    /// Only count what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// Show the retention and the decay curve of each event type
#[derive(Debug, Args)]
pub(super) struct RetentionArgs {}

pub(super) fn show(town: &Town, context: &Context) -> Result<(), Problem> {
    let krc = &town.settings().krc;
    let rules = krc.policy().rules();
    if context.json {
        return output::json(&json!({
            "prune_interval_seconds": krc.prune_interval.0,
            "minimum_kept": krc.minimum_kept,
            "types": rules,
        }));
    }
    output::print(&rules_table(&rules).render(Paint::for_stdout()))?;
    let (every, kept) = (length(krc.prune_interval.0), krc.minimum_kept);
    let note = "`gt events prune --auto` prunes every";
    output::fitted(
        &format!("{note} {every}; the newest {kept} always stay."),
        0,
    )
}

pub(super) fn prune(args: &PruneArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let retention = EventRetention::of(town);
    match args.auto {
        true => auto(retention.auto_prune(args.dry_run)?, context),
        false => told(&retention.prune(args.dry_run)?, context),
    }
}

pub(super) fn stats(town: &Town, context: &Context) -> Result<(), Problem> {
    let retention = EventRetention::of(town);
    let files = retention.stats()?;
    if context.json {
        let last = retention.last_prune();
        return output::json(&output::without_nulls(json!({
            "files": files,
            "last_prune": last.map(|last| last.last_prune),
        })));
    }
    for file in files {
        let summary = format!(
            "{}: {}, {}, {} over, {} that cannot be read",
            file.file,
            counted(file.events, "event"),
            size(file.bytes),
            file.expired,
            counted(file.damaged, "line")
        );
        output::fitted(&summary, 2)?;
        let mut table = Table::new(&["TYPE", "COUNT", "OVER", "VALUE", "SIZE", "OLDEST", "NEWEST"]);
        for kind in file.types {
            table.row([
                kind.kind.into(),
                kind.count.to_string().into(),
                kind.expired.to_string().into(),
                format!("{:.2}", kind.value).into(),
                size(kind.bytes).into(),
                output::minute(Some(&kind.oldest)).into(),
                output::minute(Some(&kind.newest)).into(),
            ]);
        }
        if file.events > 0 {
            output::print(&table.render(Paint::for_stdout()))?;
        }
    }
    Ok(())
}

fn auto(auto: AutoPrune, context: &Context) -> Result<(), Problem> {
    let (word, next) = match auto {
        AutoPrune::Pruned(pruned) => return told(&pruned, context),
        AutoPrune::NotYet(next) => ("not_yet", Some(next.to_string())),
        AutoPrune::Busy => ("busy", None),
    };
    if context.json {
        return output::json(&output::without_nulls(
            json!({"pruned": false, "reason": word, "next_at": next}),
        ));
    }
    match next {
        Some(next) => output::line(format!("Not before {next}.")),
        None => output::line("Another process is pruning."),
    }
}

fn told(pruned: &Pruned, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&json!({
            "pruned": !pruned.dry_run,
            "dry_run": pruned.dry_run,
            "files": pruned.files,
        }));
    }
    for file in &pruned.files {
        let dropped = if pruned.dry_run {
            "would drop"
        } else {
            "dropped"
        };
        let damaged = match file.damaged {
            0 => String::new(),
            count => format!(" and {count} lines that cannot be read"),
        };
        output::line(format!(
            "{}: {dropped} {} events{damaged}, {} stay ({} of {})",
            file.file,
            file.removed,
            file.kept,
            size(file.bytes_after),
            size(file.bytes_before),
        ))?;
    }
    Ok(())
}

fn rules_table(rules: &[RetentionRule]) -> Table {
    let mut table = Table::new(&["TYPE", "KEPT", "VALUE FALLS", "FOR", "FROM"]);
    for rule in rules {
        table.row([
            rule.pattern.clone().into(),
            length(rule.ttl_seconds).into(),
            rule.decay.as_str().into(),
            rule.visibility.as_str().into(),
            match rule.overridden {
                true => Cell::painted("town", Paint::cyan),
                false => "built-in".into(),
            },
        ]);
    }
    table
}

/// Formats a duration in the largest unit that divides it.
fn length(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let unit = units
        .iter()
        .find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    match unit {
        Some((unit, name)) => format!("{}{name}", seconds / unit),
        None => format!("{seconds}s"),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KB", bytes / 1_024),
        _ => format!("{} MB", bytes / 1_048_576),
    }
}
