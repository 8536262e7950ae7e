use super::CommandResult;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Identity;
use gt_core::answer::{Choice, fingerprint, listed, number};
use gt_core::screen::Asking;
use gt_town::agents::target;
use gt_town::messaging::answer::{self, Asker};
use gt_town::messaging::{nudge, signal};
use gt_town::terminal::adopted;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Answer the question of an agent
///
/// Reads the dialog, moves the selection to the option, verifies the selection and presses Enter.
/// Without an answer it prints the question and its options. If the agent asks nothing, or with
/// --expect asks another question, no key is pressed. `--window merge` is for the program that
/// resolves the conflicts of a merge beside the agent.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The agent: its address or a short form of it, its container's name, or a prefix of its
    /// session id
    target: String,
    /// The number of an option, yes, no, or words of the option
    #[arg(value_name = "ANSWER")]
    choice: Option<String>,
    /// Answer only the question with this fingerprint, which `gt answer TARGET --json` prints
    #[arg(long, value_name = "FINGERPRINT", requires = "choice")]
    expect: Option<String>,
    /// Answer the program in this window beside the agent: merge
    #[arg(long, value_name = "NAME")]
    window: Option<String>,
}

pub(crate) fn run(args: AnswerArgs, context: &Context) -> CommandResult {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let town = adopted::home_of(&town, &identity).into_owned();
    let window = args.window.as_deref();
    let container = match window {
        Some(_) => nudge::container_of(&town, &identity)?,
        None => nudge::running(&town, &identity)?,
    };
    let asker = match window {
        Some(window) => Asker::in_window(&town, &identity, &container, window)?,
        None => Asker::agent(&town, &identity, &container)?,
    };
    let Some(choice) = &args.choice else {
        let asking = answer::question(&town, &asker)?;
        return show(&identity, window, &asking, context);
    };
    let choice = Choice::from(choice.as_str());
    let answered = answer::answer(&town, &asker, &choice, args.expect.as_deref())?;
    if window.is_none() {
        // Messages that waited for the answer can be delivered now.
        signal::wake_deliveries(&town, std::slice::from_ref(&container));
    }
    let option = &answered.asking.options[answered.chosen];
    if context.json {
        let mut document = json!({
            "agent": identity,
            "question": answered.asking.text,
            "answer": option,
        });
        with_window(&mut document, window);
        output::json(&document)?;
    } else {
        output::line(format!("Answered {asker}: {option}."))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn with_window(document: &mut Value, window: Option<&str>) {
    if let Some(window) = window {
        document["window"] = json!(window);
    }
}

/// Returns the option that names the window, for a command to type.
fn beside(window: Option<&str>) -> String {
    window.map_or_else(String::new, |window| format!(" --window {window}"))
}

/// Returns the label of each option.
fn labels(asking: &Asking) -> Vec<String> {
    let all = 0..asking.options.len();
    all.map(|at| number(asking, at)).collect()
}

fn show(
    identity: &Identity,
    window: Option<&str>,
    asking: &Asking,
    context: &Context,
) -> CommandResult {
    if context.json {
        let mut document = json!({
            "agent": identity,
            "kind": asking.kind,
            "question": asking.text,
            "options": asking.options,
            "labels": labels(asking),
            "marked": asking.marked,
            "fingerprint": fingerprint(asking),
        });
        with_window(&mut document, window);
        output::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = output::Paint::for_stdout();
    output::lines(&asking.text)?;
    if asking.options.is_empty() {
        output::line(listed(asking))?;
    }
    for (at, option) in asking.options.iter().enumerate() {
        let mark = if asking.marked == Some(at) {
            '❯'
        } else {
            ' '
        };
        output::line(format!("{mark} {} {option}", number(asking, at)))?;
        let description = asking.descriptions.get(at).map_or("", String::as_str);
        for line in output::wrapped(description, output::columns(100).saturating_sub(6)) {
            if !line.is_empty() {
                output::line(format!("      {}", paint.dim(&output::clean(&line))))?;
            }
        }
    }
    output::line(format!(
        "`gt answer {identity}{} NUMBER` answers.",
        beside(window)
    ))?;
    Ok(ExitCode::SUCCESS)
}
