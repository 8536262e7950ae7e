//! Shows sessions as tables and JSON.

use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint, usage};
use gt_core::Problem;
use gt_core::record::{Record, Share};
use gt_core::usage::Usage;
use gt_town::records::sessions::{self, Chain};
use gt_town::terminal::recording::Recording;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Width of the names of facts.
const NAME_WIDTH: usize = 20;

/// Returns a record as JSON. Adds `container`, the name that `gt` uses for `tmux_session`.
pub(super) fn document(session: &Record) -> Value {
    let mut document = json!(session);
    document["container"] = json!(session.tmux_session);
    output::without_nulls(document)
}

/// Returns a record as JSON in the list of an item: `usage` is the share of the item, and
/// `session_usage` the total if the session had other items.
fn document_of_item(session: &Record, item: Option<&str>) -> Value {
    let mut shown = document(session);
    if item.is_some() && session.earlier_work.is_some() {
        let share = share(session, item);
        shown["session_usage"] = shown["usage"].take();
        shown["usage"] = json!(share.usage);
        shown["usage_undivided"] = json!(share.is_undivided.then_some(true));
    }
    output::without_nulls(shown)
}

/// Returns the usage of a session for an item, or the total without an item.
fn share(session: &Record, item: Option<&str>) -> Share {
    match item {
        Some(item) => session.share_of(item),
        None => Share {
            usage: session.usage.clone(),
            is_undivided: false,
        },
    }
}

pub(super) fn list(
    records: &[Record],
    item: Option<&str>,
    context: &Context,
) -> Result<(), Problem> {
    if context.json {
        let document = |session| document_of_item(session, item);
        let documents: Vec<Value> = records.iter().map(document).collect();
        return output::json(&documents);
    }
    if records.is_empty() {
        return output::line("No session matches.");
    }
    let mut titles = vec!["ID", "AGENT", "STARTED", "LASTED", "OUTCOME", "HARNESS"];
    // Columns without any value are left out.
    let shares: Vec<Share> = records.iter().map(|session| share(session, item)).collect();
    let used = || shares.iter().filter_map(|share| share.usage.as_ref());
    let has_tokens = used().any(|used| used.tokens() > 0);
    let has_cost = used().any(|used| usage::cost(used).is_some());
    titles.extend(has_tokens.then_some("TOKENS"));
    titles.extend(has_cost.then_some("COST"));
    let mut table = Table::new(&titles).keeping(2);
    for (session, share) in records.iter().zip(&shares) {
        let mut row: Vec<Cell> = vec![
            // In full: the ids of agents that were started together differ only at the end.
            session.id.clone().into(),
            Cell::address(session.agent.clone().unwrap_or_default()),
            started(session).into(),
            lasted(session, context).into(),
            ending(session).into(),
            session.harness.clone().unwrap_or_default().into(),
        ];
        if has_tokens {
            let tokens = share.usage.as_ref().map(|used| {
                let mark = if share.is_undivided { "*" } else { "" };
                format!("{}{mark}", usage::tokens(used.tokens()))
            });
            row.push(tokens.unwrap_or_default().into());
        }
        if has_cost {
            let cost = share.usage.as_ref().and_then(usage::cost);
            row.push(cost.unwrap_or_default().into());
        }
        table.row(row);
    }
    output::print(&table.render(Paint::for_stdout()))?;
    let is_marked = |share: &Share| share.is_undivided && share.usage.is_some();
    match shares.iter().any(is_marked) {
        true => output::line("* The whole session: its usage is not divided between its items."),
        false => Ok(()),
    }
}

/// Notes on stderr how the list continues after its last session.
pub(super) fn note_older(last: &Record) {
    let next = match &last.started_at {
        Some(started) => format!("`--until {started}` shows older ones, "),
        None => String::new(),
    };
    output::note(format!(
        "More sessions match: {next}`--limit N` more at once."
    ));
}

pub(super) fn show(
    session: &Record,
    detail: Option<Value>,
    recording: Option<&Recording>,
    context: &Context,
) -> Result<(), Problem> {
    let mut document = document(session);
    if let Some(recording) = recording {
        document["recording"] = json!(recording.path());
    }
    if context.json {
        if let Some(detail) = detail {
            document["detail"] = detail;
        }
        return output::json(&document);
    }
    let paint = Paint::for_stdout();
    for (name, text) in facts(session, &document, detail.as_ref(), context) {
        if !text.is_empty() {
            field(paint, name, &text)?;
        }
    }
    let timeline = detail
        .as_ref()
        .and_then(|detail| detail["timeline"].as_array());
    let entries: Vec<String> = timeline
        .into_iter()
        .flatten()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap_or_default();
            format!("{}  {}", output::minute(Some(word("at"))), word("text"))
        })
        .collect();
    if !entries.is_empty() {
        field(paint, "timeline", &entries.join("\n"))?;
    }
    Ok(())
}

/// Returns the facts about a session for people, the most important first. `--json` has all fields.
fn facts(
    session: &Record,
    document: &Value,
    detail: Option<&Value>,
    context: &Context,
) -> Vec<(&'static str, String)> {
    let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    let used = session.usage.as_ref();
    let hashes = document["commits"].as_array();
    let started = match lasted(session, context) {
        lasted if lasted.is_empty() => started(session),
        lasted if session.ended_at.is_none() => format!("{} ({lasted} so far)", started(session)),
        lasted => format!("{} (lasted {lasted})", started(session)),
    };
    vec![
        ("agent", text("agent")),
        ("item", text("work_unit")),
        ("outcome", ending(session)),
        ("started", started),
        ("cost", used.and_then(usage::cost).unwrap_or_default()),
        ("usage", used.map(usage::line).unwrap_or_default()),
        (
            "commits",
            hashes.map(|all| commits(all, detail)).unwrap_or_default(),
        ),
        ("earlier items", earlier_work(session)),
        ("steps", steps(session)),
        ("harness", text("harness")),
        ("model", text("model")),
        ("container", text("container")),
        ("folder", text("cwd")),
        ("session", text("id")),
        ("before it", text("parent_id")),
        ("conversation", text("harness_session_id")),
        ("recording", text("recording")),
    ]
}

/// Prints a name and its value, which may have several lines.
fn field(paint: Paint, name: &str, text: &str) -> Result<(), Problem> {
    let title = paint.dim(&format!("{name:<NAME_WIDTH$}"));
    let no_title = " ".repeat(NAME_WIDTH);
    for (at, line) in text.lines().enumerate() {
        let title = if at == 0 { &title } else { &no_title };
        output::fitted(&format!("{title} {}", output::clean(line)), NAME_WIDTH + 1)?;
    }
    Ok(())
}

/// Returns each commit with its subject, if known.
fn commits(hashes: &[Value], detail: Option<&Value>) -> String {
    let known = detail.and_then(|detail| detail["commits"].as_array());
    let lines = hashes.iter().map(|hash| {
        let subject = known
            .into_iter()
            .flatten()
            .find(|commit| commit["hash"] == *hash);
        let subject = subject.and_then(|commit| commit["subject"].as_str());
        let hash = hash.as_str().unwrap_or_default();
        format!(
            "{} {}",
            hash.get(..10).unwrap_or(hash),
            subject.unwrap_or_default()
        )
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn steps(session: &Record) -> String {
    let lines = session.steps.iter().flatten().map(|step| {
        let state = match &step.completed_at {
            Some(at) => format!("done {}", output::minute(Some(at))),
            None => "not done".to_owned(),
        };
        format!("{} ({state})", step.name)
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn earlier_work(session: &Record) -> String {
    let lines = session.earlier_work.iter().flatten().map(|entry| {
        let used = entry.usage.as_ref().map(taken).unwrap_or_default();
        format!("{}{used}", entry.work_unit)
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Prints the sessions of a chain as a tree, with their total usage.
pub(super) fn chain(chain: &Chain, context: &Context) -> Result<(), Problem> {
    let records = chain.sessions.as_slice();
    let item = chain.item.as_deref();
    let now = context.around().clock.now();
    let lasted_together = records
        .iter()
        .filter_map(|session| sessions::lasted(session, now));
    let seconds = lasted_together.sum::<i64>() / 1_000;
    let shares: Vec<Share> = records.iter().map(|session| share(session, item)).collect();
    let mut total = Usage::default();
    for used in shares.iter().filter_map(|share| share.usage.as_ref()) {
        total += used;
    }
    let total = total.rounded();
    if context.json {
        let document = |session| document_of_item(session, item);
        let sessions: Vec<Value> = records.iter().map(document).collect();
        let commits: BTreeSet<&String> =
            records.iter().flat_map(|l| &l.commits).flatten().collect();
        let first = records.first();
        let totals = json!({
            "lives": records.len(),
            "seconds": seconds,
            "tokens": total.tokens(),
            "cost_usd": total.cost_usd,
            "commits": commits.len(),
        });
        return output::json(&json!({
            "chain_id": first.map(|session| session.chain_id.as_ref().unwrap_or(&session.id)),
            "sessions": sessions,
            "totals": output::without_nulls(totals),
        }));
    }
    let rows = depths(records).into_iter().zip(records).zip(&shares);
    for ((depth, session), share) in rows {
        let branch = match depth {
            0 => String::new(),
            // The indentation is limited so that a long chain fits on a screen.
            _ => format!("{}└─ ", "   ".repeat((depth - 1).min(12))),
        };
        output::line(output::clean(&format!(
            "{branch}{} {}, {}, {}, {}{}{}",
            session.id,
            session.agent.as_deref().unwrap_or_default(),
            started(session),
            lasted(session, context),
            ending(session),
            share.usage.as_ref().map(taken).unwrap_or_default(),
            others(session, share, item),
        )))?;
    }
    let count = match records.len() {
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    output::line(format!(
        "{count}, {} together{}",
        output::duration(seconds),
        taken(&total)
    ))
}

/// Returns the distance of each session from the first of its chain.
fn depths(records: &[Record]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::new();
    for (place, session) in records.iter().enumerate() {
        let parent = records[..place]
            .iter()
            .position(|before| Some(&before.id) == session.parent_id.as_ref());
        depths.push(parent.map_or(0, |parent| depths[parent] + 1));
    }
    depths
}

/// Returns the other items of a session, and whether its figures include them.
fn others(session: &Record, share: &Share, item: Option<&str>) -> String {
    let others: Vec<&str> = match item {
        Some(item) => session
            .work_units()
            .filter(|other| *other != item)
            .collect(),
        None => Vec::new(),
    };
    let others = others.join(", ");
    match (
        others.is_empty(),
        share.is_undivided && share.usage.is_some(),
    ) {
        (true, _) => String::new(),
        (false, false) => format!(" (also worked on {others})"),
        (false, true) => format!(" (whole session, also worked on {others})"),
    }
}

/// Formats usage as `, 12.3k tokens, $0.42`. Empty if unknown.
fn taken(used: &Usage) -> String {
    if used.tokens() == 0 {
        return String::new();
    }
    let cost = usage::cost(used).map(|cost| format!(", {cost}"));
    let tokens = usage::tokens(used.tokens());
    format!(", {tokens} tokens{}", cost.unwrap_or_default())
}

fn started(session: &Record) -> String {
    output::minute(session.started_at.as_deref())
}

/// Returns the duration of a session, up to now if it runs.
fn lasted(session: &Record, context: &Context) -> String {
    let lasted = sessions::lasted(session, context.around().clock.now());
    lasted.map_or_else(String::new, |lasted| output::duration(lasted / 1_000))
}

fn ending(session: &Record) -> String {
    let code = session.exit_code.filter(|code| *code != 0);
    match (session.outcome, code, &session.ended_by) {
        (Some(outcome), Some(code), _) => format!("{} ({code})", outcome.as_str()),
        (Some(outcome), None, Some(caller)) => format!("{} by {caller}", outcome.as_str()),
        (Some(outcome), None, None) => outcome.as_str().to_owned(),
        (None, ..) => "running".to_owned(),
    }
}
