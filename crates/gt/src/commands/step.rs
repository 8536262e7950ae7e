use super::CommandResult;
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::record::SessionStep;
use gt_town::Town;
use gt_town::agents::target;
use gt_town::records::sessions::Sessions;
use gt_town::records::steps;
use gt_town::work::checkpoint;
use serde_json::json;
use std::process::ExitCode;

/// The steps of an agent's work; for agents
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum StepCommand {
    Start(StartArgs),
    Done(DoneArgs),
    List(ListArgs),
}

/// Say that a step begins
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The name of the step
    name: String,
    /// Id of the molecule's step or of the work item that it belongs to
    #[arg(long = "ref", value_name = "ID")]
    reference: Option<String>,
    #[command(flatten)]
    whose: WhoseFlag,
}

/// Say that a step is done
#[derive(Debug, Args)]
pub(crate) struct DoneArgs {
    /// The name of the step
    name: String,
    #[command(flatten)]
    whose: WhoseFlag,
}

/// Show the steps of a session
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Its id, or a prefix of it [default: the calling session, or the running session of
    /// the agent of this folder or pane]
    session: Option<String>,
}

#[derive(Debug, Args)]
struct WhoseFlag {
    /// Whose step it is: the id of a session [default: the calling session, or the running session of the agent of this folder or pane]
    #[arg(long, alias = "life", value_name = "ID")]
    session: Option<String>,
}

pub(crate) fn run(command: StepCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    let session = |given: &Option<String>| own_session(given.as_deref(), &town, context);
    match command {
        StepCommand::Start(args) => {
            let id = session(&args.whose.session)?;
            let step = steps::start(&town, &id, &args.name, args.reference.as_deref())?;
            told(&step, "Began", context)?;
        }
        StepCommand::Done(args) => {
            let step = steps::done(&town, &session(&args.whose.session)?, &args.name)?;
            told(&step, "Done with", context)?;
        }
        StepCommand::List(args) => {
            let sessions = Sessions::of(&town);
            let session = sessions.get(&session(&args.session)?)?;
            let told = sessions.steps(&session.id)?;
            let steps = if told.is_empty() {
                session.steps.unwrap_or_default()
            } else {
                told
            };
            list(&steps, context)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the named session, the one that calls, or the running one of the agent whose folder or
/// pane this is.
fn own_session(given: Option<&str>, town: &Town, context: &Context) -> Result<String, Problem> {
    if let Some(own) = given.or_else(|| context.around().var("GT_SESSION_UUID")) {
        return Ok(own.to_owned());
    }
    let agent = target::default_agent(town)?;
    let running = checkpoint::running_session(town, &agent)?;
    running.map(|session| session.id).ok_or_else(|| {
        Problem::conflict(format!("{agent} is not running"))
            .hint("`gt sessions list` shows its sessions; name one by its id")
    })
}

fn told(step: &SessionStep, what: &str, context: &Context) -> Result<(), Problem> {
    match context.json {
        true => output::json(step),
        false => output::line(format!("{what} {}.", step.name)),
    }
}

fn list(all: &[SessionStep], context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&json!(all));
    }
    if all.is_empty() {
        return output::line("It has reported no steps.");
    }
    let mut table = Table::new(&["STEP", "REF", "STARTED", "TOOK"]);
    for step in all {
        let took = match steps::seconds(step) {
            Some(seconds) => format!("{seconds}s"),
            None => "(open)".to_owned(),
        };
        table.row([
            step.name.clone().into(),
            step.reference.clone().unwrap_or_default().into(),
            output::minute(Some(&step.started_at)).into(),
            took.into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}
