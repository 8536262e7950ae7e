use super::{CommandResult, hook_report, signal};
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::prime::PrimeSource;
use gt_core::signal::HookEvent;
use gt_core::{Identity, Problem};
use gt_town::Town;
use gt_town::agents::claim::{self, ClaimError};
use gt_town::agents::target;
use gt_town::lifecycle::prime::{self, Primed};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Print an agent's context: its identity, its work, and what earlier sessions left
///
/// The hooks of agent programs call it when a session begins; it can be called at any time. The
/// text is limited in size: the last line lists what was cut, with the commands that show it.
#[derive(Debug, Args)]
pub(crate) struct PrimeArgs {
    /// For the hook of a session that begins, with its JSON on standard input
    ///
    /// As the hook of a prompt it prints nothing, unless the prompt is the first one of a
    /// conversation. With --json it prints the JSON that some programs require.
    #[arg(long)]
    hook: bool,
    /// Only the state: normal, post-handoff, crash-recovery or autonomous
    #[arg(long, conflicts_with = "hook")]
    state: bool,
    /// Show the parts of the text and their sources instead of the text
    #[arg(long, conflicts_with_all = ["hook", "state"])]
    explain: bool,
    /// Only this part, in full
    #[arg(long, value_name = "NAME", conflicts_with_all = ["hook", "state", "explain"])]
    section: Option<String>,
    /// The agent [default: the calling agent, or the agent of this folder or pane]
    #[arg(long, value_name = "TARGET", conflicts_with = "hook")]
    agent: Option<String>,
}

/// Deadline for the text. Some programs wait for three seconds, and the hook must also record the
/// report within them.
const TIMEOUT: Duration = Duration::from_secs(2);
const NOTING: Duration = Duration::from_millis(500);
/// Maximum wait for the report; the rest of the time is for the answer.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &PrimeArgs, context: &Context) -> CommandResult {
    if args.hook {
        return match context.town_for_hook(TIMEOUT) {
            Ok(town) => run_as_hook(&town, context),
            // The program does not belong to an agent of the town.
            Err(problem) if context.around().var("GT_ROLE").is_none() => {
                output::warn(problem.to_string());
                Ok(ExitCode::SUCCESS)
            }
            Err(problem) => {
                // If this fails too, there is no other way to report it.
                let _ = say(&cannot_tell(&problem), context);
                Ok(ExitCode::SUCCESS)
            }
        };
    }
    let town = context.town()?;
    let agent = match &args.agent {
        Some(agent) => target::resolve_known(&town, agent)?,
        None => prime::calling_agent(&town)?,
    };
    // Only the agent itself pours its formula and consumes its handoff; a person who looks does not.
    let is_own = context.around().var("GT_ROLE") == Some(agent.address().as_str());
    let is_told = !args.state && !args.explain && args.section.is_none();
    let primed = match is_own && is_told {
        true => prime::begin(&town, &agent, PrimeSource::Startup)?,
        false => prime::gather(&town, &agent, PrimeSource::Startup)?,
    };
    if args.state {
        show_state(&primed, context)?;
    } else if args.explain {
        explain(&primed, &town, context)?;
    } else if let Some(name) = &args.section {
        show_section(&primed, name, context)?;
    } else {
        if context.json {
            output::json(&document(&primed))?;
        } else {
            output::line(&primed.composed.text)?;
        }
        if is_own {
            prime::settle(&town, &primed)?;
            note_conversation(&town, context);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Records the conversation that an agent's environment names. Its program may have no hook that
/// reports it.
fn note_conversation(town: &Town, context: &Context) {
    let around = context.around();
    let container = around.var("GT_SESSION");
    if let (Some(container), Some(id)) = (container, signal::conversation_of(around)) {
        let noted = gt_town::messaging::signal::note_conversation(town, container, id);
        noted.unwrap_or_else(|problem| tracing::warn!("{}", problem.line()));
    }
}

/// Runs as a hook. The agent's program waits, so problems are reported to the agent and never block
/// it.
fn run_as_hook(town: &Town, context: &Context) -> CommandResult {
    let log = |problem: Problem| tracing::error!("{}", problem.line());
    let report = hook_report::read(READ_TIMEOUT);
    report.problem.into_iter().for_each(log);
    let report = report.value;
    let answered = answer(town, &report, context).unwrap_or_else(|problem| {
        let words = cannot_tell(&problem);
        log(problem);
        HookAnswer::Failure(words)
    });
    let said = match &answered {
        HookAnswer::Nothing => Ok(()),
        HookAnswer::Primed(primed) => say(&primed.composed.text, context),
        HookAnswer::Unidentified(words) | HookAnswer::Failure(words) => say(words, context),
    };
    match said {
        // The text was not delivered, so nothing is consumed; the next hook delivers it.
        Err(problem) => log(problem),
        Ok(()) => {
            if let HookAnswer::Primed(primed) = &answered {
                prime::settle(town, primed).unwrap_or_else(log);
            }
        }
    }
    // Last, because the agent's program waits for the text, and this may wait for a lock.
    if !matches!(answered, HookAnswer::Unidentified(_)) {
        let event = if is_prompt(&report) {
            "prompt"
        } else {
            "session-start"
        };
        // A new timeout: the time spent on the text does not count against this.
        let noted = town.with_timeout(NOTING);
        signal::note_report(&noted, Some(event), None, &report, context).unwrap_or_else(log);
    }
    Ok(ExitCode::SUCCESS)
}

/// Answer of a hook.
enum HookAnswer {
    /// The text was delivered before.
    Nothing,
    /// The text of the agent.
    Primed(Box<Primed>),
    /// The agent is unknown, or another process has claimed its identity. The report is not
    /// recorded, because it would count as a report of the process that has the claim.
    Unidentified(String),
    /// The text could not be made.
    Failure(String),
}

fn answer(town: &Town, report: &Value, context: &Context) -> Result<HookAnswer, Problem> {
    let log = |problem: &Problem| tracing::error!("{}", problem.line());
    let agent = match prime::calling_agent(town) {
        Ok(agent) => agent,
        Err(problem) => {
            log(&problem);
            return Ok(HookAnswer::Unidentified(cannot_tell(&problem)));
        }
    };
    let session = context.around().var("GT_SESSION_UUID");
    match claim::take(town, &agent, session) {
        Ok(()) => {}
        Err(ClaimError::Taken(problem)) => {
            log(&problem);
            return Ok(HookAnswer::Unidentified(refusal(&agent, &problem)));
        }
        // A failed claim does not mean that another process has the identity.
        Err(ClaimError::Other(problem)) => log(&problem),
    }
    let mut source = PrimeSource::from_word(report["source"].as_str().unwrap_or_default());
    if is_prompt(report) {
        let conversation = report["session_id"].as_str().unwrap_or_default();
        match prime::due_with_prompt(town, conversation) {
            Ok(Some(due)) => source = due,
            Ok(None) => return Ok(HookAnswer::Nothing),
            // A duplicate text is better than none.
            Err(problem) => log(&problem),
        }
    }
    let primed = prime::begin(town, &agent, source)?;
    Ok(HookAnswer::Primed(Box::new(primed)))
}

fn is_prompt(report: &Value) -> bool {
    let word = report["hook_event_name"].as_str().unwrap_or_default();
    HookEvent::from_word(word) == Some(HookEvent::Prompt)
}

fn cannot_tell(problem: &Problem) -> String {
    format!(
        "gt could not say what you have to do: {problem}. Do not take this for having no work: run `gt prime`, \
         and if that fails too, tell the person who runs you."
    )
}

/// Prints text for the model, in the format of its program.
fn say(words: &str, context: &Context) -> Result<(), Problem> {
    if !context.json {
        return output::line(words);
    }
    output::json(&json!({
        "hookSpecificOutput": {"additionalContext": words},
    }))
}

fn refusal(agent: &Identity, problem: &Problem) -> String {
    format!(
        "STOP. You are not {agent}: {problem}. Do none of its work and touch none of its files. Tell this to the \
         person who started you."
    )
}

fn show_state(primed: &Primed, context: &Context) -> Result<(), Problem> {
    if !context.json {
        return output::line(primed.state.as_str());
    }
    output::json(&state_document(primed))
}

fn state_document(primed: &Primed) -> Value {
    let mut document = json!({
        "state": primed.state.as_str(),
        "role": primed.agent.role().as_str(),
        "agent": primed.agent.address(),
    });
    let fields = [
        (
            "hook",
            primed.hooked.as_ref().map(|hooked| json!(hooked.item.id)),
        ),
        (
            "checkpoint",
            primed
                .checkpoint
                .as_ref()
                .map(|(checkpoint, _)| json!(checkpoint)),
        ),
        (
            "handoff",
            primed.marker.as_ref().map(|marker| json!(marker)),
        ),
        (
            "session",
            primed.session.as_ref().map(|session| json!(session.id)),
        ),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            document[name] = value;
        }
    }
    document
}

fn document(primed: &Primed) -> Value {
    let mut document = state_document(primed);
    document["text"] = json!(primed.composed.text);
    document["brief"] = json!(primed.reminder.is_some());
    document["cuts"] = json!(primed.composed.cuts);
    let sections = primed.sections.iter().map(|section| {
        json!({
            "name": section.name,
            "source": section.source,
            "characters": section.text.chars().count(),
        })
    });
    document["sections"] = sections.collect();
    document
}

fn explain(primed: &Primed, town: &Town, context: &Context) -> Result<(), Problem> {
    if context.json {
        return output::json(&document(primed));
    }
    output::line(format!(
        "{} begins as {}",
        primed.agent,
        primed.state.as_str()
    ))?;
    for section in &primed.sections {
        let cut = primed
            .composed
            .cuts
            .iter()
            .find(|cut| cut.section == section.name);
        let cut = cut.map_or_else(String::new, |cut| {
            format!(", {} of them cut", cut.characters)
        });
        output::line(format!(
            "  {:<10} {:>6} characters{cut}, from {}",
            section.name,
            section.text.chars().count(),
            section.source
        ))?;
    }
    output::line(format!(
        "{} of at most {} characters",
        primed.composed.text.chars().count(),
        town.settings().prime.budget
    ))
}

fn show_section(primed: &Primed, name: &str, context: &Context) -> Result<(), Problem> {
    let found = primed.sections.iter().find(|section| section.name == name);
    let section = found.ok_or_else(|| {
        let names: Vec<&str> = primed.sections.iter().map(|section| section.name).collect();
        Problem::not_found(format!("there is no part {name:?}")).hint(names.join(", "))
    })?;
    let text = gt_core::prime::plain(&section.text);
    match context.json {
        true => output::json(&json!({"name": name, "source": section.source, "text": text})),
        false => output::line(text),
    }
}
