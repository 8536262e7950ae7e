use super::CommandResult;
use super::role;
use super::words::SuggestedWords;
use crate::context::Context;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::Args;
use gt_core::{Problem, Role, beacon};
use gt_town::lifecycle::seance::{self, Offered, SeanceCommand, SeanceFilter};
use gt_town::repo::rig;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use std::io::{IsTerminal, Read};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;

/// Talk to earlier sessions of agents
///
/// Without `--talk` the sessions are listed, the newest first. With it, a copy of that
/// conversation continues in this terminal; the conversation itself does not change.
#[derive(Debug, Args)]
pub(crate) struct SeanceArgs {
    /// Only sessions of this role
    #[arg(long, conflicts_with = "talk", value_parser = SuggestedWords::of(Role::all().map(Role::as_str)))]
    role: Option<String>,
    /// Only sessions of this rig
    #[arg(long, conflicts_with = "talk")]
    rig: Option<String>,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "talk")]
    recent: usize,
    /// The session to talk to: a prefix of its id, or of its conversation's id
    #[arg(long, value_name = "ID")]
    talk: Option<String>,
    /// Ask one question and print the answer
    #[arg(
        long,
        short,
        value_name = "TEXT",
        allow_hyphen_values = true,
        requires = "talk"
    )]
    prompt: Option<String>,
    /// Talk under another account than the one of that session
    #[arg(long, value_name = "NAME", requires = "talk")]
    account: Option<String>,
}

pub(crate) fn run(args: &SeanceArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let Some(id) = &args.talk else {
        if let Some(name) = &args.role {
            role::parse(name)?;
        }
        if let Some(name) = &args.rig {
            rig::entry(&town, name)?;
        }
        let sessions = seance::list(
            &town,
            SeanceFilter {
                role: args.role.clone(),
                rig: args.rig.clone(),
                recent: args.recent,
            },
        )?;
        show(&sessions, context)?;
        return Ok(ExitCode::SUCCESS);
    };
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if args.prompt.is_none() && (context.json || !is_terminal) {
        return Err(Problem::usage("a talk needs a terminal").hint("or one question: `--prompt`"));
    }
    let term = catch_signals()?;
    let mut talk = seance::prepare(&town, id, args.account.as_deref(), args.prompt.as_deref())?;
    let mut command = command(&talk);
    if args.prompt.is_some() {
        command.stdin(Stdio::null());
    }
    if context.json {
        command.stdout(Stdio::piped());
    }
    let child = command.spawn().map_err(|error| {
        Problem::environment(format!("cannot run {}", talk.program.display())).caused_by(error)
    })?;
    let (status, answer) = wait(child, term)?;
    // The conversation lent to the other account is returned even if the program failed.
    drop(talk.lent.take());
    if !status.success() {
        return Err(Problem::failed(format!("the talk ended with {status}")));
    }
    if context.json {
        output::json(&json!({
            "life": talk.session,
            "agent": talk.agent,
            "conversation": talk.conversation,
            "answer": answer,
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn command(talk: &SeanceCommand) -> Command {
    let mut command = Command::new(&talk.program);
    command.args(&talk.args).current_dir(&talk.cwd);
    for name in &talk.unset {
        command.env_remove(name);
    }
    command.envs(talk.set.iter().map(|(name, value)| (name, value)));
    command
}

/// Receives a byte when this process alone gets TERM.
struct TermSignal {
    wake: UnixStream,
    id: SigId,
}

/// Keeps this process alive at Ctrl-C to clean up. The terminal sends the signal to the program as
/// well, which ends.
fn catch_signals() -> Result<TermSignal, Problem> {
    let catch = || -> std::io::Result<TermSignal> {
        for signal in [SIGINT, SIGHUP, SIGQUIT] {
            flag::register(signal, Arc::default())?;
        }
        let (wake, write) = UnixStream::pair()?;
        let id = low_level::pipe::register(SIGTERM, write)?;
        Ok(TermSignal { wake, id })
    };
    catch().map_err(|error| Problem::failed("cannot wait for signals").caused_by(error))
}

/// Waits for the program, and captures its output if requested. Forwards a TERM to it.
fn wait(mut child: Child, term: TermSignal) -> Result<(ExitStatus, String), Problem> {
    let failed = |error: std::io::Error| Problem::failed("cannot wait for it").caused_by(error);
    let pid = Pid::from_child(&child);
    let TermSignal { mut wake, id } = term;
    let forward = std::thread::spawn(move || {
        // The loop ends when the handler is removed, which closes the other end of the pair.
        while wake.read(&mut [0]).is_ok_and(|count| count > 0) {
            // The process is reaped only after this thread has ended, so the pid is still its own.
            let _ = kill_process(pid, Signal::TERM);
        }
    });
    let mut answer = String::new();
    let read = match child.stdout.take() {
        Some(mut stdout) => stdout.read_to_string(&mut answer).map(drop),
        None => Ok(()),
    };
    let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), exited) {}
    low_level::unregister(id);
    // A panic of the thread is printed by its hook.
    let _ = forward.join();
    let status = child.wait().map_err(failed)?;
    read.map_err(failed)?;
    Ok((status, answer.trim_end().to_owned()))
}

fn show(sessions: &[Offered], context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&sessions);
    }
    if sessions.is_empty() {
        return output::line("No sessions match.");
    }
    let mut table = Table::new(&[
        "ID", "AGENT", "STARTED", "OUTCOME", "HARNESS", "TALK", "TOPIC",
    ])
    .keeping(2);
    for session in sessions {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let topic = text(&session.topic);
        let topic: String = beacon::topic(&topic).chars().take(60).collect();
        table.row([
            session.id.clone().into(),
            Cell::address(text(&session.agent)),
            output::minute(session.started_at.as_deref()).into(),
            session
                .outcome
                .map_or("running", |outcome| outcome.as_str())
                .into(),
            text(&session.harness).into(),
            if session.can_talk { "yes" } else { "" }.into(),
            topic.into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))
}
