use super::CommandResult;
use crate::context::Context;
use crate::error;
use crate::output::{self, Paint};
use clap::{Args, Subcommand};
use gt_core::Problem;
use gt_core::digest::Digest;
use gt_core::event::Event;
use gt_core::patrol::{PatrolAction, RULES};
use gt_town::supervision::digest::{self, DigestDelivery};
use gt_town::supervision::patrol::{self, Performed};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Check the town once, and act on dead, hung and idle agents, stalled queues and leftovers
///
/// Applies a table of rules to the town and carries out their actions, each with its reason:
/// a dead polecat is resumed, an idle one with work is nudged, a queue that has stopped is run
/// again. A town does this by itself, with its automatic saves (`automatic` under [patrol] in
/// town.toml) and once a minute with a daemon.
///
/// Example: gt patrol --dry-run
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PatrolArgs {
    /// Print the actions without carrying them out
    #[arg(long)]
    dry_run: bool,
    #[command(subcommand)]
    command: Option<PatrolCommand>,
}

#[derive(Debug, Subcommand)]
enum PatrolCommand {
    Log(LogArgs),
    Rules(RulesArgs),
    Wake(WakeArgs),
}

/// Show what earlier patrols did, the newest last
#[derive(Debug, Args)]
struct LogArgs {
    /// Maximum number of actions; the newest are shown
    #[arg(long = "lines", short = 'n', value_name = "N", default_value_t = 50)]
    lines: usize,
}

/// Show the rules: condition, action, back-off and limit
#[derive(Debug, Args)]
struct RulesArgs {}

/// Send role agents what they have to decide, and start those that do not run
///
/// A witness, refinery, deacon or boot gets a digest of the open escalations and merges that need its
/// judgement. A town does this by itself after `gt up`. Each matter is sent once, and again when it
/// is raised again.
#[derive(Debug, Args)]
struct WakeArgs {
    /// Print the digests that are due without sending them
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &PatrolArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    match &args.command {
        Some(PatrolCommand::Log(args)) => return log(&patrol::log(&town, args.lines)?, context),
        Some(PatrolCommand::Rules(RulesArgs {})) => {
            let settings = town.settings().patrol.rules(&town.settings().limits);
            return rules(&settings, context);
        }
        Some(PatrolCommand::Wake(args)) => return wake(args, context),
        None => {}
    }
    if args.dry_run {
        let actions = patrol::plan(&town)?;
        return show(
            &actions
                .iter()
                .map(|action| (action, None))
                .collect::<Vec<_>>(),
            context,
        );
    }
    context.catch_interrupts();
    let done = patrol::patrol_once(&town)?.ok_or_else(|| {
        Problem::conflict("another patrol is running")
            .hint("`gt patrol log` shows its actions once it has finished")
    })?;
    let shown: Vec<Shown<'_>> = done
        .iter()
        .map(|Performed { action, result }| (action, Some(result)))
        .collect();
    show(&shown, context)?;
    let failed = done.iter().filter(|it| it.result.is_err()).count();
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(
            Problem::failed(format!("{failed} of {} actions failed", done.len()))
                .hint("they are retried after their back-off"),
        ),
    }
}

fn wake(args: &WakeArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    if args.dry_run {
        let due = digest::plan(&town)?;
        return show_digests(
            &due.iter().map(|it| (it, None)).collect::<Vec<_>>(),
            context,
        );
    }
    context.catch_interrupts();
    let woken = digest::run(&town)?.ok_or_else(|| {
        Problem::conflict("another process is waking role agents")
            .hint("`gt events --type role_woken` shows the result once it has finished")
    })?;
    let shown: Vec<ShownDigest<'_>> = woken
        .iter()
        .map(|woken| (&woken.digest, Some(&woken.result)))
        .collect();
    show_digests(&shown, context)?;
    let failed = woken.iter().filter(|it| it.result.is_err()).count();
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        _ => Err(Problem::failed(format!(
            "{failed} of {} digests were not delivered",
            woken.len()
        ))
        .hint("they are delivered later")),
    }
}

type ShownDigest<'a> = (&'a Digest, Option<&'a Result<DigestDelivery, Problem>>);

fn show_digests(digests: &[ShownDigest<'_>], context: &Context) -> CommandResult {
    if context.json {
        let document = |(digest, result): &ShownDigest<'_>| {
            let result = result.as_ref();
            // The error is a field of its own.
            let how = result.and_then(|it| it.as_ref().ok()).map(|it| it.as_str());
            let error = result.and_then(|it| it.as_ref().err());
            output::without_nulls(json!({
                "agent": digest.agent,
                "digest": digest.id,
                "matters": digest.matters.keys().collect::<Vec<_>>(),
                "text": digest.text,
                "how": how,
                "error": error.map(|problem| error::as_json(problem)["error"].clone()),
            }))
        };
        output::json(&json!({"digests": digests.iter().map(document).collect::<Vec<_>>()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    for (digest, result) in digests {
        let (mark, how) = match result {
            None => (paint.dim("·"), "would get"),
            Some(Ok(DigestDelivery::Started)) => (paint.green("✓"), "was started with"),
            Some(Ok(DigestDelivery::Queued)) => (paint.green("✓"), "gets"),
            Some(Ok(DigestDelivery::Before)) => (paint.green("✓"), "has"),
            Some(Err(_)) => (paint.red("✗"), "did not get"),
        };
        let ids: Vec<&str> = digest.matters.keys().map(String::as_str).collect();
        let agent = paint.bold(&digest.agent);
        output::line(format!(
            "{mark} {agent} {how} {}: {}",
            digest.id,
            ids.join(", ")
        ))?;
        if let Some(Err(problem)) = result {
            output::line(format!("  {problem}"))?;
        }
    }
    if digests.is_empty() {
        output::line("No role agent has anything new to decide.")?;
    }
    Ok(ExitCode::SUCCESS)
}

type Shown<'a> = (&'a PatrolAction, Option<&'a Result<(), Problem>>);

fn show(actions: &[Shown<'_>], context: &Context) -> CommandResult {
    if context.json {
        output::json(&json!({"actions": actions.iter().map(document).collect::<Vec<_>>()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    for (action, result) in actions {
        let mark = match result {
            None => paint.dim("·"),
            Some(Ok(())) => paint.green("✓"),
            Some(Err(_)) => paint.red("✗"),
        };
        let what = paint.bold(action.kind.as_str());
        let why = format!("{} ({})", action.reason, action.evidence.join("; "));
        let rule = paint.dim(action.rule);
        output::line(format!("{mark} {what} {}: {why} [{rule}]", action.subject))?;
        if let Some(Err(problem)) = result {
            output::line(format!("  {problem}"))?;
        }
    }
    if actions.is_empty() {
        output::line("Nothing to do.")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn document((action, result): &Shown<'_>) -> Value {
    let mut document = json!(action);
    document["action"] = json!(action.kind.as_str());
    if let Some(fields) = document.as_object_mut() {
        fields.remove("kind");
    }
    if let Some(result) = result {
        document["done"] = json!(result.is_ok());
    }
    if let Some(Err(problem)) = result {
        document["error"] = error::as_json(problem)["error"].clone();
    }
    document
}

fn log(events: &[Event], context: &Context) -> CommandResult {
    if context.json {
        output::json(&events)?;
        return Ok(ExitCode::SUCCESS);
    }
    for event in events {
        let text = |name: &str| {
            event
                .payload
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let mark = if event.payload.contains_key("error") {
            "✗"
        } else {
            "✓"
        };
        let line = format!(
            "{} {mark} {} {}: {} [{}]",
            event.ts,
            text("action"),
            text("subject"),
            text("reason"),
            text("rule")
        );
        output::line(line)?;
    }
    if events.is_empty() {
        output::line("No patrol has done anything yet.")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rules(settings: &gt_core::patrol::RuleSettings, context: &Context) -> CommandResult {
    if context.json {
        let rows = RULES.iter().map(|rule| {
            json!({
                "rule": rule.name,
                "condition": rule.condition,
                "evidence": rule.evidence,
                "action": rule.action,
                "first_wait_seconds": rule.backoff.0,
                "longest_wait_seconds": rule.backoff.1,
                "limit": (rule.limit)(settings),
                "severity": rule.severity.map(gt_core::escalation::Severity::as_str),
                "off": settings.off.iter().any(|name| name == rule.name),
            })
        });
        output::json(&rows.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    for rule in RULES {
        let name = paint.bold(rule.name);
        let line = format!("{name}: {} → {}", rule.condition, rule.action);
        output::fitted(&line, 4)?;
    }
    Ok(ExitCode::SUCCESS)
}
