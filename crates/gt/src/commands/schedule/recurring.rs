//! Recurring work: formulas that run at the times of a cron expression.

use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_town::Town;
use gt_town::base::time;
use gt_town::records::items::Recurring;
use gt_town::repo::rig;
use gt_town::supervision::recurring::{self, NewRecurring};
use gt_town::work::molecule;
use serde_json::{Value, json};

type Planned = (Recurring, Option<jiff::Timestamp>);

/// Pour a formula again and again, at the times of a cron expression
///
/// Each time an item of the rig is created and queued, and its polecat gets the formula as its
/// molecule. Times are local. A run that was missed while the machine was off happens once. A
/// run is skipped while the item of the run before is open.
///
/// For example: gt schedule add --cron "0 3 * * mon-fri" review --var change=main --name nightly
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Its name; `gt formula list` shows the available ones
    formula: String,
    /// Minute, hour, day, month and weekday; or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    cron: String,
    /// The rig of the items [default: that of this folder, or the only one]
    #[arg(long)]
    rig: Option<String>,
    /// A variable of the formula; several of them may be given
    #[arg(long = "var", value_name = "NAME=VALUE")]
    vars: Vec<String>,
    /// Name of this recurring work [default: the formula's]
    #[arg(long)]
    name: Option<String>,
    /// The agent program [default: the role's, GT_HARNESS, the town's]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// The model, by the agent program's own name for it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub(super) fn add(args: AddArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let rig = rig::named_or_only(town, args.rig.as_deref(), "`--rig RIG` names it")?;
    let added = recurring::add(
        town,
        NewRecurring {
            name: args.name,
            cron: args.cron,
            formula: args.formula,
            rig,
            vars: molecule::variables(&args.vars)?,
            harness: args.harness,
            model: args.model,
        },
    )?;
    if context.json {
        return output::json(&document(&added));
    }
    let (entry, next) = &added;
    let Recurring { name, formula, .. } = entry;
    let rig = &entry.rig;
    output::line(format!(
        "Added {name}: {formula} in {rig}, next at {}.",
        local(*next)
    ))
}

pub(super) fn list(town: &Town) -> Result<Vec<Planned>, Problem> {
    recurring::list(town)
}

pub(super) fn run(name: &str, town: &Town, context: &Context) -> Result<(), Problem> {
    let item = recurring::run_now(town, name)?;
    if let (Some(item), false) = (item, context.json) {
        let title = output::clean(&item.title);
        output::line(format!("Made {} for {name}: {title}", item.id))?;
    }
    Ok(())
}

pub(super) fn remove(name: &str, town: &Town, context: &Context) -> Result<(), Problem> {
    recurring::remove(town, name)?;
    if !context.json {
        output::line(format!("{name} no longer recurs."))?;
    }
    Ok(())
}

pub(super) fn document((entry, next): &Planned) -> Value {
    output::without_nulls(json!({
        "name": entry.name,
        "cron": entry.cron,
        "formula": entry.formula,
        "rig": entry.rig,
        "vars": entry.vars,
        "options": entry.options,
        "added_at": entry.added_at,
        "added_by": entry.added_by,
        "next_at": next.map(|next| time::timestamp(next.as_second())),
        "last_at": entry.last_at,
        "last_item": entry.last_item,
        "runs": entry.runs,
        "last_error": entry.last_error,
    }))
}

pub(super) fn table(entries: &[Planned]) -> Result<(), Problem> {
    if entries.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let mut table = Table::new(&[
        "RECURRING",
        "CRON",
        "FORMULA",
        "RIG",
        "NEXT",
        "LAST",
        "NOTE",
    ]);
    for (entry, next) in entries {
        let last = match (&entry.last_item, &entry.last_at) {
            (Some(item), Some(at)) => format!("{item}, {} ago", output::age_of(at)),
            _ => "never".to_owned(),
        };
        let note = match &entry.last_error {
            Some(error) => format!("skipped: {error}"),
            None => String::new(),
        };
        table.row([
            entry.name.as_str().into(),
            entry.cron.as_str().into(),
            entry.formula.as_str().into(),
            entry.rig.as_str().into(),
            local(*next).into(),
            last.into(),
            output::clean(&note).into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

/// Formats a planned time in the local time zone.
fn local(next: Option<jiff::Timestamp>) -> String {
    let next = next.map(|next| next.to_zoned(jiff::tz::TimeZone::system()));
    let text = next.map(|next| next.strftime("%a %Y-%m-%d %H:%M").to_string());
    text.unwrap_or_else(|| "never".to_owned())
}
