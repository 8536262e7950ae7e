use super::CommandResult;
use crate::context::Context;
use crate::output::{self, Paint};
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

/// Maximum width of the descriptions of options.
const MAX_COLUMNS: usize = 100;

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
    let columns = output::terminal_columns();
    output::print(&rendered(asking, columns, Paint::for_stdout()))?;
    let command = format!("`gt answer {identity}{} NUMBER` answers.", beside(window));
    output::fitted(&command, 0)?;
    Ok(ExitCode::SUCCESS)
}

/// Renders a question and its options. Lines that are wider than the terminal are broken.
fn rendered(asking: &Asking, columns: Option<usize>, paint: Paint) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in asking.text.lines() {
        lines.extend(output::hanging("", &output::with_tabs(line), columns));
    }
    if asking.options.is_empty() {
        lines.extend(output::hanging("", &listed(asking), columns));
    }
    for (at, option) in asking.options.iter().enumerate() {
        let mark = if asking.marked == Some(at) {
            '❯'
        } else {
            ' '
        };
        let label = format!("{mark} {} ", number(asking, at));
        lines.extend(output::hanging(&label, &output::clean(option), columns));
        let description = asking.descriptions.get(at).map_or("", String::as_str);
        // Long lines are hard to read, also in a wide terminal.
        let narrow = columns.unwrap_or(MAX_COLUMNS).min(MAX_COLUMNS);
        let description = output::clean(description.trim());
        if !description.is_empty() {
            let description = output::hanging("      ", &description, Some(narrow));
            lines.extend(description.iter().map(|line| paint.dim(line)));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use unicode_width::UnicodeWidthStr;

    fn question(columns: usize) -> String {
        let asking = Asking {
            kind: "question".to_owned(),
            text: "Which colour should the button have that removes all of the settings?\n    \
                   ~/projects/a-project/with/a/long/path/that/has/no/blanks/settings.rs:120"
                .to_owned(),
            options: vec![
                "Red".to_owned(),
                "Blue, as in all of the other dialogs of the settings (recommended)".to_owned(),
                "Type something.".to_owned(),
            ],
            marked: Some(1),
            across: false,
            numbers: vec![Some(1), Some(2), Some(3)],
            descriptions: vec![
                "Red warns, and is the colour of all buttons that remove something in the other \
                 parts of the program"
                    .to_owned(),
                "The present colour".to_owned(),
                String::new(),
            ],
        };
        let text = rendered(&asking, Some(columns), Paint::OFF);
        for line in text.lines() {
            assert!(line.width() <= columns, "{line}");
        }
        text
    }

    #[test]
    fn a_question_fits_60_columns() {
        assert_snapshot!(question(60), @"
        Which colour should the button have that removes all of the
        settings?
            ~/projects/a-project/with/a/long/path/that/has/no/blanks
            /settings.rs:120
          1. Red
              Red warns, and is the colour of all buttons that
              remove something in the other parts of the program
        ❯ 2. Blue, as in all of the other dialogs of the settings
             (recommended)
              The present colour
          3. Type something.
        ");
    }

    #[test]
    fn a_question_fits_80_columns() {
        assert_snapshot!(question(80), @"
        Which colour should the button have that removes all of the settings?
            ~/projects/a-project/with/a/long/path/that/has/no/blanks/settings.rs:120
          1. Red
              Red warns, and is the colour of all buttons that remove something in the
              other parts of the program
        ❯ 2. Blue, as in all of the other dialogs of the settings (recommended)
              The present colour
          3. Type something.
        ");
    }

    #[test]
    fn a_question_fits_140_columns() {
        assert_snapshot!(question(140), @"
        Which colour should the button have that removes all of the settings?
            ~/projects/a-project/with/a/long/path/that/has/no/blanks/settings.rs:120
          1. Red
              Red warns, and is the colour of all buttons that remove something in the other parts of the
              program
        ❯ 2. Blue, as in all of the other dialogs of the settings (recommended)
              The present colour
          3. Type something.
        ");
    }
}
