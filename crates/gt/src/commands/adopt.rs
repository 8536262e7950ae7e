use super::CommandResult;
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::lifecycle::adopt::{self, AdoptOptions, AdoptedAgent, AdoptionCandidate};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a program that already runs in a tmux pane an agent
///
/// The program keeps running: no restart, and your panes, windows and sessions stay where
/// they are. It can then be listed, read, nudged, attached, handed over and stopped like any
/// other agent, also on a tmux server that is not the town's. `gt stop` ends only the program.
///
/// Without TARGET it lists the programs that could be adopted.
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// The program: its process id, its pane (%5), session:window.pane, or its session
    target: Option<String>,
    /// The agent's slug: it becomes agent/SLUG [default: after its folder]
    #[arg(
        long,
        value_name = "SLUG",
        requires = "target",
        conflicts_with = "as_agent"
    )]
    name: Option<String>,
    /// The agent's whole address
    #[arg(
        long = "agent",
        alias = "as",
        value_name = "ADDRESS",
        requires = "target"
    )]
    as_agent: Option<String>,
    /// Only on the tmux server with this socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Its conversation, if it cannot be detected
    #[arg(long, value_name = "ID", requires = "target")]
    conversation: Option<String>,
    /// Write no hooks into the program's settings: its state is read from its screen
    #[arg(long, requires = "target")]
    no_hooks: bool,
}

pub(crate) fn run(args: AdoptArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut candidates = adopt::candidates(&town);
    if let Some(socket) = &args.socket {
        let socket = context.around().current_dir.join(socket);
        if !socket.exists() {
            let shown = socket.display();
            return Err(
                Problem::not_found(format!("there is no tmux server at {shown}"))
                    .hint("in tmux, `tmux display-message -p '#{socket_path}'` prints the path"),
            );
        }
        candidates.retain(|candidate| candidate.socket == socket);
    }
    let Some(wanted) = &args.target else {
        return list(&candidates, context);
    };
    let candidate = choose(&town, &candidates, wanted)?;
    let identity = match (&args.name, &args.as_agent) {
        (Some(slug), _) => Some(Identity::agent(slug)),
        (None, Some(address)) => Some(target::resolve(&town, address)?),
        (None, None) => None,
    };
    let options = AdoptOptions {
        identity,
        conversation: args.conversation,
        no_hooks: args.no_hooks,
    };
    let agent = adopt::adopt(&town, candidate, &options)?;
    for warning in &agent.warnings {
        output::warn(warning);
    }
    match context.json {
        true => output::json(&document(&agent))?,
        false => tell(&agent)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn choose<'a>(
    town: &Town,
    candidates: &'a [AdoptionCandidate],
    wanted: &str,
) -> Result<&'a AdoptionCandidate, Problem> {
    let called: Vec<&AdoptionCandidate> = candidates
        .iter()
        .filter(|candidate| candidate.is_called(wanted))
        .collect();
    match called.as_slice() {
        [one] => Ok(one),
        [] => {
            // A name that names no agent yet is that of the new one.
            let running = target::resolve(town, wanted).ok().filter(|identity| {
                let home = gt_town::terminal::adopted::home_of(town, identity);
                gt_town::terminal::containers::of_agent(&home, identity)
                    .is_ok_and(|it| it.is_some())
            });
            if let Some(identity) = running {
                return Err(Problem::conflict(format!("{identity} is an agent already"))
                    .hint("`gt agents` shows it"));
            }
            Err(
                Problem::not_found(format!("no agent program can be adopted as {wanted:?}"))
                    .hint("`gt adopt` lists those that can be"),
            )
        }
        many => {
            let pids: Vec<String> = many.iter().map(|it| it.pid.to_string()).collect();
            Err(Problem::usage(format!(
                "{wanted:?} could be any of the processes {}",
                pids.join(", ")
            ))
            .hint("name one by its process id"))
        }
    }
}

fn list(candidates: &[AdoptionCandidate], context: &Context) -> CommandResult {
    if context.json {
        let all: Vec<Value> = candidates.iter().map(candidate).collect();
        output::json(&all)?;
    } else if candidates.is_empty() {
        output::line("No agent program runs in a tmux pane that is not an agent already.")?;
    } else {
        let mut table = Table::new(&["PID", "HARNESS", "PANE", "FOLDER", "CONVERSATION", "SOCKET"]);
        for it in candidates {
            let folder = it.folder.as_ref().map(|dir| dir.display().to_string());
            let conversation = it.conversation.as_ref().map(|found| found.id.clone());
            table.row([
                it.pid.to_string().into(),
                it.harness.clone().into(),
                it.place.clone().into(),
                folder.unwrap_or_default().into(),
                conversation.unwrap_or_default().into(),
                it.socket.display().to_string().into(),
            ]);
        }
        output::print(&table.render(Paint::for_stdout()))?;
        output::line("`gt adopt PID` makes one an agent.")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn candidate(it: &AdoptionCandidate) -> Value {
    output::without_nulls(json!({
        "pid": it.pid,
        "harness": it.harness,
        "pane": it.pane.to_string(),
        "place": it.place,
        "socket": it.socket,
        "title": it.title,
        "work_dir": it.folder,
        "conversation": it.conversation.as_ref().map(|found| &found.id),
        "conversation_source": it.conversation.as_ref().map(|found| found.source),
        "agent": it.identity,
    }))
}

fn document(agent: &AdoptedAgent) -> Value {
    output::without_nulls(json!({
        "agent": agent.identity,
        "container": agent.container,
        "session": agent.session,
        "pid": agent.pid,
        "pane": agent.pane.to_string(),
        "socket": agent.socket,
        "harness": agent.harness,
        "work_dir": agent.work_dir,
        "conversation": agent.conversation.as_ref().map(|found| &found.id),
        "conversation_source": agent.conversation.as_ref().map(|found| found.source),
        "hooks": agent.hooks,
    }))
}

fn tell(agent: &AdoptedAgent) -> Result<(), Problem> {
    let paint = Paint::for_stdout();
    output::line(format!(
        "{} {} ({}, process {}, pane {}) in {}",
        paint.green("✓"),
        paint.bold(&agent.identity.address()),
        agent.harness,
        agent.pid,
        agent.pane,
        agent.container
    ))?;
    output::line(match &agent.conversation {
        Some(found) => format!("  Conversation {} ({}).", found.id, found.source),
        None => "  No conversation was found; hooks or `--conversation ID` may name it.".to_owned(),
    })?;
    output::line(match &agent.hooks {
        Some(path) => format!(
            "  Its state is reported by hooks in {}, which `gt stop` removes.",
            path.display()
        ),
        None => "  Its state is read from its screen.".to_owned(),
    })
}
