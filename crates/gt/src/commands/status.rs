use super::{CommandResult, agents, dnd, escalate, estop, rig};
use crate::context::Context;
use crate::output::usage::dollars;
use crate::output::{self, Paint};
use crate::raw_mode::RawMode;
use clap::Args;
use gt_core::mail::PERSON;
use gt_core::{Problem, shell};
use gt_tmux::Command;
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter, AgentView};
use gt_town::base::estop as file;
use gt_town::lifecycle::restore;
use gt_town::records::items::{EscalationQuery, Work};
use gt_town::records::sessions::Sessions;
use gt_town::records::{budget, usage};
use gt_town::terminal::containers::{self, Container, tmux_problem};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;

/// Show the town: its rigs, its agents, what needs attention
#[derive(Debug, Default, Args)]
pub(crate) struct StatusArgs {
    /// Wait for Enter at the end (for pop-ups)
    #[arg(long, hide = true)]
    hold: bool,
    /// Show it in a pop-up of this tmux client
    #[arg(long, hide = true, value_name = "CLIENT")]
    popup: Option<String>,
}

pub(crate) fn run(args: StatusArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if let Some(client) = &args.popup {
        return popup(&town, client);
    }
    let containers = containers::list_everywhere(&town)?;
    let agents = engine::list_among(&town, &containers, AgentFilter::default())?;
    let stops = file::all(&town);
    let own_dnd = gt_town::base::dnd::read(&town, PERSON);
    let escalations = Work::of(&town).escalations(&EscalationQuery::default())?;
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for agent in &agents {
        *states.entry(agent.report.state.as_str()).or_default() += 1;
    }
    let waiting = Work::of(&town).queued_assignments()?.len();
    let ill: Vec<&AgentView> = agents
        .iter()
        .filter(|agent| agent.health.has_problem())
        .collect();
    if context.json {
        let mut document = json!({
            "stops": stops,
            "escalations": escalations,
            "town": town.root(),
            "name": town.settings().name,
            "socket": town.socket_text(),
            "harness": gt_town::catalog::harnesses::choose(&town, None, &gt_core::role::RoleConfig::default()),
            "rigs": town.registry().rigs.iter().map(|(name, entry)| json!({
                "rig": name,
                "prefix": entry.beads.prefix,
                "parked": entry.parked,
                "docked": entry.docked,
                "running": rig::running(&agents, name),
            })).collect::<Vec<_>>(),
            "waiting": waiting,
            "running": agents.iter().filter(|agent| agent.is_alive()).count(),
            "states": states,
            "agents": agents::documents(&agents, &town),
            "unhealthy": ill.iter().map(|agent| agents::document(agent)).collect::<Vec<_>>(),
        });
        if let Some(note) = &own_dnd {
            document["dnd"] = dnd::document(note);
        }
        output::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    for line in estop::headlines(&stops, paint) {
        output::fitted(&line, 2)?;
    }
    for line in escalate::headlines(&escalations, paint) {
        output::fitted(&line, 2)?;
    }
    let place = format!(
        "{} at {} (tmux socket: {})",
        paint.bold(&town.settings().name),
        town.root().display(),
        town.socket_text()
    );
    output::fitted(&place, 2)?;
    for (name, entry) in &town.registry().rigs {
        let running = rig::running(&agents, name);
        let service = entry.service().map(|service| format!(", {service}"));
        output::line(format!(
            "  {name} ({}): {running} running{}",
            entry.beads.prefix,
            service.unwrap_or_default()
        ))?;
    }
    if town.registry().rigs.is_empty() {
        output::fitted("  No rigs: `gt rig add PATH-OR-URL` adds a repository.", 4)?;
    }
    let counts: Vec<String> = states
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let summary = if counts.is_empty() {
        "nothing runs".to_owned()
    } else {
        counts.join(", ")
    };
    output::fitted(&format!("Agents: {summary}."), 2)?;
    if waiting > 0 {
        let items = if waiting == 1 {
            "item waits"
        } else {
            "items wait"
        };
        let line =
            format!("Schedule: {waiting} {items} for a slot; `gt schedule list` shows them.");
        output::fitted(&line, 2)?;
    }
    if let Some(note) = &own_dnd {
        let line = format!("You: {}. `gt dnd off` ends it.", dnd::describe(note));
        output::fitted(&line, 2)?;
    }
    for line in overview(&town)? {
        output::fitted(&line, 2)?;
    }
    if !agents.is_empty() {
        output::line("")?;
        agents::print(&agents, &town, false)?;
    }
    let needs = attention(&town, &containers, &agents, paint)?;
    if !needs.is_empty() {
        output::line(format!("\n{}", paint.bold("Needs attention:")))?;
    }
    for line in needs {
        output::fitted(&format!("  {line}"), 4)?;
    }
    if args.hold {
        hold()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the lines about the merge queue and the spending of today, as far as there is any.
fn overview(town: &Town) -> Result<Vec<String>, Problem> {
    let mut lines = Vec::new();
    let merges = Work::of(town).merges(None, false)?;
    if !merges.is_empty() {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for merge in &merges {
            *counts.entry(merge.status.as_str()).or_default() += 1;
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(word, n)| format!("{n} {word}"))
            .collect();
        lines.push(format!(
            "Merge queue: {}; `gt mq list` shows it.",
            counts.join(", ")
        ));
    }
    let spending = Sessions::of(town).spending(&budget::today(town), &[], |running| {
        usage::refresh(town, running);
    })?;
    if spending.day > 0.0 {
        lines.push(format!("Spent today: {}.", dollars(spending.day)));
    }
    Ok(lines)
}

/// Returns a line with a command for everything that waits for a person: questions, agents that are
/// not well, lost agents, and merges that failed or wait for an approval. The table has the rest.
fn attention(
    town: &Town,
    containers: &[Container],
    agents: &[AgentView],
    paint: Paint,
) -> Result<Vec<String>, Problem> {
    let mark = paint.red("!");
    let mut lines: Vec<String> = agents::questions(agents)
        .into_iter()
        .map(|line| format!("{mark} {line}"))
        .collect();
    let ill = agents.iter().filter(|agent| agent.health.has_problem());
    lines.extend(ill.map(|agent| {
        // The table has the cause.
        let (who, complaint) = (&agent.identity, agent.health.describe());
        format!("{mark} {who}: {complaint}: `gt peek {who}`")
    }));
    let lost = restore::lost_agents(town, containers)?;
    if !lost.is_empty() {
        let verb = if lost.len() == 1 { "is" } else { "are" };
        lines.push(format!(
            "{mark} {} {verb} lost with the tmux server: `gt restore`",
            lost.join(", ")
        ));
    }
    for merge in Work::of(town).held_merges()? {
        let (item, id) = (&merge.item, &merge.id);
        let reason = merge.reason.as_deref().unwrap_or_default();
        lines.push(format!(
            "{mark} {item} waits for your approval, {reason}: `gt mq diff {id}`, `gt mq approve {id}`"
        ));
    }
    for (merge, _) in Work::of(town).stuck_merges(None)? {
        lines.push(format!(
            "{mark} {} ({}) is not merged, {}: `gt mq status {}`",
            merge.item,
            merge.branch,
            merge.status.as_str(),
            merge.id
        ));
    }
    Ok(lines)
}

/// Keeps the pop-up open until a key is pressed.
fn hold() -> Result<(), Problem> {
    output::line("\nAny key closes this.")?;
    // Without raw mode, a key would arrive only after Enter.
    let _raw = RawMode::enter();
    // An input that cannot be read closes it too.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Opens a pop-up that runs this command. tmux expands no formats in it, so the command line is
/// built here.
fn popup(town: &Town, client: &str) -> CommandResult {
    let gt = shell::quote(&town.around().gt.to_string_lossy());
    let root = shell::quote(town.root_text());
    let command = Command::new("display-popup")
        .args(["-E", "-w", "80%", "-h", "80%", "-c", client])
        .arg(format!("{gt} --town {root} status --hold"));
    town.server()
        .clone()
        .with_timeout(super::menu::TIMEOUT)
        .run(command)
        .map_err(|error| tmux_problem("cannot open the pop-up", error))?;
    Ok(ExitCode::SUCCESS)
}
