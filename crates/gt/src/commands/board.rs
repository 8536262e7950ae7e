use super::CommandResult;
use crate::board::{self, BoardOptions};
use crate::context::Context;
use crate::output;
use clap::{Args, ValueEnum};
use gt_core::Problem;
use gt_core::card::Card;
use gt_town::Town;
use gt_town::repo::rig;
use gt_town::views::cards::{GatheredCards, Gatherer};
use gt_town::views::monitor;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::process::ExitCode;

/// The board: all work and all agents on one screen, from idea to merged
///
/// Columns for what is open, in progress, waiting for you, to be reviewed and done. Press ? there
/// for the keys. Every action is also a gt command. With --json the cards are printed, once.
#[derive(Debug, Args)]
pub(crate) struct BoardArgs {
    /// Show only this rig's cards at first
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// The colours [default: those of the last board, at first dark; none if NO_COLOR is set]
    #[arg(long, value_enum)]
    theme: Option<ThemeArg>,
    /// Do not use the mouse
    #[arg(long)]
    no_mouse: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ThemeArg {
    Dark,
    Light,
    None,
}

pub(crate) fn run(args: BoardArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if let Some(rig) = &args.rig {
        rig::entry(&town, rig)?;
    }
    if context.json {
        return print(&town, args.rig.as_deref());
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(
            Problem::usage("the board needs a terminal").hint("`gt board --json` prints its cards")
        );
    }
    let no_color = context
        .around()
        .var("NO_COLOR")
        .is_some_and(|value| !value.is_empty());
    let look = BoardOptions {
        theme: match args.theme {
            Some(ThemeArg::Dark) => Some(gt_board::BoardTheme::Dark),
            Some(ThemeArg::Light) => Some(gt_board::BoardTheme::Light),
            Some(ThemeArg::None) => Some(gt_board::BoardTheme::Plain),
            None if no_color => Some(gt_board::BoardTheme::Plain),
            None => None,
        },
        project: args.rig,
        mouse: !args.no_mouse,
    };
    board::run(town, look)?;
    Ok(ExitCode::SUCCESS)
}

fn print(town: &Town, rig: Option<&str>) -> CommandResult {
    let mut gatherer = Gatherer::default();
    let seen = monitor::agents(town)?;
    let mut gathered = gatherer.gather(town, &seen)?;
    for id in gathered.stale.clone() {
        gatherer.refresh_card(town, &mut gathered, &id);
    }
    for warning in &gathered.warnings {
        output::warn(warning);
    }
    output::json(&document(town, &gathered, rig))?;
    Ok(ExitCode::SUCCESS)
}

fn document(town: &Town, gathered: &GatheredCards, rig: Option<&str>) -> Value {
    let is_shown = |card: &&Card| rig.is_none() || card.rig.as_deref() == rig;
    let shown = gathered.cards.iter().filter(is_shown);
    let (agents, items): (Vec<&Card>, Vec<&Card>) = shown.partition(|card| card.is_agent);
    let cards = |cards: Vec<&Card>| cards.into_iter().map(card).collect::<Vec<Value>>();
    json!({
        "town": town.root(),
        "cards": cards(items),
        "agents": cards(agents),
        "escalations": gathered.escalations,
        "stops": gathered.stops,
    })
}

fn card(card: &Card) -> Value {
    let mut value = json!(card);
    value["column"] = json!(card.column());
    value["since"] = json!(output::time(card.since()));
    value["created_at"] = json!(output::time(card.created_at));
    value["updated_at"] = json!(output::time(card.updated_at));
    for part in ["session", "resolver"] {
        if let Some(since) = value[part]["since"].as_i64() {
            value[part]["since"] = json!(output::time(since));
        }
    }
    let servers = value["servers"].as_array_mut();
    for server in servers.into_iter().flatten() {
        if let Some(since) = server["since"].as_i64() {
            server["since"] = json!(output::time(since));
        }
    }
    value
}
