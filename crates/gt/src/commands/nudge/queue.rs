//! `gt nudge --list|--cancel|--again`: the queue of an agent.

use super::later;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::output;
use crate::output::table::Table;
use gt_core::nudge::{Message, Priority};
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::base::processes;
use gt_town::messaging::nudge;
use gt_town::messaging::queue::{MessageQueue, SetAside};
use gt_town::terminal::containers;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Message as `--list` shows it.
struct Listed {
    message: Message,
    phase: &'static str,
    /// Reason why it was set aside.
    reason: Option<String>,
}

/// Maximum number of waiting messages, and of those set aside, that a list shows.
const SHOWN: usize = 500;

/// Returns the messages of a queue, the first [`SHOWN`] of each kind, and the number of others.
fn first_listed(queue: &MessageQueue, now: i64) -> (Vec<Listed>, usize) {
    let (waiting, waiting_count) = queue.first_waiting(SHOWN);
    let (aside, aside_count) = queue.newest_set_aside(SHOWN);
    let others = |count: usize| count.saturating_sub(SHOWN);
    (
        rows(queue, now, waiting, aside),
        others(waiting_count) + others(aside_count),
    )
}

/// Returns all messages of a queue. Expired ones are left out: the next delivery sets them aside.
fn listed(queue: &MessageQueue, now: i64) -> Vec<Listed> {
    rows(queue, now, queue.waiting(), queue.set_aside_messages())
}

fn rows(
    queue: &MessageQueue,
    now: i64,
    waiting: Vec<Message>,
    aside: Vec<SetAside>,
) -> Vec<Listed> {
    let row = |message, phase, reason| Listed {
        message,
        phase,
        reason,
    };
    let begun = queue.interrupted().into_iter();
    let begun = begun.map(|taken| row(taken.message, taken.phase.as_str(), None));
    let uptime = processes::uptime();
    let is_valid = |message: &Message| !message.is_expired(now, uptime.as_ref());
    let waiting = waiting.into_iter().filter(is_valid);
    let waiting = waiting.map(|message| row(message, "waiting", None));
    let aside = aside
        .into_iter()
        .map(|it| row(it.message, "set aside", Some(it.reason)));
    begun.chain(waiting).chain(aside).collect()
}

pub(super) fn list(town: &Town, identity: &Identity, context: &Context) -> CommandResult {
    let queue = MessageQueue::of(town, identity);
    for problem in queue.unreadable(SHOWN) {
        output::warn(problem.line());
    }
    let (rows, others) = first_listed(&queue, town.clock().seconds());
    // A message sent before the present session began is stale.
    let session = match rows.is_empty() {
        true => None,
        false => containers::of_agent(town, identity)?.and_then(|container| container.session_id()),
    };
    let stale = |message: &Message| nudge::stale_reason(message, session.as_ref()?);
    if context.json {
        let documents: Vec<Value> = rows
            .iter()
            .map(|row| {
                let message = &row.message;
                output::without_nulls(json!({
                    "id": message.id,
                    "sender": message.sender.as_ref().or(message.caller.as_ref()),
                    "text": message.text,
                    "priority": message.priority,
                    "phase": row.phase,
                    "reason": row.reason,
                    "created_at": output::time(message.created_at),
                    "expires_at": message.expires_at.and_then(output::time),
                    "stale": stale(message).is_some(),
                    "stale_reason": stale(message),
                }))
            })
            .collect();
        output::json(&documents)?;
    } else if rows.is_empty() {
        output::line(format!("Nothing waits for {identity}."))?;
    } else {
        let mut table = Table::new(&["ID", "PRIORITY", "PHASE", "AGE", "FROM", "MESSAGE"]);
        let mut reasons = Vec::new();
        for Listed {
            message,
            phase,
            reason,
        } in rows
        {
            let phase = match stale(&message) {
                Some(_) => format!("{phase}, stale"),
                None => phase.to_owned(),
            };
            let priority = match message.priority {
                Priority::Urgent => "urgent",
                Priority::Normal => "normal",
            };
            reasons.extend(reason.map(|reason| format!("{}: {reason}.", message.id)));
            table.row([
                message.id.into(),
                priority.into(),
                phase.into(),
                output::age(message.created_at).into(),
                message.sender.or(message.caller).unwrap_or_default().into(),
                on_one_line(&message.text).into(),
            ]);
        }
        output::print(&table.render(output::Paint::for_stdout()))?;
        for reason in reasons {
            output::line(reason)?;
        }
    }
    if others > 0 {
        output::note(format!(
            "{others} more wait behind these, or were set aside before them."
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the beginning of a message in one line. `⏎` replaces line breaks.
fn on_one_line(text: &str) -> String {
    const MAX: usize = 60;
    let clean = gt_core::nudge::clean(text);
    let lines: Vec<&str> = clean.lines().map(str::trim).collect();
    let line = lines.join(" ⏎ ");
    match line.chars().count() > MAX {
        true => line.chars().take(MAX - 1).chain(['…']).collect(),
        false => line,
    }
}

/// Returns the id of the listed message with this prefix.
fn find(town: &Town, identity: &Identity, id: &str) -> Result<String, Problem> {
    let queue = MessageQueue::of(town, identity);
    let ids: Vec<String> = listed(&queue, town.clock().seconds())
        .into_iter()
        .map(|row| row.message.id)
        .collect();
    let hits: Vec<&String> = ids.iter().filter(|known| known.starts_with(id)).collect();
    match hits.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(
            Problem::not_found(format!("no message {id} waits for {identity}")).hint(
                "it may be delivered already; `gt nudge --list TARGET` shows the waiting messages",
            ),
        ),
        _ => Err(Problem::usage(format!("{id} is a prefix of several ids"))),
    }
}

pub(super) fn requeue(
    town: &Town,
    identity: &Identity,
    id: &str,
    context: &Context,
) -> CommandResult {
    let found = find(town, identity, id)?;
    let sent = nudge::requeue(town, identity, &found)?;
    if context.json {
        let until = sent.until.and_then(output::time);
        output::json(&output::without_nulls(json!({
            "id": found,
            "deliverer": sent.by.as_str(),
            "tries_until": until,
        })))?;
    } else {
        output::line(format!(
            "Waits in the queue of {identity}. {}",
            later(identity, sent)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cancel(
    town: &Town,
    identity: &Identity,
    id: &str,
    context: &Context,
) -> CommandResult {
    let found = find(town, identity, id)?;
    if !nudge::cancel(town, identity, &found)? {
        return Err(
            Problem::conflict(format!("the message {found} is being delivered"))
                .hint("text that is already in the agent's input line can only be removed there"),
        );
    }
    if context.json {
        output::json(&json!({"id": found, "cancelled": true}))?;
    } else {
        output::line(format!("Cancelled {found}."))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::on_one_line;

    #[test]
    fn line_breaks_are_shown_by_a_sign() {
        assert_eq!(
            on_one_line("one\r\ntwo\n\n three\tfour\n"),
            "one ⏎ two ⏎  ⏎ three four"
        );
        let long = on_one_line(&"word\n".repeat(40));
        assert!(long.ends_with('…') && long.chars().count() == 60, "{long}");
        assert!(!long.contains('\u{fffd}'), "{long}");
    }
}
