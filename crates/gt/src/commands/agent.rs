use super::start_flags::StartFlags;
use super::{CommandResult, restart, start, stop};
use crate::context::Context;
use crate::output;
use clap::{Args, Subcommand};
use gt_core::{Identity, Problem, Role};
use gt_town::Town;
use gt_town::agents::listing::{self as engine, AgentFilter};
use gt_town::base::files;
use gt_town::catalog::directory::{self, AgentFile};
use gt_town::catalog::harnesses;
use gt_town::lifecycle::restore;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Standalone agents in any folder: containers `agent_{slug}`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AgentCommand {
    New(NewArgs),
    /// Start the agent
    Start(SlugStart),
    /// Stop the agent
    Stop(SlugStop),
    /// Stop the agent if it runs, and start it with a new conversation
    Reset(SlugStart),
    Rm(RmArgs),
}

/// Register a new agent; `gt agent start` starts it
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The agent's slug: agent/SLUG is its address
    slug: String,
    /// The folder it works in [default: one inside the town]
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Its agent program
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,
    /// Appended to its first prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Start it at once
    #[arg(long)]
    start: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlugStart {
    /// The agent's slug: agent/SLUG is its address
    slug: String,
    #[command(flatten)]
    flags: StartFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SlugStop {
    /// The agent's slug: agent/SLUG is its address
    slug: String,
    /// Do not ask it to quit first
    #[arg(long)]
    force: bool,
}

/// Stop an agent and remove it
///
/// Its folder stays, unless it is inside the town and empty.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// The agent's slug: agent/SLUG is its address
    slug: String,
    /// Remove its folder inside the town even if it contains files
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(command: AgentCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        AgentCommand::New(args) => new(&town, args, context),
        AgentCommand::Start(args) => {
            let wanted = [existing(&town, &args.slug)?];
            let options = args.flags.options(context)?;
            start::start_many(
                &town,
                &wanted,
                &options,
                context,
                start::RunningAlready::IsAProblem,
            )
        }
        AgentCommand::Stop(args) => {
            let wanted = [existing(&town, &args.slug)?];
            stop::stop_many(&town, &wanted, args.force, context)
        }
        AgentCommand::Reset(args) => {
            let wanted = [existing(&town, &args.slug)?];
            restart::restart(&town, &wanted, &args.flags.options(context)?, context)
        }
        AgentCommand::Rm(args) => remove(&town, &args, context),
    }
}

fn existing(town: &Town, slug: &str) -> Result<Identity, Problem> {
    let identity = Identity::agent(slug.strip_prefix("agent_").unwrap_or(slug));
    gt_core::name::check_slug(identity.short_name())?;
    if directory::agent_file(town, &identity)?.is_none() {
        return Err(
            Problem::not_found(format!("there is no agent {:?}", identity.short_name())).hint(
                format!("`gt agent new {}` makes one", identity.short_name()),
            ),
        );
    }
    Ok(identity)
}

fn new(town: &Town, args: NewArgs, context: &Context) -> CommandResult {
    let identity = Identity::agent(&*args.slug);
    identity.check_new(town.registry())?;
    let taken = files::folder_names(&town.root().join("agents"))
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case(&args.slug));
    if let Some(name) = taken {
        return Err(
            Problem::conflict(format!("the agent {name} exists already"))
                .hint(format!("`gt agent start {name}` starts it")),
        );
    }
    if let Some(harness) = &args.harness {
        harnesses::resolve(town, harness)?;
    }
    let work_dir = args.dir.map(|dir| context.around().current_dir.join(dir));
    if let Some(dir) = work_dir.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(Problem::not_found(format!(
            "{} is not a folder",
            dir.display()
        )));
    }
    let file = AgentFile {
        work_dir,
        harness: args.harness,
        prompt: args.prompt,
    };
    directory::write_agent_file(town, &identity, &file)?;
    if args.start {
        let options = StartFlags::default().options(context)?;
        return start::start_many(
            town,
            &[identity],
            &options,
            context,
            start::RunningAlready::IsAProblem,
        );
    }
    if context.json {
        output::json(&json!({"agent": identity, "container": format!("agent_{}", args.slug)}))?;
    } else {
        output::line(format!(
            "Made {identity}. Next: `gt agent start {}`.",
            args.slug
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(town: &Town, args: &RmArgs, context: &Context) -> CommandResult {
    let identity = existing(town, &args.slug)?;
    let folder = town.root().join("agents").join(identity.short_name());
    let check = || match first_file(&folder) {
        Some(file) if !args.force => Err(Problem::conflict(format!(
            "{} would be lost",
            file.display()
        ))
        .hint("move the files away, or `--force` removes them")),
        _ => Ok(()),
    };
    check()?;
    let wanted = AgentFilter {
        role: Some(Role::Agent),
        ..AgentFilter::default()
    };
    let running = engine::list(town, wanted)?;
    if running.iter().any(|agent| agent.identity == identity) {
        stop::stop_into(
            town,
            std::slice::from_ref(&identity),
            false,
            context,
            &mut Vec::new(),
        )?;
    }
    // The agent may have written files until it ended.
    check()?;
    std::fs::remove_dir_all(&folder)
        .map_err(|error| files::io_problem("remove", &folder, &error))?;
    restore::forget(town, &identity)?;
    if context.json {
        output::json(&json!({"agent": identity, "removed": true}))?;
    } else {
        output::line(format!("Removed {identity}."))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a file in an agent's folder that `gt agent new` did not write.
fn first_file(folder: &Path) -> Option<PathBuf> {
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in files::entries(&dir) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if path != folder.join("agent.toml") {
                return Some(path);
            }
        }
    }
    None
}
