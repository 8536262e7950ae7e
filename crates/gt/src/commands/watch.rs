use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Problem;
use gt_town::Town;
use gt_town::agents::target;
use gt_town::views::monitor::{AgentStateChange, Monitor, MonitorChange};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Print every change of an agent's state as it happens
///
/// Prints one line per change: the agent, the old and the new state, the source and the reason.
/// With --json, one document per line, beginning with the running agents. Ctrl-C ends it. It sleeps
/// while nothing happens.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only this agent
    target: Option<String>,
    /// Print the present state of all agents first
    #[arg(long)]
    first: bool,
}

pub(crate) fn run(args: &WatchArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let only = args.target.as_deref();
    let only = only.map(|text| target::resolve(&town, text)).transpose()?;
    let ended = end_signals()?;
    let json = context.json;
    let clock = town.clock().clone();
    let is_wanted =
        move |moved: &AgentStateChange| only.as_ref().is_none_or(|only| moved.agent == *only);
    let wanted = is_wanted.clone();
    let monitor = watch(&town, move |moved| {
        if wanted(&moved) {
            // If stdout is closed, the wait below ends.
            let _ = output::print(&line(&moved, json, clock.now()));
        }
    })?;
    if args.first {
        for seen in monitor.agents() {
            let moved = AgentStateChange {
                agent: seen.agent,
                container: seen.container,
                session: seen.session,
                window: None,
                before: None,
                now: seen.report,
            };
            if is_wanted(&moved) {
                output::print(&line(&moved, json, town.clock().now()))?;
            }
        }
    }
    wait_for_end(&ended);
    Ok(ExitCode::SUCCESS)
}

fn watch(
    town: &Town,
    tell: impl Fn(AgentStateChange) + Send + 'static,
) -> Result<Monitor, Problem> {
    Monitor::start(town, move |change| {
        if let MonitorChange::Moved(moved) = change {
            tell(*moved);
        }
    })
}

fn line(moved: &AgentStateChange, json: bool, at: Timestamp) -> String {
    let now = &moved.now;
    if json {
        let document = output::without_nulls(json!({
            "at": at.to_string(),
            "agent": moved.agent.address(),
            "container": moved.container,
            "session": moved.session.map(|session| session.to_string()),
            "window": moved.window.as_ref().map(|window| &window.name),
            "before": moved.before,
            "state": now.state,
            "source": now.source,
            "since": now.since.and_then(output::time),
            "reason": now.reason,
            "background": Some(now.background).filter(|count| *count > 0),
            "resets_at": gt_town::records::limits::resets_at(now).and_then(output::time),
            "continues": now.limit.as_ref().map(|limit| limit.continues),
        }));
        return format!("{document}\n");
    }
    let at = at.to_zoned(TimeZone::system()).strftime("%H:%M:%S");
    let before = moved.before.map_or("-", gt_core::state::State::as_str);
    let source = json!(now.source);
    let source = source.as_str().unwrap_or_default();
    let reason = now.reason.as_deref().map(|reason| format!(": {reason}"));
    let window = moved.window.as_ref();
    let window = window.map(|window| format!(" [{}]", window.name));
    let text = format!(
        "{at}  {}{}  {before} → {} ({source}{})",
        moved.agent,
        window.unwrap_or_default(),
        now.label(),
        reason.unwrap_or_default()
    );
    output::clean(&text) + "\n"
}

/// Returns a stream that becomes readable on SIGINT or SIGTERM.
fn end_signals() -> Result<UnixStream, Problem> {
    let open = || {
        let (ended, end) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, end.try_clone()?)?;
        }
        Ok(ended)
    };
    open().map_err(|error: std::io::Error| Problem::failed("cannot wait").caused_by(error))
}

/// Waits, without a timer, for a signal or the end of the reader.
fn wait_for_end(ended: &UnixStream) {
    loop {
        let stdout = std::io::stdout();
        let mut fds = [
            PollFd::new(ended, PollFlags::IN),
            PollFd::new(&stdout, PollFlags::empty()),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}
