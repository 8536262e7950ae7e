use super::{CommandResult, ids};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::budget::{Budget, BudgetLevel, BudgetScope};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::records::budget::{BudgetNotes, Budgets, is_set};
use gt_town::records::items::Work;
use gt_town::supervision::budgets::{self, Checked};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Show the budgets and their spending, or raise one
///
/// Budgets are set in [budget] of town.toml, in US dollars: `day` for the town, `rig` and `agent`
/// per day, `item` for the whole life of an item. When one is exhausted, no agent is started under
/// it, and those that run pause at the end of their turn.
///
/// Example: `gt budget raise day 10 --today`
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    command: Option<BudgetCommand>,
}

#[derive(Debug, Subcommand)]
enum BudgetCommand {
    Raise(RaiseArgs),
}

/// Raise a budget by an amount; agents that it has paused continue
#[derive(Debug, Args)]
struct RaiseArgs {
    /// The budget: `day`, rig:NAME, agent:NAME or item:ID
    #[arg(value_name = "SCOPE")]
    scope: String,
    /// Dollars to add to the limit
    #[arg(value_name = "AMOUNT")]
    amount: String,
    /// Only for today
    #[arg(long)]
    today: bool,
}

pub(crate) fn run(args: &BudgetArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match &args.command {
        None => show(&town, context)?,
        Some(BudgetCommand::Raise(args)) => raise(&town, args, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(town: &Town, context: &Context) -> Result<(), Problem> {
    let notes = BudgetNotes::read(town)?;
    let all = match is_set(town) {
        true => Budgets::read(town, &notes, &[])?.all,
        false => Vec::new(),
    };
    if context.json {
        return output::json(&json!({
            "budgets": all.iter().map(document).collect::<Vec<Value>>(),
            "raises": notes.raises,
        }));
    }
    if all.is_empty() {
        return output::fitted(
            "No budget is set. `day = 20` under [budget] in town.toml limits a day to $20; `rig`, `agent` \
             and `item` limit those.",
            0,
        );
    }
    print(&all)
}

fn document(budget: &Budget) -> Value {
    let rounded = |dollars: f64| (dollars * 1e9).round() / 1e9;
    json!({
        "scope": budget.scope,
        "spent_usd": rounded(budget.spent_usd),
        "limit_usd": rounded(budget.limit_usd),
        "level": budget.level,
    })
}

fn print(all: &[Budget]) -> Result<(), Problem> {
    let mut table = Table::new(&["BUDGET", "SPENT", "LIMIT", "", ""]);
    for budget in all {
        let paint = match budget.level {
            BudgetLevel::Ok => Paint::green,
            BudgetLevel::Warn => Paint::yellow,
            BudgetLevel::Exhausted => Paint::red,
        };
        let level = match budget.level {
            BudgetLevel::Ok => "",
            level => level.as_str(),
        };
        table.row([
            budget.scope.to_string().into(),
            format!("${:.2}", budget.spent_usd).into(),
            format!("${:.2}", budget.limit_usd).into(),
            Cell::painted(bar(budget.share()), paint),
            Cell::painted(level, paint),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

/// Draws a bar of twenty cells.
fn bar(share: f64) -> String {
    const CELLS: usize = 20;
    let full = (share * CELLS as f64).floor() as usize;
    format!(
        "{}{}",
        "█".repeat(full),
        "░".repeat(CELLS - full.min(CELLS))
    )
}

fn raise(town: &Town, args: &RaiseArgs, context: &Context) -> Result<(), Problem> {
    let scope = resolve(town, args.scope.parse()?)?;
    let amount = args.amount.trim_start_matches('$');
    let usd: f64 = amount.parse().map_err(|_| {
        Problem::usage(format!("{:?} is not an amount in dollars", args.amount)).hint("5 or 2.50")
    })?;
    if args.today && !scope.is_daily() {
        return Err(
            Problem::usage("the budget of an item is not per day").hint("leave out `--today`")
        );
    }
    let checked = budgets::raise(town, scope.clone(), usd, args.today)?;
    let budget = checked.budgets.iter().find(|it| it.scope == scope);
    if context.json {
        return output::json(&raised_document(&checked, budget));
    }
    match budget {
        Some(budget) => print(std::slice::from_ref(budget))?,
        None => output::warn(format!(
            "{scope} has no limit: the raise counts as soon as {} is set under [budget] in town.toml",
            scope.setting()
        )),
    }
    for agent in &checked.resumed {
        output::line(format!("{agent} continues."))?;
    }
    Ok(())
}

fn raised_document(checked: &Checked, budget: Option<&Budget>) -> Value {
    output::without_nulls(json!({
        "budget": budget.map(document),
        "resumed": checked.resumed,
    }))
}

/// Checks that the subject of a scope exists. An agent may be named by any target.
fn resolve(town: &Town, scope: BudgetScope) -> Result<BudgetScope, Problem> {
    match scope {
        BudgetScope::Agent(name) => Ok(BudgetScope::Agent(target::resolve(town, &name)?.address())),
        BudgetScope::Rig(rig) if town.registry().rigs.contains_key(&rig) => {
            Ok(BudgetScope::Rig(rig))
        }
        BudgetScope::Rig(rig) => {
            Err(Problem::not_found(format!("there is no rig {rig:?}"))
                .hint("`gt rig list` shows them"))
        }
        BudgetScope::Item(item) => {
            let item = Work::of(town).get(&ids::full(town, &item)?)?;
            Ok(BudgetScope::Item(item.id.to_string()))
        }
        BudgetScope::Day => Ok(BudgetScope::Day),
    }
}

/// Checks all budgets, for a callback.
pub(super) fn check(context: &Context) -> CommandResult {
    budgets::check_after_turn(&context.town()?)?;
    Ok(ExitCode::SUCCESS)
}
