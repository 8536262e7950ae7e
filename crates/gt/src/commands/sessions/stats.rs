//! Statistics of sessions.

use super::filter::SessionFilterArgs;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint, usage};
use clap::{Args, ValueEnum};
use gt_core::Problem;
use gt_core::record::Outcome;
use gt_town::Town;
use gt_town::records::sessions::{SessionTally, Sessions, StatsBy};
use serde_json::{Map, Value, json};

/// Add up sessions, time, tokens and cost, by agent, rig or day
///
/// Archived sessions do not count.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Group the rows by this
    #[arg(long, value_enum, default_value_t = StatsByArg::Agent)]
    by: StatsByArg,
    /// Figure that the bars show
    #[arg(long, value_enum, default_value_t = Measure::Sessions)]
    bars: Measure,
    #[command(flatten)]
    filter: SessionFilterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StatsByArg {
    Agent,
    Rig,
    Role,
    Harness,
    Day,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Measure {
    // The value of earlier versions.
    #[value(alias = "lives")]
    Sessions,
    Time,
    Tokens,
    Cost,
}

impl Measure {
    fn of(self, tally: &SessionTally) -> f64 {
        match self {
            Measure::Sessions => tally.sessions as f64,
            Measure::Time => tally.seconds as f64,
            Measure::Tokens => tally.tokens as f64,
            Measure::Cost => tally.cost_usd.unwrap_or_default(),
        }
    }
}

pub(super) fn run(
    args: &StatsArgs,
    town: &Town,
    sessions: &Sessions,
    context: &Context,
) -> Result<(), Problem> {
    let by = match args.by {
        StatsByArg::Agent => StatsBy::Agent,
        StatsByArg::Rig => StatsBy::Rig,
        StatsByArg::Role => StatsBy::Role,
        StatsByArg::Harness => StatsBy::Harness,
        StatsByArg::Day => StatsBy::Day,
    };
    let tallies = sessions.stats(by, &args.filter.query(town, sessions)?, |running| {
        gt_town::records::usage::refresh(town, running);
    })?;
    if context.json {
        let documents: Vec<Value> = tallies.iter().map(|tally| document(tally, by)).collect();
        return output::json(&documents);
    }
    if tallies.is_empty() {
        return output::line("No session matches.");
    }
    output::print(&table(&tallies, title(by), args.bars).render(Paint::for_stdout()))
}

fn document(tally: &SessionTally, by: StatsBy) -> Value {
    let words = Outcome::ALL
        .iter()
        .map(|outcome| outcome.as_str().to_owned());
    let counts = tally.outcomes.iter().map(|count| json!(count));
    let outcomes: Map<String, Value> = words.zip(counts).collect();
    output::without_nulls(json!({
        (by.as_str()): tally.key,
        "lives": tally.sessions,
        "running": tally.running,
        "outcomes": outcomes,
        "seconds": tally.seconds,
        "tokens": tally.tokens,
        "cost_usd": tally.cost_usd,
        "commits": tally.commits,
    }))
}

fn table(tallies: &[SessionTally], title: &'static str, bars: Measure) -> Table {
    let most = tallies
        .iter()
        .map(|tally| bars.of(tally))
        .fold(0.0, f64::max);
    let mut titles = vec![title, "SESSIONS", "RUNNING"];
    titles.extend(Outcome::ALL.map(heading));
    titles.extend(["TIME", "TOKENS", "COST", "COMMITS", ""]);
    let mut table = Table::new(&titles);
    for tally in tallies {
        let count = |number: u64| {
            Cell::from(match number {
                0 => "-".to_owned(),
                number => number.to_string(),
            })
        };
        let mut row = vec![
            tally.key.clone().into(),
            count(tally.sessions),
            count(tally.running),
        ];
        row.extend(tally.outcomes.map(count));
        row.extend([
            output::duration(tally.seconds).into(),
            usage::tokens(tally.tokens).into(),
            tally
                .cost_usd
                .map(usage::dollars)
                .unwrap_or_default()
                .into(),
            count(tally.commits),
            bar(bars.of(tally), most).into(),
        ]);
        table.row(row);
    }
    table
}

fn heading(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Handoff => "HANDOFF",
        Outcome::Done => "DONE",
        Outcome::Crash => "CRASH",
        Outcome::Killed => "KILLED",
        Outcome::Exited => "EXITED",
        Outcome::Stopped => "STOPPED",
    }
}

fn title(by: StatsBy) -> &'static str {
    match by {
        StatsBy::Agent => "AGENT",
        StatsBy::Rig => "RIG",
        StatsBy::Role => "ROLE",
        StatsBy::Harness => "HARNESS",
        StatsBy::Day => "DAY",
    }
}

/// Draws a bar of at most twenty cells, with a resolution of an eighth of a cell.
fn bar(value: f64, most: f64) -> String {
    const PLACES: f64 = 20.0;
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most <= 0.0 || value <= 0.0 {
        return String::new();
    }
    // At most a full bar, and at least an eighth for a value above zero.
    let eighths = (value / most * PLACES * 8.0)
        .round()
        .clamp(1.0, PLACES * 8.0) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_value() {
        assert_eq!(bar(10.0, 10.0), "█".repeat(20));
        assert_eq!(bar(5.0, 10.0), "█".repeat(10));
        assert_eq!(bar(0.01, 10.0), "▏", "little is not nothing");
        assert_eq!(bar(0.0, 10.0), "");
        assert_eq!(bar(0.0, 0.0), "");
    }
}
