use super::polecat::print_refusal;
use super::start_flags::StartFlags;
use super::{CommandResult, agents, restart, start, stop};
use crate::context::Context;
use crate::error;
use crate::output;
use crate::output::progress::ProgressLine;
use clap::{Args, Subcommand};
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter};
use gt_town::catalog::{directory, roles};
use gt_town::lifecycle::restore;
use gt_town::repo::{rig, workspace};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Crew: people's own long-lived workers, each in a worktree of a rig
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CrewCommand {
    Add(AddArgs),
    Start(StartArgs),
    Stop(StopArgs),
    Restart(RestartArgs),
    List(ListArgs),
    Rm(RmArgs),
}

/// Make crew workers: a worktree and a branch for each
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// NAME or RIG/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    rig: RigArg,
}

/// Start crew workers
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// NAME or RIG/NAME
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// The whole crew of the rig, or of all rigs if none is named
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    rig: RigArg,
    #[command(flatten)]
    flags: StartFlags,
}

/// Stop crew workers
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// NAME or RIG/NAME
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// The whole crew of the rig, or of all rigs if none is named
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Do not ask the agents to quit first
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    rig: RigArg,
}

/// Stop crew workers that run, and start them
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// NAME or RIG/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    rig: RigArg,
    #[command(flatten)]
    flags: StartFlags,
}

/// List the crew, running or not
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this rig's
    rig: Option<String>,
}

/// Remove crew workers: container, worktree and branch
///
/// A worker with uncommitted or unpushed work is not removed.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// NAME or RIG/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Remove it anyway; unsaved work is kept under refs/gt/saved/
    #[arg(long)]
    force: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    rig: RigArg,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RigArg {
    /// The rig [default: the one of this folder, or the only one]
    #[arg(long)]
    rig: Option<String>,
}

pub(crate) fn run(command: CrewCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        CrewCommand::Add(args) => add(&town, &args, context),
        CrewCommand::Start(args) => {
            let wanted = match args.all {
                true => all_workers(&town, args.rig.rig.as_deref())?,
                false => existing(&town, &args.names, &args.rig)?,
            };
            let known = if args.all {
                start::RunningAlready::IsFine
            } else {
                start::RunningAlready::IsAProblem
            };
            start::start_many(
                &town,
                &wanted,
                &args.flags.options(context)?,
                context,
                known,
            )
        }
        CrewCommand::Stop(args) => {
            let wanted = match args.all {
                true => running(&town, args.rig.rig.as_deref())?,
                false => identities(&town, &args.names, &args.rig)?,
            };
            stop::stop_many(&town, &wanted, args.force, context)
        }
        CrewCommand::Restart(args) => {
            let wanted = existing(&town, &args.names, &args.rig)?;
            let options = args.flags.options(context)?;
            restart::restart(&town, &wanted, &options, context)
        }
        CrewCommand::List(args) => {
            if let Some(name) = &args.rig {
                rig::entry(&town, name)?;
            }
            let wanted = AgentFilter {
                stopped: true,
                rig: args.rig.as_deref(),
                role: Some(Role::Crew),
            };
            let none = "No crew workers. `gt crew add RIG/NAME` makes one.";
            agents::show_or(none, &engine::list(&town, wanted)?, &town, context)
        }
        CrewCommand::Rm(args) => remove(&town, &args, context),
    }
}

fn add(town: &Town, args: &AddArgs, context: &Context) -> CommandResult {
    let wanted = identities(town, &args.names, &args.rig)?;
    for identity in &wanted {
        identity.check_new(town.registry())?;
        let rig = identity.rig().unwrap_or_default();
        // File systems may ignore case, so names must differ in more than case.
        let taken = directory::workers(town, rig, Role::Crew)
            .into_iter()
            .find(|other| {
                other
                    .short_name()
                    .eq_ignore_ascii_case(identity.short_name())
            });
        if let Some(other) = taken {
            return Err(Problem::conflict(format!("{other} exists already"))
                .hint(format!("`gt crew start {other}` starts it")));
        }
    }
    context.catch_interrupts();
    let progress = ProgressLine::bar("making worktrees", wanted.len());
    let results = make_worktrees(town, &wanted, &progress);
    drop(progress);
    let mut made = Vec::new();
    let mut failures = Vec::new();
    for (identity, result) in &results {
        match result {
            Ok(dir) => {
                let branch = workspace::branch(identity);
                if !context.json {
                    output::line(format!(
                        "Made {identity} in {} (branch {branch}).",
                        dir.display()
                    ))?;
                }
                made.push(json!({"agent": identity, "work_dir": dir, "branch": branch}));
            }
            Err(problem) => failures.push((identity, problem)),
        }
    }
    if context.json {
        output::json(&made)?;
    } else {
        let names: Vec<String> = wanted.iter().map(Identity::address).collect();
        if failures.is_empty() {
            output::line(format!("Next: `gt crew start {}`.", names.join(" ")))?;
        }
    }
    error::finish(&failures, results.len(), "made")
}

type CreatedWorker = (Identity, Result<PathBuf, Problem>);

/// Makes the worktrees concurrently. The results have the order of `wanted`.
fn make_worktrees(town: &Town, wanted: &[Identity], progress: &ProgressLine) -> Vec<CreatedWorker> {
    let make = |identity: &Identity| {
        town.around().cancel.check()?;
        let role = roles::resolve(town, Role::Crew, identity.rig())?.value;
        let dir = workspace::path(town, identity, &role)?;
        for warning in workspace::ensure(town, identity, &dir)? {
            output::warn(warning);
        }
        progress.step();
        Ok(dir)
    };
    let parallel = town.settings().limits.parallel_starts;
    let mut results = Vec::new();
    for group in wanted.chunks(parallel) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = group
                .iter()
                .map(|identity| (identity, scope.spawn(|| make(identity))))
                .collect();
            for (identity, thread) in threads {
                let lost = |_| Err(Problem::failed("it did not finish"));
                results.push((identity.clone(), thread.join().unwrap_or_else(lost)));
            }
        });
    }
    results
}

fn remove(town: &Town, args: &RmArgs, context: &Context) -> CommandResult {
    let wanted = existing(town, &args.names, &args.rig)?;
    let running: Vec<Identity> = running(town, None)?
        .into_iter()
        .filter(|i| wanted.contains(i))
        .collect();
    let mut documents = Vec::new();
    for identity in &wanted {
        let role = roles::resolve(town, Role::Crew, identity.rig())?.value;
        let dir = workspace::path(town, identity, &role)?;
        // Checked before anything is stopped: a refusal must change nothing.
        let unsaved = workspace::unsaved(town, identity, &dir)?;
        if args.dry_run {
            let runs = running.contains(identity);
            let refusal = unsaved.refusal(identity).filter(|_| !args.force);
            let refused = refusal.as_ref().map(error::as_json);
            documents.push(output::without_nulls(json!({
                "agent": identity,
                "removed": false,
                "running": runs,
                "work_dir": dir,
                "branch": workspace::branch(identity),
                "changed_files": unsaved.changed_files,
                "commits": unsaved.commits,
                "refused": refused.map(|refused| refused["error"].clone()),
            })));
            if context.json {
                continue;
            }
            if let Some(refusal) = &refusal {
                print_refusal(refusal)?;
                continue;
            }
            output::line(format!(
                "Would remove {identity}: {}worktree {}, branch {}{}.",
                if runs { "its container, " } else { "" },
                dir.display(),
                workspace::branch(identity),
                match unsaved.is_nothing() {
                    true => String::new(),
                    false => format!(
                        "; and keep work that exists nowhere else: {}",
                        unsaved.describe()
                    ),
                }
            ))?;
            continue;
        }
        if !args.force && !unsaved.is_nothing() {
            workspace::remove(town, identity, &dir, false)?;
        }
        if running.contains(identity) {
            stop::stop_into(
                town,
                std::slice::from_ref(identity),
                false,
                context,
                &mut Vec::new(),
            )?;
        }
        let removed = workspace::remove(town, identity, &dir, args.force)?;
        restore::forget(town, identity)?;
        documents.push(output::without_nulls(
            json!({"agent": identity, "removed": true, "saved": removed.saved}),
        ));
        if !context.json {
            let kept = match removed.saved.as_slice() {
                [] => String::new(),
                saved => format!(" Its unsaved work is kept as {}.", saved.join(", ")),
            };
            output::line(format!("Removed {identity}.{kept}"))?;
        }
    }
    if context.json {
        output::json(&documents)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn all_workers(town: &Town, only: Option<&str>) -> Result<Vec<Identity>, Problem> {
    if let Some(name) = only {
        rig::check_not_parked(town, name)?;
    }
    let found: Vec<Identity> = town
        .registry()
        .rigs
        .iter()
        .filter(|(name, entry)| only.map_or(entry.is_in_service(), |only| only == name.as_str()))
        .flat_map(|(name, _)| directory::workers(town, name, Role::Crew))
        .collect();
    if found.is_empty() {
        return Err(
            Problem::not_found("there is no crew").hint("`gt crew add RIG/NAME` makes a worker")
        );
    }
    Ok(found)
}

fn running(town: &Town, only: Option<&str>) -> Result<Vec<Identity>, Problem> {
    if let Some(name) = only {
        rig::entry(town, name)?;
    }
    let wanted = AgentFilter {
        rig: only,
        role: Some(Role::Crew),
        stopped: false,
    };
    Ok(engine::list(town, wanted)?
        .into_iter()
        .map(|agent| agent.identity)
        .collect())
}

/// Resolves names to identities. Fails if a worker does not exist.
fn existing(town: &Town, names: &[String], rig: &RigArg) -> Result<Vec<Identity>, Problem> {
    let wanted = identities(town, names, rig)?;
    for identity in &wanted {
        let rig = identity.rig().unwrap_or_default();
        if !directory::workers(town, rig, Role::Crew).contains(identity) {
            let name = identity.short_name();
            let problem =
                Problem::not_found(format!("the rig {rig} has no crew worker called {name:?}"));
            let problem = directory::with_similar(town, problem, identity);
            return Err(problem.hint(format!(
                "`gt crew add {rig}/{name}` makes one, `gt crew list {rig}` shows them"
            )));
        }
    }
    Ok(wanted)
}

const HOW_TO_NAME_RIG: &str = "write RIG/NAME, or add `--rig RIG`";

fn identities(town: &Town, names: &[String], rig: &RigArg) -> Result<Vec<Identity>, Problem> {
    let mut identities = Vec::new();
    for text in names {
        let (rig, name) = match text.split_once('/') {
            Some((rig, rest)) => (rig.to_owned(), rest.strip_prefix("crew/").unwrap_or(rest)),
            None => (
                rig::named_or_only(town, rig.rig.as_deref(), HOW_TO_NAME_RIG)?,
                text.as_str(),
            ),
        };
        rig::entry(town, &rig)?;
        gt_core::name::check_agent(name)?;
        let identity = Identity::crew(rig, name);
        if !identities.contains(&identity) {
            identities.push(identity);
        }
    }
    Ok(identities)
}
