use super::CommandResult;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint, usage};
use clap::{Args, ValueEnum};
use gt_core::Problem;
use gt_town::base::time;
use gt_town::records::sessions::{CostSum, Costs, CostsBy, Sessions};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Add up tokens and costs by day, item, agent, model or rig
///
/// All sessions count, also archived and running ones. Tokens count on the day on which they were
/// used. Prices are those of the time at which a session ended.
///
/// Example: `gt costs --by item --since 7d`
#[derive(Debug, Args)]
pub(crate) struct CostsArgs {
    /// Group the rows by this
    #[arg(long, value_enum, default_value_t = CostsByArg::Day)]
    by: CostsByArg,
    /// Only since the day of this time: 7d, yesterday, 2026-01-17; with `--by item`, whole sessions
    /// count
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CostsByArg {
    Day,
    Item,
    Agent,
    Model,
    Rig,
}

impl From<CostsByArg> for CostsBy {
    fn from(by: CostsByArg) -> Self {
        match by {
            CostsByArg::Day => CostsBy::Day,
            CostsByArg::Item => CostsBy::Item,
            CostsByArg::Agent => CostsBy::Agent,
            CostsByArg::Model => CostsBy::Model,
            CostsByArg::Rig => CostsBy::Rig,
        }
    }
}

pub(crate) fn run(args: &CostsArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let since = args.since.as_deref().map(since_day).transpose()?;
    let by = CostsBy::from(args.by);
    let costs = Sessions::of(&town).costs(by, since.as_deref(), |running| {
        gt_town::records::usage::refresh(&town, running);
    })?;
    match context.json {
        true => output::json(&document(&costs, by, since.as_deref()))?,
        false => show(&costs, by)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the local day of a time expression.
fn since_day(text: &str) -> Result<String, Problem> {
    let at = time::recorded(text)?;
    time::local_day(&at).ok_or_else(|| Problem::usage(format!("{text:?} is not a valid time")))
}

fn document(costs: &Costs, by: CostsBy, since: Option<&str>) -> Value {
    let rows = sorted(costs, by);
    let rows = rows.into_iter().map(|(key, sum)| {
        let mut row = figures(sum);
        row[by.as_str()] = json!(key);
        row
    });
    output::without_nulls(json!({
        "by": by.as_str(),
        "since": since,
        "rows": rows.collect::<Vec<Value>>(),
        "total": figures(&costs.total),
        "unpriced_models": costs.unpriced_models,
    }))
}

fn figures(sum: &CostSum) -> Value {
    output::without_nulls(json!({
        "tokens": sum.tokens,
        "unpriced_tokens": sum.unpriced_tokens,
        "cost_usd": sum.cost_usd.map(|cost| (cost * 1e9).round() / 1e9),
    }))
}

/// Returns days in chronological order, and other rows with the highest cost first.
fn sorted(costs: &Costs, by: CostsBy) -> Vec<(&String, &CostSum)> {
    let mut rows: Vec<(&String, &CostSum)> = costs.rows.iter().collect();
    if by != CostsBy::Day {
        let order = |sum: &CostSum| (sum.dollars(), sum.tokens);
        rows.sort_by(|(_, a), (_, b)| {
            let ((cost_a, tokens_a), (cost_b, tokens_b)) = (order(a), order(b));
            cost_b.total_cmp(&cost_a).then(tokens_b.cmp(&tokens_a))
        });
    }
    rows
}

fn show(costs: &Costs, by: CostsBy) -> Result<(), Problem> {
    if costs.rows.is_empty() {
        return output::line("No session has used tokens.");
    }
    let title = match by {
        CostsBy::Day => "DAY",
        CostsBy::Item => "ITEM",
        CostsBy::Agent => "AGENT",
        CostsBy::Model => "MODEL",
        CostsBy::Rig => "RIG",
    };
    let mut table = Table::new(&[title, "TOKENS", "COST"]);
    for (key, sum) in sorted(costs, by) {
        let key = if key.is_empty() { "-" } else { key.as_str() };
        table.row([key.into(), usage::tokens(sum.tokens).into(), cost(sum)]);
    }
    let total = &costs.total;
    table.row([
        Cell::painted("total", Paint::bold),
        usage::tokens(total.tokens).into(),
        cost(total),
    ]);
    output::print(&table.render(Paint::for_stdout()))?;
    if total.unpriced_tokens == 0 {
        return Ok(());
    }
    let models: Vec<&str> = costs.unpriced_models.iter().map(String::as_str).collect();
    let of = match models.is_empty() {
        true => String::new(),
        false => format!(" of {}", models.join(", ")),
    };
    let note = format!(
        "+ {} tokens{of} have no price: add it to prices.toml in the town.",
        usage::tokens(total.unpriced_tokens)
    );
    output::fitted(&output::clean(&note), 0)
}

/// A `+` after a cost means that some tokens have no price.
fn cost(sum: &CostSum) -> Cell {
    let more = if sum.unpriced_tokens > 0 { "+" } else { "" };
    let cost = sum.cost_usd.map(usage::dollars).unwrap_or_default();
    Cell::from(format!("{cost}{more}"))
}
