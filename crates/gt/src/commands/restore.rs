use super::CommandResult;
use super::start::in_parallel;
use super::start_flags::StartFlags;
use crate::context::Context;
use crate::error;
use crate::output::{self, Paint};
use clap::Args;
use gt_core::save::RestoreDecision;
use gt_core::startup::Conversation;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::target;
use gt_town::lifecycle::restore::{self, RestoreIntent, RestoredAgent};
use serde_json::{Value, json};

/// Bring back the containers of a save
///
/// After a crash of the tmux server, or of the machine: every agent that is missing comes
/// back under its name, with its windows and their content, and resumes its conversation.
/// Agents that run, or that were stopped since the save, are left alone.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The save, or a prefix of its name [default: the newest]
    save: Option<String>,
    /// Only this agent, even if it was stopped; may be given several times
    #[arg(long = "agent", value_name = "TARGET")]
    agents: Vec<String>,
    /// A variable for the agents, from this environment or as NAME=VALUE: those given at their start were not saved
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: RestoreArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let mut named = Vec::new();
    for text in &args.agents {
        named.push(match Identity::from_address(text, town.registry()) {
            Some(identity) => identity,
            None => target::resolve(&town, text)?,
        });
    }
    let extra_env = StartFlags::with_env(args.env).options(context)?.extra_env;
    let _lock = match args.dry_run {
        true => None,
        false => Some(restore::lock(&town)?),
    };
    let source = restore::find(&town, args.save.as_deref(), &named)?;
    source.damaged.iter().for_each(output::warn);
    let (intents, warnings) = restore::plan(&town, &source, &named)?;
    warnings.iter().for_each(output::warn);
    let done = if args.dry_run {
        intents.into_iter().map(|intent| (intent, None)).collect()
    } else {
        carry_out(&town, intents, &extra_env, context)?
    };
    tell(source.save.as_deref(), &done, context)
}

type RestoreResult = (RestoreIntent, Option<Result<RestoredAgent, Problem>>);

fn carry_out(
    town: &Town,
    intents: Vec<RestoreIntent>,
    extra_env: &[(String, String)],
    context: &Context,
) -> Result<Vec<RestoreResult>, Problem> {
    context.catch_interrupts();
    restore::begin(town, &intents)?;
    let is_wanted = |intent: &&RestoreIntent| intent.verdict == RestoreDecision::Restore;
    let wanted: Vec<&RestoreIntent> = intents.iter().filter(is_wanted).collect();
    let results = in_parallel(town, "restoring", &wanted, |intent| {
        restore::restore(town, intent, extra_env)
    });
    let mut results = results.into_iter();
    let with_result = |mut intent: RestoreIntent| {
        let result = match &intent.verdict {
            RestoreDecision::Restore => match results.next() {
                // A concurrent process has restored it.
                Some(Err(error))
                    if error.is_lost_to_another() && restore::is_there(town, &intent.identity) =>
                {
                    intent.verdict = RestoreDecision::Runs;
                    None
                }
                result => result.map(|result| result.map_err(Problem::from)),
            },
            RestoreDecision::Taken(words) => Some(Err(restore::name_taken(words))),
            _ => None,
        };
        (intent, result)
    };
    Ok(intents.into_iter().map(with_result).collect())
}

fn tell(name: Option<&str>, done: &[RestoreResult], context: &Context) -> CommandResult {
    if context.json {
        let agents: Vec<Value> = done.iter().map(document).collect();
        output::json(&json!({"save": name, "agents": agents}))?;
    } else {
        let paint = Paint::for_stdout();
        for (intent, result) in done {
            if let Some(line) = line(intent, result.as_ref(), paint) {
                output::line(line)?;
            }
        }
        if !done
            .iter()
            .any(|(intent, _)| intent.verdict == RestoreDecision::Restore)
        {
            output::line("There is no agent to bring back.")?;
        }
    }
    for (intent, result) in done {
        for warning in result
            .iter()
            .flatten()
            .flat_map(|back| &back.started.warnings)
        {
            output::warn(format!("{}: {warning}", intent.identity));
        }
    }
    let tried = done.iter().filter(|(_, result)| result.is_some()).count();
    let failures: Vec<(&Identity, &Problem)> = done
        .iter()
        .filter_map(|(intent, result)| Some((&intent.identity, result.as_ref()?.as_ref().err()?)))
        .collect();
    error::finish(&failures, tried, "brought back")
}

fn line(
    intent: &RestoreIntent,
    result: Option<&Result<RestoredAgent, Problem>>,
    paint: Paint,
) -> Option<String> {
    let who = paint.bold(&intent.identity.address());
    // A person's own tmux server may be gone, and nothing is started there.
    let server = intent
        .other_server
        .as_ref()
        .map_or_else(String::new, |its| {
            format!(" on the town's tmux server (it was on {its})")
        });
    match (&intent.verdict, result) {
        (RestoreDecision::Restore, Some(Ok(back))) => {
            let started = &back.started;
            let (mark, words) = (paint.green("✓"), words(&back.conversation));
            let (state, container) = (started.state.as_str(), &started.container);
            let seconds = started.elapsed.as_secs_f64();
            Some(format!(
                "{mark} {who} {state} in {container}{server}, {words} ({}, {seconds:.1} s)",
                started.harness
            ))
        }
        (RestoreDecision::Restore, None) => {
            let words = words(&intent.conversation);
            Some(format!("Would bring back {who}{server}, {words}."))
        }
        // Failures are reported together at the end.
        (_, Some(Err(_))) => None,
        (verdict, _) => Some(format!("{} {who}: {}", paint.dim("·"), reason(verdict))),
    }
}

fn words(conversation: &Conversation) -> String {
    match conversation {
        Conversation::Resume(id) => format!("in its conversation {id}"),
        Conversation::Continue => "in the newest conversation of its folder".to_owned(),
        _ => "in a new conversation".to_owned(),
    }
}

fn reason(verdict: &RestoreDecision) -> String {
    match verdict {
        RestoreDecision::Restore => "is missing".to_owned(),
        RestoreDecision::Runs => "is there already".to_owned(),
        RestoreDecision::Taken(words) => words.clone(),
        RestoreDecision::Ended(outcome) => format!("was ended since ({})", outcome.as_str()),
        RestoreDecision::WasOver => "had ended before the save".to_owned(),
        RestoreDecision::Removed => "was removed".to_owned(),
    }
}

fn document((intent, result): &RestoreResult) -> Value {
    let (word, id) = match result {
        Some(Ok(back)) => conversation_json(&back.conversation),
        _ => conversation_json(&intent.conversation),
    };
    let action = match &intent.verdict {
        RestoreDecision::Restore => "restore",
        RestoreDecision::Taken(_) => "conflict",
        _ => "leave",
    };
    let mut document = json!({
        "agent": intent.identity,
        "container": intent.saved.name,
        "action": action,
        "reason": reason(&intent.verdict),
        "seen_at": intent.saved.seen_at,
        "conversation": word,
        "conversation_id": id,
        "restored": matches!(result, Some(Ok(_))),
    });
    match result {
        Some(Ok(back)) => {
            let started = &back.started;
            document["container"] = json!(started.container);
            document["session"] = json!(started.session);
            document["pane"] = json!(started.pane.to_string());
            document["pid"] = json!(started.pid);
            document["state"] = json!(started.state);
            document["warnings"] = json!(started.warnings);
        }
        Some(Err(problem)) => document["error"] = error::as_json(problem)["error"].clone(),
        None => {}
    }
    output::without_nulls(document)
}

fn conversation_json(conversation: &Conversation) -> (&'static str, Option<&str>) {
    match conversation {
        Conversation::Resume(id) => ("resume", Some(id)),
        Conversation::Continue => ("continue", None),
        _ => ("new", None),
    }
}
