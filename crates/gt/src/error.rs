//! Reports failures to the terminal and to scripts.
//!
//! Only this module decides by the kind of a problem: the exit code, the word in JSON, and whether
//! the log gets the denial or the failed command. All other callers that distinguish failures match
//! the error enum of the function that failed.

use crate::commands::CommandResult;
use crate::context::Context;
use crate::output;
use clap::error::ErrorKind;
use gt_core::{Problem, ProblemKind};
use serde_json::json;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Prints a problem on stderr and returns its exit code.
pub(crate) fn report(problem: &Problem, json: bool) -> ExitCode {
    // If stderr is closed, the problem cannot be reported.
    let _ = if json {
        writeln!(std::io::stderr(), "{}", as_json(problem))
    } else {
        write!(std::io::stderr(), "{}", as_text(problem))
    };
    ExitCode::from(problem.kind().exit_code())
}

/// Records a denied command in the event log of the town.
pub(crate) fn record(problem: &Problem, context: &Context) {
    if problem.kind() == ProblemKind::Denied {
        context.note_denial(problem);
    }
}

/// Returns whether a command that failed in this way ended before it could change anything.
pub(crate) fn is_refusal(problem: &Problem) -> bool {
    matches!(
        problem.kind(),
        ProblemKind::Usage
            | ProblemKind::NotFound
            | ProblemKind::Denied
            | ProblemKind::Unconfirmed
            | ProblemKind::Environment
    )
}

/// Returns a single failure as it is, and several failures as the causes of one problem. Its kind
/// is theirs if they have one in common.
pub(crate) fn finish<T: Display>(
    failures: &[(&T, &Problem)],
    of: usize,
    done: &str,
) -> CommandResult {
    let mut kinds = failures.iter().map(|(_, problem)| problem.kind());
    let first = kinds.next().unwrap_or(ProblemKind::Failed);
    let kind = match kinds.all(|kind| kind == first) {
        true => first,
        false => ProblemKind::Failed,
    };
    combine(kind, failures, of, done)
}

/// Returns a single failure as it is, and several failures as the causes of one problem with the
/// kind of the first.
pub(crate) fn finish_as_first<T: Display>(
    failures: &[(&T, &Problem)],
    of: usize,
    done: &str,
) -> CommandResult {
    let first = failures.first().map(|(_, problem)| problem.kind());
    combine(first.unwrap_or(ProblemKind::Failed), failures, of, done)
}

fn combine<T: Display>(
    kind: ProblemKind,
    failures: &[(&T, &Problem)],
    of: usize,
    done: &str,
) -> CommandResult {
    match failures {
        [] => Ok(ExitCode::SUCCESS),
        [(_, problem)] if of == 1 => Err((*problem).clone()),
        many => {
            let mut whole = Problem::new(kind, format!("{} of {of} were not {done}", many.len()));
            let mut hints: Vec<&String> = Vec::new();
            for (what, problem) in many {
                whole = whole.cause(format!("{what}: {}", problem.message_with_causes()));
                hints.extend(problem.hints());
            }
            hints.sort();
            hints.dedup();
            for hint in hints.into_iter().take(3) {
                whole = whole.hint(hint.clone());
            }
            Err(whole)
        }
    }
}

pub(crate) fn as_json(problem: &Problem) -> serde_json::Value {
    json!({"error": {
        "kind": problem.kind().as_str(),
        "message": problem.message(),
        "causes": problem.causes(),
        "hints": problem.hints(),
    }})
}

fn as_text(problem: &Problem) -> String {
    let (paint, columns) = (output::Paint::for_stderr(), output::stderr_columns());
    let mut text = String::new();
    // Several lines of a cause are below each other.
    let mut push = |label: &str, width: usize, said: &str| {
        for (at, line) in said.split('\n').enumerate() {
            let line = match at {
                0 => format!("{label} {line}"),
                _ => line.to_owned(),
            };
            text.push_str(&output::broken(&line, columns, width));
            text.push('\n');
        }
    };
    push(&paint.red("error:"), 7, problem.message());
    for cause in problem.causes() {
        let indented = cause.replace('\n', "\n           ");
        push(&paint.dim("caused by:"), 11, &indented);
    }
    for hint in problem.hints() {
        push(&paint.cyan("hint:"), 6, hint);
    }
    text
}

/// Prints a usage error or a help text, and returns the exit code.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let asked_for_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if !asked_for_help && std::env::args_os().any(|word| word == "--json") {
        let text = error.render().to_string();
        let mut parts = text.splitn(2, "\n\n");
        let message = parts
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        let mut problem = Problem::new(ProblemKind::Usage, message.trim());
        if let Some(rest) = parts.next() {
            problem = problem.hint(rest.trim());
        }
        return report(&problem, true);
    }
    // Without a terminal or a reader, the text cannot be printed.
    let _ = error.print();
    ExitCode::from(if asked_for_help {
        0
    } else {
        ProblemKind::Usage.exit_code()
    })
}
