use super::Answer;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint, usage};
use clap::{Args, Subcommand, ValueEnum};
use gt_core::Problem;
use gt_core::record::{Outcome, Record};
use gt_core::usage::Usage;
use gt_town::sessions::{Query, Sessions};
use gt_town::{target, usage as transcripts, when};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The lives of agents, as they are remembered
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    List(ListArgs),
    Find(ListArgs),
    Show(ShowArgs),
    Chain(ChainArgs),
    Export(ExportArgs),
    Rebuild(RebuildArgs),
    Archive(ArchiveArgs),
}

/// List lives, the newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this agent's: an address or any other target
    #[arg(long)]
    agent: Option<String>,
    /// Only this rig's
    #[arg(long)]
    rig: Option<String>,
    /// Only this role's
    #[arg(long)]
    role: Option<String>,
    /// Only those that worked on this
    #[arg(long, value_name = "BEAD")]
    work: Option<String>,
    /// Only those of this chain
    #[arg(long, value_name = "ID")]
    chain: Option<String>,
    /// Only those that ended so
    #[arg(long, value_enum)]
    outcome: Option<OutcomeArg>,
    /// Only those that run, or that do not
    #[arg(long, value_enum)]
    status: Option<StatusArg>,
    /// Only those of this program
    #[arg(long)]
    harness: Option<String>,
    /// Only those that began since: 24h, yesterday, 2026-01-17
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only those that began before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OutcomeArg {
    Handoff,
    Done,
    Crash,
    Killed,
}

impl OutcomeArg {
    fn outcome(self) -> Outcome {
        match self {
            OutcomeArg::Handoff => Outcome::Handoff,
            OutcomeArg::Done => Outcome::Done,
            OutcomeArg::Crash => Outcome::Crash,
            OutcomeArg::Killed => Outcome::Killed,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StatusArg {
    Running,
    Stopped,
}

impl StatusArg {
    fn word(self) -> &'static str {
        match self {
            StatusArg::Running => "running",
            StatusArg::Stopped => "stopped",
        }
    }
}

/// Show all that is known of one life
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Its id, or the beginning of it
    id: String,
}

/// Show the lives that went on with each other's work
#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    /// A life, a chain, or the work that they were about
    #[arg(value_name = "ID-OR-BEAD")]
    what: String,
}

/// Print every life as a line of JSON, the oldest first
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// One JSON document in each line; the only form there is
    #[arg(long)]
    jsonl: bool,
}

/// Move old lives out of the journal into compressed files
///
/// `show`, `chain` and `export` still find them. It also happens by itself, once a day,
/// to lives that ended longer ago than `archive_after_days` in town.toml says.
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    /// Those that ended before: 90d, 2026-01-17 [default: as town.toml says]
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Only say how many there are
    #[arg(long)]
    dry_run: bool,
}

/// Make the index anew from the journal
#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {}

pub(crate) fn run(command: SessionsCommand, context: &Context) -> Answer {
    let town = context.town()?;
    let sessions = Sessions::of(&town);
    match command {
        SessionsCommand::List(args) | SessionsCommand::Find(args) => {
            let mut lives = sessions.find(&args.query(&town)?)?;
            transcripts::refresh(&town, &mut lives);
            list(&lives, context)?;
        }
        SessionsCommand::Show(args) => {
            let mut life = sessions.get(&args.id)?;
            transcripts::refresh_all(&town, std::slice::from_mut(&mut life));
            show(&life, context)?;
        }
        SessionsCommand::Chain(args) => {
            let mut lives = sessions.chain(&args.what)?;
            transcripts::refresh_all(&town, &mut lives);
            chain(&lives, context)?;
        }
        SessionsCommand::Export(ExportArgs { jsonl: _ }) => {
            sessions.each(|life| output::line(life))?;
        }
        SessionsCommand::Rebuild(RebuildArgs {}) => rebuild(&sessions, context)?,
        SessionsCommand::Archive(args) => archive(&args, &town, &sessions, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn rebuild(sessions: &Sessions, context: &Context) -> Result<(), Problem> {
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
        return output::json(&json!({
            "lives": rebuilt.lives,
            "archived": rebuilt.archived,
            "skipped_lines": skipped,
        }));
    }
    let archived = match rebuilt.archived {
        0 => String::new(),
        count => format!(" and knows of {count} in the archive"),
    };
    output::line(format!("The index has {} lives{archived}.", rebuilt.lives))
}

fn archive(
    args: &ArchiveArgs,
    town: &gt_town::Town,
    sessions: &Sessions,
    context: &Context,
) -> Result<(), Problem> {
    let before = match (&args.before, town.settings().sessions.archive_after_days) {
        (Some(time), _) => when::recorded(time)?,
        (None, 0) => {
            return Err(Problem::usage("this town keeps every life where it is")
                .hint("name a time with `--before`, or set archive_after_days in town.toml"));
        }
        (None, days) => when::recorded(&format!("{days}d"))?,
    };
    let archived = sessions.archive(&before, args.dry_run)?;
    if context.json {
        return output::json(&json!({
            "lives": archived.lives,
            "files": archived.files,
            "before": before,
        }));
    }
    let what = if args.dry_run { "would move" } else { "moved" };
    let count = match archived.lives {
        0 => return output::line("No life is that old."),
        1 => "1 life".to_owned(),
        count => format!("{count} lives"),
    };
    output::line(format!(
        "{count} {what} into {}.",
        archived.files.join(", ")
    ))
}

impl ListArgs {
    fn query(&self, town: &gt_town::Town) -> Result<Query, Problem> {
        let time = |text: &Option<String>| text.as_deref().map(when::recorded).transpose();
        let agent = self.agent.as_deref().map(|text| {
            // One that is gone from the town is still remembered by its address.
            target::resolve(town, text).map_or_else(|_| text.to_owned(), |who| who.address())
        });
        Ok(Query {
            agent,
            rig: self.rig.clone(),
            role: self.role.clone(),
            work: self.work.clone(),
            chain: self.chain.clone(),
            outcome: self.outcome.map(|o| o.outcome().word().to_owned()),
            status: self.status.map(|status| status.word().to_owned()),
            harness: self.harness.clone(),
            since: time(&self.since)?,
            until: time(&self.until)?,
            limit: Some(self.limit),
        })
    }
}

/// A record as a document: the container under our own name for it as well.
fn document(life: &Record) -> Value {
    let mut document = json!(life);
    document["container"] = json!(life.tmux_session);
    output::without_nulls(document)
}

fn list(lives: &[Record], context: &Context) -> Result<(), Problem> {
    if context.json {
        let documents: Vec<Value> = lives.iter().map(document).collect();
        return output::json(&documents);
    }
    if lives.is_empty() {
        return output::line("No life is like that.");
    }
    let mut titles = vec!["ID", "AGENT", "STARTED", "LASTED", "OUTCOME", "HARNESS"];
    // Only where there is something to show.
    let has_tokens = lives.iter().any(|life| tokens(life) > 0);
    let has_cost = lives.iter().any(|life| cost(life).is_some());
    titles.extend(has_tokens.then_some("TOKENS"));
    titles.extend(has_cost.then_some("COST"));
    let mut table = Table::new(&titles);
    for life in lives {
        let mut row: Vec<Cell> = vec![
            // Whole: the ids of agents that were started together differ only at their end.
            life.id.clone().into(),
            life.agent.clone().unwrap_or_default().into(),
            started(life).into(),
            lasted(life).into(),
            ending(life).into(),
            life.harness.clone().unwrap_or_default().into(),
        ];
        if has_tokens {
            let taken = life.usage.as_ref().map(|_| usage::tokens(tokens(life)));
            row.push(taken.unwrap_or_default().into());
        }
        if has_cost {
            row.push(cost(life).unwrap_or_default().into());
        }
        table.row(row);
    }
    output::print(&table.render(Paint::for_stdout()))
}

fn show(life: &Record, context: &Context) -> Result<(), Problem> {
    let document = document(life);
    if context.json {
        return output::json(&document);
    }
    let paint = Paint::for_stdout();
    for (name, value) in document.as_object().into_iter().flatten() {
        let text = match value {
            Value::Object(_) if name == "usage" => {
                life.usage.as_ref().map(usage::line).unwrap_or_default()
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        output::line(format!("{} {first}", paint.dim(&format!("{name:<20}"))))?;
        for line in lines {
            output::line(format!("{:<20} {line}", ""))?;
        }
    }
    Ok(())
}

/// The lives of a chain as a tree, with what they took together.
fn chain(lives: &[Record], context: &Context) -> Result<(), Problem> {
    let seconds: i64 = lives.iter().filter_map(duration).sum();
    let mut total = Usage::default();
    for used in lives.iter().filter_map(|life| life.usage.as_ref()) {
        total += used;
    }
    let total = total.rounded();
    if context.json {
        let sessions: Vec<Value> = lives.iter().map(document).collect();
        let commits: BTreeSet<&String> = lives.iter().flat_map(|l| &l.commits).flatten().collect();
        let first = lives.first();
        let totals = json!({
            "lives": lives.len(),
            "seconds": seconds,
            "tokens": total.tokens(),
            "cost_usd": total.cost_usd,
            "commits": commits.len(),
        });
        return output::json(&json!({
            "chain_id": first.map(|life| life.chain_id.as_ref().unwrap_or(&life.id)),
            "sessions": sessions,
            "totals": output::without_nulls(totals),
        }));
    }
    for (depth, life) in lives.iter().enumerate() {
        let branch = match depth {
            0 => String::new(),
            _ => format!("{}└─ ", "   ".repeat(depth - 1)),
        };
        output::line(format!(
            "{branch}{} {}, {}, {}, {}{}",
            life.id,
            life.agent.as_deref().unwrap_or_default(),
            started(life),
            lasted(life),
            ending(life),
            life.usage.as_ref().map(taken).unwrap_or_default(),
        ))?;
    }
    let count = match lives.len() {
        1 => "1 life".to_owned(),
        count => format!("{count} lives"),
    };
    output::line(format!(
        "{count}, {} together{}",
        words(seconds),
        taken(&total)
    ))
}

/// `, 12.3k tokens, $0.42`; nothing where nothing is known.
fn taken(used: &Usage) -> String {
    if used.tokens() == 0 {
        return String::new();
    }
    let cost = usage::cost(used).map(|cost| format!(", {cost}"));
    let tokens = usage::tokens(used.tokens());
    format!(", {tokens} tokens{}", cost.unwrap_or_default())
}

fn tokens(life: &Record) -> u64 {
    life.usage.as_ref().map_or(0, Usage::tokens)
}

fn cost(life: &Record) -> Option<String> {
    usage::cost(life.usage.as_ref()?)
}

fn started(life: &Record) -> String {
    let at = life.started_at.as_deref().and_then(|at| at.parse().ok());
    at.map_or_else(String::new, |at: jiff::Timestamp| {
        let here = at.to_zoned(jiff::tz::TimeZone::system());
        here.strftime("%Y-%m-%d %H:%M").to_string()
    })
}

/// How long it lasted, or has lasted so far, in seconds.
fn duration(life: &Record) -> Option<i64> {
    let began: jiff::Timestamp = life.started_at.as_deref()?.parse().ok()?;
    let ended = match life.ended_at.as_deref() {
        Some(at) => at.parse().ok()?,
        None => jiff::Timestamp::now(),
    };
    Some((ended.as_second() - began.as_second()).max(0))
}

fn lasted(life: &Record) -> String {
    duration(life).map_or_else(String::new, words)
}

/// A length of time, to its two greatest units.
fn words(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn ending(life: &Record) -> String {
    let code = life.exit_code.filter(|code| *code != 0);
    match (life.outcome, code) {
        (Some(outcome), Some(code)) => format!("{} ({code})", outcome.word()),
        (Some(outcome), None) => outcome.word().to_owned(),
        (None, _) => "running".to_owned(),
    }
}
