use super::CommandResult;
use crate::context::Context;
use crate::error;
use crate::output::table::{Cell, Table};
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::base::time;
use gt_town::repo::rig;
use gt_town::supervision::scheduler;
use gt_town::workflow::polecat::{self, Nuked, Polecat, PolecatState, WorktreeState};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Polecats: workers that take one work item each
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PolecatCommand {
    List(ListArgs),
    Show(ShowArgs),
    Nuke(NukeArgs),
    Gc(GcArgs),
}

/// List polecats, running or not
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this rig's
    rig: Option<String>,
}

/// Show one polecat
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// NAME or RIG/NAME
    name: String,
    /// The rig [default: the one of this folder, or the only one that has it]
    #[arg(long)]
    rig: Option<String>,
}

/// Remove polecats: container, worktree and branches
///
/// The item on its hook is open again. A polecat with uncommitted or unpushed work is not removed.
/// A branch that waits to be merged stays.
#[derive(Debug, Args)]
pub(crate) struct NukeArgs {
    /// NAME or RIG/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Remove it anyway; unsaved work is kept under refs/gt/saved/, and the folder of a broken
    /// worktree under RIG/.saved/
    #[arg(long)]
    force: bool,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// The rig [default: the one of this folder, or the only one that has it]
    #[arg(long)]
    rig: Option<String>,
}

/// Remove polecats that have been free for a while
///
/// Those with work on their hook, with a container or with unsaved work stay.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Free for at least this long
    #[arg(long, value_name = "TIME", default_value = "24h")]
    older_than: String,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Only this rig's
    #[arg(long)]
    rig: Option<String>,
}

pub(crate) fn run(command: PolecatCommand, context: &Context) -> CommandResult {
    let town = context.town()?;
    match command {
        PolecatCommand::List(args) => list(&town, &args, context),
        PolecatCommand::Show(args) => {
            let identity = identity(&town, &args.name, args.rig.as_deref())?;
            show(&polecat::show(&town, &identity)?, context)
        }
        PolecatCommand::Nuke(args) => nuke(&town, &args, context),
        PolecatCommand::Gc(args) => gc(&town, &args, context),
    }
}

fn list(town: &Town, args: &ListArgs, context: &Context) -> CommandResult {
    let polecats = polecat::list(town, args.rig.as_deref())?;
    if context.json {
        output::json(&polecats.iter().map(document).collect::<Vec<Value>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if polecats.is_empty() {
        output::line("There are no polecats.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["AGENT", "STATE", "ITEM", "BRANCH", "AHEAD", "CHANGED"]);
    let count = |count: Option<usize>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
    for polecat in &polecats {
        let bead = polecat.bead.as_ref().map(ToString::to_string);
        table.row([
            Cell::address(polecat.identity.address()),
            polecat.state.as_str().into(),
            bead.unwrap_or_else(|| "-".to_owned()).into(),
            match (&polecat.branch, polecat.worktree) {
                (Some(branch), _) => branch.as_str().into(),
                (None, WorktreeState::Sound) => "-".into(),
                (None, worktree) => format!("({})", worktree.as_str()).into(),
            },
            count(polecat.ahead).into(),
            count(polecat.changed_files).into(),
        ]);
    }
    output::print(&table.render(Paint::for_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn show(polecat: &Polecat, context: &Context) -> CommandResult {
    if context.json {
        output::json(&document(polecat))?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = |count: Option<usize>, what: &str| match count {
        Some(count) => format!("{count} {what}"),
        None => "-".to_owned(),
    };
    let worktree = match polecat.worktree {
        WorktreeState::Sound => "sound",
        WorktreeState::Broken => {
            "broken: the folder exists, but git does not know it as a worktree"
        }
        WorktreeState::Missing => "missing",
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for (name, value) in [
        ("agent", polecat.identity.address()),
        ("state", polecat.state.as_str().to_owned()),
        (
            "item",
            or_none(polecat.bead.as_ref().map(ToString::to_string)),
        ),
        ("branch", or_none(polecat.branch.clone())),
        ("worktree", worktree.to_owned()),
        ("ahead", count(polecat.ahead, "commits")),
        ("changed", count(polecat.changed_files, "files")),
        ("container", or_none(polecat.container.clone())),
        ("session", or_none(polecat.session.map(|id| id.to_string()))),
        ("folder", polecat.work_dir.display().to_string()),
    ] {
        output::line(format!("{name:<10} {}", output::clean(&value)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn nuke(town: &Town, args: &NukeArgs, context: &Context) -> CommandResult {
    let mut wanted: Vec<Identity> = Vec::new();
    for name in &args.names {
        let identity = identity(town, name, args.rig.as_deref())?;
        if !wanted.contains(&identity) {
            wanted.push(identity);
        }
    }
    let results = wanted.into_iter().map(|identity| {
        let result = polecat::nuke(town, &identity, args.force, args.dry_run);
        (identity, result)
    });
    let results: Vec<Removal> = results.collect();
    if !args.dry_run {
        scheduler::wake(town);
    }
    let failures = tell(&results, args.dry_run, context)?;
    error::finish(&failures, results.len(), "removed")
}

fn gc(town: &Town, args: &GcArgs, context: &Context) -> CommandResult {
    let older_than = time::seconds(&args.older_than)?;
    let results = polecat::gc(town, args.rig.as_deref(), older_than, args.dry_run)?;
    // Polecats with unsaved work are kept; that is not a failure of `gt polecat gc`.
    for (_, problem) in tell(&results, args.dry_run, context)? {
        output::warn(problem.message());
    }
    if results.is_empty() && !context.json {
        output::line("There is nothing to remove.")?;
    }
    Ok(ExitCode::SUCCESS)
}

type Removal = (Identity, Result<Nuked, Problem>);

/// Prints the removed polecats, and returns the others with their problems.
fn tell<'a>(
    results: &'a [Removal],
    dry_run: bool,
    context: &Context,
) -> Result<Vec<(&'a Identity, &'a Problem)>, Problem> {
    let mut documents = Vec::new();
    let mut failures = Vec::new();
    for (identity, result) in results {
        match result {
            Ok(nuked) => {
                documents.push(removal(nuked, dry_run));
                if !context.json {
                    tell_one(nuked, dry_run)?;
                }
            }
            Err(problem) => {
                let mut document = error::as_json(problem);
                document["agent"] = json!(identity);
                document["removed"] = json!(false);
                documents.push(document);
                failures.push((identity, problem));
            }
        }
    }
    if context.json {
        output::json(&documents)?;
    }
    Ok(failures)
}

fn removal(nuked: &Nuked, dry_run: bool) -> Value {
    let refused = nuked.refusal.as_ref().map(error::as_json);
    output::without_nulls(json!({
        "agent": nuked.identity,
        "removed": !dry_run,
        "stopped": nuked.stopped,
        "released": nuked.released,
        "saved": nuked.saved,
        "kept_branches": nuked.kept,
        "changed_files": nuked.unsaved.changed_files,
        "commits": nuked.unsaved.commits,
        "broken": nuked.unsaved.is_broken,
        "half_done": nuked.unsaved.half_done,
        "locked": nuked.unsaved.locked,
        "refused": refused.map(|refused| refused["error"].clone()),
    }))
}

fn tell_one(nuked: &Nuked, dry_run: bool) -> Result<(), Problem> {
    let Some(refusal) = &nuked.refusal else {
        return output::line(line(nuked, dry_run));
    };
    print_refusal(refusal)
}

/// Prints the refusal in a dry run.
pub(super) fn print_refusal(refusal: &Problem) -> Result<(), Problem> {
    output::line(format!("Would be refused: {refusal}."))?;
    for cause in refusal.causes() {
        output::line(format!("  {}", output::clean(cause)))?;
    }
    for hint in refusal.hints() {
        output::line(format!("  {hint}"))?;
    }
    Ok(())
}

fn line(nuked: &Nuked, dry_run: bool) -> String {
    let mut line = match dry_run {
        true if nuked.unsaved.is_nothing() => format!("Would remove {}.", nuked.identity),
        true => format!(
            "Would remove {}, and keep work that exists nowhere else: {}.",
            nuked.identity,
            nuked.unsaved.describe()
        ),
        false => format!("Removed {}.", nuked.identity),
    };
    if let Some(id) = &nuked.released {
        line.push_str(&match dry_run {
            true => format!(" {id} would be open again."),
            false => format!(" {id} is open again."),
        });
    }
    for (what, names) in [
        ("Its unsaved work is kept as", &nuked.saved),
        (
            "Kept, because it is checked out elsewhere or waits to be merged:",
            &nuked.kept,
        ),
    ] {
        if !names.is_empty() {
            line.push_str(&format!(" {what} {}.", names.join(", ")));
        }
    }
    line
}

fn document(polecat: &Polecat) -> Value {
    output::without_nulls(json!({
        "agent": polecat.identity,
        "rig": polecat.identity.rig(),
        "name": polecat.identity.short_name(),
        "state": polecat.state.as_str(),
        "running": polecat.state == PolecatState::Working,
        "bead": polecat.bead,
        "branch": polecat.branch,
        "container": polecat.container,
        "session": polecat.session,
        "ahead": polecat.ahead,
        "changed_files": polecat.changed_files,
        "worktree": polecat.worktree.as_str(),
        "work_dir": polecat.work_dir,
    }))
}

/// Parses NAME, RIG/NAME or a polecat's address. A name alone refers to the rig of this folder, to
/// the only rig, or to the only rig that has the name.
fn identity(town: &Town, text: &str, given: Option<&str>) -> Result<Identity, Problem> {
    let (rig, name) = match text.split_once('/') {
        Some((rig, rest)) => {
            let rest = rest.strip_prefix("polecats/").unwrap_or(rest);
            (rig.to_owned(), rest)
        }
        None => match rig::named_or_only(town, given, "write RIG/NAME, or add `--rig RIG`") {
            Ok(rig) => (rig, text),
            Err(problem) => return only_one(town, text, problem),
        },
    };
    rig::entry(town, &rig)?;
    gt_core::name::check_agent(name)?;
    Ok(Identity::polecat(rig, name))
}

/// Returns the polecat of this name if exactly one rig has it. Fails with `unsaid` if several have
/// it, and with "not found" if none has.
fn only_one(town: &Town, name: &str, unsaid: Problem) -> Result<Identity, Problem> {
    let mut found = polecat::named(town, name)?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(unsaid),
        (None, _) => Err(
            Problem::not_found(format!("no rig has a polecat called {name:?}"))
                .hint("`gt polecat list` shows them"),
        ),
    }
}
