use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::Problem;
use gt_town::Town;
use gt_town::base::estop::{self as file, EstopNote};
use gt_town::repo::rig;
use gt_town::supervision::scheduler;
use gt_town::workflow::estop::{self, EstopOutcome, ThawOutcome};
use serde_json::json;
use std::process::ExitCode;

/// Stop everything at once: interrupt all agents, and block starts, messages and merges
///
/// Turns are interrupted; processes, conversations and hooks stay. Nothing is started,
/// slung, handed over, restored or merged until `gt thaw`. For example:
/// gt estop --rig gastown --reason "wrong base branch"
#[derive(Debug, Args)]
pub(crate) struct EstopArgs {
    /// Only this rig
    #[arg(long)]
    rig: Option<String>,
    /// The reason, which commands show that are refused during the stop
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
}

/// End the emergency stop
///
/// Agents that were interrupted are told to continue, and agents that died meanwhile are respawned
/// if their role says so. For example: gt thaw --rig gastown
#[derive(Debug, Args)]
pub(crate) struct ThawArgs {
    /// Only this rig
    #[arg(long)]
    rig: Option<String>,
}

pub(crate) fn run(args: &EstopArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if let Some(name) = &args.rig {
        rig::entry(&town, name)?;
    }
    let stopped = estop::stop(&town, args.rig.as_deref(), args.reason.as_deref())?;
    show_stopped(&stopped, context)?;
    Ok(match stopped.failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn show_stopped(stopped: &EstopOutcome, context: &Context) -> Result<(), Problem> {
    let EstopOutcome { note, idle, failed } = stopped;
    if context.json {
        let failed = failed.iter();
        let failed: Vec<_> = failed
            .map(|(agent, problem)| json!({"agent": agent, "error": problem.line()}))
            .collect();
        return output::json(&json!({"stop": note, "idle": idle, "failed": failed}));
    }
    let paint = Paint::for_stdout();
    let line = output::clean(&sentence(note));
    output::line(format!("{} {line}.", paint.red("■")))?;
    output::line(format!("  interrupted: {}", names(&note.interrupted)))?;
    for (agent, problem) in failed {
        output::warn(format!("{agent} was not interrupted: {}", problem.line()));
    }
    output::line(match &note.rig {
        Some(rig) => format!("  `gt thaw --rig {rig}` ends it."),
        None => "  `gt thaw` ends it.".to_owned(),
    })
}

fn names(agents: &[String]) -> String {
    match agents.is_empty() {
        true => "no agent was in a turn".to_owned(),
        false => agents.join(", "),
    }
}

/// Returns the stop as a sentence without its dot.
fn sentence(note: &EstopNote) -> String {
    let line = note.line();
    let mut letters = line.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

pub(crate) fn run_thaw(args: &ThawArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if let Some(name) = &args.rig {
        rig::entry(&town, name)?;
    }
    let Some(thawed) = estop::thaw(&town, args.rig.as_deref())? else {
        return Err(not_stopped(&town, args.rig.as_deref()));
    };
    // Items of the schedule waited for the end of the stop.
    scheduler::wake(&town);
    show_thawed(&thawed, context)?;
    Ok(ExitCode::SUCCESS)
}

fn not_stopped(town: &Town, rig: Option<&str>) -> Problem {
    let what = rig.map_or_else(|| "the town".to_owned(), |rig| format!("the rig {rig}"));
    let problem = Problem::conflict(format!("{what} is not stopped"));
    let others = file::all(town);
    others.iter().fold(problem, |problem, note| {
        problem.hint(match &note.rig {
            Some(rig) => format!("the rig {rig} is: `gt thaw --rig {rig}`"),
            None => "the whole town is: `gt thaw`".to_owned(),
        })
    })
}

fn show_thawed(thawed: &ThawOutcome, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&output::without_nulls(json!({
            "ended": thawed.note,
            "still": thawed.still,
            "told": thawed.told,
            "respawned": thawed.respawned,
            "merges": thawed.merges,
            "messages": thawed.messages,
        })));
    }
    let paint = Paint::for_stdout();
    let what = match &thawed.note.rig {
        Some(rig) => format!("The emergency stop of {rig} is over."),
        None => "The emergency stop is over.".to_owned(),
    };
    output::line(format!("{} {what}", paint.green("✓")))?;
    if let Some(still) = &thawed.still {
        output::warn(sentence(still));
        return Ok(());
    }
    let rows = [
        ("told to continue", thawed.told.join(", ")),
        ("started again", thawed.respawned.join(", ")),
        ("branches to merge", some(thawed.merges)),
        ("waiting messages", some(thawed.messages)),
    ];
    for (name, value) in rows {
        if !value.is_empty() {
            output::line(format!("  {name}: {value}"))?;
        }
    }
    Ok(())
}

fn some(count: usize) -> String {
    match count {
        0 => String::new(),
        count => count.to_string(),
    }
}

/// Returns the lines of all stops, for the top of an overview.
pub(super) fn headlines(stops: &[EstopNote], paint: Paint) -> Vec<String> {
    let line = |note: &EstopNote| {
        let end = match &note.rig {
            Some(rig) => format!("gt thaw --rig {rig}"),
            None => "gt thaw".to_owned(),
        };
        let line = output::clean(&sentence(note));
        format!("{} {}. `{end}` ends it.", paint.red("■"), paint.bold(&line))
    };
    stops.iter().map(line).collect()
}
