//! `gt rig list` and `gt rig status`.

use super::super::{CommandResult, agents};
use crate::context::Context;
use crate::output::table::Table;
use crate::output::{self, Paint};
use gt_core::registry::RigEntry;
use gt_core::{Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter, AgentView};
use gt_town::base::git;
use gt_town::catalog::directory;
use gt_town::records::items::Work;
use gt_town::repo::rig;
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) fn list(context: &Context) -> CommandResult {
    let town = context.town()?;
    let all = engine::list(&town, AgentFilter::default())?;
    let rigs = &town.registry().rigs;
    if context.json {
        let rigs: Vec<_> = rigs
            .iter()
            .map(|(name, entry)| document(&town, name, entry, &all))
            .collect();
        output::json(&rigs)?;
    } else if rigs.is_empty() {
        output::line("No rigs yet. `gt rig add PATH-OR-URL` adds a repository.")?;
    } else {
        let mut table = Table::new(&[
            "RIG", "PREFIX", "BRANCH", "CREW", "POLECATS", "RUNNING", "", "FROM",
        ]);
        let count = |name: &str, role| directory::workers(&town, name, role).len().to_string();
        for (name, entry) in rigs {
            table.row([
                name.as_str().into(),
                entry.beads.prefix.as_str().into(),
                entry.default_branch.clone().unwrap_or_default().into(),
                count(name, Role::Crew).into(),
                count(name, Role::Polecat).into(),
                running(&all, name).to_string().into(),
                entry.service().unwrap_or_default().into(),
                git::without_password(&entry.git_url).into(),
            ]);
        }
        output::print(&table.render(Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn status(name: &str, context: &Context) -> CommandResult {
    let town = context.town()?;
    let entry = rig::entry(&town, name)?;
    let wanted = AgentFilter {
        rig: Some(name),
        stopped: true,
        role: None,
    };
    let all = engine::list(&town, wanted)?;
    let merges = Work::of(&town).merges(Some(name), false)?.len();
    if context.json {
        let mut document = document(&town, name, entry, &all);
        document["merges"] = json!(merges);
        document["agents"] = agents::documents(&all, &town).into();
        output::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = |role| directory::workers(&town, name, role).len();
    let rows = [
        ("state", entry.service().unwrap_or("in service").to_owned()),
        ("prefix", entry.beads.prefix.clone()),
        ("branch", entry.default_branch.clone().unwrap_or_default()),
        ("from", git::without_password(&entry.git_url)),
        ("folder", town.root().join(name).display().to_string()),
        ("crew", count(Role::Crew).to_string()),
        ("polecats", count(Role::Polecat).to_string()),
        ("running", running(&all, name).to_string()),
        ("to merge", merges.to_string()),
    ];
    output::line(name)?;
    for (what, value) in rows {
        output::line(output::clean(&format!("  {what:<9} {value}")))?;
    }
    output::line("")?;
    agents::show(&all, &town, context)
}

fn document(town: &Town, name: &str, entry: &RigEntry, all: &[AgentView]) -> Value {
    output::without_nulls(json!({
        "rig": name,
        "prefix": entry.beads.prefix,
        "git_url": git::without_password(&entry.git_url),
        "default_branch": entry.default_branch,
        "parked": entry.parked,
        "docked": entry.docked,
        "running": running(all, name),
        "crew": directory::workers(town, name, Role::Crew).len(),
        "polecats": directory::workers(town, name, Role::Polecat).len(),
    }))
}

/// Returns the number of live agents of a rig.
pub(crate) fn running(all: &[AgentView], rig: &str) -> usize {
    let live = all.iter().filter(|agent| agent.is_alive());
    live.filter(|agent| agent.identity.rig() == Some(rig))
        .count()
}

/// Lists the agents of a rig and returns the number of live ones.
pub(super) fn live(town: &Town, name: &str) -> Result<usize, Problem> {
    let wanted = AgentFilter {
        rig: Some(name),
        ..AgentFilter::default()
    };
    Ok(running(&engine::list(town, wanted)?, name))
}
