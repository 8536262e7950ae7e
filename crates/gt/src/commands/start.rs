use super::CommandResult;
use super::start_flags::StartFlags;
use crate::context::Context;
use crate::error;
use crate::output::progress::ProgressLine;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::lifecycle::start;
use gt_town::lifecycle::start::{StartError, StartOptions, StartedAgent};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Start agents of any role
///
/// A target is an address (gastown/crew/max, mayor), rig/name, or a container's name.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The agents: addresses or short forms of them, container names, or prefixes of session ids
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    #[command(flatten)]
    flags: StartFlags,
}

pub(crate) fn run(args: StartArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut identities = Vec::new();
    for text in &args.targets {
        identities.push(target::resolve(&town, text)?);
    }
    let options = args.flags.options(context)?;
    start_many(
        &town,
        &identities,
        &options,
        context,
        RunningAlready::IsAProblem,
    )
}

/// How to treat an agent that already runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunningAlready {
    /// The caller named the agents: a conflict.
    IsAProblem,
    /// The caller only requires that they run.
    IsFine,
}

/// Starts agents concurrently, and prints the result of each.
pub(crate) fn start_many(
    town: &Town,
    identities: &[Identity],
    options: &StartOptions,
    context: &Context,
    running_already: RunningAlready,
) -> CommandResult {
    let each: Vec<Wanted<'_>> = identities
        .iter()
        .map(|identity| (identity, Cow::Borrowed(options)))
        .collect();
    start_each(town, &each, context, running_already)
}

/// Agent and its start options.
pub(crate) type Wanted<'a> = (&'a Identity, Cow<'a, StartOptions>);

/// Starts agents concurrently, each with its own options, and prints the result of each.
pub(crate) fn start_each(
    town: &Town,
    all: &[Wanted<'_>],
    context: &Context,
    running_already: RunningAlready,
) -> CommandResult {
    context.catch_interrupts();
    let mut wanted: Vec<&Wanted<'_>> = Vec::new();
    for one in all {
        if !wanted.iter().any(|(identity, _)| *identity == one.0) {
            wanted.push(one);
        }
    }
    let identities: Vec<Identity> = wanted.iter().map(|(agent, _)| (*agent).clone()).collect();
    for warning in start::pre_sync(town, &identities) {
        output::warn(warning);
    }
    let results = start_in_parallel(town, &wanted);
    let mut failures: Vec<(&Identity, &Problem)> = Vec::new();
    let mut documents: Vec<Value> = Vec::new();
    let paint = Paint::for_stdout();
    for (identity, result) in &results {
        match result {
            Ok(started) => {
                documents.push(started_json(started));
                if !context.json {
                    output::line(started_line(started, paint))?;
                }
                for warning in &started.warnings {
                    output::warn(format!("{identity}: {warning}"));
                }
            }
            Err(StartError::Running(_)) if running_already == RunningAlready::IsFine => {
                documents.push(json!({"agent": identity, "started": false, "running": true}));
                if !context.json {
                    output::line(format!("{} {identity} runs already", paint.dim("·")))?;
                }
            }
            Err(error) => {
                let problem = error.problem();
                let mut document = error::as_json(problem);
                document["agent"] = json!(identity);
                document["started"] = json!(false);
                documents.push(document);
                failures.push((identity, problem));
            }
        }
    }
    if context.json {
        output::json(&documents)?;
    }
    error::finish(&failures, results.len(), "started")
}

type StartResult = (Identity, Result<StartedAgent, StartError>);

fn start_in_parallel(town: &Town, wanted: &[&Wanted<'_>]) -> Vec<StartResult> {
    let results = in_parallel(town, "starting", wanted, |(identity, options)| {
        start::start(town, identity, options)
    });
    let identities = wanted.iter().map(|(identity, _)| (*identity).clone());
    identities.zip(results).collect()
}

/// Runs `work` for each item, with the concurrency that the town allows. The results have the order
/// of `items`.
pub(crate) fn in_parallel<T: Sync, R: Send, E: Send + From<Problem>>(
    town: &Town,
    what: &str,
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Vec<Result<R, E>> {
    let workers = town.settings().limits.parallel_starts.min(items.len());
    let progress = ProgressLine::bar(what, items.len());
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<R, E>>>> =
        Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else {
                        return;
                    };
                    let result = work(item);
                    progress.step();
                    if let Ok(mut results) = results.lock() {
                        results[index] = Some(result);
                    }
                }
            });
        }
    });
    // The lock is poisoned only if a thread panicked, and then the scope has panicked too.
    let results = results.into_inner().unwrap_or_default();
    results
        .into_iter()
        .map(|result| {
            result.unwrap_or_else(|| Err(Problem::failed("the start did not finish").into()))
        })
        .collect()
}

fn started_line(started: &StartedAgent, paint: Paint) -> String {
    format!(
        "{} {} {} in {} ({}, {:.1} s)",
        paint.green("✓"),
        paint.bold(&started.identity.address()),
        started.state.as_str(),
        started.container,
        started.harness,
        started.elapsed.as_secs_f64()
    )
}

fn started_json(started: &StartedAgent) -> Value {
    json!({
        "agent": started.identity,
        "started": true,
        "container": started.container,
        "session": started.session,
        "pane": started.pane.to_string(),
        "pid": started.pid,
        "harness": started.harness,
        "work_dir": started.work_dir,
        "state": started.state,
        "ms": u64::try_from(started.elapsed.as_millis()).unwrap_or(u64::MAX),
        "warnings": started.warnings,
    })
}
