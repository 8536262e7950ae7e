//! Queues recurring work when it is due: creates an item of the rig and queues it. The
//! [scheduler](crate::supervision::scheduler) starts it later and pours the formula for the
//! polecat.
//!
//! [`gt_core::schedule::recurring`] decides. The upkeep calls [`run_due`] every few minutes; the
//! daemon sleeps until [`next_due`]. A run is skipped while the item of the run before is open, so
//! that runs do not accumulate.

use crate::base::or_log::OrLog;
use crate::catalog::formulas;
use crate::messaging::escalate::{self, NewEscalation};
use crate::records::events::{Events, by_command};
use crate::records::items::{ItemDraft, Recurring, RecurringRun, Work};
use crate::repo::rig;
use crate::{Result, Town};
use gt_core::Problem;
use gt_core::escalation::Severity;
use gt_core::formula::Formula;
use gt_core::mail::PERSON;
use gt_core::schedule::cron::CronExpression;
use gt_core::schedule::recurring::{RecurringEntry, decide, next_run};
use gt_core::schedule::{AssignmentOptions, FormulaChoice};
use gt_core::work::{Item, LONGEST_TITLE, check_word};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Recurring work to add.
#[derive(Clone, Debug, Default)]
pub struct NewRecurring {
    /// The default is the name of the formula.
    pub name: Option<String>,
    pub cron: String,
    pub formula: String,
    pub rig: String,
    pub vars: BTreeMap<String, String>,
    pub harness: Option<String>,
    pub model: Option<String>,
}

/// Adds recurring work. Returns it with its next run.
pub fn add(town: &Town, new: NewRecurring) -> Result<(Recurring, Option<Timestamp>)> {
    let cron = CronExpression::parse(&new.cron)?;
    let name = new.name.unwrap_or_else(|| new.formula.clone());
    check_word("name of recurring work", &name)?;
    rig::work_prefix(town, &new.rig)?;
    let sender = town.around().var("GT_ROLE").unwrap_or(PERSON);
    let entry = Recurring {
        name,
        cron: cron.to_string(),
        formula: new.formula,
        rig: new.rig,
        vars: new.vars,
        options: AssignmentOptions {
            harness: new.harness,
            model: new.model,
            sender: Some(sender.to_owned()),
            ..AssignmentOptions::default()
        },
        added_by: town.caller().as_str().to_owned(),
        ..Recurring::default()
    };
    filled(town, &entry)?;
    let entry = Work::of(town).add_recurring(&entry)?;
    let event = by_command(town, "schedule_added")
        .with("name", entry.name.clone())
        .with("formula", entry.formula.clone())
        .with("rig", entry.rig.clone())
        .with("cron", entry.cron.clone());
    Events::of(town).note(vec![event]);
    let next = next(town, &entry)?;
    Ok((entry, next))
}

/// Removes recurring work. Returns whether it was there.
pub fn remove(town: &Town, name: &str) -> Result<bool> {
    let was_there = Work::of(town).remove_recurring(name)?;
    if was_there {
        escalate::resolve(town, &key(name), "it was removed")?;
        let event = by_command(town, "schedule_dropped").with("name", name.to_owned());
        Events::of(town).note(vec![event]);
    }
    Ok(was_there)
}

/// Returns all recurring work with the next runs.
pub fn list(town: &Town) -> Result<Vec<(Recurring, Option<Timestamp>)>> {
    let entries = Work::of(town).recurring()?.into_iter();
    entries
        .map(|entry| {
            let next = next(town, &entry)?;
            Ok((entry, next))
        })
        .collect()
}

/// Returns the next planned time of all recurring work; a time in the past is due.
pub fn next_due(town: &Town) -> Result<Option<Timestamp>> {
    let known = Work::of(town).recurring()?;
    // `run_due` logs an entry that cannot be read.
    let planned = known.iter().filter_map(|entry| next(town, entry).ok()?);
    Ok(planned.min())
}

/// Queues the runs that are due. Returns their items. Without recurring work it costs one read.
pub fn run_due(town: &Town) -> Result<Vec<Item>> {
    let work = Work::of(town);
    if !work.has_recurring()? {
        return Ok(Vec::new());
    }
    let known = work.recurring()?;
    let parse = |entry: &Recurring| {
        parsed(entry).or_warn(format_args!("recurring work {} is skipped", entry.name))
    };
    let entries: Vec<RecurringEntry> = known.iter().filter_map(parse).collect();
    let plan = decide(&entries, town.clock().now(), &TimeZone::system());
    let mut queued = Vec::new();
    for due in plan.due {
        let Some(entry) = known.iter().find(|entry| entry.name == due.name) else {
            continue;
        };
        if entry.is_open {
            let item = entry.last_item.as_ref().map(ToString::to_string);
            let reason = format!("{}, its last item, is open", item.unwrap_or_default());
            skip(town, &work, entry, &reason)?;
            continue;
        }
        match run(town, &work, entry, due.planned) {
            Ok(item) => queued.extend(item),
            Err(problem) => {
                let line = problem.line();
                skip(town, &work, entry, &line)?;
                raise(town, entry, &line);
            }
        }
    }
    Ok(queued)
}

/// Queues a run of this entry now, even if the item of the last one is open.
pub fn run_now(town: &Town, name: &str) -> Result<Option<Item>> {
    let work = Work::of(town);
    let known = work.recurring()?;
    let entry = known.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| {
        Problem::not_found(format!("there is no recurring work {name:?}"))
            .hint("`gt schedule list` shows it")
    })?;
    run(town, &work, entry, town.clock().now())
}

fn run(town: &Town, work: &Work, entry: &Recurring, planned: Timestamp) -> Result<Option<Item>> {
    let formula = filled(town, entry)?;
    let planned = planned.to_zoned(TimeZone::system());
    let about = formula.description.lines().next().unwrap_or_default();
    let title: String = format!("{}: {about}", entry.name);
    let title = title.trim_end_matches([':', ' ']);
    let draft = ItemDraft {
        prefix: rig::work_prefix(town, &entry.rig)?,
        title: title.chars().take(LONGEST_TITLE).collect(),
        description: format!(
            "{}\n\nRecurring work {} ({}), planned for {}. Its steps: `gt mol status`.",
            formula.description,
            entry.name,
            entry.cron,
            planned.strftime("%Y-%m-%d %H:%M %:z")
        ),
        labels: vec![format!("recurring:{}", entry.name)],
        ..ItemDraft::default()
    };
    let caller = town.caller();
    let run = RecurringRun {
        entry,
        draft,
        options: AssignmentOptions {
            formula: Some(FormulaChoice {
                name: entry.formula.clone(),
                vars: entry.vars.clone(),
            }),
            ..entry.options.clone()
        },
        by: caller.as_str(),
    };
    let item = work.queue_recurring(&run)?;
    if let Some(item) = &item {
        let event = town
            .event("schedule_recurring")
            .with("name", entry.name.clone())
            .with("formula", entry.formula.clone())
            .with("bead", item.id.to_string())
            .with("rig", entry.rig.clone());
        Events::of(town).note(vec![event]);
        escalate::resolve(town, &key(&entry.name), "it runs again")?;
    }
    Ok(item)
}

/// Records a skipped run. Several in a row for the same reason are one event.
fn skip(town: &Town, work: &Work, entry: &Recurring, reason: &str) -> Result<()> {
    let is_new = entry.last_error.as_deref() != Some(reason);
    if work.skip_recurring(entry, reason)? && is_new {
        let event = town
            .event("schedule_skipped")
            .with("name", entry.name.clone())
            .with("reason", reason.to_owned());
        Events::of(town).note(vec![event]);
    }
    Ok(())
}

fn raise(town: &Town, entry: &Recurring, line: &str) {
    let raised = escalate::raise(
        town,
        &NewEscalation {
            severity: Severity::Medium,
            message: format!("the recurring work {} cannot run: {line}", entry.name),
            source: "schedule",
            item: None,
            agent: None,
            key: Some(key(&entry.name)),
        },
    );
    raised.or_warn(format_args!("{} is not escalated", entry.name));
}

fn key(name: &str) -> String {
    format!("recurring:{name}")
}

/// Returns the formula of an entry with its variables. Those about the item are filled in when the
/// formula is poured.
fn filled(town: &Town, entry: &Recurring) -> Result<Formula> {
    let formula = formulas::resolve(town, &entry.formula, Some(&entry.rig))?.formula;
    let mut vars = entry.vars.clone();
    for name in ["bead", "title"] {
        if formula.vars.contains_key(name) {
            vars.entry(name.to_owned())
                .or_insert_with(|| entry.name.clone());
        }
    }
    formula.fill(&vars)
}

fn parsed(entry: &Recurring) -> Result<RecurringEntry> {
    let seen_at = entry.seen_at.parse();
    Ok(RecurringEntry {
        name: entry.name.clone(),
        cron: CronExpression::parse(&entry.cron)?,
        seen_at: seen_at
            .map_err(|error| Problem::failed("the recurring work is damaged").caused_by(error))?,
    })
}

fn next(town: &Town, entry: &Recurring) -> Result<Option<Timestamp>> {
    let entry = parsed(entry)?;
    Ok(next_run(&entry, town.clock().now(), &TimeZone::system()))
}

#[cfg(test)]
mod tests;
