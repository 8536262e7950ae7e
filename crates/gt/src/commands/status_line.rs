use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::state::State;
use gt_town::catalog::harnesses::Presets;
use gt_town::terminal::containers;
use std::process::ExitCode;

/// Print one short line for tmux's status line
///
/// Called every few seconds by every attached client: it reads tmux once.
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
    let mut presets = Presets::default();
    let mut states = Vec::new();
    let mut own = None;
    let containers = containers::list_everywhere(&town)?;
    for container in containers {
        if container.identity().is_none() {
            continue;
        }
        let state = container
            .state(presets.get(&town, &container.pane().tag_harness))
            .state;
        if args.session.as_deref() == Some(container.name()) {
            own = Some(state);
        }
        states.push(state);
    }
    let counts = SHOWN.iter().filter_map(|(state, sign)| {
        let count = states.iter().filter(|seen| *seen == state).count();
        (count > 0).then(|| format!("{sign}{count}"))
    });
    let mut words: Vec<String> = own
        .map(|state| state.as_str().to_owned())
        .into_iter()
        .collect();
    words.extend(counts);
    output::line(words.join(" "))?;
    Ok(ExitCode::SUCCESS)
}
