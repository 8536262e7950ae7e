use super::start_flags::StartFlags;
use super::{Answer, start, stop};
use crate::context::Context;
use crate::output::progress::Progress;
use crate::output::table::Table;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::{Identity, Problem, Role};
use gt_town::agents::{self, Wanted};
use gt_town::merge::background;
use gt_town::{Town, directory, rig};
use serde_json::json;
use std::process::ExitCode;

/// Rigs: the repositories of a town
#[expect(clippy::large_enum_variant, reason = "made once per process")]
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RigCommand {
    Add(AddArgs),
    /// List the rigs
    List,
    Start(RigStartArgs),
    Stop(RigStopArgs),
    /// Keep a rig as it is, but start nothing in it
    Park(RigNameArgs),
    /// Take a parked rig back into service
    Unpark(RigNameArgs),
}

/// Take a repository into the town
///
/// It is copied (bare) into the town; agents work in worktrees of that copy, and
/// the repository that is named here is not touched.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The rig's name
    name: String,
    /// The repository: a path, or a URL that `git clone` takes
    #[arg(value_name = "PATH-OR-URL")]
    source: String,
    /// The prefix of its containers and work items [default: made from the name]
    #[arg(long)]
    prefix: Option<String>,
}

/// Start a rig's witness and refinery
#[derive(Debug, Args)]
pub(crate) struct RigStartArgs {
    #[arg(required = true, value_name = "RIG")]
    rigs: Vec<String>,
    /// Its crew, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    flags: StartFlags,
}

/// Stop a rig's witness and refinery
#[derive(Debug, Args)]
pub(crate) struct RigStopArgs {
    #[arg(required = true, value_name = "RIG")]
    rigs: Vec<String>,
    /// Its crew and polecats, too
    #[arg(long)]
    all: bool,
    /// Do not ask the agents first
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RigNameArgs {
    rig: String,
}

pub(crate) fn run(command: RigCommand, context: &Context) -> Answer {
    match command {
        RigCommand::Add(args) => add(&args, context),
        RigCommand::List => list(context),
        RigCommand::Start(args) => {
            let town = context.town()?;
            let mut wanted = Vec::new();
            for name in &args.rigs {
                rig::check_not_parked(&town, name)?;
                wanted.extend(own_agents(name));
                if args.all {
                    wanted.extend(directory::workers(&town, name, Role::Crew));
                }
            }
            let mut options = args.flags.options(context)?;
            options.create = true;
            start::start_many(
                &town,
                &wanted,
                &options,
                context,
                start::RunningAlready::IsFine,
            )
        }
        RigCommand::Stop(args) => {
            let town = context.town()?;
            let mut wanted = Vec::new();
            for name in &args.rigs {
                rig::entry(&town, name)?;
                wanted.extend(running_agents(&town, name, args.all)?);
            }
            stop::stop_many(&town, &wanted, args.force, context)
        }
        RigCommand::Park(args) => park(&args.rig, true, context),
        RigCommand::Unpark(args) => park(&args.rig, false, context),
    }
}

/// A rig's witness and refinery.
pub(crate) fn own_agents(rig: &str) -> [Identity; 2] {
    [Role::Witness, Role::Refinery].map(|role| Identity::of_rig(role, rig))
}

fn running_agents(town: &Town, rig: &str, all: bool) -> Result<Vec<Identity>, Problem> {
    let wanted = Wanted {
        rig: Some(rig),
        ..Wanted::default()
    };
    let running = agents::list(town, wanted)?
        .into_iter()
        .map(|agent| agent.identity);
    Ok(running
        .filter(|identity| all || matches!(identity.role(), Role::Witness | Role::Refinery))
        .collect())
}

fn add(args: &AddArgs, context: &Context) -> Answer {
    let mut town = context.town()?;
    context.catch_interrupts();
    let spinner = Progress::spinner(&format!("copying {}", args.name));
    let added = rig::add(&mut town, &args.name, &args.source, args.prefix.as_deref())?;
    drop(spinner);
    for warning in &added.warnings {
        output::warn(output::clean(warning));
    }
    if context.json {
        output::json(&json!({
            "rig": args.name,
            "prefix": added.prefix,
            "default_branch": added.default_branch,
            "path": added.path,
            "warnings": added.warnings,
        }))?;
    } else {
        output::line(format!(
            "Added the rig {} (prefix {}, branch {}).",
            args.name, added.prefix, added.default_branch
        ))?;
        output::line(format!(
            "Next: `gt crew add {}/NAME` makes a worker.",
            args.name
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context) -> Answer {
    let town = context.town()?;
    let running = agents::list(&town, Wanted::default())?;
    let count = |rig: &str| {
        running
            .iter()
            .filter(|a| a.identity.rig() == Some(rig))
            .count()
    };
    let rigs = &town.registry().rigs;
    if context.json {
        let rigs: Vec<_> = rigs
            .iter()
            .map(|(name, entry)| {
                output::without_nulls(json!({
                    "rig": name,
                    "prefix": entry.beads.prefix,
                    "git_url": gt_town::git::without_password(&entry.git_url),
                    "default_branch": entry.default_branch,
                    "parked": entry.parked,
                    "running": count(name),
                    "crew": directory::workers(&town, name, Role::Crew).len(),
                    "polecats": directory::workers(&town, name, Role::Polecat).len(),
                }))
            })
            .collect();
        output::json(&rigs)?;
    } else if rigs.is_empty() {
        output::line("No rigs yet. `gt rig add NAME PATH-OR-URL` takes a repository in.")?;
    } else {
        let mut table = Table::new(&[
            "RIG", "PREFIX", "BRANCH", "CREW", "POLECATS", "RUNNING", "", "FROM",
        ]);
        for (name, entry) in rigs {
            table.row([
                name.as_str().into(),
                entry.beads.prefix.as_str().into(),
                entry.default_branch.clone().unwrap_or_default().into(),
                directory::workers(&town, name, Role::Crew)
                    .len()
                    .to_string()
                    .into(),
                directory::workers(&town, name, Role::Polecat)
                    .len()
                    .to_string()
                    .into(),
                count(name).to_string().into(),
                if entry.parked { "parked" } else { "" }.into(),
                gt_town::git::without_password(&entry.git_url).into(),
            ]);
        }
        output::print(&table.render(Paint::for_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn park(name: &str, parked: bool, context: &Context) -> Answer {
    let mut town = context.town()?;
    let running = if parked {
        running_agents(&town, name, true)?
    } else {
        Vec::new()
    };
    let changed = rig::set_parked(&mut town, name, parked)?;
    if !parked {
        // What was handed in while it was parked is merged now.
        background::start_if_waiting(&town, name)?;
    }
    if context.json {
        output::json(&json!({"rig": name, "parked": parked, "changed": changed}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = if parked { "parked" } else { "back in service" };
    let already = if changed { "" } else { " already" };
    output::line(format!("The rig {name} is{already} {done}."))?;
    if !running.is_empty() {
        output::line(format!(
            "{} of its agents still run: `gt rig stop {name} --all` ends them.",
            running.len()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
