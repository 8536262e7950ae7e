use super::CommandResult;
use crate::context::Context;
use crate::error;
use crate::output::progress::ProgressLine;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::{Identity, Problem, shell};
use gt_tmux::{Command, format};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::base::callback;
use gt_town::base::or_log::OrLog;
use gt_town::catalog::roles;
use gt_town::lifecycle::stop::{self, StopOptions, StoppedAgent};
use gt_town::supervision::scheduler;
use gt_town::terminal::containers::tmux_problem;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

/// Stop agents of any role
///
/// Each agent is asked to quit; then its processes get TERM and, two seconds later, KILL; then the
/// container is removed. Panes that you opened beside the agent stay.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The agents: addresses or short forms of them, container names, or prefixes of session ids
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// Do not ask the agent to quit first
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: StopArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut identities = Vec::new();
    for text in &args.targets {
        identities.push(target::resolve(&town, text)?);
    }
    let answer = stop_many(&town, &identities, args.force, context);
    scheduler::wake(&town);
    answer
}

/// Stops agents together, and prints the result of each.
pub(crate) fn stop_many(
    town: &Town,
    identities: &[Identity],
    force: bool,
    context: &Context,
) -> CommandResult {
    let mut documents = Vec::new();
    let answer = stop_into(town, identities, force, context, &mut documents);
    if context.json {
        output::json(&documents)?;
    } else if identities.is_empty() {
        output::line("Nothing runs there.")?;
    }
    answer
}

/// Stops one of several groups. Appends the JSON to `documents` instead of printing it.
pub(crate) fn stop_into(
    town: &Town,
    identities: &[Identity],
    force: bool,
    context: &Context,
    documents: &mut Vec<Value>,
) -> CommandResult {
    if identities.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    // An agent that stops itself would end this process halfway: the others are stopped first, then
    // tmux runs the rest.
    let own = own_container(town, context);
    let is_own = |identity: &&Identity| is_own(town, identity, own);
    if let Some(own) = identities.iter().find(is_own) {
        let others: Vec<Identity> = identities.iter().filter(|i| !is_own(i)).cloned().collect();
        let answer = stop_into(town, &others, force, context, documents);
        stop_from_outside(town, own, force)?;
        documents.push(json!({"agent": own, "stopping": true}));
        if !context.json {
            output::line(format!(
                "{own} (this agent) is being stopped by the tmux server."
            ))?;
        }
        return answer;
    }
    let options = StopOptions {
        force,
        ..StopOptions::default()
    };
    let spinner = ProgressLine::spinner(&format!("stopping {}", identities.len()));
    let results = stop::stop_all(town, identities, options);
    drop(spinner);
    let paint = Paint::for_stdout();
    let mut failures: Vec<(&Identity, &Problem)> = Vec::new();
    for (identity, result) in &results {
        match result {
            Ok(stopped) => {
                documents.push(stopped_json(stopped));
                if !context.json {
                    output::line(stopped_line(stopped, paint))?;
                }
            }
            Err(error) => {
                let problem = error.problem();
                let mut document = error::as_json(problem);
                document["agent"] = json!(identity);
                document["stopped"] = json!(false);
                documents.push(document);
                failures.push((identity, problem));
            }
        }
    }
    error::finish(&failures, results.len(), "stopped")
}

/// Returns the container that this process runs in, if it belongs to this town.
pub(crate) fn own_container<'a>(town: &Town, context: &'a Context) -> Option<&'a str> {
    let around = context.around();
    let here = around
        .var("GT_ROOT")
        .is_some_and(|root| Path::new(root) == town.root());
    around.var("GT_SESSION").filter(|_| here)
}

/// Returns whether `own`, the container of this process, is the container of this agent.
pub(crate) fn is_own(town: &Town, agent: &Identity, own: Option<&str>) -> bool {
    let name = own.and_then(|_| {
        let name = roles::container_name(town, agent);
        name.or_warn(format_args!("the container of {agent} is unknown"))
    });
    name.is_some() && name.as_deref() == own
}

fn stop_from_outside(town: &Town, own: &Identity, force: bool) -> Result<(), Problem> {
    let address = own.address();
    let mut words = vec!["stop", &address];
    if force {
        words.push("--force");
    }
    from_outside(town, &words)
}

/// Makes tmux run a `gt` command that ends the calling agent.
pub(crate) fn from_outside(town: &Town, words: &[&str]) -> Result<(), Problem> {
    let gt = shell::quote(&town.around().gt.to_string_lossy());
    let root = shell::quote(town.root_text());
    let words: Vec<String> = words.iter().map(|word| shell::quote(word)).collect();
    // With these variables, the command and the stop would count it as a process of the agent.
    let unset = "env -u GT_SESSION -u GT_SESSION_UUID";
    let line = callback::quiet(&format!(
        "{unset} {} {gt} --town {root} {}",
        town.caller_assignment(),
        words.join(" ")
    ));
    town.server()
        .run(Command::new("run-shell").args(["-b", &format::escape(&line)]))
        .map(drop)
        .map_err(|error| tmux_problem("cannot hand the stop to the tmux server", error))
}

fn stopped_line(stopped: &StoppedAgent, paint: Paint) -> String {
    let mut line = format!(
        "{} {} stopped",
        paint.green("✓"),
        paint.bold(&stopped.identity.address())
    );
    if stopped.killed > 0 {
        let killed = match stopped.killed {
            1 => "1 process".to_owned(),
            count => format!("{count} processes"),
        };
        line.push_str(&format!(" ({killed} had to be killed)"));
    }
    if !stopped.is_recorded {
        line.push_str("; its end is not recorded: the town cannot be written to");
    }
    if stopped.kept_panes > 0 {
        line.push_str(&format!(
            "; {} stays for {} of your own panes",
            stopped.container, stopped.kept_panes
        ));
    }
    line
}

fn stopped_json(stopped: &StoppedAgent) -> Value {
    json!({
        "agent": stopped.identity,
        "stopped": true,
        "container": stopped.container,
        "graceful": stopped.graceful,
        "killed": stopped.killed,
        "kept_panes": stopped.kept_panes,
        "recorded": stopped.is_recorded,
    })
}
