use super::CommandResult;
use crate::context::Context;
use crate::output;
use crate::output::table::Table;
use clap::{Args, Subcommand};
use gt_core::mail::PERSON;
use gt_core::{Caller, Problem};
use gt_town::Town;
use gt_town::base::dnd::{self as file, DndNote};
use gt_town::base::time;
use gt_town::messaging::{dnd, mail};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Do not disturb: hold messages to an agent, or notifications to you, for a while
///
/// Messages that are not urgent wait in the agent's queue, and notifications to you (see
/// [notify] in town.toml) wait too; all are delivered when it ends. Urgent messages and
/// critical escalations are not held. Without a command it shows for whom it is on. For
/// example: gt dnd until 18:00 gastown/max
#[derive(Debug, Args)]
pub(crate) struct DndArgs {
    #[command(subcommand)]
    command: Option<DndCommand>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum DndCommand {
    /// Hold messages until `gt dnd off`
    On(Recipients),
    /// Stop holding messages, and deliver the held ones
    Off(Recipients),
    /// Hold messages until a time
    Until {
        /// 90m, 18:30, 2026-01-17 or 2026-01-17T01:00:00Z
        time: String,
        #[command(flatten)]
        recipients: Recipients,
    },
}

#[derive(Debug, Args)]
struct Recipients {
    /// The agents; `human` is you [default: the caller]
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
}

pub(crate) fn run(args: &DndArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match &args.command {
        None => show(&town, context),
        Some(DndCommand::On(recipients)) => turn_on(&town, recipients, None, context),
        Some(DndCommand::Until { time, recipients }) => {
            let until = time::parse_future(time)?;
            turn_on(&town, recipients, Some(until), context)
        }
        Some(DndCommand::Off(recipients)) => turn_off(&town, recipients, context),
    }
}

impl Recipients {
    /// Returns the addresses, without duplicates.
    fn addresses(&self, town: &Town) -> Result<Vec<String>, Problem> {
        if self.agents.is_empty() {
            return Ok(vec![match town.caller() {
                Caller::Agent(address) => address,
                Caller::Person(_) | Caller::Gt => PERSON.to_owned(),
            }]);
        }
        let mut all = Vec::new();
        for text in &self.agents {
            let address = mail::address(town, text)?;
            if !all.contains(&address) {
                all.push(address);
            }
        }
        Ok(all)
    }
}

fn turn_on(
    town: &Town,
    recipients: &Recipients,
    until: Option<i64>,
    context: &Context,
) -> CommandResult {
    let mut documents = Vec::new();
    for who in recipients.addresses(town)? {
        let note = dnd::turn_on(town, &who, until)?;
        if !context.json {
            output::line(format!(
                "{}: {}. {} pass; `{}` ends it.",
                name(&who),
                describe(&note),
                passing(&who),
                off_command(&who)
            ))?;
        }
        documents.push(row(town, &who, &note));
    }
    if context.json {
        output::json(&documents)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn turn_off(town: &Town, recipients: &Recipients, context: &Context) -> CommandResult {
    let mut documents = Vec::new();
    for who in recipients.addresses(town)? {
        let ended = dnd::turn_off(town, &who)?;
        if !context.json {
            let what = match ended.was_on {
                true => "do not disturb is off",
                false => "do not disturb was not on",
            };
            let held = match ended.held {
                0 => String::new(),
                1 => format!(" 1 {} is delivered now.", noun(&who)),
                held => format!(" {held} {}s are delivered now.", noun(&who)),
            };
            output::line(format!("{}: {what}.{held}", name(&who)))?;
            if !ended.was_on {
                hint_others(town)?;
            }
        }
        documents.push(json!({"who": who, "was_on": ended.was_on, "held": ended.held}));
    }
    if context.json {
        output::json(&documents)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the agents and people for whom it is still on.
fn hint_others(town: &Town) -> Result<(), Problem> {
    for who in file::all(town).keys() {
        let off = off_command(who);
        output::line(format!("It is on for {}: `{off}` ends it.", shown(who)))?;
    }
    Ok(())
}

fn show(town: &Town, context: &Context) -> CommandResult {
    let notes = file::all(town);
    if context.json {
        let rows = notes.iter().map(|(who, note)| row(town, who, note));
        output::json(&rows.collect::<Vec<_>>())?;
    } else if notes.is_empty() {
        output::fitted(
            "No messages are held. `gt dnd on AGENT` holds those to an agent, `gt dnd on` your \
             notifications.",
            0,
        )?;
    } else {
        let mut table = Table::new(&["WHO", "UNTIL", "SINCE", "BY", "HELD"]);
        for (who, note) in &notes {
            let end = note.until.and_then(output::time);
            let end = end.map_or_else(|| off_command(who), |end| output::minute(Some(&end)));
            table.row([
                shown(who).into(),
                end.into(),
                output::age(note.since).into(),
                output::clean(&note.by).into(),
                dnd::count_held(town, who).to_string().into(),
            ]);
        }
        output::print(&table.render(output::Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn name(who: &str) -> &str {
    match who {
        PERSON => "You",
        agent => agent,
    }
}

/// Returns the name of an agent or of the person within a line.
fn shown(who: &str) -> &str {
    match who {
        PERSON => "you",
        agent => agent,
    }
}

/// Returns the noun of the things that are held.
fn noun(who: &str) -> &'static str {
    match who {
        PERSON => "notification",
        _ => "message",
    }
}

/// Returns the things that are not held.
fn passing(who: &str) -> &'static str {
    match who {
        PERSON => "Critical escalations",
        _ => "Urgent messages",
    }
}

/// Returns the argument of `gt dnd off` for an address.
fn off_command(who: &str) -> String {
    match who {
        PERSON => "gt dnd off".to_owned(),
        agent => format!("gt dnd off {agent}"),
    }
}

fn row(town: &Town, who: &str, note: &DndNote) -> Value {
    let mut row = document(note);
    row["who"] = json!(who);
    row["held"] = json!(dnd::count_held(town, who));
    row
}

/// Returns a note as JSON.
pub(super) fn document(note: &DndNote) -> Value {
    output::without_nulls(json!({
        "since": output::time(note.since),
        "until": note.until.and_then(output::time),
        "by": note.by,
    }))
}

/// Returns `do not disturb until 2026-01-17 18:00`.
pub(super) fn describe(note: &DndNote) -> String {
    match note.until.and_then(output::time) {
        Some(end) => format!("do not disturb until {}", output::minute(Some(&end))),
        None => "do not disturb".to_owned(),
    }
}
