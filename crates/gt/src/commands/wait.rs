use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::{Args, ValueEnum};
use gt_core::Problem;
use gt_core::state::State;
use gt_town::agents::target;
use gt_town::catalog::directory;
use gt_town::messaging::inject::Typist;
use gt_town::messaging::nudge;
use gt_town::terminal::{adopted, containers};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Wait until an agent is in a state; for scripts
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// The state to wait for
    #[arg(long, value_enum, default_value_t = WaitCondition::Idle)]
    until: WaitCondition,
    /// Timeout in seconds (exit code 1)
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WaitCondition {
    /// At its prompt, however its last turn ended
    Idle,
    Waiting,
    Busy,
    /// At its prompt after a turn that failed
    Error,
    /// At a usage limit
    Limited,
    Dead,
}

pub(crate) fn run(args: WaitArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let town = adopted::home_of(&town, &identity).into_owned();
    let began = Instant::now();
    let deadline = args
        .timeout
        .map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map(|timeout| began + timeout)
                .map_err(|_| Problem::usage(format!("{seconds} is not a valid wait time")))
        })
        .transpose()?;
    context.catch_interrupts();
    let container = containers::of_agent(&town, &identity)?;
    let alive = container.filter(|c| !c.pane().dead && !c.lost_agent_pane());
    let Some(container) = alive else {
        if args.until == WaitCondition::Dead {
            return done("dead", began, context);
        }
        return Err(
            directory::not_running(&town, &identity).hint("`gt agents` lists those that do")
        );
    };
    let preset = nudge::preset_of(&town, &container)?;
    let mut typist = Typist::new(&town, &container, &preset);
    loop {
        // A screen that cannot be read is read again.
        let seen = typist.observe().ok();
        let state = seen.as_ref().and_then(|seen| seen.state);
        let ended = seen.as_ref().and_then(|seen| seen.ended);
        let wanted = match args.until {
            WaitCondition::Idle => state == Some(State::Idle),
            WaitCondition::Error => ended == Some(State::Error),
            WaitCondition::Limited => [state, ended].contains(&Some(State::Limited)),
            WaitCondition::Waiting => state == Some(State::Waiting),
            WaitCondition::Busy => state == Some(State::Busy),
            WaitCondition::Dead => false,
        };
        if wanted {
            return done(ended.or(state).map_or("", State::as_str), began, context);
        }
        if typist.has_ended() {
            return match args.until {
                WaitCondition::Dead => done("dead", began, context),
                _ => Err(Problem::conflict(format!("{identity} has ended"))),
            };
        }
        context.around().cancel.check()?;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let is = state.map_or("unreadable", State::as_str);
            return Err(Problem::failed(format!("{identity} is still {is}")));
        }
        typist.wait(
            left.unwrap_or(Duration::from_secs(1))
                .min(Duration::from_secs(1)),
        );
    }
}

fn done(state: &str, began: Instant, context: &Context) -> CommandResult {
    if context.json {
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        output::json(&json!({"state": state, "ms": ms}))?;
    }
    Ok(ExitCode::SUCCESS)
}
