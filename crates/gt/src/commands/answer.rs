use super::Answer;
use crate::context::Context;
use crate::output;
use clap::Args;
use gt_core::Identity;
use gt_core::answer::{Choice, fingerprint, listed, number};
use gt_core::screen::Asking;
use gt_town::{answer, nudge, signal, target};
use serde_json::json;
use std::process::ExitCode;

/// Answer what an agent asks
///
/// The dialog is read, its mark is moved to the option, seen there, and confirmed.
/// Without an answer the question and its options are printed. An agent that asks
/// nothing gets no key, and with --expect neither does one that asks something else.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    target: String,
    /// The number of an option, yes, no, or words of the option
    #[arg(value_name = "ANSWER")]
    choice: Option<String>,
    /// Answer only this question: the fingerprint that `--json` tells without an answer
    #[arg(long, value_name = "FINGERPRINT", requires = "choice")]
    expect: Option<String>,
}

pub(crate) fn run(args: AnswerArgs, context: &Context) -> Answer {
    let town = context.town()?;
    let identity = target::resolve(&town, &args.target)?;
    let container = nudge::running(&town, &identity)?;
    let preset = nudge::preset_of(&town, &container)?;
    let Some(choice) = &args.choice else {
        let asking = answer::question(&town, &identity, &container, &preset)?;
        return show(&identity, &asking, context);
    };
    let choice = Choice::from(choice.as_str());
    let expected = args.expect.as_deref();
    let answered = answer::answer(&town, &identity, &container, &preset, &choice, expected)?;
    // What waited for the answer may go on now.
    signal::wake_deliveries(&town, std::slice::from_ref(&container));
    let option = &answered.asking.options[answered.chosen];
    if context.json {
        output::json(&json!({
            "agent": identity,
            "question": answered.asking.text,
            "answer": option,
        }))?;
    } else {
        output::line(format!("Answered {identity}: {option}."))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What each option is called by.
fn labels(asking: &Asking) -> Vec<String> {
    let all = 0..asking.options.len();
    all.map(|at| number(asking, at)).collect()
}

fn show(identity: &Identity, asking: &Asking, context: &Context) -> Answer {
    if context.json {
        output::json(&json!({
            "agent": identity,
            "kind": asking.kind,
            "question": asking.text,
            "options": asking.options,
            "labels": labels(asking),
            "marked": asking.marked,
            "fingerprint": fingerprint(asking),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&asking.text)?;
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
    }
    Ok(ExitCode::SUCCESS)
}
