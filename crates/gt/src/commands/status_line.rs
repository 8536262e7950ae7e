use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::state::State;
use gt_town::views::state_counts::StateCounts;
use std::process::ExitCode;

/// Print one short line for tmux's status line
///
/// Called every few seconds by every attached client. It reads the agent's container and stored
/// counts of the others; it counts them again if something has changed, at most once a second.
#[derive(Debug, Args)]
pub(crate) struct StatusLineArgs {
    /// The container it is shown in
    #[arg(long, value_name = "CONTAINER")]
    session: Option<String>,
}

/// States in the order of the status line, with their symbols.
const SHOWN: &[(State, &str)] = &[
    (State::Waiting, "✋"),
    (State::Error, "!"),
    (State::Limited, "◷"),
    (State::Busy, "◑"),
    (State::Idle, "✳"),
    (State::Paused, "⏸"),
    (State::Done, "✓"),
    (State::Crashed, "✗"),
];

pub(crate) fn run(args: StatusLineArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let states = StateCounts::read(&town, args.session.as_deref())?;
    let own = states.own.map(|state| state.as_str().to_owned());
    let counts = SHOWN.iter().filter_map(|(state, sign)| {
        let count = states.of(*state);
        (count > 0).then(|| format!("{sign}{count}"))
    });
    let words: Vec<String> = own.into_iter().chain(counts).collect();
    output::line(words.join(" "))?;
    Ok(ExitCode::SUCCESS)
}
