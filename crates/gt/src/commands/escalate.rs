use super::{CommandResult, ids, stdin};
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand, ValueEnum};
use gt_core::Problem;
use gt_core::escalation::{Escalation, EscalationState, Severity, message};
use gt_core::work::WorkId;
use gt_town::Town;
use gt_town::agents::target;
use gt_town::messaging::escalate::{self, NewEscalation};
use gt_town::records::items::{EscalationQuery, Work};
use std::process::ExitCode;

/// Maximum number of escalations at the top of an overview.
const MAX_HEADLINES: usize = 10;

/// Ask for help: notify the mayor and people until it is acknowledged
///
/// The severity selects the recipients: the mayor gets mail in any case, people get mail from
/// medium on and a notification from high on; critical escalations ignore quiet hours. An
/// escalation that is not acknowledged is raised again, to more recipients. For example: gt
/// escalate "the deploy key has expired" --severity high
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EscalateArgs {
    #[command(subcommand)]
    command: Option<EscalateCommand>,
    /// The reason, in one line or several
    #[arg(required_unless_present = "stdin")]
    message: Option<String>,
    /// Read the message from standard input
    #[arg(long, conflicts_with = "message")]
    stdin: bool,
    /// How urgent it is
    #[arg(long, value_enum, default_value_t = SeverityArg::Medium)]
    severity: SeverityArg,
    /// The work item that it is about [default: the one on the caller's hook]
    #[arg(long)]
    item: Option<String>,
    /// The agent that it is about [default: the caller, if it is an agent]
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum EscalateCommand {
    List(ListArgs),
    Show(ShowArgs),
    Ack(AckArgs),
    Close(CloseArgs),
}

/// List the escalations that are not closed, the most urgent first
#[derive(Debug, Args)]
struct ListArgs {
    /// Also closed ones
    #[arg(long)]
    all: bool,
    /// Only those in this state
    #[arg(long, value_enum)]
    state: Option<StateArg>,
    /// Only those of at least this severity
    #[arg(long, value_enum)]
    severity: Option<SeverityArg>,
    /// Only those about this work item
    #[arg(long)]
    item: Option<String>,
    /// Only those about this agent
    #[arg(long, value_name = "TARGET")]
    agent: Option<String>,
}

/// Show one escalation in full
#[derive(Debug, Args)]
struct ShowArgs {
    /// The escalation's id
    #[arg(value_name = "ID")]
    id: String,
}

/// Acknowledge escalations: they stay open, and are not raised again
#[derive(Debug, Args)]
struct AckArgs {
    /// The ids of the escalations
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Close escalations that are resolved
#[derive(Debug, Args)]
struct CloseArgs {
    /// The ids of the escalations
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// How it was resolved
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SeverityArg {
    Low,
    Medium,
    High,
    Critical,
}

impl SeverityArg {
    fn severity(self) -> Severity {
        match self {
            SeverityArg::Low => Severity::Low,
            SeverityArg::Medium => Severity::Medium,
            SeverityArg::High => Severity::High,
            SeverityArg::Critical => Severity::Critical,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StateArg {
    Open,
    Acknowledged,
    Closed,
}

impl StateArg {
    fn state(self) -> EscalationState {
        match self {
            StateArg::Open => EscalationState::Open,
            StateArg::Acknowledged => EscalationState::Acknowledged,
            StateArg::Closed => EscalationState::Closed,
        }
    }
}

pub(crate) fn run(args: EscalateArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match args.command {
        Some(EscalateCommand::List(args)) => list(args, &town, context)?,
        Some(EscalateCommand::Show(args)) => {
            let escalation = Work::of(&town).escalation(&id_of(&town, &args.id)?)?;
            show(&escalation, context)?;
        }
        Some(EscalateCommand::Ack(args)) => {
            let change = |id: &WorkId| escalate::acknowledge(&town, id);
            each(&town, &args.ids, change, "acknowledged", context)?;
        }
        Some(EscalateCommand::Close(args)) => {
            let change = |id: &WorkId| escalate::close(&town, id, args.reason.as_deref());
            each(&town, &args.ids, change, "closed", context)?;
        }
        None => raise(args, &town, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses the id of an escalation, or its beginning.
fn id_of(town: &Town, text: &str) -> Result<WorkId, Problem> {
    let id: WorkId = text.parse().map_err(|_| {
        Problem::usage(format!("{text:?} is not the id of an escalation"))
            .hint("such as esc-4k2qz; `gt escalate list` shows them")
    })?;
    Work::of(town).expand(&id)
}

fn raise(args: EscalateArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let text = match args.message {
        Some(message) if !args.stdin => message,
        _ => stdin::message()?,
    };
    let text = message(&text)?;
    let work = Work::of(town);
    let own = target::default_agent_if_any(town)?;
    let agent = match &args.agent {
        Some(text) => Some(target::resolve_known(town, text)?),
        None => own.clone(),
    };
    let item = match &args.item {
        Some(text) => Some(work.get(&ids::full(town, text)?)?.id),
        None => match &own {
            Some(own) => work.hooked(&own.address())?.map(|hooked| hooked.item.id),
            None => None,
        },
    };
    // Repeated calls of an agent in a loop are one escalation.
    let key = format!("command:{}:{text}", town.caller().as_str());
    let raised = escalate::raise(
        town,
        &NewEscalation {
            severity: args.severity.severity(),
            message: text,
            source: "command",
            item,
            agent: agent.map(|agent| agent.address()),
            key: Some(key),
        },
    )?;
    if context.json {
        return output::json(&raised);
    }
    let paint = Paint::for_stdout();
    let again = match raised.count {
        1 => "is raised".to_owned(),
        count => format!("occurred {count} times"),
    };
    output::line(format!(
        "{} {} {again} with severity {}.",
        paint.green("✓"),
        raised.id,
        raised.severity
    ))
}

fn list(args: ListArgs, town: &Town, context: &Context) -> Result<(), Problem> {
    let is_filtered = args.state.is_some()
        || args.severity.is_some()
        || args.agent.is_some()
        || args.item.is_some();
    let agent = args.agent.as_deref().map(|text| {
        // An agent that no longer exists is matched as text.
        target::resolve(town, text).map_or_else(|_| text.to_owned(), |agent| agent.address())
    });
    // An item that no longer exists is matched as text.
    let item = args.item.map(|text| ids::full_or_text(town, &text));
    let found = Work::of(town).escalations(&EscalationQuery {
        all: args.all,
        state: args.state.map(StateArg::state),
        severity: args.severity.map(SeverityArg::severity),
        agent,
        item: item.transpose()?,
    })?;
    if context.json {
        return output::json(&found);
    }
    if found.is_empty() {
        return output::line(match (args.all, is_filtered) {
            (true, true) => "No escalations match.",
            (true, false) => "No escalations.",
            (false, true) => {
                "No open escalations match. `gt escalate list --all` shows closed ones."
            }
            (false, false) => "No open escalations. `gt escalate list --all` shows closed ones.",
        });
    }
    let mut table = Table::new(&["ID", "SEVERITY", "STATE", "AGE", "AGENT", "ITEM", "MESSAGE"]);
    for it in &found {
        table.row([
            it.id.as_str().into(),
            severity(it.severity),
            it.state.as_str().into(),
            age(&it.created_at).into(),
            Cell::address(it.agent.as_deref().unwrap_or_default()),
            it.item.as_deref().unwrap_or_default().into(),
            it.line().into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}

fn show(it: &Escalation, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(it);
    }
    let at = |time: &str| output::minute(Some(time));
    let by = |time: &Option<String>, who: &Option<String>| {
        let who = who.as_deref().unwrap_or_default();
        time.as_deref().map(|time| format!("{} by {who}", at(time)))
    };
    let rows = [
        ("severity", Some(it.severity.as_str().to_owned())),
        ("state", Some(it.state.as_str().to_owned())),
        ("agent", it.agent.clone()),
        ("item", it.item.clone()),
        (
            "raised",
            Some(format!(
                "{} by {} ({})",
                at(&it.created_at),
                it.raised_by,
                it.source
            )),
        ),
        (
            "occurred",
            (it.count > 1).then(|| format!("{} times", it.count)),
        ),
        (
            "told",
            (it.raised > 1).then(|| format!("{} times, last {}", it.raised, at(&it.raised_at))),
        ),
        ("again", it.again_at.as_deref().map(at)),
        ("acknowledged", by(&it.acknowledged_at, &it.acknowledged_by)),
        ("closed", by(&it.closed_at, &it.closed_by)),
        ("reason", it.reason.clone()),
    ];
    let paint = Paint::for_stdout();
    output::line(paint.bold(it.id.as_str()))?;
    for (name, value) in rows {
        if let Some(value) = value {
            output::line(format!("  {name:<13} {}", output::clean(&value)))?;
        }
    }
    output::line("")?;
    output::lines(&it.message)
}

/// Changes several escalations, all of which must exist.
fn each(
    town: &Town,
    ids: &[String],
    change: impl Fn(&WorkId) -> Result<Escalation, Problem>,
    became: &str,
    context: &Context,
) -> Result<(), Problem> {
    let work = Work::of(town);
    let mut known: Vec<WorkId> = Vec::new();
    for id in ids {
        known.push(work.escalation(&id_of(town, id)?)?.id);
    }
    let mut changed = Vec::new();
    for id in &known {
        let escalation = change(id)?;
        if !context.json {
            let paint = Paint::for_stdout();
            output::line(format!("{} {id} is {became}.", paint.green("✓")))?;
        }
        changed.push(escalation);
    }
    match context.json {
        true => output::json(&changed),
        false => Ok(()),
    }
}

/// Returns the lines of the escalations that are not closed, for the top of an overview.
pub(super) fn headlines(found: &[Escalation], paint: Paint) -> Vec<String> {
    let line = |it: &Escalation| {
        let about = [it.agent.as_deref(), it.item.as_deref()];
        let about: Vec<&str> = about.into_iter().flatten().collect();
        let about = match about.is_empty() {
            true => String::new(),
            false => format!(" ({})", about.join(", ")),
        };
        let severity = match it.state {
            EscalationState::Open => paint.red(it.severity.as_str()),
            _ => format!("{}, acknowledged", it.severity),
        };
        let mark = match it.state {
            EscalationState::Open => paint.red("!"),
            _ => "-".to_owned(),
        };
        format!(
            "{mark} {} {severity}, {}: {}{}",
            it.id,
            age(&it.created_at),
            output::clean(&it.line()),
            output::clean(&about)
        )
    };
    let mut lines: Vec<String> = found.iter().take(MAX_HEADLINES).map(line).collect();
    if let more @ 1.. = found.len().saturating_sub(MAX_HEADLINES) {
        lines.push(format!("  and {more} more: `gt escalate list`"));
    }
    lines
}

fn severity(severity: Severity) -> Cell {
    match severity {
        Severity::Critical | Severity::High => Cell::painted(severity.as_str(), Paint::red),
        Severity::Medium => Cell::painted(severity.as_str(), Paint::yellow),
        Severity::Low => severity.as_str().into(),
    }
}

fn age(time: &str) -> String {
    let time: Option<jiff::Timestamp> = time.parse().ok();
    time.map_or_else(String::new, |time| output::age(time.as_second()))
}
